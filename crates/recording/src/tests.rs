//! A recording as another program reads it.

use std::sync::Arc;

use bgpkit_parser::models::{Bgp4MpEnum, BgpMessage, MrtMessage};
use fairway_ground::{Asn, Instant};
use fairway_seam::{ConnectionEnds, Record, Recorded, Recording, SessionState};

use crate::{DumpFormat, Stamp};

const NOW: Stamp = Stamp { epoch_micros: 1_795_000_000_000_250 };

fn message(kind: u8, body: &[u8]) -> Box<[u8]> {
    let length = u16::try_from(19 + body.len()).unwrap().to_be_bytes();
    [&[0xFF; 16][..], &length, &[kind], body].concat().into()
}

/// An UPDATE that announces 10.0.0.0/8 with the path 4200000001, as four octets or as AS_TRANS.
fn update(four_octet_as: bool) -> Box<[u8]> {
    let path: &[u8] = if four_octet_as {
        &[0x40, 2, 6, 2, 1, 0xFA, 0x56, 0xEA, 0x01]
    } else {
        &[0x40, 2, 4, 2, 1, 0x5B, 0xA0]
    };
    let attributes = [&[0x40, 1, 1, 0][..], path, &[0x40, 3, 4, 192, 0, 2, 1]].concat();
    let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
    message(2, &[&[0, 0][..], &length, &attributes, &[8, 10]].concat())
}

fn recording(ends: ConnectionEnds) -> Recording {
    let ends = Some(Arc::new(ends));
    let said = |seconds: u64, is_received: bool, four_octet_as: bool, bytes: Box<[u8]>| Record {
        at: Instant::from_micros(seconds * 1_000_000),
        ends: ends.clone(),
        what: Recorded::Message { is_received, four_octet_as, bytes },
    };
    let went =
        |seconds: u64, ends: Option<Arc<ConnectionEnds>>, to: SessionState, why: &str| Record {
            at: Instant::from_micros(seconds * 1_000_000),
            ends,
            what: Recorded::State { from: SessionState::OpenConfirm, to, why: why.to_owned() },
        };
    Recording {
        taken_at: Instant::from_micros(20_000_000),
        local_asn: Asn::new(65001).unwrap(),
        remote_asn: Asn::new(4_200_000_001),
        overwritten: 3,
        records: vec![
            went(1, None, SessionState::Idle, "no route to the host"),
            said(10, true, true, message(4, &[])),
            went(10, ends.clone(), SessionState::Established, ""),
            said(11, true, true, update(true)),
            said(12, false, true, update(true)),
            said(13, true, false, update(false)),
            went(14, ends.clone(), SessionState::Idle, "the hold timer expired"),
        ],
    }
}

fn ipv4() -> ConnectionEnds {
    let (local, remote) = ("192.0.2.1:179", "192.0.2.2:40000");
    ConnectionEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

fn ipv6() -> ConnectionEnds {
    let (local, remote) = ("[2001:db8::1]:40000", "[2001:db8::2]:179");
    ConnectionEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

/// RFC 6396 §4.4: records have the addresses and AS numbers of both ends.
#[test]
fn another_parser_reads_messages_and_states_from_mrt() {
    for ends in [ipv4(), ipv6()] {
        let bytes = DumpFormat::Mrt.write(&recording(ends), NOW);
        let parser = bgpkit_parser::BgpkitParser::from_reader(std::io::Cursor::new(bytes));
        let mut seen = Vec::new();
        for record in parser.into_record_iter() {
            let header = record.common_header;
            assert_eq!(header.microsecond_timestamp, Some(250));
            let MrtMessage::Bgp4Mp(message) = record.message else {
                panic!("{:?}", record.message)
            };
            let text = match message {
                Bgp4MpEnum::StateChange(state) => {
                    assert_eq!(
                        (state.peer_ip, state.local_addr),
                        (ends.remote.ip(), ends.local.ip())
                    );
                    format!("{:?} to {:?}", state.old_state, state.new_state)
                }
                Bgp4MpEnum::Message(it) => {
                    assert_eq!((it.peer_ip, it.local_ip), (ends.remote.ip(), ends.local.ip()));
                    let name = match &it.bgp_message {
                        BgpMessage::Update(update) => {
                            let path = update.attributes.as_path().unwrap().to_string();
                            format!("UPDATE {} by {path}", update.announced_prefixes[0])
                        }
                        BgpMessage::KeepAlive => "KEEPALIVE".to_owned(),
                        other => panic!("{other:?}"),
                    };
                    format!("{name} of {}", it.peer_asn)
                }
            };
            seen.push((header.timestamp, text));
        }
        let expected = [
            (10, "KEEPALIVE of 4200000001"),
            (10, "OpenConfirm to Established"),
            (11, "UPDATE 10.0.0.0/8 by 4200000001 of 4200000001"),
            (12, "UPDATE 10.0.0.0/8 by 4200000001 of 4200000001"),
            (13, "UPDATE 10.0.0.0/8 by 23456 of 23456"),
            (14, "OpenConfirm to Idle"),
        ];
        let start = u32::try_from(NOW.epoch_micros / 1_000_000).unwrap() - 20;
        let expected: Vec<_> =
            expected.iter().map(|(at, text)| (f64::from(start + at), (*text).to_owned())).collect();
        let seen: Vec<_> = seen.into_iter().map(|(at, text)| (f64::from(at), text)).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn packets_have_the_addresses_sequence_numbers_and_checksums_of_tcp() {
    let bytes = DumpFormat::Pcap.write(&recording(ipv4()), NOW);
    assert_eq!(bytes[..4], [0xA1, 0xB2, 0xC3, 0xD4]);
    let mut rest = &bytes[24..];
    let mut sequences = Vec::new();
    while !rest.is_empty() {
        let length = usize::try_from(u32::from_be_bytes(rest[8..12].try_into().unwrap())).unwrap();
        let packet = &rest[16..16 + length];
        assert_eq!(sum(&packet[..20]), 0xFFFF, "the header of IP");
        let segment = &packet[20..];
        let length = u32::try_from(segment.len()).unwrap().to_be_bytes();
        let pseudo = [&packet[12..20], &length, &[0, 0, 0, 6], segment].concat();
        assert_eq!(sum(&pseudo), 0xFFFF, "TCP");
        let port = u16::from_be_bytes(segment[..2].try_into().unwrap());
        sequences.push((port, u32::from_be_bytes(segment[4..8].try_into().unwrap())));
        rest = &rest
            [16 + usize::try_from(u32::from_be_bytes(rest[8..12].try_into().unwrap())).unwrap()..];
    }
    assert_eq!(sequences, [(40000, 1), (40000, 20), (179, 1), (40000, 65)]);
}

fn sum(bytes: &[u8]) -> u32 {
    let words =
        bytes.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(*it.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    (sum & 0xFFFF) + (sum >> 16)
}

#[test]
fn json_has_each_record_with_its_time() {
    let text = String::from_utf8(DumpFormat::Json.write(&recording(ipv6()), NOW)).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["overwritten"], &value["remoteAs"]), (&3.into(), &4_200_000_001_u32.into()));
    assert_eq!(value["records"][0]["why"], "no route to the host");
    let update = &value["records"][3];
    assert_eq!((&update["type"], &update["direction"]), (&"UPDATE".into(), &"received".into()));
    assert!(update["at"].as_str().unwrap().ends_with(":31.000250Z"), "{update}");
    assert!(update["hex"].as_str().unwrap().starts_with("ffffffff"));
}
