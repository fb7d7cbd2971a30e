//! The trait between the daemon and whatever speaks BGP for it.
//!
//! A backend is handed the whole desired state at once and finds the difference itself, so it can
//! always recover by being told again and nothing is half-applied. It answers one question,
//! [`Backend::view`], says when the answer would be another, [`Backend::changed`], and obeys one
//! command of the operator, [`Backend::clear`]. It knows no Service, pool or file; the daemon knows no
//! socket. `fairway-sessions` implements it with its own speaker, `fairway-frr` with FRR.

use std::future::Future;
use std::pin::Pin;

use fairway_ground::PeerKey;
use serde::{Deserialize, Serialize};

use crate::{BgpView, Desired, Leave};

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
