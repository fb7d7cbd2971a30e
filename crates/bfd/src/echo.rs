//! Echo packets (RFC 5880 §6.4, §6.8.5, §6.8.8, §6.8.9).
//!
//! Their content is a local matter: enough to recognise them. Ours: the echo function is not used for
//! detection until one came back. A system that offers to return them may fail to (for example a router that
//! does not forward), which is not a failure of the path.

use std::num::NonZeroU8;
use std::time::Duration;

use super::RoundTrip;
use super::arrival::Dropped;
use super::timing::{self, SLOW_INTERVAL};
use fairway_ground::{Instant, Rng};

/// As long as FRR's, which is the shortest that FRR returns.
pub(crate) const LENGTH_BYTES: usize = 24;
const LENGTH: u8 = 24;
const VERSION: u8 = 1;
/// How far behind the last one a packet may come back.
const BEHIND_MAX: u32 = 255;
/// Number of round trips that are kept.
const SAMPLES: usize = 16;

/// An echo packet of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EchoPacket {
    /// Our discriminator of the session.
    pub(crate) discriminator: u32,
    /// Unique for each packet.
    pub(crate) sequence: u32,
    /// Changes each time the session comes up; unpredictable.
    pub(crate) nonce: u32,
    /// When it was sent.
    pub(crate) sent_at: Instant,
}

impl EchoPacket {
    /// `None` if it is not one of our packets.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION, LENGTH, 0, 0], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (discriminator, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let micros: &[u8; 8] = rest.try_into().ok()?;
        Some(Self {
            discriminator: u32::from_be_bytes(*discriminator),
            sequence: u32::from_be_bytes(*sequence),
            nonce: u32::from_be_bytes(*nonce),
            sent_at: Instant::from_micros(u64::from_be_bytes(*micros)),
        })
    }

    pub(crate) fn encode(&self) -> [u8; LENGTH_BYTES] {
        let mut bytes = [0; LENGTH_BYTES];
        let fields = [VERSION, LENGTH, 0, 0]
            .into_iter()
            .chain(self.discriminator.to_be_bytes())
            .chain(self.sequence.to_be_bytes())
            .chain(self.nonce.to_be_bytes())
            .chain(self.sent_at.as_micros().to_be_bytes());
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }
}

/// The echo function of a session.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    active: Option<Active>,
    samples: [u32; SAMPLES],
    samples_taken: usize,
}

#[derive(Debug)]
struct Active {
    interval: Duration,
    multiplier: NonZeroU8,
    nonce: u32,
    /// The last sequence number sent.
    sequence: u32,
    sent_at: Option<Instant>,
    due_at: Instant,
    /// The last one that came back, and when.
    returned: Option<(u32, Instant)>,
    /// The round trip time of that one.
    round_trip: Duration,
    /// A detection was postponed until this time.
    put_off_until: Option<Instant>,
}

impl Active {
    /// Ours: sent slowly until one has come back.
    fn transmit_interval(&self) -> Duration {
        match self.returned {
            Some(_) => self.interval,
            None => self.interval.max(SLOW_INTERVAL),
        }
    }

    fn detection_at(&self) -> Option<Instant> {
        let (_, at) = self.returned?;
        let at = at + self.detection_time();
        Some(self.put_off_until.map_or(at, |until| until.max(at)))
    }

    /// Restarts at another rate: no packet at the new rate is missing yet, and the first has a full round
    /// trip ahead.
    fn begin_anew(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.returned {
            *at = now + self.round_trip;
        }
    }

    fn detection_time(&self) -> Duration {
        self.interval.saturating_mul(u32::from(self.multiplier.get()))
    }
}

/// The result of a detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detection {
    /// The deadline is in the future.
    Pending,
    /// The deadline has passed, but this process was late itself.
    PutOff,
    /// Echo packets do not come back.
    Failed,
}

