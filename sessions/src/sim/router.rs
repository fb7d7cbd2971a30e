//! One speaker without sockets: its peer, its routes, and what it heard from the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backend::{DesiredRoute, RouteAttributes};
use crate::bgp::{Action, ConnectionId, Peer};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{Community, PeerConfig, Prefix, RouteChange};

/// A speaker with one neighbour.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) peer: Peer,
    pub(super) rib: LocRib,
    /// What the neighbour announced and did not withdraw, by community: as a receiver would have
    /// it.
    pub(super) heard: BTreeMap<Prefix, Vec<Community>>,
    /// Connections that are up, and which wire they run over.
    pub(super) wires: BTreeMap<ConnectionId, usize>,
    /// When it dialled.
    pub(super) dials: Vec<Instant>,
    seed: u64,
    incarnation: u64,
}

impl Router {
    pub(super) fn new(now: Instant, config: PeerConfig, seed: u64) -> Self {
        Self {
            peer: Peer::new(now, config, seed, 0),
            rib: LocRib::default(),
            heard: BTreeMap::new(),
            wires: BTreeMap::new(),
            dials: Vec::new(),
            seed,
            incarnation: 0,
        }
    }

    /// The process dies and comes back with the same configuration and routes.
    pub(super) fn restart(&mut self, now: Instant) {
        self.incarnation += 1;
        let config = self.peer.config().clone();
        self.peer = Peer::new(now, config, self.seed, self.incarnation);
        self.heard.clear();
        self.wires.clear();
        self.dials.clear();
    }

    /// Originates exactly these prefixes, each with this community.
    pub(super) fn originate(&mut self, routes: &BTreeMap<Prefix, Community>) {
        let peers = Arc::new(BTreeSet::from([self.peer.config().key]));
        let route = |(prefix, community): (&Prefix, &Community)| DesiredRoute {
            prefix: *prefix,
            peers: Arc::clone(&peers),
            attributes: Arc::new(RouteAttributes {
                communities: vec![*community],
                ..RouteAttributes::default()
            }),
        };
        let touched = self.rib.set(routes.iter().map(route).collect());
        self.peer.announce(&self.rib, &touched);
    }

    /// What the neighbour should have heard from us.
    pub(super) fn told(&self) -> BTreeMap<Prefix, Vec<Community>> {
        let routes = self.rib.originated();
        routes.map(|route| (route.prefix, route.attributes.communities.clone())).collect()
    }

    /// Acts on what only concerns this router; hands the rest on.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        loop {
            match self.peer.poll_action()? {
                Action::Established => {
                    self.heard.clear();
                    self.peer.announce_all(&self.rib);
                }
                Action::Routes(_, changes) => self.hear(changes),
                Action::Down(_) => assert!(self.heard.is_empty(), "routes go with their session"),
                Action::AttemptFailed(_) | Action::Malformed(_) | Action::NearMaximum(..) => {}
                action @ (Action::Connect(_) | Action::Close(..)) => return Some(action),
            }
        }
    }

    fn hear(&mut self, changes: Vec<RouteChange>) {
        for RouteChange { prefix, attributes } in changes {
            match attributes {
                Some(attributes) => self.heard.insert(prefix, attributes.communities.clone()),
                None => self.heard.remove(&prefix),
            };
        }
    }
}
