//! How often to send, how long to wait, and when a change of either counts (RFC 5880 §6.8.2 to
//! §6.8.4, §6.8.7).

use std::num::NonZeroU8;
use std::time::Duration;

use crate::rng::Rng;
use crate::time::Instant;

/// What a session that is not up asks of the network at most (RFC 5880 §6.8.3).
pub(crate) const SLOW_INTERVAL: Duration = Duration::from_secs(1);

/// Ours: how long an answer can have been on its way. Of a question that was asked for longer,
/// packets were lost.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// How often we would send in a session that is up, or is not (RFC 5880 §6.8.3).
pub(crate) fn desired_transmit_interval(configured: Duration, is_up: bool) -> Duration {
    if is_up { configured } else { configured.max(SLOW_INTERVAL) }
}

/// The time between two packets of ours: the slower end decides (RFC 5880 §6.8.7). `None` when the
/// other end wants none.
pub(crate) fn transmit_interval(desired: Duration, remote_required: Duration) -> Option<Duration> {
    (!remote_required.is_zero()).then(|| desired.max(remote_required))
}

/// How long the other end may be silent (RFC 5880 §6.8.4).
pub(crate) fn detection_time(
    remote_multiplier: NonZeroU8,
    required_receive: Duration,
    remote_desired: Duration,
) -> Duration {
    required_receive.max(remote_desired).saturating_mul(u32::from(remote_multiplier.get()))
}

/// An interval less its jitter: up to a quarter off, and with a multiplier of 1 at least a tenth,
/// since the other end misses nothing then (RFC 5880 §6.8.7).
pub(crate) fn jittered(rng: &mut Rng, interval: Duration, multiplier: NonZeroU8) -> Duration {
    let least_off = if multiplier.get() == 1 { 100 } else { 0 };
    let span = 251_u64.saturating_sub(least_off);
    let off = least_off.saturating_add(rng.next_u64() % span);
    interval.saturating_mul(u32::try_from(1_000_u64.saturating_sub(off)).unwrap_or(1_000)) / 1_000
}

/// An interval as a packet says it: microseconds, and at most the longest that it can say.
pub(crate) fn wire_micros(interval: Duration) -> u32 {
    u32::try_from(interval.as_micros()).unwrap_or(u32::MAX)
}

/// How often we would send, and can take packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Intervals {
    pub(crate) transmit: Duration,
    pub(crate) receive: Duration,
}

/// Our intervals: what is wanted, what packets say, and what counts.
#[derive(Debug)]
pub(crate) struct Negotiation {
    wanted: Intervals,
    announced: Intervals,
    in_force: Intervals,
    /// The Poll Sequence of RFC 5880 §6.5, until a Final comes.
    question: Option<Question>,
    /// Finals before this may answer an earlier question: each of its packets has its own. The
    /// next one waits for as long as the first answer took (RFC 5880 §6.8.3).
    settled_at: Instant,
}

#[derive(Debug, Default)]
struct Question {
    first_sent_at: Option<Instant>,
}

impl Negotiation {
    /// Of a session that is not up.
    pub(crate) fn new(wanted: Intervals) -> Self {
        Self {
            wanted,
            announced: wanted,
            in_force: wanted,
            question: None,
            settled_at: Instant::ZERO,
        }
    }

    /// What packets say.
    pub(crate) fn announced(&self) -> Intervals {
        self.announced
    }

    /// What counts: for our transmissions, and for the detection time.
    pub(crate) fn in_force(&self) -> Intervals {
        self.in_force
    }

    /// Whether packets carry the Poll bit.
    pub(crate) fn is_polling(&self) -> bool {
        self.question.is_some()
    }

    /// What is wanted from now on, in a session that was up until now and stays so, or one that is
    /// not or was not. Returns whether packets have something else to say than before.
    pub(crate) fn want(
        &mut self,
        now: Instant,
        wanted: Intervals,
        stays_up: bool,
        has_remote: bool,
    ) -> bool {
        self.wanted = wanted;
        if stays_up && (self.is_polling() || now < self.settled_at) {
            return false; // One question after the other.
        }
        let is_news = self.announced != self.wanted;
        self.announced = self.wanted;
        // The other end must know first: before we send less often, or expect packets more often.
        if !stays_up {
            self.in_force.transmit = self.announced.transmit;
        }
        // Ours: the latter in every state. Who was up a moment ago still sends as it did then, and
        // would be forgotten before it could hear of this.
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

    /// Begins a Poll Sequence, where there is none.
    pub(crate) fn ask(&mut self) {
        self.question.get_or_insert_default();
    }

    /// A packet with the Poll bit was sent.
    pub(crate) fn poll_sent(&mut self, now: Instant) {
        if let Some(question) = &mut self.question {
            question.first_sent_at.get_or_insert(now);
        }
    }

    /// A packet with the Final bit came. It is none where nothing was asked yet.
    pub(crate) fn answered(&mut self, now: Instant) {
        let asked_at = self.question.as_ref().and_then(|question| question.first_sent_at);
        if let Some(asked_at) = asked_at.filter(|_| now >= self.settled_at) {
            self.in_force = self.announced;
            self.question = None;
            self.settled_at = now + now.since(asked_at).min(ANSWER_TIME_MAX);
        }
    }

    /// When the next question may be asked, if there is one.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let is_waiting = self.wanted != self.announced && !self.is_polling();
        is_waiting.then_some(self.settled_at)
    }

    /// Asks it, if it is time. Returns what [`Negotiation::want`] does.
    pub(crate) fn expire(&mut self, now: Instant, is_up: bool) -> bool {
        let is_due = self.next_deadline().is_some_and(|until| until <= now);
        is_due && self.want(now, self.wanted, is_up, true)
    }

    /// Nobody is there to answer.
    pub(crate) fn forget_question(&mut self) {
        self.question = None;
        self.in_force.receive = self.announced.receive;
    }
}

#[cfg(test)]
mod tests;