impl Echo {
    /// Starts, continues at another rate, or stops: `interval` is the negotiated one.
    pub(crate) fn set(
        &mut self,
        now: Instant,
        interval: Option<Duration>,
        multiplier: NonZeroU8,
        rng: &mut Rng,
    ) {
        match (&mut self.active, interval) {
            (_, None) => self.active = None,
            (Some(active), Some(interval)) => {
                active.multiplier = multiplier;
                if active.interval != interval {
                    active.interval = interval;
                    let wait = active.transmit_interval();
                    active.due_at = active.sent_at.map_or(now, |at| at + wait);
                    active.begin_anew(now);
                }
            }
            (None, Some(interval)) => {
                let (_, nonce) = random_words(rng);
                self.active = Some(Active {
                    interval,
                    multiplier,
                    nonce,
                    sequence: 0,
                    sent_at: None,
                    due_at: now,
                    returned: None,
                    round_trip: Duration::ZERO,
                    put_off_until: None,
                });
            }
        }
    }

    /// The interval between two packets, while they are sent.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.active.as_ref().map(Active::transmit_interval)
    }

    /// Whether echo packets come back: then they monitor the path (RFC 5880 §6.8.3).
    pub(crate) fn is_proven(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.returned.is_some())
    }

    /// When the next one is due.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.active.as_ref().map(|active| active.due_at)
    }

    /// When enough of them are missing.
    pub(crate) fn detection_at(&self) -> Option<Instant> {
        self.active.as_ref().and_then(Active::detection_at)
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.active.as_ref().is_some_and(|active| active.due_at <= now)
    }

    /// Returns the packet that is due.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        discriminator: u32,
        rng: &mut Rng,
    ) -> Option<EchoPacket> {
        let active = self.active.as_mut().filter(|active| active.due_at <= now)?;
        active.sequence = active.sequence.wrapping_add(1);
        active.sent_at = Some(now);
        active.due_at = now + timing::jittered(rng, active.transmit_interval(), active.multiplier);
        let (sequence, nonce) = (active.sequence, active.nonce);
        Some(EchoPacket { discriminator, sequence, nonce, sent_at: now })
    }

    /// An echo packet came back.
    pub(crate) fn receive(&mut self, at: Instant, packet: &EchoPacket) -> Result<(), Dropped> {
        let active = self.active.as_mut().ok_or(Dropped::Echo)?;
        let behind = active.sequence.wrapping_sub(packet.sequence);
        let last = active.returned.map_or(0, |(sequence, _)| sequence);
        // Each counts once, and none is older than the last.
        let is_new = (1..=u32::MAX / 2).contains(&packet.sequence.wrapping_sub(last));
        if packet.nonce != active.nonce || behind > BEHIND_MAX || !is_new || packet.sent_at > at {
            return Err(Dropped::Echo);
        }
        active.put_off_until = None;
        active.round_trip = at.since(packet.sent_at);
        match active.returned {
            Some((_, before)) => active.returned = Some((packet.sequence, before.max(at))),
            None => {
                active.returned = Some((packet.sequence, at));
                // Sent at the full rate from now on.
                active.due_at = active.due_at.min(packet.sent_at + active.interval);
                active.begin_anew(at);
            }
        }
        let micros = u32::try_from(active.round_trip.as_micros()).unwrap_or(u32::MAX);
        if let Some(place) = self.samples.get_mut(self.samples_taken % SAMPLES) {
            *place = micros;
        }
        self.samples_taken = self.samples_taken.wrapping_add(1);
        Ok(())
    }

    /// Whether enough of them are missing. `is_late`: this process itself was late, so that the detection is
    /// postponed once.
    pub(crate) fn detect(&mut self, now: Instant, is_late: bool) -> Detection {
        let Some(active) = &mut self.active else {
            return Detection::Pending;
        };
        match active.detection_at() {
            Some(at) if at <= now => {
                if is_late && active.put_off_until.is_none() {
                    active.put_off_until = Some(now + active.interval);
                    return Detection::PutOff;
                }
                Detection::Failed
            }
            _ => Detection::Pending,
        }
    }

    /// The latest round trip times.
    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        let samples = || self.samples.iter().take(self.samples_taken).copied();
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let sum: Duration = samples().map(micros).sum();
        let count = u32::try_from(samples().count()).unwrap_or(u32::MAX);
        Some(RoundTrip {
            min: micros(samples().min()?),
            average: sum.checked_div(count)?,
            max: micros(samples().max()?),
        })
    }
}

/// Both halves of a random number.
pub(crate) fn random_words(rng: &mut Rng) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = rng.next_u64().to_be_bytes();
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

#[cfg(test)]
mod tests;
