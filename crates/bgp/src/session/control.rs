//! What the operator and the process do to a neighbour: change settings, stop, reset, delay.
//!
//! Another part of [`Peer`]. Called by the speaker.

use std::sync::Arc;

use bytes::Bytes;

use super::backoff::Backoff;
use super::connection::{Connection, ConnectionId};
use super::peer::{Action, Peer};
use super::reason::DownReason;
use crate::wire::Notification;
use crate::wire::notification::cease;
use fairway_ground::Instant;
use fairway_seam::{Leave, PeerConfig};

/// What the neighbour should conclude from the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parting {
    /// No session will follow: it should keep nothing of ours (RFC 8538 §5.1).
    ForGood,
    /// The process restarts soon. Any NOTIFICATION would cost the routes on neighbours that support only
    /// RFC 4724, and some that support RFC 8538 handle it no better: TCP ends without one.
    ForRestart,
    /// Another session follows at once. `Ours:` where a NOTIFICATION would cost the routes, TCP ends
    /// without one, and the neighbour is not informed that a setting changed.
    ForNewSession,
    /// The operator requested it, with its consequences.
    AsAsked,
}

impl Peer {
    /// The same neighbour after a panic in the work on this one: none of its state can be trusted except
    /// counters. It is not dialled, and not accepted, until `at`.
    pub fn after_panic(&self, now: Instant, at: Instant, seed: u64, incarnation: u64) -> Self {
        let mut peer = Self::new(now, self.config.clone(), seed, incarnation);
        peer.comeback = self.comeback;
        peer.origins = Arc::clone(&self.origins);
        peer.messages = self.messages;
        peer.recorder.clone_from(&self.recorder);
        peer.malformed = self.malformed;
        peer.last_malformed.clone_from(&self.last_malformed);
        peer.connections_established = self.connections_established;
        peer.connections_dropped = self.connections_established;
        peer.panics = self.panics.saturating_add(1);
        peer.limit_exceeded = self.limit_exceeded;
        peer.set_aside.clone_from(&self.set_aside);
        (peer.liveness, peer.liveness_at) = (self.liveness, self.liveness_at);
        peer.drain = self.drain;
        let why = "internal error; please report it with the log".to_owned();
        let notification = Notification::cease(cease::UNSPECIFIC);
        peer.last_reset = Some((now, DownReason::Sent { notification, why }));
        peer.refuse_until(at);
        peer
    }

    /// There are so many neighbours, which share the memory for what was said last.
    pub fn share_recordings(&mut self, neighbours: usize) {
        self.recorder.share_among(neighbours);
    }

    /// New settings. Resets the session only if it must, and says why. The routes to advertise may have
    /// changed: [`Peer::announce_all`] is due.
    pub fn reconfigure(&mut self, now: Instant, config: PeerConfig) {
        let was_down = self.config.shutdown.is_some();
        let waited = self.waits_for_bfd();
        if let Some(message) = &config.shutdown {
            if !was_down {
                let subcode = cease::ADMINISTRATIVE_SHUTDOWN;
                let farewell = Notification::cease_with_message(subcode, message);
                self.stop_with(now, &farewell, Parting::ForGood, "the operator shut the peer down");
                self.forget_stale();
            }
            self.config = config;
            return;
        }
        if was_down {
            self.config = config;
            self.begin(now);
            return;
        }
        if self.config.needs_reset(&config) || self.needs_to_hear_again(&config) {
            let farewell = Notification::cease(cease::CONFIGURATION_CHANGE);
            let why = "the configuration of the peer changed";
            self.stop_with(now, &farewell, Parting::ForNewSession, why);
            self.config = config;
            self.review_stale(now);
            self.begin(now);
            return;
        }
        let before = std::mem::replace(&mut self.config, config);
        for connection in self.outgoing.iter_mut().chain(&mut self.incoming) {
            connection.reconfigure(now, &self.config, &mut self.rng);
        }
        self.strictness_changed(now, waited);
        self.renew_exporter();
        let is_refused = self.refused_until.is_some_and(|until| now < until);
        if before.passive != self.config.passive && !is_refused {
            self.passive_changed(now);
        }
        if before.import.maximum != self.config.import.maximum && is_refused {
            // The operator has seen the limit that it exceeded.
            self.begin(now);
        }
        if before.import != self.config.import || before.cluster_id != self.config.cluster_id {
            self.import_policy_changed(now);
        }
    }

    /// Keeps the neighbour without a session for the reason `why`: this machine cannot have one with it.
    /// `None` ends that. Returns whether that is a change.
    pub fn set_aside(&mut self, now: Instant, why: Option<String>) -> bool {
        if self.set_aside == why {
            return false;
        }
        self.set_aside = why;
        if let Some(why) = self.set_aside.clone() {
            self.stop(now, cease::CONFIGURATION_CHANGE, &why);
        } else {
            self.begin(now);
        }
        true
    }

    /// Whether there is to be no session until the operator changes it.
    pub fn is_down(&self) -> bool {
        self.config.shutdown.is_some() || self.set_aside.is_some()
    }

    /// Whether there is to be no session, for now.
    pub(super) fn is_held(&self) -> bool {
        self.is_down() || self.waits_for_bfd()
    }

