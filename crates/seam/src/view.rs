//! What a backend does and sees: a snapshot of sessions and routes, for `show` and metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Recording, SessionState};
use fairway_ground::{
    Asn, BfdPath, FamilySet, OriginValidation, PathId, PerFamily, Prefix, RoaPayload, RouterId,
};

use crate::bfd::BfdView;
use crate::capability::Capability;
use crate::{
    BmpStationView, DecisionStep, DesiredRoute, DrainState, LastMalformed, Latencies, Liveness,
    MalformedCounters, MessageCounters, Passage, Path, PathAttributes, PeerConfig, Refusal,
    RpkiServerView,
};

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
    /// The RPKI caches, in their order.
    pub rpki_servers: Vec<RpkiServerView>,
    /// What they say, each once, in order.
    pub roa_payloads: Vec<RoaPayload>,
    /// The BMP stations, in their order.
    pub bmp_stations: Vec<BmpStationView>,
    /// Parts of the desired state that are not in force, each with its cause. Empty if all of it is.
    pub faults: Vec<String>,
    /// What was found to look like ours, is somebody else's, and is left as it is.
    pub left_alone: Vec<String>,
    /// Segments that the kernel dropped since the backend started, of all neighbours together.
    pub rejected_segments: RejectedSegments,
}

/// What the neighbour of a session does not acknowledge although the kernel repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// How often the first segment was sent again since the last acknowledgement.
    pub repetitions: u8,
    /// Segments that were sent and not acknowledged.
    pub segments: u32,
    /// Their largest length, in bytes of TCP payload.
    pub segment_bytes: u32,
    /// Whether the neighbour has received later segments than the first (RFC 2018): some get through.
    pub has_later: bool,
}

/// TCP segments that the kernel dropped before any socket saw them, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RejectedSegments {
    /// Without the TCP-MD5 signature that a socket here demands.
    pub unsigned: u64,
    /// With one that no socket here expects.
    pub unexpectedly_signed: u64,
    /// With one of another password.
    pub badly_signed: u64,
    /// From too far away (RFC 5082).
    pub ttl_too_low: u64,
}

impl RejectedSegments {
    /// How many were added after `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            unsigned: self.unsigned.saturating_sub(earlier.unsigned),
            unexpectedly_signed: self
                .unexpectedly_signed
                .saturating_sub(earlier.unexpectedly_signed),
            badly_signed: self.badly_signed.saturating_sub(earlier.badly_signed),
            ttl_too_low: self.ttl_too_low.saturating_sub(earlier.ttl_too_low),
        }
    }
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
    /// What RPKI says about its origin; `None` without any data.
    pub origin_validation: Option<OriginValidation>,
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
    /// Number of its sessions that were ended by a limit: of prefixes, of their bytes, of memory.
    pub limit_exceeded: u64,
    /// Accepted routes that it announces. Several paths to one prefix are several.
    pub prefixes_accepted: PerFamily<u32>,
    /// Bytes in memory of the path attributes of these; each set once.
    pub attribute_bytes: u64,
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
    /// What becomes of received routes that [`crate::ViewScope::passage`] asks about, of the best path to each prefix. Empty where
    /// `toAdvertise` allows nothing.
    pub passages: Vec<(Prefix, Passage)>,
    /// Routes that were accepted from this peer.
    pub received: Vec<PeerRoute>,
    /// Routes that this peer announces and that were refused; `None` without a session, and if the backend keeps none.
    pub refused: Option<RefusedRoutes>,
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
    /// What the kernel repeats in vain; `None` as well without a session, and if it was not asked for.
    pub stall: Option<Stall>,
    /// Its last messages and events, if [`crate::ViewScope::recording`] asks for them; `None` if the backend keeps none.
    pub recording: Option<Box<Recording>>,
    /// Since the last message was read.
    pub last_read: Option<Duration>,
    /// Since the last message was written.
    pub last_write: Option<Duration>,
}

impl PeerView {
    /// The BFD status of the path in FRR's words. A path that was never up is down.
    pub fn bfd_status(&self) -> &'static str {
        match self.liveness {
            Liveness::Unknown if self.bfd_path.is_some() => "Down",
            liveness => liveness.name(),
        }
    }

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
            limit_exceeded: 0,
            prefixes_accepted: PerFamily::default(),
            attribute_bytes: 0,
            prefixes_refused: PerFamily::default(),
            refusals: Vec::new(),
            malformed: MalformedCounters::default(),
            last_malformed: None,
            unannounced: Vec::new(),
            prefixes_advertised: PerFamily::default(),
            is_being_told: false,
            advertised: Vec::new(),
            passages: Vec::new(),
            received: Vec::new(),
            refused: None,
            last_reset: None,
            not_accepted: None,
            set_aside: None,
            liveness: Liveness::default(),
            liveness_since: None,
            waits_for_bfd: false,
            bfd_path: None,
            stale: None,
            next_connect_in: None,
            stall: None,
            recording: None,
            last_read: None,
            last_write: None,
        }
    }
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

/// Routes of a peer that were refused.
#[derive(Debug, Clone, Default)]
pub struct RefusedRoutes {
    /// In the order of their prefixes.
    pub routes: Vec<RefusedRoute>,
    /// There were others, for which there was no room.
    pub has_more: bool,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct RefusedRoute {
    /// The route as received.
    pub route: PeerRoute,
    /// The rule.
    pub refusal: Refusal,
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
