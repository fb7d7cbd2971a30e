//! The routers: the routes from each node, and those that they keep of a restarting node.
//!
//! A scripted helper of graceful restart (RFC 4724 §4.2). Knows no Service. It reports lost routes,
//! and the rules judge.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{PeerKey, Prefix, Remote};
use fairway_seam::RouteAttributes;

/// How long routes of an absent node are kept: Fairway's default restart time.
pub(crate) const RESTART_TIME: Duration = Duration::from_secs(120);
/// How long a speaker that is not synchronised defers End-of-RIB: half of it.
pub(crate) const DEFERRAL: Duration = Duration::from_secs(60);

/// The routes of one neighbour.
pub(crate) type Routes = BTreeMap<Prefix, Arc<RouteAttributes>>;

/// The state of one node in one router.
#[derive(Debug, Clone, Default)]
pub(crate) struct Adjacency {
    pub(crate) is_up: bool,
    pub(crate) routes: Routes,
    /// Kept since the session ended, until they are announced again.
    pub(crate) stale: Routes,
    /// The number of ended sessions: a timer of an earlier one is ignored.
    pub(crate) ends: u64,
    /// End-of-RIB was received in this session.
    pub(crate) is_complete: bool,
}

impl Adjacency {
    /// Everything that it forwards to the node.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.routes.keys().chain(self.stale.keys()).copied()
    }

    /// The session ended, and the node may be back.
    pub(crate) fn restarts(&mut self) {
        self.is_up = false;
        self.is_complete = false;
        self.ends += 1;
        let routes = std::mem::take(&mut self.routes);
        self.stale.extend(routes);
    }

    /// The session ended for good; returns what is lost.
    pub(crate) fn ends(&mut self) -> Vec<Prefix> {
        self.restarts();
        std::mem::take(&mut self.stale).into_keys().collect()
    }

    /// The session is up.
    pub(crate) fn begins(&mut self) {
        self.is_up = true;
        self.is_complete = false;
    }

    /// UPDATEs: these are the announced routes after them. Returns what was withdrawn.
    pub(crate) fn update(&mut self, routes: Routes) -> Vec<Prefix> {
        let before = std::mem::replace(&mut self.routes, routes);
        for prefix in self.routes.keys() {
            self.stale.remove(prefix);
        }
        before.into_keys().filter(|prefix| !self.routes.contains_key(prefix)).collect()
    }

    /// End-of-RIB; returns what is lost.
    pub(crate) fn end_of_rib(&mut self) -> Vec<Prefix> {
        self.is_complete = true;
        std::mem::take(&mut self.stale).into_keys().collect()
    }

    /// The restart time that began with this end is over; returns what is lost.
    pub(crate) fn time_is_over(&mut self, ends: u64) -> Vec<Prefix> {
        if self.ends != ends {
            return Vec::new();
        }
        std::mem::take(&mut self.stale).into_keys().collect()
    }
}

/// The number of the router for a neighbour: `10.0.0.(100 + number)`.
pub(crate) fn router_of(key: &PeerKey) -> Option<usize> {
    match key.remote {
        Remote::Address(IpAddr::V4(address)) => usize::from(address.octets()[3]).checked_sub(100),
        _ => None,
    }
}
