//! The state at the end, and the routes that nodes have then: what was given is there, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Prefix;
use serde_json::Value;

use super::answers::{Model, addresses};
use super::cluster::{addresses as all_of, size, text};
use crate::{GATEWAY_HANDLE, WINDOWS_RESERVED_HANDLE};

/// A block of the state.
struct Block<'a> {
    prefix: Prefix,
    owner: Option<&'a str>,
    free: usize,
    taken: BTreeMap<IpAddr, Option<&'a str>>,
    resting: Vec<IpAddr>,
    /// What is reserved for Windows, or a gateway.
    spared: BTreeMap<IpAddr, Option<&'a str>>,
}

impl<'a> Block<'a> {
    fn new(value: &'a Value) -> Self {
        let taken = value["allocations"].as_object().unwrap().iter();
        let mut block = Self {
            prefix: text(value, "cidr").unwrap().parse().unwrap(),
            owner: text(value, "affinity"),
            free: usize::try_from(value["free"].as_u64().unwrap()).unwrap(),
            taken: taken.map(|(it, handle)| (it.parse().unwrap(), handle.as_str())).collect(),
            resting: addresses(&value["cooling"]),
            spared: BTreeMap::new(),
        };
        let is_for_no_pod = |it: &str| it == WINDOWS_RESERVED_HANDLE || it == GATEWAY_HANDLE;
        let (spared, taken) = std::mem::take(&mut block.taken)
            .into_iter()
            .partition(|(_, handle)| handle.is_some_and(is_for_no_pod));
        (block.spared, block.taken) = (spared, taken);
        block
    }
}

impl Model {
    /// All of it.
    pub(super) fn check_state(&self, state: &Value) -> Result<(), String> {
        let blocks: Vec<Block<'_>> =
            state["blocks"].as_array().unwrap().iter().map(Block::new).collect();
        self.check_addresses(&blocks)?;
        check_owners(&blocks, &state["affinities"])?;
        self.check_routes(&blocks)?;
        self.check_counts(&blocks, &state["handles"])
    }

