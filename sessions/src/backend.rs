//! The interface between the desired state and the BGP implementation.
//!
//! A backend receives the complete desired state at once and computes the difference itself, so it can always
//! recover by receiving it again, and nothing is half-applied. It answers one query, [`Backend::view`],
//! notifies when the answer changes, [`Backend::changed`], and runs one command of the operator,
//! [`Backend::clear`]. It knows no Service, pool or file; the daemon knows no socket. Native sessions
//! implement it in `io`.

mod liveness;
mod messages;

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::bfd::DownCause;
pub use liveness::Liveness;
pub use messages::{LastMalformed, MalformedCounters, MessageCounters, MessageCounts};

use crate::bfd::BfdView;
use crate::latencies::Latencies;
use crate::types::{
    Asn, BfdPath, Community, DecisionStep, FamilySet, LargeCommunity, LinkBandwidth, Path,
    PathAttributes, PathId, PeerConfig, PeerKey, PerFamily, Prefix, Refusal, RouterId,
};
use crate::wire::Capability;

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

/// The answer of [`Backend::view`].
pub type ViewFuture<'a> = Pin<Box<dyn Future<Output = Result<BgpView, BackendError>> + Send + 'a>>;

/// Speaks BGP for the daemon.
pub trait Backend: Send + Sync {
    /// Makes `desired` the wanted state. Returns at once; a later call replaces an earlier one that is not
    /// processed yet.
    fn apply(&self, desired: Desired);

    /// The current state.
    fn view(&self, scope: ViewScope) -> ViewFuture<'_>;

    /// Resolves when a neighbour, its session, the routes it was sent, or the faults ([`BgpView::faults`])
    /// differ from those at `seen`, with the number to wait for next. Start with 0. Counters and times that
    /// run by themselves do not count. Cancel-safe; never resolves after the end of the backend.
    fn changed(&self, seen: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>>;

    /// Resets the session with `peer`, requests its routes, or sends ours again.
    fn clear(&self, peer: PeerKey, how: Clear) -> ClearFuture<'_>;

    /// Resolves when everything that is not desired in `generation` or a later one has been withdrawn: the
    /// withdrawals have been written to every neighbour with a session, and neighbours that wait for our
    /// restart have received them or stopped waiting. Cancel-safe.
    fn withdrawn(&self, generation: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Resolves when the backend has stopped unexpectedly: nothing is announced any more, and the process
    /// should report that and exit.
    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Ends all sessions, and waits (a bounded time) until that is done.
    fn shutdown(&self, how: Leave) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The lists of routes that a [`BgpView`] should contain, in addition to the sessions and their counters. A
/// table may be large, and copying it delays the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewScope {
    /// [`BgpView::routes`].
    pub originated: bool,
    /// [`BgpView::learned`].
    pub learned: bool,
    /// [`PeerView::advertised`].
    pub advertised: bool,
    /// [`PeerView::received`].
    pub received: bool,
}

impl ViewScope {
    /// No routes.
    pub const SESSIONS: Self =
        Self { originated: false, learned: false, advertised: false, received: false };
    /// All routes.
    pub const EVERYTHING: Self =
        Self { originated: true, learned: true, advertised: true, received: true };
}

/// The answer of [`Backend::clear`].
pub type ClearFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ClearError>> + Send + 'a>>;

/// What `fairway clear bgp` does to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Clear {
    /// Resets it with Cease 6/4; it restarts at once.
    Hard,
    /// Requests all routes of the neighbour again (RFC 2918).
    SoftIn,
    /// Sends all our routes again.
    SoftOut,
    /// Both.
    Soft,
}

/// Why a session could not be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClearError {
    /// The backend has stopped.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// It was removed meanwhile.
    #[error("there is no such neighbor")]
    NoSuchPeer,
    /// There is no session to refresh.
    #[error("the session is not Established; there is nothing to refresh")]
    NotEstablished,
    /// The neighbour did not advertise the capability.
    #[error(
        "the neighbor does not support ROUTE-REFRESH (RFC 2918); clear the session without `soft`"
    )]
    NoRouteRefresh,
}

