//! What a backend does and sees: a snapshot of sessions and routes, for `show` and metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{Asn, BfdPath, FamilySet, PathId, PerFamily, Prefix, RouterId};

use crate::bfd::BfdView;
use crate::capability::Capability;
use crate::{
    DecisionStep, DesiredRoute, DrainState, LastMalformed, Latencies, Liveness, MalformedCounters,
    MessageCounters, Path, PathAttributes, PeerConfig, Refusal,
};

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

impl PeerView {
    /// A neighbour that nothing has happened to yet.
    pub fn idle(config: PeerConfig) -> Self {
        Self {
            config,
            state: SessionState::Idle,
            session: None,
            since: None,
            messages: MessageCounters::default(),
            connections_established: 0,
            connections_dropped: 0,
            panics: 0,
            prefixes_accepted: PerFamily::default(),
            prefixes_refused: PerFamily::default(),
            refusals: Vec::new(),
            malformed: MalformedCounters::default(),
            last_malformed: None,
            unannounced: Vec::new(),
            prefixes_advertised: PerFamily::default(),
            is_being_told: false,
            advertised: Vec::new(),
            received: Vec::new(),
            last_reset: None,
            not_accepted: None,
            set_aside: None,
            liveness: Liveness::default(),
            liveness_since: None,
            waits_for_bfd: false,
            bfd_path: None,
            stale: None,
            next_connect_in: None,
            last_read: None,
            last_write: None,
        }
    }
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
