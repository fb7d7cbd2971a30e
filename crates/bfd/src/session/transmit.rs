//! Which packets are sent, and when (RFC 5880 §6.8.7)?

use std::time::Duration;

use super::Session;
use crate::authentication::SECTION_LENGTH;
use crate::echo;
use crate::packet::PACKET_LENGTH_BYTES_MAX;
use crate::packet::{ControlPacket, HEADER_LENGTH_BYTES};
use crate::timing::{self, wire_micros};
use fairway_ground::Instant;

/// Normal lateness of a packet: deadlines are rounded up to a grid, and the kernel rounds up its timers. This
/// must not exceed the negotiated interval.
const LATENESS_MAX: Duration = Duration::from_millis(2);

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Its length in bytes.
    pub length: usize,
    /// An echo packet, not a control packet.
    pub echo: bool,
}

/// Why a control packet is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// It answers a Poll.
    Answer,
    /// It is due, or something changed.
    Turn,
}

impl Session {
    /// Whether there is a packet to send at `now`.
    pub fn has_transmit(&self, now: Instant) -> bool {
        self.occasion(now).is_some() || self.echo.is_due(now)
    }

    /// The next packet to send at `now`, until there is none.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        bytes: &mut [u8; PACKET_LENGTH_BYTES_MAX],
    ) -> Option<Written> {
        let Some(occasion) = self.occasion(now) else {
            return self.transmit_echo(now, bytes);
        };
        let is_final = occasion == Occasion::Answer;
        let packet = self.packet(is_final);
        if is_final {
            self.schedule.is_final_due = false;
            // This packet also carries pending changes. A pending Poll is not answered by it: it is in the
            // next regular packet (RFC 5880 §6.5), or sent now if there is none.
            self.schedule.is_urgent &= self.remote_demand_is_active();
        } else {
            self.schedule.is_urgent = false;
            self.schedule.sent_at = Some(now);
            self.draw_turn(now);
            if packet.poll {
                self.negotiation.poll_sent(now);
            }
        }
        self.counters.control_out = self.counters.control_out.saturating_add(1);
        Some(Written { length: self.write(&packet, bytes), echo: false })
    }

    fn transmit_echo(
        &mut self,
        now: Instant,
        bytes: &mut [u8; PACKET_LENGTH_BYTES_MAX],
    ) -> Option<Written> {
        let discriminator = self.local_discriminator.get();
        let packet = self.echo.transmit(now, discriminator, &mut self.rng)?;
        for (place, byte) in bytes.iter_mut().zip(packet.encode()) {
            *place = byte;
        }
        self.counters.echo_out = self.counters.echo_out.saturating_add(1);
        Some(Written { length: echo::LENGTH_BYTES, echo: true })
    }

    /// The edge could not send the last packet.
    pub(crate) fn transmit_failed(&mut self) {
        let failures = &mut self.counters.transmit_failures;
        *failures = failures.saturating_add(1);
    }

    fn occasion(&self, now: Instant) -> Option<Occasion> {
        let schedule = &self.schedule;
        if schedule.is_final_due {
            return Some(Occasion::Answer);
        }
        // A remote system that wants no periodic packets wants no changes either.
        let has_turns = schedule.interval.is_some();
        let is_due = schedule.due_at.is_some_and(|due_at| due_at <= now);
        (has_turns && (schedule.is_urgent || is_due)).then_some(Occasion::Turn)
    }

    /// Called after anything that may change the negotiated interval: both a shorter and a longer one count
    /// from the last packet (RFC 5880 §6.8.3).
    pub(super) fn reschedule(&mut self, now: Instant) {
        let interval = self.agreed_transmit_interval();
        if interval != self.schedule.interval {
            self.schedule.interval = interval;
            match self.schedule.sent_at {
                Some(sent_at) => self.draw_turn(sent_at),
                None => self.schedule.due_at = interval.map(|_| now),
            }
        }
    }

    /// When the next packet is due after one at `sent_at`.
    fn draw_turn(&mut self, sent_at: Instant) {
        let multiplier = self.settings.detect_multiplier;
        let rng = &mut self.rng;
        let turn = |interval: Duration| {
            let latest = interval.saturating_sub(LATENESS_MAX.min(interval / 4));
            sent_at + timing::jittered(rng, interval, multiplier).min(latest)
        };
        self.schedule.due_at = self.schedule.interval.map(turn);
    }

    /// `None` while no periodic packets may be sent.
    fn agreed_transmit_interval(&self) -> Option<Duration> {
        let is_unspoken_to = self.settings.passive && !self.remote.is_there();
        let is_left_alone = self.remote_demand_is_active() && !self.negotiation.is_polling();
        if is_unspoken_to || is_left_alone {
            return None;
        }
        let desired = match &self.farewell {
            // Ours: a lost final packet looks like a failure, so it is repeated at the previous rate for one
            // detection time. The interval in the packet is one second, as required.
            Some(farewell) => farewell.interval,
            None => self.negotiation.in_force().transmit,
        };
        timing::transmit_interval(desired, self.remote.min_rx_interval)
    }

    fn packet(&self, is_final: bool) -> ControlPacket {
        let announced = self.negotiation.announced();
        let echo = self.settings.echo_interval.filter(|_| !self.multihop);
        ControlPacket {
            diagnostic: self.diagnostic,
            state: self.state,
            poll: !is_final && self.negotiation.is_polling(),
            is_final,
            control_plane_independent: false,
            authentication_present: self.settings.authentication.is_some(),
            demand: false,
            detect_multiplier: self.settings.detect_multiplier,
            my_discriminator: self.local_discriminator,
            your_discriminator: self.remote.discriminator,
            desired_min_tx_interval: wire_micros(announced.transmit),
            required_min_rx_interval: wire_micros(announced.receive),
            required_min_echo_rx_interval: echo.map_or(0, wire_micros),
        }
    }

    fn write(
        &mut self,
        packet: &ControlPacket,
        bytes: &mut [u8; PACKET_LENGTH_BYTES_MAX],
    ) -> usize {
        let Some(authentication) = &self.settings.authentication else {
            let (header, _) = bytes.split_at_mut(HEADER_LENGTH_BYTES);
            header.copy_from_slice(&packet.encode(0));
            return HEADER_LENGTH_BYTES;
        };
        *bytes = self.sequences.sign(authentication, packet.encode(SECTION_LENGTH));
        PACKET_LENGTH_BYTES_MAX
    }
}
