//! Transmit intervals, detection times, and when changes take effect (RFC 5880 §6.8.2 to §6.8.4, §6.8.7).

use std::num::NonZeroU8;
use std::time::Duration;

use fairway_ground::{Instant, Rng};

/// Minimum transmit interval of a session that is not up (RFC 5880 §6.8.3).
pub(crate) const SLOW_INTERVAL: Duration = Duration::from_secs(1);

/// Ours: the maximum round trip of a Poll. If a poll took longer, packets were lost.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// Our desired transmit interval in a session that is up or not (RFC 5880 §6.8.3).
pub(crate) fn desired_transmit_interval(configured: Duration, is_up: bool) -> Duration {
    if is_up { configured } else { configured.max(SLOW_INTERVAL) }
}

/// The interval between our packets: the slower side decides (RFC 5880 §6.8.7). `None` if the remote system
/// wants none.
pub(crate) fn transmit_interval(desired: Duration, remote_required: Duration) -> Option<Duration> {
    (!remote_required.is_zero()).then(|| desired.max(remote_required))
}

/// How long the remote system may be silent (RFC 5880 §6.8.4).
pub(crate) fn detection_time(
    remote_multiplier: NonZeroU8,
    required_receive: Duration,
    remote_desired: Duration,
) -> Duration {
    required_receive.max(remote_desired).saturating_mul(u32::from(remote_multiplier.get()))
}

/// An interval with jitter: reduced by up to a quarter, and with a multiplier of 1 by at least a tenth, since
/// the remote system tolerates no loss then (RFC 5880 §6.8.7).
pub(crate) fn jittered(rng: &mut Rng, interval: Duration, multiplier: NonZeroU8) -> Duration {
    let least_off = if multiplier.get() == 1 { 100 } else { 0 };
    let span = 251_u64.saturating_sub(least_off);
    let off = least_off.saturating_add(rng.next_u64() % span);
    interval.saturating_mul(u32::try_from(1_000_u64.saturating_sub(off)).unwrap_or(1_000)) / 1_000
}

/// An interval for a packet: in microseconds, limited to the maximum of the field.
pub(crate) fn wire_micros(interval: Duration) -> u32 {
    u32::try_from(interval.as_micros()).unwrap_or(u32::MAX)
}

/// The intervals at which we send, and can receive packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Intervals {
    pub(crate) transmit: Duration,
    pub(crate) receive: Duration,
}

/// Our intervals: wanted, announced, and in force.
#[derive(Debug)]
pub(crate) struct Negotiation {
    wanted: Intervals,
    announced: Intervals,
    in_force: Intervals,
    /// The Poll Sequence of RFC 5880 §6.5, until a Final is received.
    question: Option<Question>,
    /// Until this time a Final may answer an earlier Poll: each packet with a Poll has its own. The next Poll
    /// Sequence waits for as long as the first answer took (RFC 5880 §6.8.3).
    settled_at: Instant,
}

#[derive(Debug, Default)]
struct Question {
    first_sent_at: Option<Instant>,
}

impl Negotiation {
    /// For a session that is not up.
    pub(crate) fn new(wanted: Intervals) -> Self {
        Self {
            wanted,
            announced: wanted,
            in_force: wanted,
            question: None,
            settled_at: Instant::ZERO,
        }
    }

    /// The announced intervals.
    pub(crate) fn announced(&self) -> Intervals {
        self.announced
    }

    /// The intervals in force, for our transmissions and for the detection time.
    pub(crate) fn in_force(&self) -> Intervals {
        self.in_force
    }

    /// Whether packets have the Poll bit.
    pub(crate) fn is_polling(&self) -> bool {
        self.question.is_some()
    }

    /// Changes the wanted intervals, of a session that stays up, or of one that is not or was not up. Returns
    /// whether packets differ from before.
    pub(crate) fn want(
        &mut self,
        now: Instant,
        wanted: Intervals,
        stays_up: bool,
        has_remote: bool,
    ) -> bool {
        self.wanted = wanted;
        if stays_up && (self.is_polling() || now < self.settled_at) {
            return false; // One Poll Sequence at a time.
        }
        let is_news = self.announced != self.wanted;
        self.announced = self.wanted;
        // The remote system must know before we send less often, or expect packets more often.
        if !stays_up {
            self.in_force.transmit = self.announced.transmit;
        }
        // Ours: the latter in every state. A system that was up a moment ago still sends at that rate, and
        // would time out before it receives this.
        if !has_remote {
            self.in_force.receive = self.announced.receive;
        }
        self.in_force.transmit = self.in_force.transmit.min(self.announced.transmit);
        self.in_force.receive = self.in_force.receive.max(self.announced.receive);
        if is_news && has_remote {
            self.ask();
        }
        is_news
    }

    /// Starts a Poll Sequence, unless there is one.
    pub(crate) fn ask(&mut self) {
        self.question.get_or_insert_default();
    }

    /// A packet with the Poll bit was sent.
    pub(crate) fn poll_sent(&mut self, now: Instant) {
        if let Some(question) = &mut self.question {
            question.first_sent_at.get_or_insert(now);
        }
    }

    /// A packet with the Final bit was received. It is ignored if no Poll was sent.
    pub(crate) fn answered(&mut self, now: Instant) {
        let asked_at = self.question.as_ref().and_then(|question| question.first_sent_at);
        if let Some(asked_at) = asked_at.filter(|_| now >= self.settled_at) {
            self.in_force = self.announced;
            self.question = None;
            self.settled_at = now + now.since(asked_at).min(ANSWER_TIME_MAX);
        }
    }

    /// When the next Poll Sequence may start, if one is waiting.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let is_waiting = self.wanted != self.announced && !self.is_polling();
        is_waiting.then_some(self.settled_at)
    }

    /// Starts it if it is due. Returns the same as [`Negotiation::want`].
    pub(crate) fn expire(&mut self, now: Instant, is_up: bool) -> bool {
        let is_due = self.next_deadline().is_some_and(|until| until <= now);
        is_due && self.want(now, self.wanted, is_up, true)
    }

    /// Ends the Poll Sequence: the remote system is gone.
    pub(crate) fn forget_question(&mut self) {
        self.question = None;
        self.in_force.receive = self.announced.receive;
    }
}

#[cfg(test)]
mod tests;
