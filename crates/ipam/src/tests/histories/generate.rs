//! Random cases: a small cluster, and what is asked of it.
//!
//! `hostReserved` with a handle other than Windows' is not asked for: blocks have addresses of it that no handle counts, and
//! nothing says whether one should.

use fairway_ground::{Prefix, Rng};
use serde_json::{Value, json};

use super::cluster::{SELECTORS, address, size};

pub(super) const HOSTS: [&str; 4] = ["a", "b", "c", "d"];
/// All that may own a block or have an address: the last two are no nodes.
pub(super) const ALL_HOSTS: [&str; 6] = ["a", "b", "c", "d", "gone", "lb"];

/// Pools, with the lengths that their blocks may have.
const POOLS: [(&str, &[u8]); 5] = [
    ("10.0.0.0/28", &[28, 29, 30]),
    ("10.0.1.0/29", &[30, 31, 32]),
    ("10.0.2.0/27", &[29, 30]),
    ("fd00::/124", &[126, 127, 128]),
    ("fd00:0:0:1::/125", &[126, 127]),
];
/// An address of no pool.
pub(super) const ELSEWHERE: &str = "10.9.9.9";
pub(super) const PODS: usize = 6;
/// Longer than any address rests, and than the last grace.
const LONG_SECONDS: u64 = 61;
const LAST_GRACE: u64 = 60;
/// So many passes find everything: what is released in one rests, leaves its block empty, and that is noticed.
const LAST_PASSES: usize = 6;

pub(super) struct Dice(Rng);

impl Dice {
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.next_u64() % end as u64).unwrap()
    }

    /// One time in so many.
    pub(super) fn once_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What is known while a case is made.
pub(super) struct Maker {
    pub(super) dice: Dice,
    pub(super) pools: Vec<(&'static str, &'static [u8])>,
    /// The operations whose results may have addresses.
    pub(super) givers: Vec<usize>,
    /// The operations that inspect an address, and what they name.
    pub(super) inspections: Vec<(usize, String)>,
    pub(super) cooldown: u64,
    pub(super) is_strict: bool,
    pub(super) has_windows: bool,
    pub(super) has_gateways: bool,
    /// Whether pools, nodes and the configuration change.
    pub(super) is_restless: bool,
}

/// A case; each seed has another one.
pub(super) fn case(seed: u64) -> Value {
    let mut dice = Dice(Rng::seeded(seed));
    let mut pools = POOLS.to_vec();
    while pools.len() > 3 || (pools.len() > 1 && dice.once_in(2)) {
        pools.swap_remove(dice.below(pools.len()));
    }
    let is_strict = dice.once_in(3);
    let mut maker = Maker {
        pools,
        givers: Vec::new(),
        inspections: Vec::new(),
        cooldown: dice.pick(&[0, 0, 10, 30]),
        is_strict,
        has_windows: dice.once_in(8),
        has_gateways: dice.once_in(8),
        is_restless: dice.once_in(2),
        dice,
    };
    let state = maker.state();
    let mut ops = Vec::new();
    for index in 0..5 + maker.dice.below(36) {
        let op = maker.operation();
        let name = op["op"].as_str().unwrap();
        if matches!(name, "autoAssign" | "assignIP") || op["command"] == "ADD" {
            maker.givers.push(index);
        }
        if name == "inspect" {
            maker.inspections.push((index, op["ip"].as_str().unwrap().to_owned()));
        }
        ops.push(op);
    }
    if maker.dice.once_in(2) {
        ops.extend(last_passes());
    }
    ops.extend(ALL_HOSTS.iter().map(|host| json!({"op": "routes", "host": host})));
    json!({"state": state, "ops": ops})
}

/// The collector has its time.
pub(super) fn last_passes() -> Vec<Value> {
    let pass = || json!({"op": "gc", "grace": LAST_GRACE});
    let later = || [json!({"op": "advance", "seconds": LONG_SECONDS}), pass()];
    std::iter::once(pass()).chain((0..LAST_PASSES).flat_map(|_| later())).collect()
}

/// Whether it has at the end of a case.
pub(super) fn is_collected(case: &Value) -> bool {
    let ops = case["ops"].as_array().unwrap();
    let ops: Vec<Value> = ops.iter().filter(|it| it["op"] != "routes").cloned().collect();
    ops.ends_with(&last_passes())
}

impl Maker {
    fn state(&mut self) -> Value {
        let pools: Vec<Value> = self.pools.clone().iter().map(|it| self.pool(*it)).collect();
        let nodes: Vec<Value> = (0..2 + self.dice.below(3))
            .map(|it| json!({"name": HOSTS[it], "labels": self.labels()}))
            .collect();
        let namespaces =
            json!({"ns0": {"labels": self.labels()}, "ns1": {"labels": self.labels()}});
        let mut state = json!({
            "nodes": nodes,
            "namespaces": namespaces,
            "reservations": self.reservations(),
            "config": self.config(),
        });
        if self.dice.once_in(4) {
            state["blocks"] = self.blocks(&pools);
        }
        state["pools"] = json!(pools);
        state
    }

