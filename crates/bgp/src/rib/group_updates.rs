//! Which UPDATEs are all peers of an export group sent for some changes of routes? They are encoded once: what differs from
//! peer to peer is the next hop, if that is our end of the session, and that no peer is told of its own paths.
//!
//! Knows no session and keeps nothing but octets. Made by [`super::ExportGroups`], sent by the Established state of a peer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{BufMut, BytesMut};

use super::export::{Exporter, Outgoing, is_same};
use super::routes::{Route, Routes};
use super::shared::Shared;
use super::unordered::Unordered;
use crate::wire::announce::{self, Unsent};
use fairway_ground::{AddressFamily, NextHop, Nlri, PathId, PeerKey, PerFamily, Prefix};

/// More different sets of peers in one batch than this, and each peer has its own UPDATEs: it would be compared with all.
const PEER_SETS_MAX: usize = 64;

/// More octets in one batch than this, and each peer has its own UPDATEs: routes with long attributes that differ.
pub(super) const OCTETS_MAX: usize = if cfg!(test) { 4_000 } else { 16 << 20 };

/// How many octets all batches take that are kept, or that some peer has still to be sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The octets of one batch, as long as it is in memory.
#[derive(Debug, Default)]
struct Counted {
    counter: Counter,
    bytes: usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counter.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// See the module.
#[derive(Debug)]
pub struct GroupUpdates {
    octets: BytesMut,
    /// Withdrawals first.
    messages: Vec<Message>,
    withdrawal_count: usize,
    peer_sets: PeerSets,
    /// In the order of peers.
    alone: Vec<(PeerKey, usize)>,
    /// Our next hops of the peer for which they were encoded.
    next_hops: PerFamily<Option<NextHop>>,
    counted: Counted,
}

/// One UPDATE.
#[derive(Debug)]
struct Message {
    end: usize,
    family: AddressFamily,
    sources: Sources,
    /// Where our next hop is, from the start of the message.
    next_hop: Option<usize>,
    /// By how many more routes the peer has after it, or fewer.
    growth: i32,
}

/// The peers whose path was used before, and is used now; neither is sent the UPDATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Sources {
    before: Option<PeerKey>,
    now: Option<PeerKey>,
}

impl Sources {
    fn contain(self, peer: PeerKey) -> bool {
        self.before == Some(peer) || self.now == Some(peer)
    }
}

/// The peers that routes of our own are for, and whether those of the group are among them.
#[derive(Debug, Default)]
struct PeerSets(Vec<(Arc<BTreeSet<PeerKey>>, bool)>);

impl PeerSets {
    /// Whether `peer` is in this one.
    fn contain(&mut self, peers: &Arc<BTreeSet<PeerKey>>, peer: PeerKey) -> bool {
        if let Some((_, contains)) = self.0.iter().rev().find(|(it, _)| Arc::ptr_eq(it, peers)) {
            return *contains;
        }
        let contains = peers.contains(&peer);
        // One more than the limit is enough to tell that there are too many.
        if self.0.len() <= PEER_SETS_MAX {
            self.0.push((Arc::clone(peers), contains));
        }
        contains
    }
}

/// A prefix with the routes that were there before, and are there now.
pub(super) struct Changed<'a> {
    /// Its place among the changes.
    pub(super) place: usize,
    pub(super) prefix: Prefix,
    pub(super) before: &'a Routes,
    pub(super) now: &'a Routes,
}

/// Prefixes that go into the same UPDATEs.
struct Lane {
    family: AddressFamily,
    sources: Sources,
    outgoing: Option<Arc<Outgoing>>,
    /// Each with the growth of the table.
    prefixes: Vec<(Prefix, i32)>,
}

type Place = (Sources, AddressFamily, usize);
type Value = (Sources, AddressFamily, Option<Shared<Outgoing>>);

/// All of them, in the order in which they were first used.
#[derive(Default)]
struct Lanes {
    all: Vec<Lane>,
    /// By the place of the attributes, which the lane keeps alive: values are compared where this knows nothing.
    by_place: Unordered<Place, usize>,
    by_value: BTreeMap<Value, usize>,
    /// Thousands of routes in succession share one.
    last: Option<(Place, usize)>,
}

impl Lanes {
    fn of(
        &mut self,
        sources: Sources,
        family: AddressFamily,
        outgoing: Option<&Arc<Outgoing>>,
    ) -> Option<&mut Lane> {
        let place = (sources, family, outgoing.map_or(0, |it| Arc::as_ptr(it).addr()));
        let last = self.last.as_ref().filter(|(known, _)| *known == place).map(|(_, lane)| *lane);
        let lane = match last.or_else(|| self.by_place.get(&place).copied()) {
            Some(lane) => lane,
            None => {
                let value = outgoing.cloned().map(Shared);
                let all = &mut self.all;
                let lane = *self.by_value.entry((sources, family, value)).or_insert_with(|| {
                    let outgoing = outgoing.cloned();
                    all.push(Lane { family, sources, outgoing, prefixes: Vec::new() });
                    all.len().saturating_sub(1)
                });
                // Equal attributes at another place are not kept alive.
                let kept = all.get(lane).and_then(|it| it.outgoing.as_ref());
                if kept.map(Arc::as_ptr) == outgoing.map(Arc::as_ptr) {
                    self.by_place.insert(place, lane);
                }
                lane
            }
        };
        self.last = Some((place, lane));
        self.all.get_mut(lane)
    }
}

