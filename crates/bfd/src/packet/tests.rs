use super::*;
use fairway_ground::Rng;

/// Up, Poll and C set, multiplier 3, 300 ms both ways, 50 ms echo.
const PACKET: ControlPacket = ControlPacket {
    diagnostic: Diagnostic::NONE,
    state: State::Up,
    poll: true,
    is_final: false,
    control_plane_independent: true,
    authentication_present: false,
    demand: false,
    detect_multiplier: NonZeroU8::new(3).unwrap(),
    my_discriminator: NonZeroU32::new(0x0102_0304).unwrap(),
    your_discriminator: 0xA0B0_C0D0,
    desired_min_tx_interval: 300_000,
    required_min_rx_interval: 300_000,
    required_min_echo_rx_interval: 50_000,
};

const BYTES: [u8; 24] = [
    0x20, 0xE8, 3, 24, 1, 2, 3, 4, 0xA0, 0xB0, 0xC0, 0xD0, 0x00, 0x04, 0x93, 0xE0, 0x00, 0x04,
    0x93, 0xE0, 0x00, 0x00, 0xC3, 0x50,
];

fn with(place: usize, value: u8) -> [u8; 24] {
    let mut bytes = BYTES;
    bytes[place] = value;
    bytes
}

fn fault(bytes: &[u8]) -> PacketError {
    ControlPacket::decode(bytes).unwrap_err()
}

#[test]
fn a_packet_has_these_bytes() {
    assert_eq!(PACKET.encode(0), BYTES);
    assert_eq!(ControlPacket::decode(&BYTES), Ok((PACKET, &BYTES[..])));
}

#[test]
fn bytes_behind_the_packet_are_not_part_of_it() {
    let padded = [&BYTES[..], &[0xFF; 30]].concat();
    assert_eq!(ControlPacket::decode(&padded), Ok((PACKET, &BYTES[..])));
}

//= RFC 5880 §6.8.6 MUST: a version other than 1 is discarded.
#[test]
fn another_version_is_not_heard() {
    for version in [0, 2, 7] {
        assert_eq!(fault(&with(0, version << 5)), PacketError::Version(version));
    }
}

//= RFC 5880 §6.8.6 MUST: a length less than 24, or 26 with authentication, is discarded.
#[test]
fn a_length_below_the_least_is_not_heard() {
    assert_eq!(fault(&with(3, 23)), PacketError::Length(23));
    assert_eq!(fault(&BYTES[..23]), PacketError::Short(23));
    let mut signed = [0; 26];
    signed[..24].copy_from_slice(&with(1, 0xC0 | AUTHENTICATION_PRESENT));
    signed[3] = 25;
    assert_eq!(fault(&signed), PacketError::Length(25));
    signed[3] = 26;
    assert!(ControlPacket::decode(&signed).is_ok());
}

//= RFC 5880 §6.8.6 MUST: a length greater than the payload is discarded.
#[test]
fn a_length_beyond_the_payload_is_not_heard() {
    assert_eq!(fault(&with(3, 25)), PacketError::Truncated { field: 25, payload: 24 });
    assert_eq!(fault(&with(3, 255)), PacketError::Truncated { field: 255, payload: 24 });
}

//= RFC 5880 §6.8.6 MUST: a Detect Mult of zero is discarded.
#[test]
fn a_multiplier_of_zero_is_not_heard() {
    assert_eq!(fault(&with(2, 0)), PacketError::DetectMultiplier);
}

//= RFC 5880 §6.8.6 MUST: a nonzero Multipoint bit is discarded.
#[test]
fn the_multipoint_bit_is_not_heard() {
    assert_eq!(fault(&with(1, 0xC0 | MULTIPOINT)), PacketError::Multipoint);
}

//= RFC 5880 §6.8.6 MUST: a My Discriminator of zero is discarded.
#[test]
fn a_sender_without_a_name_is_not_heard() {
    let mut bytes = BYTES;
    bytes[4..8].fill(0);
    assert_eq!(fault(&bytes), PacketError::MyDiscriminator);
}

//= RFC 5880 §6.8.6 MUST: a Your Discriminator of zero in Init or Up is discarded.
#[test]
fn who_does_not_know_us_cannot_have_heard_us() {
    for state in State::ALL {
        let mut bytes = with(1, (state as u8) << 6);
        bytes[8..12].fill(0);
        match state {
            State::AdminDown | State::Down => assert!(ControlPacket::decode(&bytes).is_ok()),
            State::Init | State::Up => {
                assert_eq!(fault(&bytes), PacketError::YourDiscriminator(state));
            }
        }
    }
}

//= RFC 5880 §6.8.6 MUST: the rules of reception are followed in the order of the text.
#[test]
fn the_first_rule_that_is_broken_is_the_one_that_is_named() {
    // Everything is wrong; then one fault after the other is corrected.
    let mut bytes = BYTES;
    bytes[0] = 0;
    bytes[1] = 0xC0 | MULTIPOINT;
    bytes[2] = 0;
    bytes[3] = 23;
    bytes[4..12].fill(0);
    assert_eq!(fault(&bytes), PacketError::Version(0));
    bytes[0] = 0x20;
    assert_eq!(fault(&bytes), PacketError::Length(23));
    bytes[3] = 30;
    assert_eq!(fault(&bytes), PacketError::Truncated { field: 30, payload: 24 });
    bytes[3] = 24;
    assert_eq!(fault(&bytes), PacketError::DetectMultiplier);
    bytes[2] = 1;
    assert_eq!(fault(&bytes), PacketError::Multipoint);
    bytes[1] = 0xC0;
    assert_eq!(fault(&bytes), PacketError::MyDiscriminator);
    bytes[7] = 1;
    assert_eq!(fault(&bytes), PacketError::YourDiscriminator(State::Up));
    bytes[11] = 1;
    assert!(ControlPacket::decode(&bytes).is_ok());
}

#[test]
fn every_number_of_a_diagnostic_is_kept_and_the_known_ones_have_frrs_words() {
    for bits in 0..=255 {
        assert_eq!(Diagnostic::from_bits(bits).bits(), bits & 0x1F);
    }
    assert_eq!(Diagnostic::from_bits(2), Diagnostic::ECHO_FUNCTION_FAILED);
    assert_eq!(Diagnostic::from_bits(3).to_string(), "neighbor signaled session down");
    assert_eq!(Diagnostic::from_bits(7).name(), "administratively down");
    assert_eq!(format!("{:?}", Diagnostic::from_bits(9)), "Diagnostic(9 unknown)");
    assert_eq!(State::ALL.map(|it| it.to_string()), ["shutdown", "down", "init", "up"]);
}

#[test]
fn any_bytes_are_a_packet_that_encodes_to_them_or_a_fault() {
    let mut rng = Rng::seeded(5880);
    let mut packets = 0;
    for round in 0..200_000 {
        let mut bytes = [0_u8; 60];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&rng.next_u64().to_be_bytes()[..chunk.len()]);
        }
        if round % 2 == 0 {
            bytes[0] = bytes[0] & 0x1F | 0x20;
            bytes[1] &= !MULTIPOINT;
            bytes[3] = 24 + bytes[3] % 40;
        }
        let payload = &bytes[..usize::try_from(rng.next_u64() % 61).unwrap()];
        if let Ok((packet, covered)) = ControlPacket::decode(payload) {
            let behind = u8::try_from(covered.len() - 24).unwrap();
            assert_eq!(packet.encode(behind), covered[..24]);
            assert_eq!(covered, &payload[..covered.len()]);
            packets += 1;
        }
    }
    assert!(packets > 20_000, "only {packets} were valid packets");
}
