//! What nobody uses any more is taken back: addresses of Pods that are gone, blocks that are empty, what nodes left behind.
//!
//! One collector works in a cluster. It takes an address back that has been without its Pod at each look for the time of
//! grace, and asks once more before it does. Where a question has no answer the address stays. Knows no API server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};

use crate::addressing::Addressing;
use crate::affinity::{Affinity, AffinityState};
use crate::block::{Attributes, Block, Owner, Release, is_for_no_pod};
use crate::census::{Census, PodName, is_for_tunnel, left, pod_of};
use crate::claim::{Departure, ReleaseIf};
use crate::error::IpamError;
use crate::moment::Seconds;
use crate::store::{self, Handle, Store, StoreError, Version, Versioned};
use crate::usage::{self, Usage};

/// The most addresses that a pass takes back, so that one mistaken view of the cluster does not cost them all at once.
const RELEASED_MAX: usize = 10_000;

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    /// The addresses that it took back.
    pub released: Vec<IpAddr>,
    /// Those that it will, if nothing changes.
    pub candidates: Vec<IpAddr>,
    /// The blocks that lost their owner.
    pub blocks: Vec<Prefix>,
    /// The nodes that are gone and have nothing any more.
    pub hosts: Vec<String>,
    /// How full each pool was before.
    pub pools: Vec<Usage>,
    /// What could not be done, and is tried again in the next pass.
    pub errors: Vec<IpamError>,
}

/// What is remembered from one pass to the next: since when something looks unused. Only what still does is kept.
#[derive(Debug, Clone, Default)]
pub struct Collector {
    leaks: BTreeMap<Leak, Seconds>,
    /// Blocks with the sequence number at which they were empty.
    idle: BTreeMap<(Prefix, u64), Seconds>,
    /// Affinities without a block.
    stale: BTreeMap<(Owner, Prefix, AffinityState), Seconds>,
    /// Blocks whose owner has not confirmed that it has them.
    halves: BTreeMap<(Owner, Prefix), Seconds>,
    /// Handles that count otherwise than blocks, with their version.
    orphans: BTreeMap<(String, Option<Version>), Seconds>,
}

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Leak {
    handle: String,
    address: IpAddr,
    sequence: u64,
}

/// What an assignment is believed to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// Its Pod is there; or it is nobody's that is known.
    Valid,
    /// Of a node for itself.
    Tunnel,
    /// Its Pod is not there, or has another address.
    Leaked(PodName),
}

/// An assignment with what is believed of it.
struct Judged {
    leak: Leak,
    attributes: Attributes,
    /// The node that the assignment names.
    node: Option<String>,
    /// The same; or that of the block, where it names none.
    place: String,
    verdict: Verdict,
}

/// A block that its owner is to give up.
struct Due {
    owner: Owner,
    prefix: Prefix,
    /// If nothing has changed since it had this number; `None` for an affinity without a block.
    sequence: Option<u64>,
    /// It is of its pool's size, and stock of the node.
    serves: bool,
}

/// What a pass works on.
struct Pass<'a, S, C> {
    addressing: &'a Addressing<'a, S>,
    census: &'a C,
    grace: Seconds,
    blocks: BTreeMap<Prefix, Block>,
    affinities: Vec<Versioned<Affinity>>,
    done: Collected,
}

impl Collector {
    /// Looks at everything once. `grace` is in seconds; with 0 only what nodes that are gone left behind is taken back.
    ///
    /// # Errors
    /// The store cannot be listed: nothing was done. What fails later is in [`Collected::errors`].
    pub async fn pass<S: Store, C: Census>(
        &mut self,
        addressing: &Addressing<'_, S>,
        census: &C,
        grace: Seconds,
    ) -> Result<Collected, IpamError> {
        let mut pass = Pass {
            addressing,
            census,
            grace,
            // Affinities first: a block without one is then no reason to believe that its owner has lost it.
            affinities: store::affinities(addressing.store, None).await?,
            blocks: addressing
                .load_all()
                .await?
                .into_iter()
                .map(|it| (it.value.prefix(), it.value))
                .collect(),
            done: Collected::default(),
        };
        pass.done.pools = usage::of_pools(&pass.blocks, addressing.facts);
        let judged = pass.judge();
        self.take_addresses_back(&mut pass, &judged).await;
        pass.clear_departed_nodes(&judged).await;
        if grace > 0 {
            self.take_blocks_back(&mut pass).await;
            self.complete_claims(&mut pass).await;
            if let Err(error) = self.correct_handles(&mut pass).await {
                pass.done.errors.push(error);
            }
        }
        if let Err(error) = pass.visit_resting().await {
            pass.done.errors.push(error);
        }
        Ok(pass.done)
    }

