//! One peer of the speaker: its announcements enter the RIB, and the bytes that it was given are tracked
//! until they have been written.
//!
//! Knows no other peer. Called by [`super::speaker`], which owns it.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::action::{Outbox, PeerAction, Report};
use super::unlearned::Unlearned;
use crate::rib::{ExportGroups, LocRib};
use crate::session::{Action, ConnectionId, Peer, UntoldSince, WithdrawnUpTo};
use crate::wire::Notification;
use crate::wire::notification::cease;
use fairway_ground::{Instant, LocalNextHops, Prefix};
use fairway_seam::{SessionState, StalePhase, ViewScope};

/// How long a peer is not dialled after its work panicked: the same bytes may cause the panic again.
const FAULT_WAIT: Duration = Duration::from_secs(30);

/// The values that make a change when they differ.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    state: SessionState,
    updates_sent: u64,
    /// Every UPDATE has been written to its socket.
    is_written: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) peer: Peer,
    /// Changes of its routes that the RIB has not got yet.
    pub(super) unlearned: Unlearned,
    /// Connections with bytes that have not been written to their sockets: at most the two that a
    /// peer has.
    writing: BTreeSet<ConnectionId>,
    withdrawn_up_to: WithdrawnUpTo,
    untold: UntoldSince,
    noted: Option<Noted>,
    /// The phase of its restart that was reported last.
    reported_stale: Option<StalePhase>,
}

