//! How often to send, how long to wait, and when a change of either counts (RFC 5880 §6.8.2 to
//! §6.8.4, §6.8.7).

use std::num::NonZeroU8;
use std::time::Duration;

use crate::rng::Rng;
use crate::time::Instant;

/// What a session that is not up asks of the network at most (RFC 5880 §6.8.3).
pub(crate) const SLOW_INTERVAL: Duration = Duration::from_secs(1);

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

/// The Poll Sequence of RFC 5880 §6.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Poll {
    Idle,
    /// Until a Final comes. An answer to what was not asked yet is none.
    Asking {
        first_sent_at: Option<Instant>,
    },
    /// It came, but others to the same question may be on their way: the next question waits for
    /// a packet without the bit, or for as long as the answer took (RFC 5880 §6.8.3).
    Settling {
        until: Instant,
    },
}

/// Our intervals: what is wanted, what packets say, and what counts.
#[derive(Debug)]
pub(crate) struct Negotiation {
    wanted: Intervals,
    announced: Intervals,
    in_force: Intervals,
    poll: Poll,
}

impl Negotiation {
    /// Of a session that is not up.
    pub(crate) fn new(wanted: Intervals) -> Self {
        Self { wanted, announced: wanted, in_force: wanted, poll: Poll::Idle }
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
        matches!(self.poll, Poll::Asking { .. })
    }

    /// What is wanted from now on, in a session that was up until now and stays so, or one that is
    /// not or was not. Returns whether packets have something else to say than before.
    pub(crate) fn want(&mut self, wanted: Intervals, stays_up: bool, has_remote: bool) -> bool {
        self.wanted = wanted;
        self.announce(stays_up, has_remote)
    }

    /// Asks again what has been answered: for what has no interval of its own (RFC 5880 §6.6).
    pub(crate) fn ask(&mut self) {
        if !self.is_polling() {
            self.poll = Poll::Asking { first_sent_at: None };
        }
    }

    fn announce(&mut self, stays_up: bool, has_remote: bool) -> bool {
        if stays_up && self.poll != Poll::Idle {
            return false; // One question after the other.
        }
        let is_news = self.announced != self.wanted;
        self.announced = self.wanted;
        if !stays_up {
            self.in_force = self.announced;
        }
        // The other end must know first: before we send less often, or expect packets more often.
        self.in_force.transmit = self.in_force.transmit.min(self.announced.transmit);
        self.in_force.receive = self.in_force.receive.max(self.announced.receive);
        if is_news && has_remote {
            self.ask();
        }
        is_news
    }

    /// A packet with the Poll bit was sent.
    pub(crate) fn poll_sent(&mut self, now: Instant) {
        if let Poll::Asking { first_sent_at } = &mut self.poll {
            first_sent_at.get_or_insert(now);
        }
    }

    /// A packet came, with the Final bit or without. Returns what [`Negotiation::want`] does.
    pub(crate) fn heard(&mut self, now: Instant, is_final: bool, is_up: bool) -> bool {
        match self.poll {
            Poll::Asking { first_sent_at: Some(asked_at) } if is_final => {
                self.in_force = self.announced;
                self.poll = Poll::Settling { until: now + now.since(asked_at) };
                false
            }
            Poll::Settling { .. } if !is_final => self.settle(is_up),
            _ => false,
        }
    }

    /// When the next question may be asked, if there is one.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self.poll {
            Poll::Settling { until } if self.wanted != self.announced => Some(until),
            _ => None,
        }
    }

    /// Asks it, if it is time. Returns what [`Negotiation::want`] does.
    pub(crate) fn expire(&mut self, now: Instant, is_up: bool) -> bool {
        let is_due = self.next_deadline().is_some_and(|until| until <= now);
        is_due && self.settle(is_up)
    }

    /// Nobody is there to answer.
    pub(crate) fn forget_poll(&mut self) {
        self.poll = Poll::Idle;
    }

    fn settle(&mut self, is_up: bool) -> bool {
        self.poll = Poll::Idle;
        self.announce(is_up, true)
    }
}

#[cfg(test)]
mod tests;
