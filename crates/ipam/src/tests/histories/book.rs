//! Who has which address, as answers told it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Prefix;
use serde_json::Value;

use super::cluster::{Cluster, LOAD_BALANCER, WORKLOAD, size, text};

/// An address that somebody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) handle: Option<String>,
    pub(super) node: String,
    /// Who has the blocks that such addresses are given out of.
    pub(super) owner: String,
    pub(super) interface: Option<String>,
    pub(super) pod: Option<(String, String)>,
    pub(super) is_tunnel: bool,
    /// The block that the answer named.
    pub(super) block: Option<Prefix>,
    /// Another number each time that an address is given.
    pub(super) generation: u64,
    /// The first pass of the collector since which it was without its Pod in each.
    pub(super) leaked_since: Option<u64>,
}

impl Held {
    /// What an operation asks for.
    pub(super) fn asked_by(op: &Value) -> Self {
        let host = text(op, "host").unwrap_or_default();
        let kind = match text(op, "use").unwrap_or(WORKLOAD) {
            LOAD_BALANCER => "virtual",
            _ => "host",
        };
        Self::with_attributes(text(op, "handle"), &op["attrs"], host, format!("{kind}:{host}"))
    }

    pub(super) fn with_attributes(
        handle: Option<&str>,
        attributes: &Value,
        host: &str,
        owner: String,
    ) -> Self {
        let of = |key: &str| text(attributes, key).filter(|it| !it.is_empty()).map(str::to_owned);
        Self {
            handle: handle.map(str::to_lowercase),
            node: of("node").unwrap_or_else(|| host.to_owned()),
            owner,
            interface: of("interface"),
            pod: of("namespace").zip(of("pod")),
            is_tunnel: of("type").is_some(),
            block: None,
            generation: 0,
            leaked_since: None,
        }
    }

    /// Whether it is for an interface; one that nobody noted is for any.
    pub(super) fn is_of_interface(&self, interface: &str) -> bool {
        self.interface.as_deref().is_none_or(|it| it == interface)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) held: BTreeMap<IpAddr, Held>,
    /// When addresses were released that were not given since.
    pub(super) released: BTreeMap<IpAddr, u64>,
    /// A container was refused after it had been given an address: which one is not told, and rests.
    pub(super) lacks_releases: bool,
    generations: u64,
    /// So many addresses at the beginning and the end of a block may be for no Pod.
    pub(super) spared: (usize, usize),
}

impl Book {
    pub(super) fn new(case: &Value) -> Self {
        let mut book = Self { spared: spared(&case["ops"]), ..Self::default() };
        for block in case["state"]["blocks"].as_array().into_iter().flatten() {
            let owner = text(block, "affinity").unwrap_or_default();
            let host = owner.split_once(':').map_or("", |(_, it)| it);
            for (address, spec) in block["allocations"].as_object().into_iter().flatten() {
                let handle = spec.as_str().or_else(|| text(spec, "handle"));
                let held = Held::with_attributes(handle, &spec["attrs"], host, owner.to_owned());
                book.held.insert(address.parse().unwrap(), held);
            }
        }
        book
    }

    /// Somebody is given an address.
    pub(super) fn give(
        &mut self,
        cluster: &Cluster,
        address: IpAddr,
        asked: &Held,
        block: Option<Prefix>,
    ) -> Result<(), String> {
        if let Some(before) = self.held.get(&address) {
            return Err(format!(
                "twice: {address} is {:?}'s and is given to {:?}",
                before.handle, asked.handle
            ));
        }
        if self.rests(cluster, address) && cluster.had_one_cooldown {
            return Err(format!("twice: {address} rests and is given to {:?}", asked.handle));
        }
        let block = block.or_else(|| cluster.block_of(address));
        if let Some(block) = block.filter(|_| cluster.was_always_strict) {
            let mut others = self.held.iter().filter(|(it, _)| block.contains(**it));
            if let Some((other, of)) = others.find(|(_, it)| it.owner != asked.owner) {
                return Err(format!(
                    "rule: strict, and {} has {other} of {block}, {} gets {address}",
                    of.owner, asked.owner
                ));
            }
        }
        self.generations += 1;
        self.released.remove(&address);
        let held = Held { block, generation: self.generations, ..asked.clone() };
        self.held.insert(address, held);
        Ok(())
    }

    /// An answer says that an address was released.
    pub(super) fn release(&mut self, cluster: &Cluster, address: IpAddr) -> Result<(), String> {
        if self.held.remove(&address).is_none() && !self.spares_any() {
            return Err(format!("answer: {address} is released, and nobody has it"));
        }
        self.released.insert(address, cluster.seconds);
        Ok(())
    }

    /// Whether it was released too short a time ago to be given.
    pub(super) fn rests(&self, cluster: &Cluster, address: IpAddr) -> bool {
        let since = self.released.get(&address);
        cluster.cooldown > 0 && since.is_some_and(|it| cluster.seconds - it <= cluster.cooldown)
    }

    pub(super) fn of_handle(&self, handle: &str) -> BTreeSet<IpAddr> {
        let is_of = |it: &Held| it.handle.as_deref() == Some(handle);
        self.held.iter().filter(|(_, it)| is_of(it)).map(|(address, _)| *address).collect()
    }

    /// Whether the case reserves addresses of blocks for Windows, or as gateways.
    pub(super) fn spares_any(&self) -> bool {
        self.spared != (0, 0)
    }

    /// Whether it may be one of those of this block.
    pub(super) fn may_be_spared(&self, block: Prefix, ordinal: usize) -> bool {
        let (first, last) = self.spared;
        ordinal < first || ordinal + last >= size(block)
    }
}

/// How many addresses of a block operations reserve at most.
fn spared(ops: &Value) -> (usize, usize) {
    let mut most = (0, 0);
    for op in ops.as_array().into_iter().flatten() {
        let count = |it: &Value| usize::try_from(it.as_u64().unwrap_or(0)).unwrap();
        let reserved = ["hostReserved", "hostReserved4", "hostReserved6"].map(|it| &op[it]);
        let of_windows = reserved.map(|it| (count(&it["start"]), count(&it["end"])));
        let gateway = if op["stdin"]["ipam"]["gateway"] == "block" { (2, 0) } else { (0, 0) };
        for (first, last) in of_windows.into_iter().chain([gateway, spared(&op["ops"])]) {
            most = (most.0.max(first), most.1.max(last));
        }
    }
    most
}
