//! MRT: messages and changes of state as BGP4MP_ET (RFC 6396 §4.4, §3).
//!
//! Knows no file. A message with several paths to a prefix (RFC 7911) is written as it was on the wire.

use std::net::IpAddr;

use fairway_seam::{ConnectionEnds, Recorded, Recording, SessionState};

use crate::Stamp;

/// The type of the records (RFC 6396 §4).
const BGP4MP_ET: u16 = 17;
/// AS numbers of two octets in the message: received, and sent.
const MESSAGE: u16 = 1;
const MESSAGE_LOCAL: u16 = 6;
/// Of four octets.
const MESSAGE_AS4: u16 = 4;
const MESSAGE_AS4_LOCAL: u16 = 7;
const STATE_CHANGE_AS4: u16 = 5;
/// Where two octets are too few (RFC 6793 §9).
const AS_TRANS: u16 = 23456;

pub(crate) fn write(recording: &Recording, now: Stamp) -> Vec<u8> {
    let mut out = Vec::new();
    let local = recording.local_asn.get();
    let remote = recording.remote_asn.map_or(0, |it| it.get());
    for record in &recording.records {
        // A format of messages between addresses has no place for a dial that failed.
        let Some(ends) = record.ends.as_deref() else { continue };
        let mut body = Vec::new();
        let subtype = match &record.what {
            Recorded::Message { is_received, four_octet_as, bytes } => {
                peers(&mut body, remote, local, *four_octet_as, ends);
                body.extend_from_slice(bytes);
                match (is_received, four_octet_as) {
                    (true, false) => MESSAGE,
                    (false, false) => MESSAGE_LOCAL,
                    (true, true) => MESSAGE_AS4,
                    (false, true) => MESSAGE_AS4_LOCAL,
                }
            }
            Recorded::State { from, to, .. } => {
                peers(&mut body, remote, local, true, ends);
                body.extend_from_slice(&number(*from).to_be_bytes());
                body.extend_from_slice(&number(*to).to_be_bytes());
                STATE_CHANGE_AS4
            }
        };
        let at = now.of(record.at, recording.taken_at);
        out.extend_from_slice(&at.seconds().to_be_bytes());
        out.extend_from_slice(&BGP4MP_ET.to_be_bytes());
        out.extend_from_slice(&subtype.to_be_bytes());
        // The length includes the microseconds.
        let length = u32::try_from(body.len()).unwrap_or(0).saturating_add(4);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&at.micros().to_be_bytes());
        out.extend_from_slice(&body);
    }
    out
}

/// The AS numbers, the interface (none), the family and the addresses.
fn peers(body: &mut Vec<u8>, remote: u32, local: u32, four_octet_as: bool, ends: &ConnectionEnds) {
    for asn in [remote, local] {
        if four_octet_as {
            body.extend_from_slice(&asn.to_be_bytes());
        } else {
            body.extend_from_slice(&u16::try_from(asn).unwrap_or(AS_TRANS).to_be_bytes());
        }
    }
    body.extend_from_slice(&[0, 0]);
    match (ends.remote.ip(), ends.local.ip()) {
        (IpAddr::V4(remote), IpAddr::V4(local)) => {
            body.extend_from_slice(&1_u16.to_be_bytes());
            body.extend_from_slice(&remote.octets());
            body.extend_from_slice(&local.octets());
        }
        (remote, local) => {
            body.extend_from_slice(&2_u16.to_be_bytes());
            body.extend_from_slice(&ipv6(remote));
            body.extend_from_slice(&ipv6(local));
        }
    }
}

fn ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The number of a state (RFC 6396 §4.4.1).
fn number(state: SessionState) -> u16 {
    match state {
        SessionState::Unknown => 0,
        SessionState::Idle => 1,
        SessionState::Connect => 2,
        SessionState::Active => 3,
        SessionState::OpenSent => 4,
        SessionState::OpenConfirm => 5,
        SessionState::Established => 6,
    }
}
