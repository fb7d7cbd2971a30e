//! The seam between what should be announced and who announces it.
//!
//! A backend is handed the whole desired state at once and finds the difference itself, so it can
//! always recover by being told again and nothing is half-applied. It answers one question,
//! [`Backend::view`], says when the answer would be another, [`Backend::changed`], and obeys one
//! command of the operator, [`Backend::clear`]. It knows no Service, pool or file; the daemon knows no
//! socket. Native sessions implement it in `io`.

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

/// The answer of [`Backend::view`].
pub type ViewFuture<'a> = Pin<Box<dyn Future<Output = Result<BgpView, BackendError>> + Send + 'a>>;

/// Speaks BGP on behalf of the daemon.
pub trait Backend: Send + Sync {
    /// Makes `desired` true. Returns at once; a later call replaces an earlier one that has not
    /// been acted on yet.
    fn apply(&self, desired: Desired);

    /// What the backend does and sees right now.
    fn view(&self, scope: ViewScope) -> ViewFuture<'_>;

    /// Resolves when a neighbour, its session, what it was told, or what is not in force
    /// ([`BgpView::faults`]) is other than it was at `seen`, with the number to wait for next. The
    /// first to wait for is 0. Counters and times that run by themselves do not count. Cancel-safe;
    /// never resolves after the end of the backend.
    fn changed(&self, seen: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>>;

    /// Resets the session with `peer`, or has its routes said again.
    fn clear(&self, peer: PeerKey, how: Clear) -> ClearFuture<'_>;

    /// Resolves when everything that is not desired in `generation`, or in a later one, has been
    /// withdrawn: every neighbour with a session has been written that it is gone, and those that wait
    /// for us after a restart have been, too, or have given up. Cancel-safe.
    fn withdrawn(&self, generation: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Resolves when the backend has ended although nobody asked it to: nothing is announced any
    /// more, and the process had better say so and end, too.
    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Ends all sessions, and waits (a bounded time) until that is done.
    fn shutdown(&self, how: Leave) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Which lists of routes a [`BgpView`] should have, beside the sessions and their counters. A table
/// may be large, and copying it takes the time of the sessions.
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
    /// Ends it with Cease 6/4 and begins anew at once.
    Hard,
    /// Asks the neighbour to say all its routes again (RFC 2918).
    SoftIn,
    /// Says all our routes again.
    SoftOut,
    /// Both.
    Soft,
}

/// Why a session could not be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClearError {
    /// The backend ended.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// It was removed meanwhile.
    #[error("there is no such neighbor")]
    NoSuchPeer,
    /// There is no session to refresh.
    #[error("the session is not Established; there is nothing to refresh")]
    NotEstablished,
    /// The neighbour did not offer to be asked.
    #[error(
        "the neighbor does not support ROUTE-REFRESH (RFC 2918); clear the session without `soft`"
    )]
    NoRouteRefresh,
}

/// Why a backend could not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// It ended.
    #[error("the BGP backend has stopped")]
    Stopped,
}

/// A snapshot of everything a backend knows, for `show`.
#[derive(Debug, Clone, Default)]
pub struct BgpView {
    /// The generation that is in force.
    pub generation: u64,
    /// Whether the node is drained, as neighbours are told it.
    pub drain: DrainState,
    /// All neighbours, in the order of their keys.
    pub peers: Vec<PeerView>,
    /// The ranges from which neighbours are accepted that nobody named.
    pub listen_ranges: Vec<ListenRangeView>,
    /// All originated routes, in the order of their prefixes.
    pub routes: Vec<DesiredRoute>,
    /// All accepted paths, in the order of their prefixes.
    pub learned: Vec<LearnedRoute>,
    /// Prefixes of each family, originated or learned.
    pub prefixes: PerFamily<usize>,
    /// From a change ([`Desired::change_age`]) to the moment its UPDATEs were written to the socket of
    /// a neighbour that had to be told; one for each.
    pub changes_told: Latencies,
    /// What BFD does and sees; `None` where no neighbour asked for it yet.
    pub bfd: Option<BfdView>,
    /// What of the desired state is not in force, each with its cause. Empty where all of it is.
    pub faults: Vec<String>,
}

/// A range from which neighbours are accepted.
#[derive(Debug, Clone)]
pub struct ListenRangeView {
    /// What its neighbours are like.
    pub config: PeerConfig,
    /// How many there may be.
    pub limit: u32,
    /// How many there are.
    pub members: u32,
    /// Why nobody is accepted from it, if so.
    pub not_accepted: Option<&'static str>,
}

/// A path that was heard, and what route selection made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// The path.
    pub path: Path,
    /// The step at which it lost; `None` for the best one.
    pub lost_at: Option<DecisionStep>,
    /// Its neighbour restarts and has not said it again.
    pub stale: bool,
}