impl Neighbour {
    /// A neighbour that has been given no bytes yet.
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            unlearned: Unlearned::default(),
            writing: BTreeSet::new(),
            withdrawn_up_to: WithdrawnUpTo::default(),
            untold: UntoldSince::default(),
            noted: None,
            reported_stale: None,
        }
    }

    /// Carries out the actions of the peer: its routes enter the RIB, the rest goes to the edge.
    pub(super) fn act(&mut self, now: Instant, rib: &mut LocRib, outbox: &mut Outbox) {
        let key = self.peer.config().key;
        while let Some(action) = self.peer.poll_action() {
            let report = match action {
                Action::Connect(id) => {
                    outbox.push_for(key, PeerAction::Connect(id));
                    continue;
                }
                Action::Close(id, last_words) => {
                    self.writing.remove(&id);
                    outbox.push_for(key, PeerAction::Close(id, last_words));
                    continue;
                }
                Action::Routes(source, changes) => {
                    self.peer.note_accepted(&changes);
                    if outbox.reports_routes {
                        outbox.report(key, Report::Routes(changes.clone()));
                    }
                    self.unlearned.push(source, changes, rib);
                    continue;
                }
                Action::AllRoutes(family) => {
                    self.peer.note_all_accepted(family);
                    continue;
                }
                Action::Established => {
                    self.peer.announce_all(rib);
                    Report::Up(self.peer.view(now, ViewScope::SESSIONS).session.map(Box::new))
                }
                Action::Down(reason) => Report::Down(reason),
                Action::AttemptFailed(reason) => Report::AttemptFailed(reason),
                Action::Malformed(malformed) => Report::Malformed(malformed),
                Action::NearMaximum(family, count) => Report::NearMaximum(family, count),
            };
            outbox.report(key, report);
        }
        let phase = self.peer.stale_phase();
        if phase != std::mem::replace(&mut self.reported_stale, phase) {
            let stale = self.peer.view(now, ViewScope::SESSIONS).stale;
            outbox.report(key, Report::Stale(stale));
        }
        self.tell_monitor(outbox);
    }

    /// Hands on what was noted for those that monitor this node.
    pub(super) fn tell_monitor(&mut self, outbox: &mut Outbox) {
        if let Some(events) = self.peer.take_monitored() {
            outbox.push(super::Action::Monitored(self.peer.config().key, events));
        }
    }

    /// Ends everything and restarts, as another incarnation of the same peer. Returns the last bytes for
    /// its connections.
    pub(super) fn start_over(&mut self, now: Instant, seed: u64, incarnation: u64) -> Bytes {
        self.writing.clear();
        // The RIB forgets the routes to which they belong.
        self.unlearned.clear();
        let peer = self.peer.after_panic(now, now + FAULT_WAIT, seed, incarnation);
        let before = std::mem::replace(&mut self.peer, peer);
        let farewell = Notification::cease(cease::UNSPECIFIC).encode();
        self.peer.inherit_monitor(before, &farewell);
        farewell
    }

    /// Fills `buffer` for one connection that has room and something to send, and names it.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        rib: &LocRib,
        groups: &mut ExportGroups,
        room: usize,
        buffer: &mut BytesMut,
    ) -> Option<ConnectionId> {
        let before = buffer.len();
        let wanting = self.peer.wanting_to_transmit().filter(|id| !self.writing.contains(id));
        for id in wanting.collect::<Vec<_>>() {
            self.peer.poll_transmit(now, id, rib, groups, room, buffer);
            if buffer.len() > before {
                self.writing.insert(id);
                return Some(id);
            }
        }
        None
    }

    /// What this connection was given has been written.
    pub(super) fn written(&mut self, id: ConnectionId) {
        self.writing.remove(&id);
        if self.writing.is_empty() {
            self.withdrawn_up_to.written();
            self.untold.written();
        }
    }

    /// The addresses of this end of the session, or the networks of this machine, may have changed.
    pub(super) fn follow_addresses(
        &mut self,
        now: Instant,
        rib: &LocRib,
        end: (LocalNextHops, Vec<Prefix>),
        outbox: &mut Outbox,
    ) {
        let (next_hops, networks) = end;
        if self.peer.set_next_hops(rib, next_hops) {
            outbox.report(self.peer.config().key, Report::NextHops(next_hops));
        }
        self.peer.set_networks(now, &networks);
    }

    /// Checks whether its withdrawals of `generation`, which is in force, have been written; returns
    /// whether more have been than `before`.
    pub(super) fn note_withdrawals(&mut self, now: Instant, generation: u64, before: u64) -> bool {
        let (owes, is_writing) = (self.peer.owes_withdrawals(now), !self.writing.is_empty());
        self.withdrawn_up_to.given(generation, owes, is_writing);
        self.withdrawn_up_to.generation() > before
    }

    /// All withdrawals of this generation have been written to its socket.
    pub(super) fn withdrawn_up_to(&self) -> u64 {
        self.withdrawn_up_to.generation()
    }

    /// Whether anything for it waits, or is on its way to its socket.
    pub(super) fn is_being_told(&self) -> bool {
        !self.writing.is_empty() || self.peer.wanting_to_transmit().next().is_some()
    }

    /// Whether its session, or what was advertised to it, has changed since the last call.
    pub(super) fn note_changes(&mut self) -> bool {
        let updates_sent = self.peer.updates_sent();
        let before = self.noted.as_ref();
        let knew_all = before.is_some_and(|it| it.is_written && it.updates_sent == updates_sent);
        // Bytes on their way count after an UPDATE alone: each KEEPALIVE is on its way, too.
        let is_written = knew_all || !self.is_being_told();
        let noted = Noted { state: self.peer.state(), updates_sent, is_written };
        let is_other = before != Some(&noted);
        self.noted = Some(noted);
        is_other
    }

    /// Something changed at that time; it may have to be advertised.
    pub(super) fn note_change(&mut self, at: Instant) {
        if self.peer.owes_updates() {
            self.untold.changed(at);
        }
    }

    /// When the change happened that it has been sent by now, since the last call.
    pub(super) fn take_told(&mut self) -> Option<Instant> {
        let told = self.untold.take_told();
        if self.peer.state() == SessionState::Established {
            self.untold.given(self.peer.owes_updates(), !self.writing.is_empty());
        } else {
            self.untold = UntoldSince::default();
        }
        told
    }
}