/// The prefixes of a lane, as they are packed into messages.
struct Packing<'a> {
    left: std::slice::Iter<'a, (Prefix, i32)>,
    growth: i32,
}

impl Unsent for Packing<'_> {
    fn next(&mut self) -> Option<Nlri> {
        let (prefix, _) = self.left.as_slice().first()?;
        Some(Nlri { prefix: *prefix, path_id: PathId::NONE })
    }

    fn pop(&mut self) {
        if let Some((_, growth)) = self.left.next() {
            self.growth = self.growth.saturating_add(*growth);
        }
    }
}

impl GroupUpdates {
    /// Encodes what peers with the policy of `group` are sent. `None` if each must look itself: a route cannot be sent, for a
    /// reason that its operator is told, or there are too many sets of peers.
    pub(super) fn encode<'a>(
        group: &mut Exporter,
        changed: impl Iterator<Item = Changed<'a>>,
    ) -> Option<Self> {
        let mut lanes = Lanes::default();
        let mut peer_sets = PeerSets::default();
        let mut alone = Vec::new();
        for Changed { place, prefix, before, now } in changed {
            let told = chosen(group, &mut peer_sets, prefix, before)?;
            let wanted = chosen(group, &mut peer_sets, prefix, now)?;
            let source = |chosen: &Option<(Option<PeerKey>, _)>| chosen.as_ref()?.0;
            let sources = Sources { before: source(&told), now: source(&wanted) };
            let told = told.map(|(_, outgoing)| outgoing);
            let wanted = wanted.map(|(_, outgoing)| outgoing);
            if sources.before != sources.now {
                let needs = |source: Option<PeerKey>, other: bool| source.filter(|_| other);
                alone.extend(needs(sources.before, wanted.is_some()).map(|it| (it, place)));
                alone.extend(needs(sources.now, told.is_some()).map(|it| (it, place)));
            }
            let growth = i32::from(wanted.is_some()) - i32::from(told.is_some());
            let has_own =
                |outgoing: &Option<Arc<Outgoing>>| outgoing.as_ref().map(|it| it.has_own_next_hop);
            // A received next hop may be our end of this session and not that of another.
            let is_same =
                is_same(told.as_ref(), wanted.as_ref()) && has_own(&told) == has_own(&wanted);
            if is_same {
                continue;
            }
            let lane = lanes.of(sources, prefix.family(), wanted.as_ref())?;
            lane.prefixes.push((prefix, growth));
        }
        alone.sort_unstable();
        if peer_sets.0.len() > PEER_SETS_MAX {
            return None;
        }
        let next_hops = group.own_next_hops();
        let mut updates = Self {
            octets: BytesMut::new(),
            messages: Vec::new(),
            withdrawal_count: 0,
            peer_sets,
            alone,
            next_hops,
            counted: Counted::default(),
        };
        let (withdrawn, announced): (Vec<_>, Vec<_>) =
            lanes.all.iter().partition(|it| it.outgoing.is_none());
        withdrawn.into_iter().try_for_each(|lane| updates.pack(lane))?;
        updates.withdrawal_count = updates.messages.len();
        announced.into_iter().try_for_each(|lane| updates.pack(lane))?;
        group.forget();
        Some(updates)
    }

    /// Appends the messages of a lane. `None` if that is too much for one batch.
    fn pack(&mut self, lane: &Lane) -> Option<()> {
        let Lane { family, sources, outgoing, prefixes } = lane;
        let mut packing = Packing { left: prefixes.iter(), growth: 0 };
        let next_hop = outgoing.as_ref().filter(|it| it.has_own_next_hop);
        let next_hop = next_hop.map(|it| it.block.next_hop_offset(*family));
        while packing.next().is_some() {
            match outgoing {
                Some(it) => announce::announcement(
                    *family,
                    false,
                    &it.block,
                    &mut packing,
                    &mut self.octets,
                ),
                None => announce::withdrawal(*family, false, &mut packing, &mut self.octets),
            }
            self.messages.push(Message {
                end: self.octets.len(),
                family: *family,
                sources: *sources,
                next_hop,
                growth: std::mem::take(&mut packing.growth),
            });
            if self.octets.len() > OCTETS_MAX {
                return None;
            }
        }
        Some(())
    }

    /// Counts them with others, as long as they are in memory.
    pub(super) fn counted(mut self, counter: &Counter) -> Self {
        let bytes = self.length_bytes();
        counter.0.fetch_add(bytes, Ordering::Relaxed);
        self.counted = Counted { counter: counter.clone(), bytes };
        self
    }

    /// Whether `peer` is among those that routes of our own are for where the peers of the group are.
    pub(super) fn is_for(&self, peer: PeerKey) -> bool {
        self.peer_sets.0.iter().all(|(peers, contains)| peers.contains(&peer) == *contains)
    }

    /// The places of changes that say something else to this peer: its own path was used before, or is used now.
    pub fn alone(&self, peer: PeerKey) -> impl Iterator<Item = usize> + '_ {
        let first = self.alone.partition_point(|(key, _)| *key < peer);
        let from_first = self.alone.get(first..).unwrap_or_default().iter();
        from_first.take_while(move |(key, _)| *key == peer).map(|(_, place)| *place)
    }

    /// By how many more routes of each family this peer has after them, or fewer; `None` if it is sent none of them.
    pub fn growth(&self, peer: PeerKey) -> Option<PerFamily<i32>> {
        let mut growth: Option<PerFamily<i32>> = None;
        for message in self.messages.iter().filter(|it| !it.sources.contain(peer)) {
            let of = growth.get_or_insert_default().of_mut(message.family);
            *of = of.saturating_add(message.growth);
        }
        growth
    }

    /// How many octets they take.
    pub(super) fn length_bytes(&self) -> usize {
        let messages = self.messages.len().saturating_mul(size_of::<Message>());
        let alone = self.alone.len().saturating_mul(size_of::<(PeerKey, usize)>());
        self.octets.len().saturating_add(messages).saturating_add(alone)
    }
}