    pub(super) fn labels(&mut self) -> Value {
        let mut labels = json!({});
        if !self.dice.once_in(3) {
            labels["zone"] = self.dice.pick(&["x", "y", "z"]).into();
        }
        if self.dice.once_in(3) {
            labels["gpu"] = "1".into();
        }
        labels
    }

    pub(super) fn pool(&mut self, (cidr, lengths): (&str, &[u8])) -> Value {
        let mut pool = json!({"cidr": cidr, "blockSize": self.dice.pick(lengths)});
        let dice = &mut self.dice;
        for (key, value) in [
            ("nodeSelector", json!(dice.pick(&SELECTORS))),
            ("namespaceSelector", json!(dice.pick(&SELECTORS))),
            ("allowedUses", json!([dice.pick(&["Workload", "Tunnel", "LoadBalancer"])])),
            ("assignmentMode", json!("Manual")),
            ("disabled", json!(true)),
            ("disableBGPExport", json!(true)),
        ] {
            if dice.once_in(if key == "nodeSelector" { 3 } else { 12 }) {
                pool[key] = value;
            }
        }
        if dice.once_in(4) {
            pool["name"] = cidr.replace(['.', ':', '/'], "x").into();
        }
        pool
    }

    pub(super) fn reservations(&mut self) -> Vec<String> {
        let count = self.dice.pick(&[0, 0, 1, 2]);
        (0..count).map(|_| self.reservation()).collect()
    }

    fn reservation(&mut self) -> String {
        let address: std::net::IpAddr = self.address().parse().unwrap();
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let length = whole - self.dice.pick(&[0, 0, 1, 2]);
        Prefix::new(address, length).unwrap().to_string()
    }

    pub(super) fn config(&mut self) -> Value {
        let mut config = json!({"ipCooldownSeconds": self.cooldown});
        if self.is_strict {
            config["strictAffinity"] = true.into();
            config["maxBlocksPerHost"] = self.dice.pick(&[0, 0, 1, 2]).into();
            config["autoAllocateBlocks"] = (!self.dice.once_in(10)).into();
        }
        config
    }

    /// Blocks that are there at the beginning, as somebody else has made them.
    fn blocks(&mut self, pools: &[Value]) -> Value {
        let mut blocks = Vec::new();
        for pool in pools {
            let cidr: Prefix = pool["cidr"].as_str().unwrap().parse().unwrap();
            let length = u8::try_from(pool["blockSize"].as_u64().unwrap()).unwrap();
            let first = Prefix::new(cidr.address(), length).unwrap();
            let mut allocations = json!({});
            for ordinal in 0..size(first) {
                let handle = self.handle();
                if self.dice.once_in(2) {
                    let of = json!({"handle": handle, "attrs": self.attributes()});
                    allocations[address(first, ordinal).to_string()] = of;
                }
            }
            let owner = format!("host:{}", self.dice.pick(&HOSTS));
            blocks.push(json!({"cidr": first, "affinity": owner, "allocations": allocations}));
        }
        json!(blocks)
    }

    pub(super) fn host(&mut self) -> &'static str {
        if self.dice.once_in(20) { "gone" } else { self.dice.pick(&HOSTS) }
    }

    /// Handles of attachments and of old releases are among them.
    pub(super) fn handle(&mut self) -> String {
        let number = self.dice.below(PODS);
        match self.dice.below(12) {
            0 => format!("k8s.c{number}"),
            1 => format!("ns{}.p{number}", number % 2),
            2 => format!("c{number}"),
            3 => format!("H{number}"),
            _ => format!("h{number}"),
        }
    }

    pub(super) fn attributes(&mut self) -> Value {
        let number = self.dice.below(PODS);
        match self.dice.below(10) {
            0..5 => json!({"namespace": format!("ns{}", number % 2), "pod": format!("p{number}")}),
            5 => json!({"type": "vxlanTunnelAddress"}),
            6 => json!({"node": self.dice.pick(&HOSTS)}),
            _ => json!({}),
        }
    }

    pub(super) fn cidr(&mut self) -> Prefix {
        self.dice.pick(&self.pools.clone()).0.parse().unwrap()
    }

    pub(super) fn address(&mut self) -> String {
        let cidr = self.cidr();
        address(cidr, self.dice.below(size(cidr))).to_string()
    }

    /// A block, or all of a pool, or more than that, or less.
    pub(super) fn block(&mut self) -> Value {
        let (cidr, lengths) = self.dice.pick(&self.pools.clone());
        let cidr: Prefix = cidr.parse().unwrap();
        let address = address(cidr, self.dice.below(size(cidr)));
        match self.dice.below(8) {
            0 => json!(cidr),
            1 => json!(Prefix::host(address)),
            _ => json!(Prefix::new(address, self.dice.pick(lengths)).unwrap()),
        }
    }

    /// Addresses of an earlier result; one at random where there is none.
    pub(super) fn reference(&mut self) -> String {
        if self.givers.is_empty() {
            return self.address();
        }
        let giver = self.dice.pick(&self.givers.clone());
        match self.dice.below(3) {
            0 => format!("${giver}[{}]", self.dice.below(3)),
            _ => format!("${giver}"),
        }
    }
}
