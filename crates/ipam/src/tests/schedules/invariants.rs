//! What holds after each step, and what holds once everything has come to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::{Affinity, AffinityState, Block, Handle, Object};

/// What a store has, by kind.
pub(in crate::tests) struct Contents {
    pub(super) blocks: BTreeMap<Prefix, Block>,
    affinities: Vec<Affinity>,
    handles: BTreeMap<String, Handle>,
}

impl Contents {
    pub(in crate::tests) fn new(objects: Vec<Object>) -> Self {
        let mut contents =
            Self { blocks: BTreeMap::new(), affinities: Vec::new(), handles: BTreeMap::new() };
        for object in objects {
            match object {
                Object::Block(it) => _ = contents.blocks.insert(it.prefix(), it),
                Object::Affinity(it) => contents.affinities.push(it),
                Object::Handle(it) => _ = contents.handles.insert(it.id.clone(), it),
            }
        }
        contents
    }

    /// After each step: an address that somebody was told to have is theirs, and their handle leads to it; what is confirmed
    /// is so in the block, and no two blocks overlap.
    pub(in crate::tests) fn check_always(
        &self,
        owned: &BTreeMap<IpAddr, String>,
    ) -> Result<(), String> {
        for (address, handle) in owned {
            let block = self.blocks.values().find(|it| it.prefix().contains(*address));
            let found = block.and_then(|it| it.inspect(*address));
            let holder = found.and_then(|(it, _)| it.handle.as_deref());
            if holder != Some(handle) {
                return Err(format!("{address} was given to {handle}, and is {holder:?}'s"));
            }
            let prefix = block.map(Block::prefix);
            let counts = self.handles.get(handle).map(|it| &it.counts);
            let is_led_to = prefix.is_some_and(|it| counts.is_some_and(|c| c.contains_key(&it)));
            if !is_led_to {
                return Err(format!("handle {handle} does not lead to {address}: {counts:?}"));
            }
        }
        let mut confirmed = BTreeSet::new();
        for it in self.affinities.iter().filter(|it| it.state == AffinityState::Confirmed) {
            if !confirmed.insert(it.prefix) {
                return Err(format!("{} has two confirmed owners", it.prefix));
            }
            let owner = self.blocks.get(&it.prefix).and_then(Block::owner);
            if owner != Some(&it.owner) {
                return Err(format!(
                    "{:?} has confirmed {}, which is {owner:?}'s",
                    it.owner, it.prefix
                ));
            }
        }
        let mut before: Option<Prefix> = None;
        for prefix in self.blocks.keys() {
            if before.is_some_and(|it| it.overlaps(*prefix)) {
                return Err(format!("{prefix} overlaps the block before"));
            }
            before = Some(*prefix);
        }
        Ok(())
    }

    /// At rest: blocks, affinities and handles say the same, and only living Pods have addresses.
    pub(super) fn check_at_rest(&self, owned: &BTreeMap<IpAddr, String>) -> Result<(), String> {
        for block in self.blocks.values() {
            let size =
                1_usize << (block.prefix().family().address_bits() - block.prefix().length());
            if block.taken().count() + block.free_count() != size {
                return Err(format!("{} has lost addresses", block.prefix()));
            }
            for (address, attributes) in block.taken() {
                let Some(handle) = &attributes.handle else { continue };
                if owned.get(&address) != Some(handle) {
                    return Err(format!("{address} is left of {handle}"));
                }
            }
            let of_block = self.affinities.iter().filter(|it| it.prefix == block.prefix());
            let confirmed: Vec<_> = of_block
                .filter(|it| it.state == AffinityState::Confirmed)
                .map(|it| &it.owner)
                .collect();
            if confirmed != block.owner().into_iter().collect::<Vec<_>>() {
                let owner = block.owner();
                return Err(format!("{} is {owner:?}'s, and {confirmed:?}", block.prefix()));
            }
            if block.owner().is_none() && block.is_empty() {
                return Err(format!("{} is nobody's and empty", block.prefix()));
            }
        }
        for Affinity { owner, prefix, state } in &self.affinities {
            if *state != AffinityState::Confirmed || !self.blocks.contains_key(prefix) {
                return Err(format!("the affinity of {owner:?} to {prefix} is left: {state:?}"));
            }
        }
        self.check_counts()
    }

    /// Handles count what blocks have.
    pub(super) fn check_counts(&self) -> Result<(), String> {
        let mut counts: BTreeMap<String, BTreeMap<Prefix, u32>> = BTreeMap::new();
        for block in self.blocks.values() {
            for handle in block.taken().filter_map(|(_, it)| it.handle.clone()) {
                *counts.entry(handle).or_default().entry(block.prefix()).or_default() += 1;
            }
        }
        let counted: BTreeMap<String, BTreeMap<Prefix, u32>> =
            self.handles.iter().map(|(id, it)| (id.clone(), it.counts.clone())).collect();
        match counted == counts {
            true => Ok(()),
            false => Err(format!("handles count {counted:?}, and blocks have {counts:?}")),
        }
    }
}
