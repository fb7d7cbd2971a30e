//! One session with all possible packets of a neighbour, and two sessions with each other.

mod demand;
mod echo;
mod model;
mod network;
mod rules;
mod table;

use std::time::Duration;

use super::*;
use crate::PACKET_LENGTH_BYTES_MAX;
use crate::arrival::Dropped;

pub(super) const US: u32 = 0x0000_0A0A;
pub(super) const THEM: u32 = 0x0000_0B0B;

pub(super) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

pub(super) fn multiplier(value: u8) -> NonZeroU8 {
    NonZeroU8::new(value).unwrap()
}

pub(super) fn settings(transmit: u64, receive: u64, detect_multiplier: u8) -> BfdSettings {
    BfdSettings {
        transmit_interval: ms(transmit),
        receive_interval: ms(receive),
        detect_multiplier: multiplier(detect_multiplier),
        ..BfdSettings::default()
    }
}

pub(super) fn session(settings: BfdSettings) -> Session {
    Session::new(at(0), settings, false, NonZeroU32::new(US).unwrap(), 1)
}

/// A packet of the neighbour in this state: 100 ms both ways, multiplier 3.
pub(super) fn says(state: State) -> ControlPacket {
    ControlPacket {
        diagnostic: Diagnostic::NONE,
        state,
        poll: false,
        is_final: false,
        control_plane_independent: false,
        authentication_present: false,
        demand: false,
        detect_multiplier: multiplier(3),
        my_discriminator: NonZeroU32::new(THEM).unwrap(),
        your_discriminator: US,
        desired_min_tx_interval: 100_000,
        required_min_rx_interval: 100_000,
        required_min_echo_rx_interval: 0,
    }
}

pub(super) fn hear(session: &mut Session, now: Instant, packet: &ControlPacket) {
    let bytes = packet.encode(0);
    session.receive(now, now, packet, &bytes).unwrap();
}

/// All packets that are sent at this time.
pub(super) fn sent(session: &mut Session, now: Instant) -> Vec<ControlPacket> {
    let mut packets = Vec::new();
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    while let Some(written) = session.poll_transmit(now, &mut bytes) {
        if !written.echo {
            let decoded = ControlPacket::decode(&bytes[..written.length]).unwrap();
            assert_eq!(decoded.1.len(), written.length);
            packets.push(decoded.0);
        }
        assert!(packets.len() < 10, "it never stops sending");
    }
    packets
}

/// Runs until `end` without received packets: what was sent, and when.
pub(super) fn live(session: &mut Session, end: Instant) -> Vec<(Instant, ControlPacket)> {
    let mut packets = Vec::new();
    while let Some(now) = session.next_deadline().filter(|now| *now < end) {
        session.expire(now, None);
        packets.extend(sent(session, now).into_iter().map(|packet| (now, packet)));
    }
    packets
}

/// A session that is up since 0 ms, with nothing left to send or to poll.
pub(super) fn up(settings: BfdSettings) -> Session {
    let mut session = session(settings);
    settle(&mut session, at(0));
    session
}

/// Brings it up and answers its Poll.
pub(super) fn settle(session: &mut Session, now: Instant) {
    hear(session, now, &says(State::Down));
    hear(session, now, &says(State::Init));
    assert_eq!(session.poll_event(), Some(BfdChange::Up));
    assert!(sent(session, now).iter().any(|packet| packet.poll));
    hear(session, now, &ControlPacket { is_final: true, ..says(State::Up) });
    hear(session, now, &says(State::Up));
    assert_eq!(session.state(), State::Up);
    sent(session, now);
}
