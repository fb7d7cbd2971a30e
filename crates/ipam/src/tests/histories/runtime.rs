//! What a container runtime is answered.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use serde_json::Value;

use super::answers::{Model, told_to_container};
use super::book::Held;
use super::cluster::{Asking, WORKLOAD, address, size, text, texts};

/// A call.
struct Call<'a> {
    handle: String,
    container: &'a str,
    interface: &'a str,
    node: &'a str,
    pod: Option<(String, String)>,
    wished: Vec<IpAddr>,
    stdin: &'a Value,
}

impl<'a> Call<'a> {
    fn new(op: &'a Value) -> Self {
        let of = |key: &str| text(op, key).unwrap_or_default();
        let args = |key: &str| {
            let mut pairs = of("args").split(';').filter_map(|it| it.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
        };
        let network = text(&op["stdin"], "name").unwrap_or_default();
        Self {
            handle: format!("{network}.{}", of("containerID")).to_lowercase(),
            container: of("containerID"),
            interface: of("ifname"),
            node: of("node"),
            pod: args("K8S_POD_NAMESPACE").zip(args("K8S_POD_NAME")),
            wished: args("IP").iter().map(|it| it.parse().unwrap()).collect(),
            stdin: &op["stdin"],
        }
    }

    fn held(&self) -> Held {
        Held {
            handle: Some(self.handle.clone()),
            node: self.node.to_owned(),
            owner: format!("host:{}", self.node),
            interface: Some(self.interface.to_owned()),
            pod: self.pod.clone(),
            is_tunnel: false,
            block: None,
            generation: 0,
            leaked_since: None,
        }
    }

    fn families(&self) -> Vec<AddressFamily> {
        let mut families = Vec::new();
        if self.stdin["ipam"]["assign_ipv4"] != "false" {
            families.push(AddressFamily::Ipv4Unicast);
        }
        if self.stdin["ipam"]["assign_ipv6"] == "true" {
            families.push(AddressFamily::Ipv6Unicast);
        }
        families
    }

    /// With gateways, what means something on a link is for no container.
    fn means_something(&self, block: Prefix, given: IpAddr) -> bool {
        let count = size(block);
        let is_last = given.is_ipv4() && given == address(block, count - 1);
        let has_gateway = !self.stdin["ipam"]["gateway"].is_null();
        let is_edge = given == block.address() || given == address(block, 1) || is_last;
        has_gateway && count >= 4 && is_edge
    }
}

impl Model {
    pub(super) fn answered_runtime(&mut self, op: &Value, result: &Value) -> Result<(), String> {
        let call = Call::new(op);
        let is_done = result["exit"] == 0;
        self.counts.refused += u64::from(!is_done);
        match text(op, "command").unwrap() {
            // All or none: one that fails gives nothing.
            "ADD" if is_done => self.added(&call, &told_to_container(result)),
            "ADD" => {
                self.book.lacks_releases |= self.cluster.cooldown > 0;
                Ok(())
            }
            "DEL" if is_done => self.deleted(&call),
            "DEL" | "GC" if !is_done => Err("answer: nothing is released".to_owned()),
            "GC" => self.cleaned(&call),
            "CHECK" => self.checked(&call, is_done),
            _ => Ok(()),
        }
    }

    fn had(&self, call: &Call<'_>) -> BTreeSet<IpAddr> {
        let mut had = self.book.of_handle(&call.handle);
        had.retain(|it| self.book.held[it].is_of_interface(call.interface));
        had
    }

    fn added(&mut self, call: &Call<'_>, told: &[(IpAddr, Option<u8>)]) -> Result<(), String> {
        let had = self.had(call);
        self.counts.containers += 1;
        if !call.wished.is_empty() {
            let told: Vec<IpAddr> = told.iter().map(|(it, _)| *it).collect();
            if told != call.wished {
                return Err(format!("answer: {told:?} for {:?}", call.wished));
            }
            let mut new = told.into_iter().filter(|it| !had.contains(it));
            return new.try_for_each(|it| self.given(it, &call.held(), None));
        }
        let families: Vec<AddressFamily> =
            told.iter().map(|(it, _)| AddressFamily::of(*it)).collect();
        if families != call.families() {
            return Err(format!("answer: {families:?} for {:?}", call.families()));
        }
        for (address, length) in told {
            if had.contains(address) {
                continue;
            }
            let family = AddressFamily::of(*address);
            if had.iter().any(|it| AddressFamily::of(*it) == family) {
                return Err(format!("rule: {address} is a second one of {}", call.container));
            }
            let key = if address.is_ipv4() { "ipv4_pools" } else { "ipv6_pools" };
            let asking = Asking {
                host: call.node,
                family,
                named: texts(&call.stdin["ipam"][key]),
                purpose: WORKLOAD,
                namespace: call.pod.as_ref().map(|(namespace, _)| namespace.as_str()),
            };
            self.is_allowed(&asking, *address)?;
            let block = Prefix::new(*address, length.unwrap()).unwrap();
            if call.means_something(block, *address) {
                return Err(format!("rule: {address} means something on the link"));
            }
            self.given(*address, &call.held(), Some(block))?;
        }
        Ok(())
    }

    fn deleted(&mut self, call: &Call<'_>) -> Result<(), String> {
        self.let_go(self.had(call))?;
        // As releases of long ago named it, who noted no interface.
        let earlier = match &call.pod {
            Some((namespace, name)) => format!("{namespace}.{name}"),
            None => call.container.to_owned(),
        };
        let held = self.book.of_handle(&earlier.to_lowercase());
        match held.iter().any(|it| self.book.held[it].interface.is_some()) {
            true => Ok(()),
            false => self.let_go(held),
        }
    }

    fn cleaned(&mut self, call: &Call<'_>) -> Result<(), String> {
        let network = format!("{}.", text(call.stdin, "name").unwrap().to_lowercase());
        let valid = call.stdin["cni.dev/valid-attachments"].as_array().unwrap();
        let is_valid = |container: &str, held: &Held| {
            let is_of = |it: &Value| {
                let is_same = text(it, "containerID").map(str::to_lowercase);
                is_same.as_deref() == Some(container)
                    && text(it, "ifname").is_some_and(|it| held.is_of_interface(it))
            };
            valid.iter().any(is_of)
        };
        let is_unused = |held: &Held| {
            let container = held.handle.as_ref().and_then(|it| it.strip_prefix(&network));
            container.is_some_and(|it| held.node == call.node && !is_valid(it, held))
        };
        let unused = self.book.held.iter().filter(|(_, it)| is_unused(it));
        let unused: BTreeSet<IpAddr> = unused.map(|(it, _)| *it).collect();
        self.let_go(unused)
    }

    fn let_go(&mut self, addresses: BTreeSet<IpAddr>) -> Result<(), String> {
        self.counts.released += addresses.len() as u64;
        addresses.into_iter().try_for_each(|it| self.book.release(&self.cluster, it))
    }

    fn checked(&self, call: &Call<'_>, is_right: bool) -> Result<(), String> {
        let had = self.had(call);
        let items = call.stdin["prevResult"]["ips"].as_array().into_iter().flatten();
        let items: Vec<Value> = items.map(|it| it["address"].clone()).collect();
        let earlier = self.resolved(&Value::Array(items));
        let is_theirs = !earlier.is_empty() && earlier.iter().all(|it| had.contains(it));
        match is_theirs == is_right {
            true => Ok(()),
            false => Err(format!("answer: {earlier:?} are checked, and it has {had:?}")),
        }
    }
}
