//! Random operations of a case.

use serde_json::{Value, json};

use super::generate::{ELSEWHERE, HOSTS, Maker, PODS};

const GRACES: [u64; 4] = [0, 10, 60, 900];

impl Maker {
    pub(super) fn operation(&mut self) -> Value {
        match self.dice.below(44) {
            0..9 => self.auto_assign(),
            9..12 => self.assign_address(),
            12..17 => self.release(),
            17..19 => json!({"op": "releaseByHandle", "handle": self.handle()}),
            19 => json!({"op": "ipsByHandle", "handle": self.handle()}),
            20..22 => json!({"op": "inspect", "ip": self.one()}),
            22..26 => self.own(),
            26 => self.ensure_block(),
            27 => json!({"op": self.dice.pick(&["utilization", "getConfig"])}),
            28 => json!({"op": "gc", "grace": self.dice.pick(&GRACES)}),
            29..31 => self.change(),
            31 => json!({"op": "setReservations", "cidrs": self.reservations()}),
            32..35 => self.pod(),
            35..37 => json!({"op": "advance", "seconds": self.dice.pick(&[1, 10, 31, 61, 901])}),
            37 => {
                let ops: Vec<Value> =
                    (0..2 + self.dice.below(3)).map(|_| self.for_parallel()).collect();
                json!({"op": "parallel", "ops": ops})
            }
            _ => self.call(),
        }
    }

    /// One of those that several do at once.
    fn for_parallel(&mut self) -> Value {
        match self.dice.below(8) {
            0..3 => self.auto_assign(),
            3 => self.assign_address(),
            4 => self.release(),
            5 => json!({"op": "releaseByHandle", "handle": self.handle()}),
            6 => self.own(),
            _ => self.call(),
        }
    }

    /// What may stand with an assignment.
    fn decorate(&mut self, op: &mut Value, families: &[&str]) {
        let handle = self.handle();
        if !self.dice.once_in(15) {
            op["handle"] = handle.into();
        }
        op["attrs"] = self.attributes();
        if self.dice.once_in(12) {
            op["use"] = self.dice.pick(&["Tunnel", "LoadBalancer"]).into();
        }
        if op["use"] == "LoadBalancer" {
            op["host"] = "lb".into();
        }
        if self.dice.once_in(12) {
            op["maxPerHandle"] = (1 + self.dice.below(2)).into();
        }
        for family in families {
            if self.has_windows && self.dice.once_in(3) {
                let end = self.dice.below(2);
                op[format!("hostReserved{family}")] = json!({"start": 1, "end": end});
            }
        }
    }

    fn auto_assign(&mut self) -> Value {
        let counts = [0, 1, 1, 1, 2, 3, 9];
        let mut op = json!({
            "op": "autoAssign",
            "host": self.host(),
            "n4": self.dice.pick(&counts),
            "n6": self.dice.pick(&counts),
        });
        self.decorate(&mut op, &["4", "6"]);
        if self.dice.once_in(3) {
            op["namespace"] = self.dice.pick(&["ns0", "ns1", "ns2"]).into();
        }
        if self.dice.once_in(6) {
            let cidr = self.cidr();
            op[if cidr.address().is_ipv4() { "pools4" } else { "pools6" }] = json!([cidr]);
        }
        if self.dice.once_in(10) {
            op["maxBlocks"] = (1 + self.dice.below(2)).into();
        }
        op
    }

    fn assign_address(&mut self) -> Value {
        let mut op = json!({"op": "assignIP", "ip": self.one(), "host": self.host()});
        self.decorate(&mut op, &[""]);
        op
    }

    /// One address.
    fn one(&mut self) -> String {
        let giver = self.dice.below(self.givers.len().max(1));
        match self.givers.get(giver) {
            Some(giver) if self.dice.once_in(2) => format!("${giver}[{}]", self.dice.below(2)),
            _ if self.dice.once_in(20) => ELSEWHERE.to_owned(),
            _ => self.address(),
        }
    }

