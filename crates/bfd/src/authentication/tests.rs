use super::*;
use crate::{Diagnostic, State};
use BfdAuthenticationKind::{MeticulousSha1, Sha1 as KeyedSha1};

fn key(kind: BfdAuthenticationKind, text: &str) -> BfdAuthentication {
    BfdAuthentication::new(kind, 7, text.as_bytes()).unwrap()
}

fn packet() -> ControlPacket {
    ControlPacket {
        diagnostic: Diagnostic::NONE,
        state: State::Up,
        poll: true,
        is_final: false,
        control_plane_independent: true,
        authentication_present: true,
        demand: false,
        detect_multiplier: 3.try_into().unwrap(),
        my_discriminator: 0x0102_0304.try_into().unwrap(),
        your_discriminator: 0xA0B0_C0D0,
        desired_min_tx_interval: 300_000,
        required_min_rx_interval: 300_000,
        required_min_echo_rx_interval: 50_000,
    }
}

fn signed(sequence: u32, authentication: &BfdAuthentication) -> [u8; PACKET_LENGTH_BYTES_MAX] {
    Sequences::new(sequence.wrapping_sub(1)).sign(authentication, packet().encode(SECTION_LENGTH))
}

/// Whether a receiver accepts each of these sequence numbers in turn.
fn heard(kind: BfdAuthenticationKind, sequences: &[u32]) -> Vec<bool> {
    let (key, mut receiver) = (key(kind, "fairway"), Sequences::new(0));
    let mut hear = |sequence| receiver.verify(&key, &packet(), &signed(sequence, &key)).is_ok();
    sequences.iter().map(|sequence| hear(*sequence)).collect()
}

//= RFC 5880 §6.7.4 MUST: Auth Type is 4 or 5, Auth Len 28, and the ID is that of the key.
//= RFC 5880 §6.7.4 MUST: the hash covers the whole packet, with the key in the place of the hash.
//= RFC 5880 §6.7.4 MUST: the key is not carried in the packet.
#[test]
fn a_signed_packet_has_these_bytes() {
    let key = key(MeticulousSha1, "fairway");
    let bytes = signed(0x0102_0305, &key);
    let expected = [
        [0x20, 0xEC, 3, 52, 1, 2, 3, 4].as_slice(),
        &[0xA0, 0xB0, 0xC0, 0xD0, 0, 4, 0x93, 0xE0, 0, 4, 0x93, 0xE0, 0, 0, 0xC3, 0x50],
        &[5, 28, 7, 0, 1, 2, 3, 5],
        // Computed by another implementation of SHA-1.
        &[0xD7, 0x45, 0xC3, 0x5E, 0xEB, 0x60, 0x8D, 0xFA, 0x54, 0x93],
        &[0x35, 0x55, 0x12, 0x8E, 0x72, 0x66, 0xFD, 0xC7, 0xBB, 0x73],
    ];
    assert_eq!(bytes[..], expected.concat());
    let (decoded, covered) = ControlPacket::decode(&bytes).unwrap();
    assert_eq!((decoded, covered.len()), (packet(), 52));
    assert_eq!(Sequences::new(0).verify(&key, &decoded, covered), Ok(()));
}

//= RFC 5880 §6.7.4 MUST: another Auth Type, Auth Len or key ID than configured is discarded.
#[test]
fn a_section_of_another_kind_is_not_heard() {
    let key = key(KeyedSha1, "fairway");
    let good = signed(5, &key);
    for (place, value) in [(24, 5), (24, 1), (25, 27), (25, 29), (26, 8)] {
        let mut bytes = good;
        bytes[place] = value;
        let result = Sequences::new(0).verify(&key, &packet(), &bytes);
        assert_eq!(result, Err(Dropped::AuthenticationSection), "{place} {value}");
    }
    for bytes in [&good[..51], &good[..24], &[good.as_slice(), &[0]].concat()] {
        let result = Sequences::new(0).verify(&key, &packet(), bytes);
        assert_eq!(result, Err(Dropped::AuthenticationSection), "{}", bytes.len());
    }
}