/// Why a backend could not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// It has stopped.
    #[error("the BGP backend has stopped")]
    Stopped,
}

/// A snapshot of the state of a backend, for `show`.
#[derive(Debug, Clone, Default)]
pub struct BgpView {
    /// The generation that is in force.
    pub generation: u64,
    /// The drain state, as advertised to neighbours.
    pub drain: DrainState,
    /// All neighbours, in the order of their keys.
    pub peers: Vec<PeerView>,
    /// The ranges from which dynamic neighbours are accepted.
    pub listen_ranges: Vec<ListenRangeView>,
    /// All originated routes, in the order of their prefixes.
    pub routes: Vec<DesiredRoute>,
    /// All accepted paths, in the order of their prefixes.
    pub learned: Vec<LearnedRoute>,
    /// Prefixes of each family, originated or learned.
    pub prefixes: PerFamily<usize>,
    /// From a change ([`Desired::change_age`]) to the time when its UPDATEs were written to the socket of an
    /// affected neighbour; one entry for each.
    pub changes_told: Latencies,
    /// The state of BFD; `None` if no neighbour uses it yet.
    pub bfd: Option<BfdView>,
    /// Parts of the desired state that are not in force, each with its cause. Empty if all of it is.
    pub faults: Vec<String>,
}

/// A range from which neighbours are accepted.
#[derive(Debug, Clone)]
pub struct ListenRangeView {
    /// The settings of its neighbours.
    pub config: PeerConfig,
    /// The maximum number of neighbours.
    pub limit: u32,
    /// The current number of neighbours.
    pub members: u32,
    /// Why no connection is accepted from it, if so.
    pub not_accepted: Option<&'static str>,
}

/// A received path, with the result of route selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// The path.
    pub path: Path,
    /// The step at which it lost; `None` for the best one.
    pub lost_at: Option<DecisionStep>,
    /// Its neighbour restarts and has not announced it again.
    pub stale: bool,
}

/// One neighbour's part of a [`BgpView`].
#[derive(Debug, Clone)]
pub struct PeerView {
    /// Its settings.
    pub config: PeerConfig,
    /// RFC 4271 §8.2.2.
    pub state: SessionState,
    /// The negotiated parameters, while there is a session.
    pub session: Option<SessionView>,
    /// How long it has been Established, or down after that.
    pub since: Option<Duration>,
    /// Messages since the daemon started.
    pub messages: MessageCounters,
    /// Times it reached Established.
    pub connections_established: u64,
    /// Times it left Established.
    pub connections_dropped: u64,
    /// Number of internal errors that reset its sessions.
    pub panics: u64,
    /// Accepted routes that it announces. Several paths to one prefix are several.
    pub prefixes_accepted: PerFamily<u32>,
    /// Rejected announcements since the start of the session.
    pub prefixes_refused: PerFamily<u64>,
    /// The reasons for rejection, each with the number of announcements of both families.
    pub refusals: Vec<(Refusal, u64)>,
    /// Malformed UPDATEs by how they were treated.
    pub malformed: MalformedCounters,
    /// The last malformed UPDATE.
    pub last_malformed: Option<LastMalformed>,
    /// Routes that this peer should receive but does not, with the reason.
    pub unannounced: Vec<(Prefix, String)>,
    /// Prefixes that are advertised to this peer.
    pub prefixes_advertised: PerFamily<u32>,
    /// Updates for it are queued, or not yet written to its socket.
    pub is_being_told: bool,
    /// Routes that are advertised to this peer.
    pub advertised: Vec<PeerRoute>,
    /// Routes that were accepted from this peer.
    pub received: Vec<PeerRoute>,
    /// Why the last session ended, or the last attempt if its neighbour sent a reason; before the first of
    /// these, the result of the last attempt.
    pub last_reset: Option<LastReset>,
    /// Why its connections are rejected, so that it can only be dialled.
    pub not_accepted: Option<&'static str>,
    /// Why it is disabled: this machine does not support a session with it.
    pub set_aside: Option<String>,
    /// The state of the path to it, according to BFD.
    pub liveness: Liveness,
    /// How long it has been in that state.
    pub liveness_since: Option<Duration>,
    /// Its session waits for BFD, which is not Up.
    pub waits_for_bfd: bool,
    /// The path that BFD monitors; `None` if it does not, or if the path is not known yet.
    pub bfd_path: Option<BfdPath>,
    /// Routes that are kept of the last session while the neighbour restarts.
    pub stale: Option<StaleView>,
    /// When the next attempt is due, while waiting for one.
    pub next_connect_in: Option<Duration>,
    /// Since the last message was read.
    pub last_read: Option<Duration>,
    /// Since the last message was written.
    pub last_write: Option<Duration>,
}

