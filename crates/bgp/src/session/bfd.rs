//! The BFD state of the path to the neighbour, and what follows from it (RFC 5882, RFC 9384).
//!
//! Another part of [`Peer`]. Does not know how BFD determines the state, nor which other clients use the
//! same BFD session: the core task of `fairway-sessions` reports its state ([`super::Event::Bfd`]).

use std::time::Duration;

use super::peer::{Action, Peer};
use super::reason::DownReason;
use crate::wire::Notification;
use crate::wire::notification::cease;
use fairway_ground::Instant;
use fairway_seam::{DownCause, Liveness, StalePhase};

/// How long a neighbour of a range that came before its BFD session was Up is remembered. BFD begins
/// with a packet each second, so some seconds would do.
const BFD_WAIT: Duration = Duration::from_secs(30);

impl Peer {
    /// The BFD state of the path to the neighbour.
    pub fn liveness(&self) -> Liveness {
        self.liveness
    }

    /// Whether no session may start until BFD is Up.
    pub(super) fn waits_for_bfd(&self) -> bool {
        let strict = self.config.bfd.as_ref().is_some_and(|it| it.strict);
        strict && self.liveness != Liveness::Up
    }

    /// BFD reports the state of the path.
    ///
    /// Only one change ends a session: the path worked, and does not any more, and neither side meant
    /// it. A BFD session that was never Up, or that the neighbour disabled or restarted, says nothing of
    /// the path (RFC 5882 §3.2, §4.2).
    pub(super) fn hear_bfd(&mut self, now: Instant, liveness: Liveness) {
        let waited = self.waits_for_bfd();
        let before = std::mem::replace(&mut self.liveness, liveness);
        let before_at = self.liveness_at;
        if before != liveness {
            self.liveness_at = Some(now);
        }
        match liveness {
            Liveness::Up => self.dial_soon(now),
            Liveness::Down { cause: DownCause::Failed, independent, diagnostic }
                if before == Liveness::Up =>
            {
                let session_since = self.established.as_ref().map(|it| it.since);
                let is_older = before_at <= session_since;
                let why = format!("BFD: {diagnostic}");
                // The neighbour restarts, and its BFD restarted later than its BGP: the messages just
                // received from it show that the path works. If it does not, the hold timer ends the
                // session (RFC 5882 §4.3.2: a restart is not given up for that).
                let may_be_restart = is_older && self.stale_phase() == Some(StalePhase::Back);
                if independent || !may_be_restart {
                    self.path_failed(now, independent, &why);
                }
            }
            Liveness::Down { .. } | Liveness::Unknown => {}
        }
        self.strictness_changed(now, waited);
    }

    /// A neighbour of a range connects before BFD is Up: it is remembered for a while, since forgetting
    /// it would end its BFD session, too.
    pub(super) fn wait_for_bfd(&mut self, now: Instant) {
        if self.config.is_dynamic() && self.waits_for_bfd() {
            self.dial_at.get_or_insert(now + BFD_WAIT);
        }
    }

    /// Whether one of a range is kept without a session, since the next that it dials is expected.
    pub(super) fn expects_session(&self) -> bool {
        let strict = self.config.bfd.as_ref().is_some_and(|it| it.strict);
        strict && self.liveness == Liveness::Up
    }

    /// The path to the neighbour does not work any more.
    fn path_failed(&mut self, now: Instant, independent: bool, why: &str) {
        let spoken = self.connection_ids().into_iter().filter(|id| {
            let connection = self.connection(*id);
            connection.is_some_and(|it| it.has_spoken())
        });
        for id in spoken.collect::<Vec<_>>() {
            let notification = Notification::cease(cease::BFD_DOWN);
            let why = why.to_owned();
            self.end(now, id, DownReason::Sent { notification, why });
        }
        if independent {
            // The routes that were kept for a restart lead nowhere (RFC 5882 §4.3.1).
            self.forget_stale();
        }
    }

    /// Whether routes outlive a session that BFD ended: where BFD of the neighbour goes down with its
    /// BGP, this may be no more than its restart (RFC 5882 §4.3.2); where it does not, the neighbour does
    /// not forward any more.
    ///
    /// `Ours:` with the N bit or without it, although this end sent a NOTIFICATION: a neighbour that
    /// restarts does not receive it, and otherwise BFD would defeat graceful restart.
    pub(super) fn bfd_leaves_routes(&self) -> bool {
        !matches!(self.liveness, Liveness::Down { independent: true, .. })
    }

    /// The peer waits for BFD from now on, or no longer. A session stays in any case.
    pub(super) fn strictness_changed(&mut self, now: Instant, waited: bool) {
        let waits = self.waits_for_bfd();
        if waits == waited || self.established.is_some() {
            return;
        }
        if waits {
            if let Some(dial) = self.outgoing.take_if(|it| !it.is_connected()) {
                self.actions.push_back(Action::Close(dial.id, None));
            }
            self.idle_hold = true;
        } else if self.dial_at.is_none() && self.outgoing.is_none() {
            // Otherwise it is held back for another reason.
            self.idle_hold = self.is_held();
            self.dial_at = self.is_dialled().then_some(now);
        }
    }
}
