//! The desired state: everything that one node should do in BGP.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{
    BmpStation, Community, InterfaceName, LargeCommunity, LinkBandwidth, PeerKey, Prefix,
    RpkiServer,
};

use crate::PeerConfig;

/// The desired BGP state of one node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desired {
    /// Incremented with every change; shown, so that operators see which state is in force.
    pub generation: u64,
    /// The neighbours, one for each key.
    pub peers: Vec<PeerConfig>,
    /// The routes, by prefix. Of all routes with the same prefix, at most one is for a given peer.
    pub routes: Arc<[DesiredRoute]>,
    /// Not all sources have reported yet, so there may be more routes: the routes of an earlier run stay
    /// meanwhile, and no End-of-RIB marker is sent (RFC 4724 §4.1).
    pub awaits_sources: bool,
    /// Whether the node should receive traffic.
    pub drain: DrainState,
    /// Time since the change of an object that caused this state, when it is applied; `None` if no object
    /// changed.
    pub change_age: Option<Duration>,
    /// The operator's own FRR configuration, if there is any. Only the FRR backend uses it.
    pub extras: Option<Arc<Extras>>,
    /// The RPKI caches that are asked. Only the native backend uses them.
    pub rpki_servers: Arc<BTreeSet<RpkiServer>>,
    /// The BMP stations that are told of sessions and routes. Likewise.
    pub bmp_stations: Arc<BTreeSet<BmpStation>>,
    /// Paths through different neighbouring ASes are compared by their MULTI_EXIT_DISC. Likewise.
    pub always_compare_med: bool,
    /// Where packets to prefixes of our own are dropped that nothing else on this node takes. Likewise.
    pub blackholes: Arc<Blackholes>,
}

/// Prefixes, each with a VRF.
pub type Blackholes = BTreeSet<(Prefix, Option<InterfaceName>)>;

/// What one plan announces: the part of [`Desired`] that does not depend on the state of the daemon.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Announcements {
    /// The sessions.
    pub peers: Vec<PeerConfig>,
    /// The routes.
    pub routes: Arc<[DesiredRoute]>,
    /// The operator's own FRR configuration.
    pub extras: Option<Arc<Extras>>,
    /// The RPKI caches that are asked.
    pub rpki_servers: Arc<BTreeSet<RpkiServer>>,
    /// The BMP stations that are told of sessions and routes.
    pub bmp_stations: Arc<BTreeSet<BmpStation>>,
    /// Paths through different neighbouring ASes are compared by their MULTI_EXIT_DISC.
    pub always_compare_med: bool,
    /// Where packets to prefixes of our own are dropped.
    pub blackholes: Arc<Blackholes>,
    /// There may be more objects than are known ([`Desired::awaits_sources`]).
    pub awaits_sources: bool,
}

/// Configuration of FRR as the operator wrote it (ConfigMap `bgpextras`, key `extras`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extras {
    /// Its object, as named in messages: `ConfigMap metallb-system/bgpextras`.
    pub origin: String,
    /// The unchanged text.
    pub text: String,
}

/// Whether neighbours should send traffic to this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DrainState {
    /// They should.
    #[default]
    InService,
    /// Only if they have no other path: routes carry GRACEFUL_SHUTDOWN, and a LOCAL_PREF of 0 inside the AS
    /// (RFC 8326 §4).
    Draining,
    /// They should not: sessions stay up, and nothing is announced.
    Drained,
}

/// The state of an earlier run of this daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarlierRun {
    /// The routes that it announced last.
    pub routes: Vec<DesiredRoute>,
    /// Forwarding state for these routes was preserved: the machine was not rebooted since.
    pub forwarding: bool,
}

/// How a daemon shuts down its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It restarts: the connection to peers that keep our routes is closed without NOTIFICATION (RFC 4724
    /// §4), the others are sent Cease 6/2.
    ForRestart,
    /// It does not return: Cease 6/2, as a Hard Reset if peers would keep our routes otherwise (RFC 8538 §3).
    ForGood,
}

/// One route to originate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredRoute {
    /// The announced prefix.
    pub prefix: Prefix,
    /// The peers that it is announced to.
    pub peers: Arc<BTreeSet<PeerKey>>,
    /// Its attributes.
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
    /// How often our AS is prepended, in addition to its regular occurrence in external paths, 0 to 16.
    pub as_path_prepend: u8,
    /// The weight of this node among those that announce the same prefix.
    pub link_bandwidth: Option<LinkBandwidth>,
}
