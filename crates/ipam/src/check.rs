//! What does not fit together: blocks, affinities and handles with each other, and with Pods and nodes where those are known.
//!
//! The same faults that the collector puts right, and some that only people can. Changes nothing; knows no store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::affinity::{Affinity, AffinityState};
use crate::block::{Block, Owner, is_for_no_pod};
use crate::calico::Cluster;
use crate::census::{PodName, PodState, left, pod_of};

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Defect {
    /// What: a kind with a name, or an address.
    pub subject: String,
    /// Whether it harms; otherwise it only takes room.
    pub is_fault: bool,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warning = if self.is_fault { "" } else { "warning: " };
        write!(f, "{}: {warning}{}", self.subject, self.message)
    }
}

/// What is found so far.
struct Findings<'a> {
    cluster: &'a Cluster,
    defects: Vec<Defect>,
}

/// All that does not fit, in the order of pools, blocks, affinities, handles, addresses.
pub fn check(cluster: &Cluster) -> Vec<Defect> {
    let mut findings = Findings { cluster, defects: Vec::new() };
    let of_objects = cluster.faults.iter();
    findings.defects.extend(of_objects.map(|it| Defect {
        subject: it.object.clone(),
        is_fault: true,
        message: match it.field.is_empty() {
            true => it.message.clone(),
            false => format!("{}: {}", it.field, it.message),
        },
    }));
    findings.pools();
    findings.blocks();
    findings.affinities();
    findings.handles();
    if let Some(pods) = &cluster.pods {
        findings.assignments(pods);
        findings.pods(pods);
    }
    findings.defects
}