/// What the peers of a group are sent of these routes, and whose path that is.
fn chosen(
    group: &mut Exporter,
    peer_sets: &mut PeerSets,
    prefix: Prefix,
    routes: &Routes,
) -> Option<Option<(Option<PeerKey>, Arc<Outgoing>)>> {
    let peer = group.route_key();
    let made = match routes.route_where(|peers| peer_sets.contain(peers, peer)) {
        None => return Some(None),
        Some(Route::Originated(attributes)) => (None, group.originate(prefix, attributes)),
        Some(Route::Learned(path)) => (Some(path.source.key), group.pass_on(prefix, path)),
    };
    match made {
        (source, Ok(outgoing)) => Some(outgoing.map(|it| (source, Arc::clone(it)))),
        (_, Err(_)) => None,
    }
}

/// The UPDATEs of a group, on their way to one peer.
#[derive(Debug)]
pub struct OnTheWay {
    updates: Arc<GroupUpdates>,
    peer: PeerKey,
    /// The next message, which is for this peer.
    next: usize,
    /// Octets of our next hop towards this peer, where they are others.
    next_hops: PerFamily<Option<Vec<u8>>>,
}

impl OnTheWay {
    /// All of them, to `peer` whose end of the session here has these next hops.
    pub fn new(
        updates: Arc<GroupUpdates>,
        peer: PeerKey,
        next_hops: PerFamily<Option<NextHop>>,
    ) -> Self {
        let mut others = PerFamily::default();
        for family in AddressFamily::ALL {
            let (encoded, own) = (*updates.next_hops.of(family), *next_hops.of(family));
            *others.of_mut(family) = own.filter(|_| own != encoded).map(announce::next_hop_octets);
        }
        let mut on_the_way = Self { updates, peer, next: 0, next_hops: others };
        on_the_way.skip();
        on_the_way
    }

    /// Goes past messages that are not for this peer.
    fn skip(&mut self) {
        let left = self.updates.messages.get(self.next..).unwrap_or_default();
        let skipped = left.iter().take_while(|it| it.sources.contain(self.peer)).count();
        self.next = self.next.saturating_add(skipped);
    }

    /// Whether there is a withdrawal among what was not sent yet.
    pub fn has_withdrawals(&self) -> bool {
        self.next < self.updates.withdrawal_count
    }

    /// Whether everything was sent.
    pub fn is_sent(&self) -> bool {
        self.next >= self.updates.messages.len()
    }

    /// How many octets they take that were not sent yet.
    pub fn length_bytes(&self) -> usize {
        let GroupUpdates { octets, messages, .. } = &*self.updates;
        let before = self.next.checked_sub(1).and_then(|before| messages.get(before));
        octets.len().saturating_sub(before.map_or(0, |it| it.end))
    }

    /// Appends the next message to `to`, if there is one.
    pub fn next_message(&mut self, to: &mut BytesMut) {
        let GroupUpdates { octets, messages, .. } = &*self.updates;
        let Some(message) = messages.get(self.next) else { return };
        let before = self.next.checked_sub(1).and_then(|before| messages.get(before));
        let octets = octets.get(before.map_or(0, |it| it.end)..message.end).unwrap_or_default();
        let start = to.len();
        to.put_slice(octets);
        if let (Some(offset), Some(own)) = (message.next_hop, self.next_hops.of(message.family)) {
            let first = start.saturating_add(offset);
            if let Some(place) = to.get_mut(first..first.saturating_add(own.len())) {
                place.copy_from_slice(own);
            }
        }
        self.next = self.next.saturating_add(1);
        self.skip();
    }
}