    async fn take_addresses_back<S: Store, C: Census>(
        &mut self,
        pass: &mut Pass<'_, S, C>,
        judged: &[Judged],
    ) {
        let now = pass.addressing.now.seconds();
        let before = std::mem::take(&mut self.leaks);
        let mut spared: BTreeSet<&str> = BTreeSet::new();
        let mut due: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
        for it in judged {
            if !matches!(it.verdict, Verdict::Leaked(_)) {
                spared.insert(&it.leak.handle);
                continue;
            }
            let since = before.get(&it.leak).copied().unwrap_or(now);
            self.leaks.insert(it.leak.clone(), since);
            let has_departed = it.node.as_ref().is_some_and(|node| pass.has_departed(node));
            let is_over = pass.grace > 0 && now.saturating_sub(since) >= pass.grace;
            if (is_over && since < now) || has_departed {
                due.entry(&it.leak.handle).or_default().push(it);
            } else {
                spared.insert(&it.leak.handle);
            }
        }
        // All addresses of a handle or none: they are one Pod's.
        due.retain(|handle, _| !spared.contains(handle));
        for (_, leaks) in due {
            let after = pass.done.released.len().saturating_add(leaks.len());
            if after > RELEASED_MAX && !pass.done.released.is_empty() {
                continue;
            }
            if pass.are_leaked_now(&leaks).await {
                pass.release(&leaks).await;
            }
        }
        let released: BTreeSet<IpAddr> = pass.done.released.iter().copied().collect();
        self.leaks.retain(|it, _| !released.contains(&it.address));
        pass.done.candidates = self.leaks.keys().map(|it| it.address).collect();
        pass.done.candidates.sort_unstable();
    }

