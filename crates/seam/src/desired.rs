//! The desired state: everything that one node should do in BGP.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{Community, LargeCommunity, LinkBandwidth, PeerKey, Prefix};

use crate::PeerConfig;

/// Everything one node should do in BGP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desired {
    /// Counts up with every change; shown, so that one can see what is in force.
    pub generation: u64,
    /// The neighbours, one for each key.
    pub peers: Vec<PeerConfig>,
    /// The routes, by prefix. Of all routes with the same prefix, at most one names a given peer.
    pub routes: Arc<[DesiredRoute]>,
    /// Some source has not spoken yet, so that there may be more routes than these: what an earlier
    /// run announced stays meanwhile, and nobody is told that this is all (RFC 4724 §4.1).
    pub awaits_sources: bool,
    /// Whether traffic should come here.
    pub drain: DrainState,
    /// How long ago it happened what this follows from, when it is handed over; `None` when that was
    /// no change of any object.
    pub change_age: Option<Duration>,
    /// Configuration of FRR in its own words, where the operator gave any. Who speaks BGP without FRR
    /// has nothing to do with it.
    pub extras: Option<Arc<Extras>>,
}

/// Configuration of FRR as the operator wrote it (ConfigMap `bgpextras`, key `extras`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extras {
    /// The object that it is from, as messages name it: `ConfigMap metallb-system/bgpextras`.
    pub origin: String,
    /// The text, as it stands there.
    pub text: String,
}

/// Whether a node is to be used by its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DrainState {
    /// It is.
    #[default]
    InService,
    /// Only by those who know no other: routes carry GRACEFUL_SHUTDOWN, and a LOCAL_PREF of 0 inside
    /// the AS (RFC 8326 §4).
    Draining,
    /// It is not: sessions stay up, and nothing is announced.
    Drained,
}

/// What an earlier run of this daemon left behind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarlierRun {
    /// What it announced last.
    pub routes: Vec<DesiredRoute>,
    /// What these routes say was forwarded all the time: the machine has not been started since.
    pub forwarding: bool,
}

/// How a daemon leaves its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It will be back in a moment: those who keep our routes meanwhile see TCP end and hear nothing
    /// (RFC 4724 §4), the others a Cease 6/2.
    ForRestart,
    /// It will not: Cease 6/2, as a Hard Reset where that is needed to be forgotten (RFC 8538 §3).
    ForGood,
}

/// One route to originate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredRoute {
    /// What is announced.
    pub prefix: Prefix,
    /// To whom.
    pub peers: Arc<BTreeSet<PeerKey>>,
    /// With which attributes.
    pub attributes: Arc<RouteAttributes>,
}

/// The attributes that an operator chooses for a route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RouteAttributes {
    /// LOCAL_PREF on iBGP; 100 when unset.
    pub local_pref: Option<u32>,
    /// COMMUNITIES, sorted, no duplicates.
    pub communities: Vec<Community>,
    /// LARGE_COMMUNITIES, sorted, no duplicates.
    pub large_communities: Vec<LargeCommunity>,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// How often our AS stands in the path beside the once that every external path has, 0 to 16.
    pub as_path_prepend: u8,
    /// The weight of this node among those that announce the same.
    pub link_bandwidth: Option<LinkBandwidth>,
}
