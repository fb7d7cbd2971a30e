//! What a speaker asks of the edge, and what it reports for the log.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::session::{Best, ConnectionId, DownReason, Malformed, Monitored};
use fairway_ground::{AddressFamily, LocalNextHops, PeerKey, Prefix};
use fairway_seam::{
    ForwardingChange, PeerConfig, RouteChange, SessionView, StaleView, TrackedNextHop,
};

/// What to do.
#[derive(Debug)]
pub enum Action {
    /// Something for one peer.
    Peer(PeerKey, PeerAction),
    /// All withdrawals of this generation have been written to every peer that has a session.
    WithdrawnUpTo(u64),
    /// A session, or what was advertised to a peer, has changed.
    Changed,
    /// What this machine forwards by has changed.
    Forward(Vec<ForwardingChange>),
    /// No path has these next hops any more, of which was told that they cannot be reached: nothing need be told of them.
    Untrack(Vec<TrackedNextHop>),
    /// What happened to a neighbour, where [`super::Speaker::monitor`] asks for it.
    Monitored(PeerKey, Vec<Monitored>),
    /// The best routes that have changed, likewise; `None` where there is none any more.
    LocRib(Vec<(Prefix, Option<Best>)>),
    /// All routes that this machine forwards by are known: those that an earlier run installed beside them are stale.
    ForwardingComplete,
    /// A source is not ready in time: routes that only the earlier run announced are withdrawn.
    SourcesSilent,
}

/// What to do for one peer.
#[derive(Debug)]
pub enum PeerAction {
    /// This peer is new, or has new settings. [`super::Speaker::set_aside`] is due if this machine cannot
    /// have a session with it.
    Configured(Box<PeerConfig>),
    /// This peer was removed; its connections were closed before.
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

/// An event of a peer that an operator wants to read in the log.
#[derive(Debug)]
pub enum Report {
    /// The session came up, with these settings; `None` where it is down again by now.
    Up(Option<Box<SessionView>>),
    /// The session is down.
    Down(DownReason),
    /// An attempt failed.
    AttemptFailed(DownReason),
    /// The peer was removed from the configuration.
    Deconfigured,
    /// Routes were learned or removed. Only where [`super::Speaker::report_routes`] asks for it.
    Routes(Vec<RouteChange>),
    /// A malformed UPDATE was received.
    Malformed(Malformed),
    /// The number of its prefixes comes near the maximum; this is the number.
    NearMaximum(AddressFamily, u32),
    /// The phase of its restart; `None` when none of its routes is stale any more.
    Stale(Option<StaleView>),
    /// The next hops of this end of the session have changed.
    NextHops(LocalNextHops),
}

/// Actions on their way to the edge, which takes all of them after each event.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    actions: VecDeque<Action>,
    /// Routes are reported one by one.
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