    /// Blocks that have been empty for longer than the grace, except a node's last of a family; and affinities to none.
    async fn take_blocks_back<S: Store, C: Census>(&mut self, pass: &mut Pass<'_, S, C>) {
        let now = pass.addressing.now.seconds();
        let is_due = |since: Seconds| now.saturating_sub(since) > pass.grace;
        let mut counts: BTreeMap<(Owner, AddressFamily), u32> = BTreeMap::new();
        let (mut idle, mut stale) = (BTreeMap::new(), BTreeMap::new());
        let mut due: Vec<Due> = Vec::new();
        for Affinity { owner, prefix, state } in pass.affinities.iter().map(|it| &it.value) {
            if pass.done.blocks.contains(prefix) {
                continue;
            }
            let Some(block) = pass.blocks.get(prefix).filter(|it| it.owner() == Some(owner)) else {
                let key = (owner.clone(), *prefix, *state);
                let since = self.stale.get(&key).copied().unwrap_or(now);
                if is_due(since) {
                    let owner = owner.clone();
                    due.push(Due { owner, prefix: *prefix, sequence: None, serves: false });
                }
                stale.insert(key, since);
                continue;
            };
            // One of another size than its pool's is no stock: it keeps blocks of the pool's size from all.
            let serves = pass.addressing.facts.pools.iter().any(|it| it.serves(*prefix));
            let count = counts.entry((owner.clone(), prefix.family())).or_default();
            *count = count.saturating_add(u32::from(serves));
            let is_of_node = matches!(owner, Owner::Host(host) if pass.census.has_node(host));
            if is_of_node && block.is_empty() {
                let key = (*prefix, block.sequence());
                let since = self.idle.get(&key).copied().unwrap_or(now);
                if is_due(since) {
                    let sequence = block.sequence();
                    due.push(Due {
                        owner: owner.clone(),
                        prefix: *prefix,
                        sequence: Some(sequence),
                        serves,
                    });
                }
                idle.insert(key, since);
            }
        }
        (self.idle, self.stale) = (idle, stale);
        for Due { owner, prefix, sequence, serves } in due {
            let count = counts.get_mut(&(owner.clone(), prefix.family()));
            if serves && count.as_ref().is_none_or(|it| **it <= 1) {
                continue;
            }
            let release_if = sequence.map_or(ReleaseIf::Empty, ReleaseIf::EmptySince);
            if pass.give_up(&owner, prefix, release_if).await
                && let Some(count) = count.filter(|_| serves)
            {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// A node died while it claimed a block or gave one up, and has not come back to it: it has it after all.
    async fn complete_claims<S: Store, C: Census>(&mut self, pass: &mut Pass<'_, S, C>) {
        let now = pass.addressing.now.seconds();
        let before = std::mem::take(&mut self.halves);
        let confirmed = pass.affinities.iter().map(|it| &it.value);
        let confirmed: BTreeSet<(&Owner, Prefix)> = confirmed
            .filter(|it| it.state == AffinityState::Confirmed)
            .map(|it| (&it.owner, it.prefix))
            .collect();
        let owned = pass.blocks.values().filter_map(|it| Some((it.owner()?, it.prefix())));
        for (owner, prefix) in owned.filter(|it| !confirmed.contains(it)) {
            if pass.done.blocks.contains(&prefix) {
                continue;
            }
            let key = (owner.clone(), prefix);
            let since = before.get(&key).copied().unwrap_or(now);
            if now.saturating_sub(since) > pass.grace {
                let claimed = pass.addressing.confirm(owner, prefix).await;
                pass.done.errors.extend(claimed.err());
            } else {
                self.halves.insert(key, since);
            }
        }
    }

    /// Handles that count more or less than blocks have of them.
    async fn correct_handles<S: Store, C: Census>(
        &mut self,
        pass: &mut Pass<'_, S, C>,
    ) -> Result<(), IpamError> {
        let now = pass.addressing.now.seconds();
        let handles = store::handles(pass.addressing.store).await?;
        let before = std::mem::take(&mut self.orphans);
        let mut held = pass.held();
        let mut otherwise: Vec<(Handle, Option<Version>)> = Vec::new();
        for Versioned { value, version } in handles {
            if held.get(&value.id) == Some(&value.counts) {
                held.remove(&value.id);
            } else {
                otherwise.push((value, Some(version)));
            }
        }
        let named: BTreeSet<String> = otherwise.iter().map(|(it, _)| it.id.clone()).collect();
        let unnamed = held.keys().filter(|it| !named.contains(*it)).cloned();
        otherwise.extend(unnamed.map(|id| (Handle { id, counts: BTreeMap::new() }, None)));
        for (handle, version) in otherwise {
            let key = (handle.id.clone(), version.clone());
            let since = before.get(&key).copied().unwrap_or(now);
            if now.saturating_sub(since) < pass.grace || since == now {
                self.orphans.insert(key, since);
                continue;
            }
            let of_blocks = held.remove(&handle.id).unwrap_or_default().into_keys();
            let prefixes = handle.counts.keys().copied().chain(of_blocks).collect();
            let recounted = pass.addressing.recount_handle(handle, version.as_ref(), &prefixes);
            match recounted.await {
                // It is in use: what is left to correct is in the next pass.
                Ok(()) | Err(IpamError::Store(StoreError::Conflict)) => {}
                Err(error) => pass.done.errors.push(error),
            }
        }
        Ok(())
    }
}

impl<S: Store, C: Census> Pass<'_, S, C> {
    /// What is believed of each assignment.
    fn judge(&self) -> Vec<Judged> {
        let mut judged = Vec::new();
        for block in self.blocks.values() {
            for (address, attributes) in block.taken() {
                let sequence = block.inspect(address).map_or(0, |(_, sequence)| sequence);
                let is_resting = attributes.released_at.is_some();
                let handle = attributes.handle.clone().unwrap_or_default();
                if is_resting || is_for_no_pod(&handle) {
                    continue;
                }
                let node = attributes.secondary.get("node").cloned();
                let of_block = || match block.owner() {
                    Some(Owner::Host(host)) => host.clone(),
                    _ => String::new(),
                };
                judged.push(Judged {
                    verdict: self.verdict(address, attributes),
                    place: node.clone().unwrap_or_else(of_block),
                    node,
                    attributes: attributes.clone(),
                    leak: Leak { handle, address, sequence },
                });
            }
        }
        judged
    }

    fn verdict(&self, address: IpAddr, attributes: &Attributes) -> Verdict {
        // What has no handle cannot be told from what somebody has.
        if attributes.handle.is_none() {
            return Verdict::Valid;
        }
        if is_for_tunnel(attributes) {
            return Verdict::Tunnel;
        }
        let Some(name) = pod_of(attributes) else { return Verdict::Valid };
        match left(self.census.pod(&name).as_ref(), attributes, address) {
            Some(_) => Verdict::Leaked(name),
            None => Verdict::Valid,
        }
    }

    /// Whether a node is believed to be gone. An assignment may be of none.
    fn has_departed(&self, node: &str) -> bool {
        !node.is_empty() && !self.census.has_node(node)
    }

    /// Whether the Pods are still gone, and the nodes that were believed to be.
    async fn are_leaked_now(&self, leaks: &[&Judged]) -> bool {
        for leak in leaks {
            let Verdict::Leaked(name) = &leak.verdict else { return false };
            let Ok(pod) = self.census.pod_now(name).await else { return false };
            if left(pod.as_ref(), &leak.attributes, leak.leak.address).is_none() {
                return false;
            }
            if let Some(node) = leak.node.as_ref().filter(|it| self.has_departed(it))
                && !matches!(self.census.has_node_now(node).await, Ok(false))
            {
                return false;
            }
        }
        true
    }

    async fn release(&mut self, leaks: &[&Judged]) {
        let releases = leaks.iter().map(|it| Release {
            address: it.leak.address,
            handle: Some(it.leak.handle.clone()),
            sequence: Some(it.leak.sequence),
        });
        match self.addressing.release(&releases.collect::<Vec<_>>()).await {
            Ok(freed) => {
                self.done.released.extend(freed.released);
                self.done.errors.extend(freed.errors);
            }
            Err(error) => self.done.errors.push(error),
        }
    }

    /// Nodes that are gone lose their blocks and what they had for themselves, once nothing else of theirs is left.
    async fn clear_departed_nodes(&mut self, judged: &[Judged]) {
        let released: BTreeSet<IpAddr> = self.done.released.iter().copied().collect();
        let mut owned: BTreeMap<String, BTreeSet<Prefix>> = BTreeMap::new();
        let of_affinities = self.affinities.iter().map(|it| (&it.value.owner, it.value.prefix));
        let of_blocks = self.blocks.values().filter_map(|it| Some((it.owner()?, it.prefix())));
        for (owner, prefix) in of_affinities.chain(of_blocks) {
            if let Owner::Host(host) = owner {
                owned.entry(host.clone()).or_default().insert(prefix);
            }
        }
        for it in judged.iter().filter(|it| it.verdict == Verdict::Tunnel) {
            owned.entry(it.place.clone()).or_default();
        }
        owned.retain(|host, _| self.has_departed(host));
        let mut by_place: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
        for it in judged {
            by_place.entry(&it.place).or_default().push(it);
        }
        for (host, prefixes) in owned {
            let of_host = by_place.get(host.as_str()).map(Vec::as_slice).unwrap_or_default();
            let is_left = |it: &&Judged| {
                it.verdict != Verdict::Tunnel && !released.contains(&it.leak.address)
            };
            if of_host.iter().any(is_left) {
                continue;
            }
            if !matches!(self.census.has_node_now(&host).await, Ok(false)) {
                continue;
            }
            let of_tunnels = of_host.iter().copied().filter(|it| it.verdict == Verdict::Tunnel);
            let tunnels: Vec<&Judged> = of_tunnels.collect();
            if !tunnels.is_empty() {
                self.release(&tunnels).await;
            }
            let owner = Owner::Host(host.clone());
            let mut are_gone = true;
            for prefix in prefixes {
                are_gone &= self.give_up(&owner, prefix, ReleaseIf::Always).await;
            }
            if are_gone {
                self.done.hosts.push(host);
            }
        }
    }

    /// Returns whether the owner has it no longer.
    async fn give_up(&mut self, owner: &Owner, prefix: Prefix, release_if: ReleaseIf) -> bool {
        match self.addressing.give_up(owner, prefix, release_if).await {
            Ok(Departure::Gone) => {
                self.done.blocks.push(prefix);
                true
            }
            Ok(Departure::Kept) => false,
            Err(error) => {
                self.done.errors.push(error);
                false
            }
        }
    }

    /// How many addresses handles had in each block when the pass began.
    fn held(&self) -> BTreeMap<String, BTreeMap<Prefix, u32>> {
        let mut held: BTreeMap<String, BTreeMap<Prefix, u32>> = BTreeMap::new();
        for block in self.blocks.values() {
            let handles = block.taken().filter_map(|(_, it)| it.handle.clone());
            for handle in handles.filter(|it| !is_for_no_pod(it)) {
                let count = held.entry(handle).or_default().entry(block.prefix()).or_default();
                *count = count.saturating_add(1);
            }
        }
        held
    }

    /// Stores what has rested for long enough, which nobody else does in a block that is not used; deletes empty blocks of
    /// nobody.
    async fn visit_resting(&mut self) -> Result<(), IpamError> {
        for block in store::blocks(self.addressing.store).await? {
            let mut collected = block.clone();
            let cooldown = self.addressing.facts.config.cooldown;
            let has_rested = collected.value.collect(self.addressing.now.seconds(), cooldown);
            let is_empty = collected.value.is_empty();
            let is_nobodys = block.value.owner().is_none() && is_empty;
            if has_rested || is_nobodys {
                match self.addressing.put_block(collected).await {
                    // Somebody uses it: what has rested is stored with that.
                    Ok(()) | Err(StoreError::Conflict) => {}
                    Err(error) => self.done.errors.push(error.into()),
                }
            }
            // Not a node's last either: the pool is not for it any more.
            if let Some(owner @ Owner::Host(host)) = block.value.owner()
                && is_empty
                && self.addressing.facts.is_of_other_nodes(block.value.prefix(), host)
                && !self.done.blocks.contains(&block.value.prefix())
            {
                self.give_up(owner, block.value.prefix(), ReleaseIf::Empty).await;
            }
        }
        Ok(())
    }
}