/// One neighbour's part of a [`BgpView`].
#[derive(Debug, Clone)]
pub struct PeerView {
    /// Its settings.
    pub config: PeerConfig,
    /// RFC 4271 §8.2.2.
    pub state: SessionState,
    /// What OPEN × OPEN gave, while there is a session.
    pub session: Option<SessionView>,
    /// Since when it has been Established, or since when it has been down after that.
    pub since: Option<Duration>,
    /// Messages since the daemon began.
    pub messages: MessageCounters,
    /// Times it reached Established.
    pub connections_established: u64,
    /// Times it left Established.
    pub connections_dropped: u64,
    /// Times that a fault of ours ended what concerned it.
    pub panics: u64,
    /// Routes that it announces and that were accepted. Several paths to one prefix are several.
    pub prefixes_accepted: PerFamily<u32>,
    /// Announcements that were refused, since the session began.
    pub prefixes_refused: PerFamily<u64>,
    /// Why they were refused, each with the number of announcements of both families.
    pub refusals: Vec<(Refusal, u64)>,
    /// Malformed UPDATEs by what became of them.
    pub malformed: MalformedCounters,
    /// The last one of them.
    pub last_malformed: Option<LastMalformed>,
    /// Routes that this peer should have and does not get, with the reason.
    pub unannounced: Vec<(Prefix, String)>,
    /// Prefixes that this peer was told.
    pub prefixes_advertised: PerFamily<u32>,
    /// Something for it waits, or has not been written to its socket yet.
    pub is_being_told: bool,
    /// Routes that this peer was told.
    pub advertised: Vec<PeerRoute>,
    /// Routes that were accepted from this peer.
    pub received: Vec<PeerRoute>,
    /// Why the last session ended, or the last attempt if its neighbour said why; before there was
    /// one of these, what the last attempt met.
    pub last_reset: Option<LastReset>,
    /// Why its connections are refused, so that it is only dialled.
    pub not_accepted: Option<&'static str>,
    /// Why it is left alone: this machine cannot have a session with it.
    pub set_aside: Option<String>,
    /// What BFD says of the path to it.
    pub liveness: Liveness,
    /// For how long.
    pub liveness_since: Option<Duration>,
    /// There is no session before BFD is Up, and it is not.
    pub waits_for_bfd: bool,
    /// The path that BFD watches; `None` where it does not, or does not know where to look.
    pub bfd_path: Option<BfdPath>,
    /// What is kept of a session that ended, while the neighbour restarts.
    pub stale: Option<StaleView>,
    /// When the next attempt is due, while waiting for one.
    pub next_connect_in: Option<Duration>,
    /// Since the last message was read.
    pub last_read: Option<Duration>,
    /// Since the last message was written.
    pub last_write: Option<Duration>,
}

/// What a session agreed on.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Our end.
    pub local: SocketAddr,
    /// Its end.
    pub remote: SocketAddr,
    /// Its BGP identifier.
    pub remote_router_id: RouterId,
    /// Its AS, as its OPEN said.
    pub remote_asn: Asn,
    /// Seconds, 0 when off.
    pub hold_time_seconds: u16,
    /// Time between our keepalives.
    pub keepalive_interval: Option<Duration>,
    /// Families that both sides offered.
    pub families: FamilySet,
    /// What the neighbour offered, in its order.
    pub capabilities_received: Vec<Capability>,
    /// What we offered.
    pub capabilities_sent: Vec<Capability>,
    /// End-of-RIB markers sent.
    pub end_of_rib_sent: PerFamily<bool>,
    /// End-of-RIB markers received.
    pub end_of_rib_received: PerFamily<bool>,
}

/// Routes of a neighbour that restarts, and that it has not said again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleView {
    /// How many there are.
    pub routes: PerFamily<u32>,
    /// What is waited for.
    pub phase: StalePhase,
    /// When that is waited for no longer.
    pub phase_ends_in: Duration,
    /// When those go that are still stale then.
    pub removed_in: Duration,
}

/// How far a neighbour's restart has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StalePhase {
    /// It is away (RFC 4724 §4.2).
    Away,
    /// It is away for longer than a restart takes: its routes are the last resort (RFC 9494).
    LongLived,
    /// It is back, and has not said all its routes yet.
    Back,
}

/// A route as one neighbour was told it, or told it to us.
#[derive(Debug, Clone)]
pub struct PeerRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// Which path to it.
    pub path_id: PathId,
    /// The attributes as they were sent, or heard.
    pub attributes: Arc<PathAttributes>,
    /// The neighbour restarts and has not said it again.
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
    /// Details, as the log says them, and what an attempt met since then.
    pub text: String,
}

/// The causes that `show` names in FRR's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResetCause {
    /// We sent a NOTIFICATION: code, subcode.
    NotificationSent(u8, u8),
    /// The neighbour sent one: code, subcode, and the text of RFC 9003.
    NotificationReceived(u8, u8, Option<String>),
    /// TCP ended without a word.
    PeerClosed,
    /// We ended TCP without a word, for the neighbour to keep our routes.
    Left,
    /// TCP never came up.
    ConnectFailed,
}
