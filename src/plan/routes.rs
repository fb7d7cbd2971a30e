//! Which routes result when several advertisements, for several Services, speak about the same
//! prefixes.
//!
//! Knows advertisements by their place only, and no Service. Called by `for_node`.
//!
//! Most prefixes are spoken of by the same few sets of advertisements, so what a set comes to is
//! worked out once and shared: ten thousand prefixes usually cost a handful of attribute sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_sessions::backend::{DesiredRoute, RouteAttributes};
use fairway_sessions::types::{PeerKey, Prefix};

use crate::model::Bandwidth;

use super::advertisements::{InForce, Place};
use super::{Reason, bandwidth};

/// Advertisements that speak about one prefix.
pub(super) type Speakers = BTreeSet<Place>;

/// Peers with what they are told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    peers: Arc<BTreeSet<PeerKey>>,
    attributes: Arc<RouteAttributes>,
    /// The bandwidth follows from who serves the prefix.
    is_weighted: bool,
}

/// What is said about a prefix.
#[derive(Default)]
struct Spoken {
    speakers: Speakers,
    /// The usable endpoints on this node of all Services behind it; `None` without a Service.
    endpoints: Option<u32>,
}

/// Collects who speaks about which prefix.
pub(super) struct Routes<'a> {
    in_force: &'a [InForce<'a>],
    prefixes: BTreeMap<Prefix, Spoken>,
    shares: BTreeMap<Speakers, Result<Vec<Share>, Reason>>,
    peer_sets: BTreeSet<Arc<BTreeSet<PeerKey>>>,
    attribute_sets: BTreeSet<Arc<RouteAttributes>>,
}

impl<'a> Routes<'a> {
    /// No routes yet.
    pub(super) fn new(in_force: &'a [InForce<'a>]) -> Self {
        Self {
            in_force,
            prefixes: BTreeMap::new(),
            shares: BTreeMap::new(),
            peer_sets: BTreeSet::new(),
            attribute_sets: BTreeSet::new(),
        }
    }

    /// Adds to what is said about `prefix`, for a Service with so many `endpoints` here or for none,
    /// and answers with the peers that hear it. Whoever contradicts what was said before is not
    /// heard at all, and what stands stays as it is: one of the two can be announced, and the order
    /// in which the caller asks decides which.
    pub(super) fn add(
        &mut self,
        prefix: Prefix,
        speakers: &Speakers,
        endpoints: Option<u32>,
    ) -> Result<Arc<BTreeSet<PeerKey>>, Reason> {
        let before = self.prefixes.get(&prefix).map(|spoken| &spoken.speakers);
        let all: Speakers = before.into_iter().flatten().chain(speakers).copied().collect();
        self.shares_of(&all)?;
        let spoken = self.prefixes.entry(prefix).or_default();
        spoken.speakers = all;
        if let Some(more) = endpoints {
            spoken.endpoints = Some(spoken.endpoints.unwrap_or(0).saturating_add(more));
        }
        let peers = speakers.iter().filter_map(|place| self.in_force.get(*place));
        let peers = peers.flat_map(|it| it.peers.iter().copied()).collect();
        Ok(shared(&mut self.peer_sets, peers))
    }

    /// The routes, by prefix; each pair of prefix and peer at most once.
    pub(super) fn finish(mut self) -> Vec<DesiredRoute> {
        let mut routes = Vec::with_capacity(self.prefixes.len());
        for (prefix, spoken) in std::mem::take(&mut self.prefixes) {
            // Contradictions never got in, so there is nothing to lose here.
            for share in self.shares_of(&spoken.speakers).unwrap_or_default() {
                let Share { peers, mut attributes, is_weighted } = share;
                if is_weighted {
                    let link_bandwidth = Some(bandwidth::by_endpoints(spoken.endpoints));
                    let weighted = RouteAttributes { link_bandwidth, ..(*attributes).clone() };
                    attributes = shared(&mut self.attribute_sets, weighted);
                }
                routes.push(DesiredRoute { prefix, peers, attributes });
            }
        }
        routes
    }

    fn shares_of(&mut self, speakers: &Speakers) -> Result<Vec<Share>, Reason> {
        if let Some(known) = self.shares.get(speakers) {
            return known.clone();
        }
        let shares = self.work_out(speakers);
        self.shares.insert(speakers.clone(), shares.clone());
        shares
    }

    fn work_out(&mut self, speakers: &Speakers) -> Result<Vec<Share>, Reason> {
        let mut heard: BTreeMap<PeerKey, (RouteAttributes, &InForce<'a>)> = BTreeMap::new();
        for advertisement in speakers.iter().filter_map(|place| self.in_force.get(*place)) {
            for peer in &advertisement.peers {
                let Some((attributes, first)) = heard.get_mut(peer) else {
                    heard.insert(*peer, (advertisement.attributes.clone(), advertisement));
                    continue;
                };
                if let Some(difference) = first.source.contradiction(advertisement.source) {
                    let (first, second) = (&first.source.name, &advertisement.source.name);
                    return Err(Reason::ConflictingAdvertisements {
                        first: first.clone(),
                        second: second.clone(),
                        field: difference.field,
                        peer: Box::new(*peer),
                    });
                }
                unite(&mut attributes.communities, &advertisement.attributes.communities);
                unite(
                    &mut attributes.large_communities,
                    &advertisement.attributes.large_communities,
                );
            }
        }
        let mut alike: BTreeMap<(RouteAttributes, bool), BTreeSet<PeerKey>> = BTreeMap::new();
        for (peer, (attributes, first)) in heard {
            let is_weighted = first.source.link_bandwidth == Some(Bandwidth::Auto);
            alike.entry((attributes, is_weighted)).or_default().insert(peer);
        }
        let shares = alike.into_iter().map(|((attributes, is_weighted), peers)| Share {
            peers: shared(&mut self.peer_sets, peers),
            attributes: shared(&mut self.attribute_sets, attributes),
            is_weighted,
        });
        let mut shares: Vec<_> = shares.collect();
        shares.sort();
        Ok(shares)
    }
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
