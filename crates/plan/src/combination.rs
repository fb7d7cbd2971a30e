//! The combined attributes of several advertisements, for each peer.
//!
//! Knows advertisements and peers, but neither prefix nor Service. Called by the planner, and by
//! `routes`, where several Services share one prefix.
//!
//! Most prefixes have one of a few sets of advertisements, so the result of a set is computed once and
//! shared: ten thousand prefixes usually cost a handful of attribute sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_ground::{InterfaceName, PeerKey};
use fairway_model::{Bandwidth, ObjectName};
use fairway_seam::RouteAttributes;

use super::Reason;
use super::advertisements::{InForce, Place};
use super::bandwidth;

/// The bound on cached sets. Far more than clusters use; when Services with ever-changing labels
/// reach it, the cache is cleared, at the cost of computing its sets again.
const KNOWN_MAX: usize = 4_096;

/// Peers with the attributes of their routes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share {
    pub(super) peers: Arc<BTreeSet<PeerKey>>,
    attributes: Arc<RouteAttributes>,
    /// The bandwidth depends on the endpoints of the prefix.
    is_weighted: bool,
}

/// Advertisements that apply together.
#[derive(Debug)]
pub(super) struct Combination {
    pub(super) places: BTreeSet<Place>,
    /// Their names, sorted.
    pub(super) advertisements: Arc<[ObjectName]>,
    /// The peers of all of them.
    pub(super) peers: Arc<BTreeSet<PeerKey>>,
    /// The VRFs in which packets to the prefix are dropped that nothing else takes.
    pub(super) drops_in: Vec<Option<InterfaceName>>,
    /// The attributes for each peer, or the conflict.
    pub(super) shares: Result<Vec<Share>, Reason>,
}

/// All advertisements in force, and the sets of them that were computed.
#[derive(Debug, Default)]
pub(super) struct Combinations {
    in_force: Vec<InForce>,
    known: BTreeMap<BTreeSet<Place>, Arc<Combination>>,
    peer_sets: BTreeSet<Arc<BTreeSet<PeerKey>>>,
    attribute_sets: BTreeSet<Arc<RouteAttributes>>,
}

impl Combinations {
    /// Of these; a place is a position among them.
    pub(super) fn new(in_force: Vec<InForce>) -> Self {
        Self { in_force, ..Self::default() }
    }

    /// All advertisements with their places.
    pub(super) fn in_force(&self) -> impl Iterator<Item = (Place, &InForce)> {
        self.in_force.iter().enumerate()
    }

    /// The advertisement at a place.
    pub(super) fn at(&self, place: Place) -> Option<&InForce> {
        self.in_force.get(place)
    }

    /// The combination of these.
    pub(super) fn of(&mut self, places: BTreeSet<Place>) -> Arc<Combination> {
        if let Some(known) = self.known.get(&places) {
            return Arc::clone(known);
        }
        let it = Arc::new(self.work_out(places));
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
            self.peer_sets.clear();
            self.attribute_sets.clear();
        }
        self.known.insert(it.places.clone(), Arc::clone(&it));
        it
    }

    /// The attributes of a share, for a prefix with this many usable endpoints on this node; `None` if it
    /// has no Service.
    pub(super) fn attributes(
        &mut self,
        share: &Share,
        endpoints: Option<u32>,
    ) -> Arc<RouteAttributes> {
        if !share.is_weighted {
            return Arc::clone(&share.attributes);
        }
        let link_bandwidth = Some(bandwidth::by_endpoints(endpoints));
        shared(
            &mut self.attribute_sets,
            RouteAttributes { link_bandwidth, ..(*share.attributes).clone() },
        )
    }

    fn work_out(&mut self, places: BTreeSet<Place>) -> Combination {
        let speakers: Vec<&InForce> =
            places.iter().filter_map(|place| self.in_force.get(*place)).collect();
        let advertisements = speakers.iter().map(|it| it.source.name.clone()).collect();
        let peers = speakers.iter().flat_map(|it| it.peers.iter().copied()).collect();
        let dropping = speakers.iter().filter(|it| it.source.blackhole).flat_map(|it| &it.peers);
        let drops_in: BTreeSet<_> = dropping.map(|peer| peer.vrf).collect();
        let drops_in = drops_in.into_iter().collect();
        let heard = heard(&speakers);
        let peers = shared(&mut self.peer_sets, peers);
        let shares = heard.map(|heard| {
            let shares = heard.into_iter().map(|((attributes, is_weighted), peers)| Share {
                peers: shared(&mut self.peer_sets, peers),
                attributes: shared(&mut self.attribute_sets, attributes),
                is_weighted,
            });
            let mut shares: Vec<_> = shares.collect();
            shares.sort();
            shares
        });
        Combination { places, advertisements, peers, drops_in, shares }
    }
}

/// The attributes, with whether their bandwidth must be computed, and their peers.
type Heard = BTreeMap<(RouteAttributes, bool), BTreeSet<PeerKey>>;

/// The attributes for each peer, or the two advertisements that conflict.
fn heard(speakers: &[&InForce]) -> Result<Heard, Reason> {
    let mut by_peer: BTreeMap<PeerKey, (RouteAttributes, &InForce)> = BTreeMap::new();
    for advertisement in speakers {
        for peer in &advertisement.peers {
            let Some((attributes, first)) = by_peer.get_mut(peer) else {
                by_peer.insert(*peer, (advertisement.attributes.clone(), advertisement));
                continue;
            };
            if let Some(difference) = first.source.contradiction(&advertisement.source) {
                let (first, second) = (&first.source.name, &advertisement.source.name);
                return Err(Reason::ConflictingAdvertisements {
                    first: first.clone(),
                    second: second.clone(),
                    field: difference.field,
                    peer: Box::new(*peer),
                });
            }
            unite(&mut attributes.communities, &advertisement.attributes.communities);
            unite(&mut attributes.large_communities, &advertisement.attributes.large_communities);
        }
    }
    let mut alike = Heard::new();
    for (peer, (attributes, first)) in by_peer {
        let is_weighted = first.source.link_bandwidth == Some(Bandwidth::Auto);
        alike.entry((attributes, is_weighted)).or_default().insert(peer);
    }
    Ok(alike)
}

/// The one shared copy of `value`.
fn shared<T: Ord>(known: &mut BTreeSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(same) = known.get(&value) {
        return Arc::clone(same);
    }
    let value = Arc::new(value);
    known.insert(Arc::clone(&value));
    value
}

/// Adds `more` to a sorted list without duplicates, and keeps it so.
fn unite<T: Ord + Copy>(sorted: &mut Vec<T>, more: &[T]) {
    sorted.extend_from_slice(more);
    sorted.sort_unstable();
    sorted.dedup();
}