impl Findings<'_> {
    fn add(&mut self, subject: impl ToString, is_fault: bool, message: impl ToString) {
        let (subject, message) = (subject.to_string(), message.to_string());
        self.defects.push(Defect { subject, is_fault, message });
    }

    fn pools(&mut self) {
        let pools = &self.cluster.facts.pools;
        for (index, pool) in pools.iter().enumerate() {
            let others = pools.iter().skip(index.saturating_add(1));
            for other in others.filter(|it| it.prefix.overlaps(pool.prefix)) {
                let message =
                    format!("{} overlaps {} of {}", pool.prefix, other.prefix, other.name);
                self.add(format!("IPPool/{}", pool.name), true, message);
            }
        }
    }

    fn blocks(&mut self) {
        let confirmed: BTreeSet<(&Owner, Prefix)> = self
            .cluster
            .affinities
            .iter()
            .filter(|it| it.state == AffinityState::Confirmed)
            .map(|it| (&it.owner, it.prefix))
            .collect();
        // The one of those before that reaches farthest.
        let mut before: Option<Prefix> = None;
        for (prefix, block) in &self.cluster.blocks {
            let subject = format!("IPAMBlock {prefix}");
            if let Some(other) = before.filter(|it| it.overlaps(*prefix)) {
                self.add(&subject, true, format!("overlaps block {other}"));
            }
            before =
                before.filter(|it| it.last_address() >= prefix.last_address()).or(Some(*prefix));
            match self.cluster.facts.pool_of(prefix.address()) {
                None => self.add(&subject, false, "no IPPool has it"),
                Some(pool) if pool.block_length != prefix.length() => {
                    let message =
                        format!("IPPool {} has blocks of /{}", pool.name, pool.block_length);
                    self.add(&subject, false, message);
                }
                Some(_) => {}
            }
            match block.owner() {
                None if block.is_empty() => self.add(&subject, false, "is nobody's and empty"),
                None => {}
                Some(owner) if !confirmed.contains(&(owner, *prefix)) => {
                    let message =
                        format!("is of {owner}, which has no confirmed BlockAffinity to it");
                    self.add(&subject, true, message);
                }
                Some(_) => {}
            }
        }
    }

    fn affinities(&mut self) {
        let nodes = &self.cluster.facts.nodes;
        let mut gone: BTreeMap<&str, u32> = BTreeMap::new();
        for Affinity { owner, prefix, state } in &self.cluster.affinities {
            let subject = format!("BlockAffinity of {owner} to {prefix}");
            let block = self.cluster.blocks.get(prefix);
            match block.map(Block::owner) {
                Some(Some(of_block)) if of_block == owner => {}
                // What a node that lost a block, or died while it claimed one, leaves behind is worth nothing.
                Some(Some(of_block)) => {
                    let message = format!("the block is of {of_block}");
                    self.add(&subject, *state != AffinityState::Pending, message);
                }
                Some(None) => {
                    self.add(&subject, *state != AffinityState::Pending, "the block is nobody's");
                }
                None => {
                    self.add(
                        &subject,
                        *state == AffinityState::Confirmed,
                        "there is no such block",
                    );
                }
            }
            if let Owner::Host(host) = owner
                && !nodes.is_empty()
                && !nodes.contains_key(host)
            {
                let count = gone.entry(host).or_default();
                *count = count.saturating_add(1);
            }
        }
        for (host, count) in gone {
            let message = format!("is gone, and has {count} blocks");
            self.add(format!("Node/{host}"), false, message);
        }
    }

    fn handles(&mut self) {
        let mut held: BTreeMap<&str, BTreeMap<Prefix, u32>> = BTreeMap::new();
        for block in self.cluster.blocks.values() {
            let handles = block.taken().filter_map(|(_, it)| it.handle.as_deref());
            for handle in handles.filter(|it| !is_for_no_pod(it)) {
                let count = held.entry(handle).or_default().entry(block.prefix()).or_default();
                *count = count.saturating_add(1);
            }
        }
        for (id, handle) in &self.cluster.handles {
            let of_blocks = held.remove(id.as_str()).unwrap_or_default();
            if of_blocks == handle.counts {
                continue;
            }
            let counted: u64 = handle.counts.values().map(|it| u64::from(*it)).sum();
            let total: u64 = of_blocks.values().map(|it| u64::from(*it)).sum();
            let message = match total {
                0 => format!("counts {counted} addresses, and no block has one of it"),
                _ if total == counted => {
                    "counts its addresses in other blocks than have them".to_owned()
                }
                _ => format!("counts {counted} addresses, and blocks have {total} of it"),
            };
            // Too many are only work for the collector; too few are not found by a release.
            self.add(format!("IPAMHandle {id}"), total > counted, message);
        }
        for (id, of_blocks) in held {
            let total: u64 = of_blocks.values().map(|it| u64::from(*it)).sum();
            let message = format!("is missing, and blocks have {total} addresses of it");
            self.add(format!("IPAMHandle {id}"), true, message);
        }
    }

    /// Addresses whose Pod is not there, or has others; those of nodes that are gone.
    fn assignments(&mut self, pods: &BTreeMap<PodName, PodState>) {
        for block in self.cluster.blocks.values() {
            for (address, attributes) in block.taken().filter(|(_, it)| it.released_at.is_none()) {
                let Some(name) = pod_of(attributes) else { continue };
                let Some(why) = left(pods.get(&name), attributes, address) else { continue };
                let PodName { namespace, name: pod } = &name;
                let handle = attributes.handle.as_deref().unwrap_or("none");
                let message = format!("is of Pod {namespace}/{pod} (handle {handle}), which {why}");
                self.add(address, false, message);
            }
        }
    }

    /// Addresses that Pods have and nobody gave them, or that two have.
    fn pods(&mut self, pods: &BTreeMap<PodName, PodState>) {
        let mut owners: BTreeMap<IpAddr, Vec<&PodName>> = BTreeMap::new();
        for (name, pod) in pods.iter().filter(|(_, it)| !it.is_finished) {
            for address in &pod.addresses {
                owners.entry(*address).or_default().push(name);
            }
        }
        for (address, names) in owners {
            if self.cluster.facts.pool_of(address).is_none() {
                continue;
            }
            let text = |it: &PodName| format!("{}/{}", it.namespace, it.name);
            let of: Vec<String> = names.iter().map(|it| text(it)).collect();
            if of.len() > 1 {
                self.add(address, true, format!("is of Pods {}", of.join(", ")));
            }
            let assigned = self.cluster.assigned(address);
            let Some(attributes) = assigned.filter(|it| it.released_at.is_none()) else {
                let message = format!("is of Pod {}, and is not assigned", of.join(", "));
                self.add(address, true, message);
                continue;
            };
            if let Some(other) = pod_of(attributes).filter(|it| !names.contains(&it)) {
                let message =
                    format!("is of Pod {}, and is assigned to {}", of.join(", "), text(&other));
                self.add(address, true, message);
            }
        }
    }
}