    /// Whether it is dialled at all.
    pub(super) fn is_dialled(&self) -> bool {
        self.config.is_dialled() && self.set_aside.is_none() && !self.waits_for_bfd()
    }

    /// Dials at once, whatever happened before; or waits to be dialled.
    pub(super) fn begin(&mut self, now: Instant) {
        self.backoff = Backoff::default();
        self.refused_until = None;
        self.idle_hold = self.is_held();
        self.dial_at = self.is_dialled().then_some(now);
    }

    /// The neighbour is dialled from now on, or not any more. A session stays, whichever side dialled it,
    /// and so does an attempt with a TCP connection.
    fn passive_changed(&mut self, now: Instant) {
        if self.established.is_some() {
            return;
        }
        if let Some(dial) = self.outgoing.take_if(|it| !it.is_connected()) {
            self.actions.push_back(Action::Close(dial.id, None));
        }
        self.begin(now);
    }

    /// Resets the session at the operator's request: sends a Cease, and restarts.
    pub fn reset(&mut self, now: Instant) {
        if self.established.is_none() {
            // The operator has no other way to remove routes that are kept.
            self.forget_stale();
        }
        let farewell = Notification::cease(cease::ADMINISTRATIVE_RESET);
        self.stop_with(now, &farewell, Parting::AsAsked, "the operator cleared the session");
        self.begin(now);
    }

    /// Ends everything for good, with a Cease where a connection is up. The peer dials no more until it is
    /// reconfigured.
    pub fn stop(&mut self, now: Instant, subcode: u8, why: &str) {
        self.stop_with(now, &Notification::cease(subcode), Parting::ForGood, why);
        self.forget_stale();
    }

    /// The daemon ends.
    pub fn leave(&mut self, now: Instant, how: Leave) {
        let farewell = Notification::cease(cease::ADMINISTRATIVE_SHUTDOWN);
        let parting = match how {
            Leave::ForRestart => Parting::ForRestart,
            Leave::ForGood => Parting::ForGood,
        };
        self.stop_with(now, &farewell, parting, "fairway is stopping");
    }

    fn stop_with(&mut self, now: Instant, farewell: &Notification, parting: Parting, why: &str) {
        for id in self.connection_ids() {
            let is_quiet = self.connection(id).is_some_and(|it| self.is_quiet(it, parting));
            let notification = match parting {
                Parting::ForGood => self.for_good(id, farewell),
                _ => farewell.clone(),
            };
            if self.is_session(id) {
                let why = why.to_owned();
                let reason = if is_quiet {
                    DownReason::Left(why)
                } else {
                    DownReason::Sent { notification, why }
                };
                self.end(now, id, reason);
                continue;
            }
            // An attempt that is given up has not failed: it is not reported.
            let connection = self.take_connection(id);
            let has_spoken = connection.is_some_and(|it| it.has_spoken());
            let is_told = has_spoken && !is_quiet;
            let last_words = if is_told { notification.encode() } else { Bytes::new() };
            self.messages.sent.notifications += u64::from(is_told);
            self.actions.push_back(Action::Close(id, has_spoken.then_some(last_words)));
        }
        self.dial_at = None;
        self.idle_hold = true;
    }

    fn is_session(&self, id: ConnectionId) -> bool {
        self.established.as_ref().is_some_and(|up| up.connection == id)
    }

    /// Whether a connection ends without a NOTIFICATION, for the neighbour to keep our routes.
    fn is_quiet(&self, connection: &Connection, parting: Parting) -> bool {
        let restarts = connection.restarts();
        let is_session = self.is_session(connection.id);
        // A neighbour without an Established session may still keep the routes of an earlier one.
        let keeps = match is_session {
            true => !restarts.kept_for_us.is_empty(),
            false => self.config.graceful_restart.is_some(),
        };
        match parting {
            Parting::ForGood | Parting::AsAsked => false,
            Parting::ForRestart => keeps,
            Parting::ForNewSession => keeps && !(is_session && restarts.notifications),
        }
    }

    /// The NOTIFICATION that makes the neighbour keep none of our routes: where it would keep them over
    /// any other NOTIFICATION, a Hard Reset (RFC 8538 §3).
    pub(super) fn for_good(&self, id: ConnectionId, farewell: &Notification) -> Notification {
        let notifications = self.connection(id).is_some_and(|it| it.restarts().notifications);
        if notifications { farewell.as_hard_reset() } else { farewell.clone() }
    }

    /// The link of the session is gone: no NOTIFICATION can be sent, and no answer is expected.
    pub fn link_lost(&mut self, now: Instant, why: &str) {
        if let Some(id) = self.established.as_ref().map(|up| up.connection) {
            self.end(now, id, DownReason::Broken(why.to_owned()));
        }
    }

    /// The address of the neighbour may have changed: a dial that waits because TCP did not come up is
    /// due at once.
    pub fn dial_soon(&mut self, now: Instant) {
        if self.dial_at.is_some() && !self.idle_hold {
            self.dial_at = Some(now);
        }
    }

    /// Waits until `at` before it dials again.
    pub fn postpone(&mut self, at: Instant) {
        self.idle_hold = true;
        self.dial_at = Some(at);
    }

    /// Waits until `at` before it dials again, and accepts no connection before either.
    pub(super) fn refuse_until(&mut self, at: Instant) {
        self.postpone(at);
        self.refused_until = Some(at);
    }
}
