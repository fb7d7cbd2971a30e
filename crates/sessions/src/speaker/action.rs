//! What a speaker asks of the edge, and what it reports for the log.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::backend::{SessionView, StaleView};
use crate::bgp::{ConnectionId, DownReason, Malformed};
use crate::types::{AddressFamily, LocalNextHops, PeerConfig, PeerKey, RouteChange};

/// What to do.
#[derive(Debug)]
pub enum Action {
    /// Something for one peer.
    Peer(PeerKey, PeerAction),
    /// All that is not desired in this generation has been withdrawn, and that was written to every
    /// peer that has a session.
    WithdrawnUpTo(u64),
    /// A session, or what a peer was told, is other than before.
    Changed,
    /// A source has not spoken in time: what only the earlier run announced is withdrawn.
    SourcesSilent,
}

/// What to do for one peer.
#[derive(Debug)]
pub enum PeerAction {
    /// There is this peer, or it has these settings now. Whether this machine can have a session
    /// with it is to be said with [`super::Speaker::set_aside`].
    Configured(Box<PeerConfig>),
    /// There is no such peer any more; its connections were closed before.
    Removed,
    /// Dial it.
    Connect(ConnectionId),
    /// End a connection, after what is on its way and these last bytes, which may be none. Without
    /// them it ends at once.
    Close(ConnectionId, Option<Bytes>),
    /// The work on it panicked: end all its connections with these last bytes, and all its dials.
    StartedOver(Bytes),
    /// Something for the log.
    Report(Report),
}

/// What happened to a peer that an operator wants to read in the log.
#[derive(Debug)]
pub enum Report {
    /// The session came up, with these settings; `None` where it is down again by now.
    Up(Option<Box<SessionView>>),
    /// The session is down.
    Down(DownReason),
    /// An attempt failed.
    AttemptFailed(DownReason),
    /// The operator removed it.
    Deconfigured,
    /// Routes came or went. Only where [`super::Speaker::report_routes`] asks for it.
    Routes(Vec<RouteChange>),
    /// A malformed UPDATE came.
    Malformed(Malformed),
    /// It announces nearly as many prefixes as it may: so many of them.
    NearMaximum(AddressFamily, u32),
    /// How far its restart has come; `None` when none of its routes is stale any more.
    Stale(Option<StaleView>),
    /// This end of the session can be reached elsewhere than before.
    NextHops(LocalNextHops),
}

/// Actions on their way to the edge, which takes all of them after each event.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    actions: VecDeque<Action>,
    /// Routes that come and go are reported one by one.
    pub(super) reports_routes: bool,
}

impl Outbox {
    pub(super) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn push_for(&mut self, key: PeerKey, action: PeerAction) {
        self.actions.push_back(Action::Peer(key, action));
    }

    pub(super) fn report(&mut self, key: PeerKey, report: Report) {
        self.push_for(key, PeerAction::Report(report));
    }

    pub(super) fn pop(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}
