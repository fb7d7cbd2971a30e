//! The routers: what each node has told them, and what they keep of a node that restarts.
//!
//! A scripted helper of graceful restart (RFC 4724 §4.2). Knows no Service. What it loses it
//! says, and the rules judge.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{PeerKey, Prefix, Remote};
use fairway_seam::RouteAttributes;

/// How long routes of a node are kept that is away: what Fairway asks for by default.
pub(crate) const RESTART_TIME: Duration = Duration::from_secs(120);
/// How long a speaker that does not know everything keeps End-of-RIB back: half of it.
pub(crate) const DEFERRAL: Duration = Duration::from_secs(60);

/// The routes of one neighbour.
pub(crate) type Routes = BTreeMap<Prefix, Arc<RouteAttributes>>;

/// What one router has from one node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Adjacency {
    pub(crate) is_up: bool,
    pub(crate) routes: Routes,
    /// Kept since the session ended, until they are said again.
    pub(crate) stale: Routes,
    /// Counts the ends of the session: a timer of an earlier one means nothing.
    pub(crate) ends: u64,
    /// End-of-RIB was heard in this session.
    pub(crate) is_complete: bool,
}

impl Adjacency {
    /// Everything that it forwards to the node.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.routes.keys().chain(self.stale.keys()).copied()
    }

    /// The session is over, and the node may be back.
    pub(crate) fn restarts(&mut self) {
        self.is_up = false;
        self.is_complete = false;
        self.ends += 1;
        let routes = std::mem::take(&mut self.routes);
        self.stale.extend(routes);
    }

    /// The session is over for good; answers what is lost.
    pub(crate) fn ends(&mut self) -> Vec<Prefix> {
        self.restarts();
        std::mem::take(&mut self.stale).into_keys().collect()
    }

    /// The session is up.
    pub(crate) fn begins(&mut self) {
        self.is_up = true;
        self.is_complete = false;
    }

    /// UPDATEs: after them, these are the routes that the node has said. Answers what was withdrawn.
    pub(crate) fn update(&mut self, routes: Routes) -> Vec<Prefix> {
        let before = std::mem::replace(&mut self.routes, routes);
        for prefix in self.routes.keys() {
            self.stale.remove(prefix);
        }
        before.into_keys().filter(|prefix| !self.routes.contains_key(prefix)).collect()
    }

    /// End-of-RIB; answers what is lost.
    pub(crate) fn end_of_rib(&mut self) -> Vec<Prefix> {
        self.is_complete = true;
        std::mem::take(&mut self.stale).into_keys().collect()
    }

    /// The time is over that began with this end; answers what is lost.
    pub(crate) fn time_is_over(&mut self, ends: u64) -> Vec<Prefix> {
        if self.ends != ends {
            return Vec::new();
        }
        std::mem::take(&mut self.stale).into_keys().collect()
    }
}

/// Which router a neighbour is: `10.0.0.(100 + number)`.
pub(crate) fn router_of(key: &PeerKey) -> Option<usize> {
    match key.remote {
        Remote::Address(IpAddr::V4(address)) => usize::from(address.octets()[3]).checked_sub(100),
        _ => None,
    }
}