    /// Blocks have what was given, and nothing else.
    fn check_addresses(&self, blocks: &[Block<'_>]) -> Result<(), String> {
        for (index, block) in blocks.iter().enumerate() {
            if let Some(other) =
                blocks.iter().skip(index + 1).find(|it| it.prefix.overlaps(block.prefix))
            {
                return Err(format!("twice: {} overlaps {}", other.prefix, block.prefix));
            }
            let Block { prefix, .. } = block;
            let in_use = block.taken.keys().chain(block.spared.keys());
            let named: Vec<&IpAddr> = in_use.chain(&block.resting).collect();
            let distinct: BTreeSet<&IpAddr> = named.iter().copied().collect();
            if distinct.len() < named.len() || named.iter().any(|it| !prefix.contains(**it)) {
                return Err(format!("twice: {prefix} has {named:?}"));
            }
            for (address, handle) in &block.taken {
                let held = self.book.held.get(address);
                let is_same = held.is_some_and(|it| it.handle.as_deref() == *handle);
                let is_in_place = held.and_then(|it| it.block).is_none_or(|it| it == *prefix);
                if !is_same || !is_in_place {
                    return Err(format!(
                        "twice: {address} of {prefix} is {handle:?}'s, and was given as {held:?}"
                    ));
                }
            }
            let mut resting = block.resting.iter().filter(|_| !self.book.lacks_releases);
            if let Some(address) = resting.find(|it| !self.book.released.contains_key(it)) {
                return Err(format!("twice: {address} rests, and was not released"));
            }
        }
        let taken = |it: &IpAddr| blocks.iter().any(|block| block.taken.contains_key(it));
        if let Some((address, held)) = self.book.held.iter().find(|(it, _)| !taken(it)) {
            return Err(format!("twice: {address} is free, and was given as {held:?}"));
        }
        let rests = |it: &IpAddr| blocks.iter().any(|block| block.resting.contains(it));
        let is_constant = self.cluster.had_one_cooldown;
        let mut released = self.book.released.keys();
        let is_lost = |it: &&IpAddr| self.book.rests(&self.cluster, **it) && !rests(it);
        match released.find(is_lost).filter(|_| is_constant) {
            Some(address) => Err(format!("twice: {address} was released now, and does not rest")),
            None => Ok(()),
        }
    }

    /// Blocks and handles count what was given.
    fn check_counts(&self, blocks: &[Block<'_>], handles: &Value) -> Result<(), String> {
        for Block { prefix, free, taken, resting, spared, .. } in blocks {
            if free + taken.len() + resting.len() + spared.len() != size(*prefix) {
                return Err(format!("counts: {prefix} has lost or won addresses"));
            }
            let ordinals = all_of(*prefix).into_iter().zip(0..);
            let mut others = ordinals.filter(|(_, it)| !self.book.may_be_spared(*prefix, *it));
            if let Some((address, _)) = others.find(|(it, _)| spared.contains_key(it)) {
                return Err(format!("counts: {address} of {prefix} is for no Pod"));
            }
        }
        let mut expected: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for (address, held) in &self.book.held {
            let block = blocks.iter().find(|it| it.prefix.contains(*address));
            if let Some((handle, block)) = held.handle.as_deref().zip(block) {
                let of_handle = expected.entry(handle).or_default();
                *of_handle.entry(block.prefix.to_string()).or_default() += 1;
            }
        }
        let counted = handles.as_object().unwrap().iter();
        let counted: BTreeMap<&str, BTreeMap<String, u64>> = counted
            .map(|(handle, counts)| {
                let counts = counts.as_object().unwrap().iter();
                let counts = counts.map(|(block, it)| (block.clone(), it.as_u64().unwrap()));
                (handle.as_str(), counts.collect())
            })
            .collect();
        match counted == expected {
            true => Ok(()),
            false => Err(format!("counts: handles are {counted:?}; expected {expected:?}")),
        }
    }

    /// A router finds the node of each address by the longest prefix, and no two nodes announce the same.
    fn check_routes(&self, blocks: &[Block<'_>]) -> Result<(), String> {
        let mut announced: BTreeMap<Prefix, &str> = BTreeMap::new();
        for (host, (prefixes, blackholes)) in &self.routes {
            for prefix in prefixes {
                if let Some(other) = announced.insert(*prefix, host) {
                    return Err(format!("owners: {host} and {other} announce {prefix}"));
                }
            }
            let owner = format!("host:{host}");
            let own = blocks.iter().filter(|it| it.owner == Some(&owner) && size(it.prefix) > 1);
            let own: BTreeSet<Prefix> = own.map(|it| it.prefix).collect();
            if own != blackholes.iter().copied().collect() {
                return Err(format!("owners: {host} has {own:?}, and drops {blackholes:?}"));
            }
        }
        for (address, held) in &self.book.held {
            if !self.routes.contains_key(&held.node) {
                continue;
            }
            let with = announced.iter().filter(|(prefix, _)| prefix.contains(*address));
            let found = with.max_by_key(|(prefix, _)| prefix.length()).map(|(_, host)| *host);
            let is_hidden = self.cluster.pool_of(*address).is_some_and(|it| it.is_hidden);
            if found != Some(held.node.as_str()).filter(|_| !is_hidden) {
                let node = &held.node;
                return Err(format!("owners: {address} is of {node}, and leads to {found:?}"));
            }
        }
        let mut single = announced.iter().filter(|(prefix, _)| size(**prefix) == 1);
        let is_of = |prefix: &Prefix, host: &str| {
            self.book.held.get(&prefix.address()).is_some_and(|it| it.node == host)
        };
        match single.find(|(prefix, host)| !is_of(prefix, host) && !self.book.spares_any()) {
            Some((prefix, host)) => Err(format!("owners: {host} announces {prefix} of nobody")),
            None => Ok(()),
        }
    }
}

/// Each block that has an owner has one confirmed affinity, its owner's, and each of those has its block; nobody's block
/// is in use.
fn check_owners(blocks: &[Block<'_>], affinities: &Value) -> Result<(), String> {
    let mut confirmed: BTreeMap<Prefix, String> = BTreeMap::new();
    for affinity in affinities.as_array().unwrap().iter().filter(|it| it["state"] == "confirmed") {
        let of = |key: &str| text(affinity, key).unwrap();
        let prefix: Prefix = of("cidr").parse().unwrap();
        let kind = text(affinity, "type").unwrap_or("host");
        let owner = format!("{kind}:{}", of("host"));
        if let Some(other) = confirmed.insert(prefix, owner) {
            return Err(format!("owners: {prefix} is of {other}, too"));
        }
    }
    for block in blocks {
        let affinity = confirmed.remove(&block.prefix);
        if affinity.as_deref() != block.owner {
            let owner = block.owner;
            return Err(format!("owners: {} is {owner:?}'s, and {affinity:?}", block.prefix));
        }
        if block.owner.is_none() && block.taken.is_empty() && block.resting.is_empty() {
            return Err(format!("owners: {} is nobody's and empty", block.prefix));
        }
    }
    match confirmed.first_key_value() {
        Some((prefix, owner)) => Err(format!("owners: {owner} has {prefix}, which is not there")),
        None => Ok(()),
    }
}
