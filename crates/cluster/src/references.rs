//! Which BFDProfiles exist, and which BGPPeers name them: what the webhook needs beside a controller's kinds.
//!
//! Answers nothing of a kind until it has been listed. Decides no address, and no fault of an object depends on
//! it, so a controller without the permission to read them loses only these answers. The controller owns one
//! if it answers reviews.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_ground::{Instant, Rng};
use fairway_model::Kind;
use serde_json::Value;

use super::object_text::ObjectText;
use super::reflector::{Delta, Reflector, Reply, Request};

/// The kinds that it reads.
pub const REFERENCE_KINDS: [Kind; 2] = [Kind::BgpPeer, Kind::BfdProfile];
/// The kinds that it reads for one that plans what a write disrupts: with those of a controller all that speakers read.
pub const FORESIGHT_KINDS: [Kind; 3] = [Kind::BgpPeer, Kind::BfdProfile, Kind::EndpointSlice];

/// See the module.
#[derive(Debug, Clone)]
pub struct References {
    reflectors: BTreeMap<Kind, Reflector>,
}

impl References {
    /// Nothing is known of these kinds yet. `seed` is for the jitter of pauses.
    pub fn new(kinds: &[Kind], seed: u64) -> Self {
        let mut random = Rng::seeded(seed);
        let reflector = |kind: &Kind| (*kind, Reflector::new(random.next_u64(), Duration::ZERO));
        Self { reflectors: kinds.iter().map(reflector).collect() }
    }

    /// Handles an answer about one of its kinds; returns what changed.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) -> Vec<Delta> {
        let reflector = self.reflectors.get_mut(&kind);
        reflector.map(|it| it.handle(now, reply)).unwrap_or_default()
    }

    /// Whether every kind has been listed.
    pub fn is_synced(&self) -> bool {
        self.reflectors.values().all(Reflector::is_synced)
    }

    /// The next request to the API server.
    pub fn next_request(&mut self, now: Instant) -> Option<(Kind, Request)> {
        let mut requests = self.reflectors.iter_mut();
        requests.find_map(|(kind, it)| Some((*kind, it.next_request(now)?)))
    }

    /// When the next request is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.reflectors.values().map(Reflector::next_deadline).min()
    }

    /// The BGPPeers that name a BFDProfile, sorted; none while that is unknown.
    pub(super) fn peers_with_profile(&self, profile: &str) -> Vec<String> {
        let Some(peers) = self.known(Kind::BgpPeer) else { return Vec::new() };
        let is_using = |peer: &&ObjectText| bfd_profile_of(&peer.value()) == Some(profile);
        let using = peers.items().iter().filter(|(_, peer)| is_using(peer));
        using.map(|(name, _)| name.name.clone()).collect()
    }

    /// Whether a BFDProfile does not exist for certain.
    pub(super) fn lacks_profile(&self, profile: &str) -> bool {
        let profiles = self.known(Kind::BfdProfile);
        profiles.is_some_and(|it| it.items().keys().all(|name| name.name != profile))
    }

    /// The objects of a kind, once they have been listed.
    fn known(&self, kind: Kind) -> Option<&Reflector> {
        self.reflectors.get(&kind).filter(|it| it.is_synced())
    }
}

/// The BFDProfile that a BGPPeer names.
pub(super) fn bfd_profile_of(peer: &Value) -> Option<&str> {
    peer.pointer("/spec/bfdProfile")?.as_str().filter(|name| !name.is_empty())
}