    fn release(&mut self) -> Value {
        if !self.inspections.is_empty() && self.dice.once_in(4) {
            let (index, ip) = self.inspections[self.dice.below(self.inspections.len())].clone();
            let by_number = json!({"ip": ip, "seq": format!("${index}.seq")});
            return json!({"op": "releaseIPs", "ips": [by_number]});
        }
        let mut ips = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            ips.push(match self.dice.below(6) {
                0 => json!({"ip": self.one(), "handle": self.handle()}),
                1 => json!(self.address()),
                _ => json!(self.reference()),
            });
        }
        json!({"op": "releaseIPs", "ips": ips})
    }

    /// Affinities.
    fn own(&mut self) -> Value {
        let mut op = match self.dice.below(9) {
            0..3 => json!({"op": "claimAffinity", "cidr": self.block(), "host": self.host()}),
            3..5 => json!({"op": "releaseAffinity", "cidr": self.block(), "host": self.host()}),
            5 => json!({"op": "releaseHostAffinities", "host": self.host()}),
            6 => json!({"op": "releaseBlockAffinity", "cidr": self.block()}),
            7 => json!({"op": "releasePoolAffinities", "cidr": self.cidr()}),
            _ => return json!({"op": "removeHost", "host": self.host()}),
        };
        if op["op"] != "claimAffinity" {
            op["mustBeEmpty"] = self.dice.once_in(2).into();
        }
        if op["host"].is_string() && self.dice.once_in(10) {
            (op["type"], op["host"]) = ("virtual".into(), "lb".into());
        }
        op
    }

    fn ensure_block(&mut self) -> Value {
        let mut op = json!({"op": "ensureBlock", "host": self.host()});
        let count = usize::from(self.has_windows);
        op[self.dice.pick(&["hostReserved4", "hostReserved6"])] = json!({"start": count, "end": 0});
        op
    }

    /// The cluster changes.
    fn change(&mut self) -> Value {
        if !self.is_restless {
            return self.auto_assign();
        }
        match self.dice.below(9) {
            0..3 => {
                let pool = self.dice.pick(&self.pools.clone());
                json!({"op": "setPool", "pool": self.pool(pool)})
            }
            3 => json!({"op": "deletePool", "cidr": self.cidr()}),
            4..6 => {
                let name = self.dice.pick(&HOSTS);
                json!({"op": "setNode", "name": name, "labels": self.labels()})
            }
            6..8 => json!({"op": "deleteNode", "name": self.dice.pick(&HOSTS)}),
            _ => {
                self.cooldown = self.dice.pick(&[0, 10, 30]);
                self.is_strict ^= self.dice.once_in(3);
                let mut config = self.config();
                for (key, value) in
                    [("strictAffinity", json!(self.is_strict)), ("maxBlocksPerHost", json!(0))]
                {
                    if config[key].is_null() {
                        config[key] = value;
                    }
                }
                config["op"] = "setConfig".into();
                config
            }
        }
    }

    fn pod(&mut self) -> Value {
        let number = self.dice.below(PODS);
        let (namespace, name) = (format!("ns{}", number % 2), format!("p{number}"));
        if self.dice.once_in(3) {
            return json!({"op": "deletePod", "namespace": namespace, "name": name});
        }
        let ips = match self.dice.below(4) {
            0 => json!([]),
            1 => json!([self.address()]),
            _ => json!([self.reference(), self.reference()]),
        };
        let node = self.dice.pick(&["", "a", "b", "c", "d"]);
        let mut pod = json!({"namespace": namespace, "name": name, "node": node, "ips": ips});
        if self.dice.once_in(6) {
            pod["phase"] = self.dice.pick(&["Succeeded", "Failed", "Running"]).into();
        }
        if self.dice.once_in(12) {
            pod["reason"] = "Evicted".into();
        }
        json!({"op": "setPod", "pod": pod})
    }

    /// A container runtime calls.
    fn call(&mut self) -> Value {
        let commands = ["ADD", "ADD", "ADD", "ADD", "DEL", "DEL", "DEL", "CHECK", "GC", "STATUS"];
        let command = self.dice.pick(&commands);
        let number = self.dice.below(PODS);
        let mut stdin =
            json!({"cniVersion": "1.1.0", "name": "k8s", "ipam": {"type": "fairway-cni"}});
        let mut args = format!("K8S_POD_NAMESPACE=ns{};K8S_POD_NAME=p{number}", number % 2);
        if self.dice.once_in(4) {
            args = "IgnoreUnknown=1".to_owned();
        }
        match command {
            "ADD" | "STATUS" => {
                let both =
                    self.dice.pick(&[("true", "false"), ("true", "true"), ("false", "true")]);
                (stdin["ipam"]["assign_ipv4"], stdin["ipam"]["assign_ipv6"]) =
                    (both.0.into(), both.1.into());
                if self.has_gateways {
                    stdin["ipam"]["gateway"] = self.dice.pick(&["block", "169.254.1.1"]).into();
                }
                if self.dice.once_in(8) {
                    let cidr = self.cidr();
                    let key = if cidr.address().is_ipv4() { "ipv4_pools" } else { "ipv6_pools" };
                    stdin["ipam"][key] = json!([cidr]);
                }
                if self.dice.once_in(6) {
                    args = format!("{args};IP={}", self.address());
                }
            }
            "CHECK" => {
                let address = self.one();
                stdin["prevResult"] = json!({"cniVersion": "1.1.0", "ips": [{"address": address}]});
            }
            "GC" => {
                let valid = (0..PODS).filter(|_| self.dice.once_in(2));
                let valid: Vec<Value> = valid
                    .map(|it| json!({"containerID": format!("c{it}"), "ifname": "eth0"}))
                    .collect();
                stdin["cni.dev/valid-attachments"] = json!(valid);
            }
            _ => {}
        }
        let interface = if self.dice.once_in(6) { "net1" } else { "eth0" };
        json!({"op": "cni", "command": command, "containerID": format!("c{number}"),
               "ifname": interface, "netns": "/proc/1/ns/net", "args": args,
               "node": self.dice.pick(&HOSTS), "stdin": stdin})
    }
}