/// The negotiated parameters of a session.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Our end.
    pub local: SocketAddr,
    /// Its end.
    pub remote: SocketAddr,
    /// Its BGP identifier.
    pub remote_router_id: RouterId,
    /// Its AS, from its OPEN.
    pub remote_asn: Asn,
    /// Hold time in seconds, 0 when off.
    pub hold_time_seconds: u16,
    /// Interval between our keepalives.
    pub keepalive_interval: Option<Duration>,
    /// Families that both sides advertised.
    pub families: FamilySet,
    /// The capabilities of the neighbour, in its order.
    pub capabilities_received: Vec<Capability>,
    /// Our capabilities.
    pub capabilities_sent: Vec<Capability>,
    /// End-of-RIB markers sent.
    pub end_of_rib_sent: PerFamily<bool>,
    /// End-of-RIB markers received.
    pub end_of_rib_received: PerFamily<bool>,
}

/// Routes of a restarting neighbour that it has not announced again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleView {
    /// Their number.
    pub routes: PerFamily<u32>,
    /// The phase of the restart.
    pub phase: StalePhase,
    /// When the phase times out.
    pub phase_ends_in: Duration,
    /// When the remaining stale routes are removed.
    pub removed_in: Duration,
}

/// The phase of a neighbour's restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StalePhase {
    /// It is down (RFC 4724 §4.2).
    Away,
    /// It has been down for longer than its restart time: its routes are the last resort (RFC 9494).
    LongLived,
    /// It is back, and has not announced all its routes yet.
    Back,
}

/// A route as it was sent to or received from one neighbour.
#[derive(Debug, Clone)]
pub struct PeerRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// Its path identifier.
    pub path_id: PathId,
    /// The attributes as sent or received.
    pub attributes: Arc<PathAttributes>,
    /// The neighbour restarts and has not announced it again.
    pub stale: bool,
}

/// The states of RFC 4271 §8.2.2, in the order in which a connection goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionState {
    /// Waiting before the next attempt.
    Idle,
    /// Dialling.
    Connect,
    /// Waiting to dial again, and listening.
    Active,
    /// OPEN sent.
    OpenSent,
    /// OPEN received, waiting for the first KEEPALIVE.
    OpenConfirm,
    /// Up.
    Established,
}

impl SessionState {
    /// The name that routers print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::Active => "Active",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        }
    }
}

/// Why a session or an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastReset {
    /// How long ago.
    pub ago: Duration,
    /// The cause, in FRR's terms.
    pub cause: ResetCause,
    /// Details, as logged, and the results of attempts since then.
    pub text: String,
}

/// The causes that `show` prints in FRR's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResetCause {
    /// We sent a NOTIFICATION: code, subcode.
    NotificationSent(u8, u8),
    /// The neighbour sent one: code, subcode, and the text of RFC 9003.
    NotificationReceived(u8, u8, Option<String>),
    /// TCP was closed without NOTIFICATION.
    PeerClosed,
    /// We closed TCP without NOTIFICATION, for the neighbour to keep our routes.
    Left,
    /// TCP was never established.
    ConnectFailed,
}
