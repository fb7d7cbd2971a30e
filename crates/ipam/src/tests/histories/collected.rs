//! What the collector takes back: nothing that a Pod has, and nothing of a Pod that is gone is left.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::answers::{Model, addresses};
use super::book::Held;
use super::cluster::{size, text, texts};

/// The grace of a pass that does not say.
const GRACE: u64 = 15 * 60;

/// What the model believes of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    /// Its Pod is there, or nobody knows.
    Valid,
    Tunnel,
    Leaked,
}

impl Model {
    fn belief(&self, address: IpAddr, held: &Held) -> Belief {
        if held.handle.is_none() {
            return Belief::Valid;
        }
        if held.is_tunnel {
            return Belief::Tunnel;
        }
        let Some(name) = &held.pod else { return Belief::Valid };
        let Some(pod) = self.cluster.pods.get(name).filter(|it| !it.is_finished) else {
            return Belief::Leaked;
        };
        if pod.addresses.contains(&address) {
            return Belief::Valid;
        }
        // Kubernetes lists the addresses of the first interface alone.
        let has_others = held.is_of_interface("eth0") && !pod.addresses.is_empty();
        let is_elsewhere = !pod.node.is_empty() && pod.node != held.node;
        if has_others || is_elsewhere { Belief::Leaked } else { Belief::Valid }
    }

    fn is_gone(&self, node: &str) -> bool {
        !node.is_empty() && !self.cluster.nodes.contains_key(node)
    }

    /// Whether a node has something that keeps its blocks for it.
    fn is_in_use(&self, node: &str) -> bool {
        let is_tunnel = |it: &Held| it.is_tunnel && it.handle.is_some();
        self.book.held.values().any(|it| it.node == node && !is_tunnel(it))
    }

    /// A pass.
    pub(super) fn collected(&mut self, op: &Value, result: &Value) -> Result<(), String> {
        let now = self.cluster.seconds;
        let grace = op["grace"].as_u64().unwrap_or(GRACE);
        let held = self.book.held.iter();
        let leaked: BTreeSet<IpAddr> = held
            .filter(|(address, it)| self.belief(**address, it) == Belief::Leaked)
            .map(|(address, _)| *address)
            .collect();
        for (address, it) in &mut self.book.held {
            let is_leaked = leaked.contains(address);
            it.leaked_since = is_leaked.then(|| it.leaked_since.unwrap_or(now));
        }
        let released = addresses(&result["released"]);
        let mut handles: BTreeSet<String> = BTreeSet::new();
        for address in &released {
            let held = self.book.held.get(address).cloned();
            let held = held.ok_or_else(|| format!("leak: {address} is collected twice"))?;
            let since = held.leaked_since.filter(|it| now - *it >= grace.max(1) && grace > 0);
            let belief = self.belief(*address, &held);
            let is_due = match belief {
                Belief::Valid => false,
                Belief::Tunnel => self.is_gone(&held.node),
                Belief::Leaked => since.is_some() || self.is_gone(&held.node),
            };
            if !is_due {
                return Err(format!("leak: {address} is collected, which is {belief:?}: {held:?}"));
            }
            // A node's own goes by itself.
            handles.extend(held.handle.filter(|_| belief == Belief::Leaked));
            self.book.release(&self.cluster, *address)?;
        }
        self.counts.collected += released.len() as u64;
        if let Some(address) = handles.iter().find_map(|it| self.book.of_handle(it).pop_first()) {
            return Err(format!("leak: {address} stays of a handle that is collected"));
        }
        for host in texts(&result["hosts"]) {
            if !self.is_gone(&host) || self.is_in_use(&host) {
                return Err(format!("leak: node {host} is cleared, which is there or in use"));
            }
        }
        match text(result, "error") {
            Some(error) => Err(format!("leak: the collector fails by {error}")),
            None => Ok(()),
        }
    }

    /// After the collector has had its time: nothing is left of Pods and nodes that are gone, and of stock one block.
    pub(super) fn nothing_is_left(&self, state: &Value) -> Result<(), String> {
        for (address, held) in &self.book.held {
            let Some(handle) = &held.handle else { continue };
            let mut all = self.book.of_handle(handle).into_iter();
            let is_due = |it: IpAddr| match self.belief(it, &self.book.held[&it]) {
                Belief::Leaked => true,
                Belief::Valid | Belief::Tunnel => false,
            };
            if self.belief(*address, held) == Belief::Leaked && all.all(is_due) {
                return Err(format!("leak: {address} is left: {held:?}"));
            }
        }
        let blocks = state["blocks"].as_array().unwrap();
        for block in blocks {
            let owner = text(block, "affinity").unwrap_or_default();
            let Some(host) = owner.strip_prefix("host:") else { continue };
            if self.is_gone(host) && !self.is_in_use(host) {
                return Err(format!("leak: {} is left to {owner}, which is gone", block["cidr"]));
            }
            if self.is_gone(host) || self.is_used(block) {
                continue;
            }
            let is_same_family = |it: &Value| is_ipv4(it) == is_ipv4(block);
            let of_owner = blocks.iter().filter(|it| it["affinity"] == block["affinity"]);
            let stock = of_owner.filter(|it| is_same_family(it) && self.serves(it)).count();
            if stock > 1 || !self.serves(block) {
                return Err(format!("leak: {} is empty, and left to {owner}", block["cidr"]));
            }
        }
        match state["affinities"].as_array().unwrap().iter().find(|it| it["state"] != "confirmed") {
            Some(affinity) => Err(format!("leak: {affinity} is left")),
            None => Ok(()),
        }
    }

    /// Whether a block of the state has something for somebody.
    fn is_used(&self, block: &Value) -> bool {
        let cidr: fairway_ground::Prefix = text(block, "cidr").unwrap().parse().unwrap();
        let free = usize::try_from(block["free"].as_u64().unwrap()).unwrap();
        let resting = block["cooling"].as_array().map_or(0, Vec::len);
        let held = self.book.held.keys().any(|it| cidr.contains(*it));
        held || resting > 0 || (free < size(cidr) && !self.book.spares_any())
    }

    /// Whether a block is of the size that its pool has now.
    fn serves(&self, block: &Value) -> bool {
        let cidr: fairway_ground::Prefix = text(block, "cidr").unwrap().parse().unwrap();
        self.cluster.pool_of(cidr.address()).is_some_and(|it| it.length == cidr.length())
    }
}

fn is_ipv4(block: &Value) -> bool {
    text(block, "cidr").is_some_and(|it| it.contains('.'))
}
