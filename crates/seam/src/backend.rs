//! The trait between the daemon and whatever speaks BGP for it.
//!
//! A backend receives the complete desired state at once and computes the difference itself, so it can
//! always recover by receiving it again, and nothing is half-applied. It answers one query,
//! [`Backend::view`], notifies when the answer changes, [`Backend::changed`], and runs one command of the
//! operator, [`Backend::clear`]. It knows no Service, pool or file; the daemon knows no socket. `fairway-sessions` implements it with its own speaker, `fairway-frr` with FRR.

use std::future::Future;
use std::pin::Pin;

use fairway_ground::{PeerKey, Prefix};
use serde::{Deserialize, Serialize};

use crate::{BgpView, Desired, Leave};

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

    /// Why the backend configures no session at all now, if so: the daemon is not ready.
    fn unready(&self) -> Option<String> {
        None
    }

    /// Resolves when the backend has stopped unexpectedly: nothing is announced any more, and the process
    /// should report that and exit.
    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Ends all sessions, and waits (a bounded time) until that is done.
    fn shutdown(&self, how: Leave) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What a [`BgpView`] should contain, in addition to the sessions and their counters. A
/// table may be large, and copying it delays the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewScope {
    /// [`BgpView::routes`].
    pub originated: bool,
    /// [`BgpView::learned`].
    pub learned: bool,
    /// [`PeerView::advertised`].
    pub advertised: AdvertisedScope,
    /// [`PeerView::received`].
    pub received: bool,
    /// [`PeerView::refused`].
    pub refused: bool,
    /// [`BgpView::roa_payloads`].
    pub payloads: bool,
    /// [`PeerView::passages`] of this prefix, and of those around it if it is one address.
    pub passage: Option<Prefix>,
    /// [`PeerView::recording`] of this neighbour.
    pub recording: Option<PeerKey>,
    /// [`BgpView::rejected_segments`] and [`PeerView::stall`], which are read from the kernel.
    pub kernel: bool,
}

/// Which of the routes that neighbours were sent a [`BgpView`] should contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdvertisedScope {
    /// None of them.
    #[default]
    None,
    /// Those to prefixes that this node originates, at least. What is passed on may be a whole table for each neighbour.
    Own,
    /// All of them.
    All,
}

impl ViewScope {
    /// No routes.
    pub const SESSIONS: Self = Self {
        originated: false,
        learned: false,
        advertised: AdvertisedScope::None,
        received: false,
        refused: false,
        payloads: false,
        passage: None,
        recording: None,
        kernel: false,
    };
    /// All routes.
    pub const EVERYTHING: Self = Self {
        originated: true,
        learned: true,
        advertised: AdvertisedScope::All,
        received: true,
        refused: true,
        payloads: true,
        passage: None,
        recording: None,
        kernel: true,
    };
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