//= RFC 5880 §6.7.4 MUST: a hash that does not match is discarded.
#[test]
fn a_packet_that_was_changed_or_made_by_others_is_not_heard() {
    let good_key = key(KeyedSha1, "fairway");
    let good = signed(5, &good_key);
    for place in (0..24).chain(27..52) {
        let mut bytes = good;
        bytes[place] ^= 1;
        let result = Sequences::new(0).verify(&good_key, &packet(), &bytes);
        assert_eq!(result, Err(Dropped::AuthenticationHash), "byte {place}");
    }
    let result = Sequences::new(0).verify(&key(KeyedSha1, "fairwax"), &packet(), &good);
    assert_eq!(result, Err(Dropped::AuthenticationHash));
}

//= RFC 5880 §6.7.4 MUST: keyed, a sequence number from the last to 3 * Detect Mult on is accepted.
#[test]
fn a_keyed_sequence_number_may_stay_and_not_go_back() {
    assert_eq!(heard(KeyedSha1, &[100, 100, 109, 118]), [true; 4]);
    assert_eq!(heard(KeyedSha1, &[100, 99]), [true, false]);
    assert_eq!(heard(KeyedSha1, &[100, 110, 101]), [true, false, true]);
    assert_eq!(heard(KeyedSha1, &[u32::MAX, 0, 8, u32::MAX]), [true, true, true, false]);
}

//= RFC 5880 §6.7.4 MUST: meticulous, the number is from one more than the last on.
#[test]
fn a_meticulous_sequence_number_is_good_once() {
    assert_eq!(heard(MeticulousSha1, &[100, 100]), [true, false]);
    assert_eq!(heard(MeticulousSha1, &[100, 101, 110]), [true; 3]);
    assert_eq!(heard(MeticulousSha1, &[100, 110, 99]), [true, false, false]);
    assert_eq!(heard(MeticulousSha1, &[u32::MAX, 8, 7, 9]), [true, true, false, true]);
}

//= RFC 5880 §6.8.1 MUST: bfd.AuthSeqKnown is zero at first, and any number is accepted then.
#[test]
fn a_stranger_does_not_say_where_the_sequence_is() {
    let (good, bad) = (key(KeyedSha1, "fairway"), key(KeyedSha1, "guess"));
    let mut receiver = Sequences::new(0);
    assert!(receiver.verify(&good, &packet(), &signed(1_000, &bad)).is_err());
    assert_eq!(receiver.verify(&good, &packet(), &signed(5, &good)), Ok(()));
    assert!(receiver.verify(&good, &packet(), &signed(6, &bad)).is_err());
    let far = signed(500, &good);
    let dropped = Dropped::AuthenticationSequence { received: 500, last: 5 };
    assert_eq!(receiver.verify(&good, &packet(), &far), Err(dropped));
    receiver.forget();
    assert_eq!(receiver.verify(&good, &packet(), &far), Ok(()));
}

//= RFC 5880 §6.7.4 SHOULD: keyed, the number is incremented when the packet says something else.
//= RFC 5880 §6.7.4 MUST: meticulous, the number is incremented with each packet.
#[test]
fn a_keyed_sequence_counts_news_and_a_meticulous_one_packets() {
    let sequences = |kind| {
        let (key, mut sender) = (key(kind, "fairway"), Sequences::new(u32::MAX - 1));
        let news = ControlPacket { state: State::Down, ..packet() };
        let mut sign = |it: ControlPacket| {
            let bytes = sender.sign(&key, it.encode(SECTION_LENGTH));
            u32::from_be_bytes(bytes[28..32].try_into().unwrap())
        };
        [packet(), packet(), news, news, packet()].map(&mut sign)
    };
    assert_eq!(sequences(KeyedSha1), [u32::MAX, u32::MAX, 0, 0, 1]);
    assert_eq!(sequences(MeticulousSha1), [u32::MAX, 0, 1, 2, 3]);
}
