//! pcap, version 2.4 with microseconds: each message as a segment of TCP. Sequence numbers count the recorded bytes of each
//! direction of a connection from 1; what was not recorded is not missing in them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use fairway_seam::{Recorded, Recording};

use crate::Stamp;

/// Packets begin with the IP header.
const LINKTYPE_RAW: u32 = 101;
/// Longer messages are several segments: an IPv4 packet has 65535 bytes at most.
const SEGMENT_BYTES_MAX: usize = 32 * 1024;
/// ACK and PSH.
const FLAGS: u8 = 0x18;

pub(crate) fn write(recording: &Recording, now: Stamp) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&0xA1B2_C3D4_u32.to_be_bytes());
    for version in [2_u16, 4] {
        out.extend_from_slice(&version.to_be_bytes());
    }
    for field in [0, 0, u32::from(u16::MAX), LINKTYPE_RAW] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    let mut next: BTreeMap<(SocketAddr, SocketAddr), u32> = BTreeMap::new();
    for record in &recording.records {
        let (Some(ends), Recorded::Message { is_received, bytes, .. }) =
            (&record.ends, &record.what)
        else {
            continue;
        };
        let (source, destination) =
            if *is_received { (ends.remote, ends.local) } else { (ends.local, ends.remote) };
        let at = now.of(record.at, recording.taken_at);
        for payload in bytes.chunks(SEGMENT_BYTES_MAX) {
            let acknowledged = next.get(&(destination, source)).copied().unwrap_or(1);
            let sequence = next.entry((source, destination)).or_insert(1);
            let segment = tcp(source, destination, *sequence, acknowledged, payload);
            *sequence = sequence.wrapping_add(u32::try_from(payload.len()).unwrap_or(0));
            let packet = ip(source.ip(), destination.ip(), &segment);
            let length = u32::try_from(packet.len()).unwrap_or(0);
            for field in [at.seconds(), at.micros(), length, length] {
                out.extend_from_slice(&field.to_be_bytes());
            }
            out.extend_from_slice(&packet);
        }
    }
    out
}

fn tcp(
    source: SocketAddr,
    destination: SocketAddr,
    sequence: u32,
    acknowledged: u32,
    payload: &[u8],
) -> Vec<u8> {
    let mut segment = Vec::with_capacity(payload.len().saturating_add(20));
    segment.extend_from_slice(&source.port().to_be_bytes());
    segment.extend_from_slice(&destination.port().to_be_bytes());
    segment.extend_from_slice(&sequence.to_be_bytes());
    segment.extend_from_slice(&acknowledged.to_be_bytes());
    // Five words of header, the window, no checksum yet, no urgent pointer.
    segment.extend_from_slice(&[0x50, FLAGS, 0xFF, 0xFF, 0, 0, 0, 0]);
    segment.extend_from_slice(payload);
    let mut summed = Vec::with_capacity(segment.len().saturating_add(40));
    octets(source.ip(), &mut summed);
    octets(destination.ip(), &mut summed);
    summed.extend_from_slice(&u32::try_from(segment.len()).unwrap_or(0).to_be_bytes());
    summed.extend_from_slice(&[0, 0, 0, 6]);
    summed.extend_from_slice(&segment);
    let sum = checksum(&summed).to_be_bytes();
    if let Some(place) = segment.get_mut(16..18) {
        place.copy_from_slice(&sum);
    }
    segment
}

fn ip(source: IpAddr, destination: IpAddr, segment: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(segment.len().saturating_add(40));
    let length = segment.len();
    if source.is_ipv4() {
        let total = u16::try_from(length.saturating_add(20)).unwrap_or(u16::MAX);
        packet.extend_from_slice(&[0x45, 0xC0]);
        packet.extend_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        octets(source, &mut packet);
        octets(destination, &mut packet);
        let sum = checksum(&packet).to_be_bytes();
        if let Some(place) = packet.get_mut(10..12) {
            place.copy_from_slice(&sum);
        }
    } else {
        packet.extend_from_slice(&[0x6C, 0, 0, 0]);
        packet.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        packet.extend_from_slice(&[6, 64]);
        octets(source, &mut packet);
        octets(destination, &mut packet);
    }
    packet.extend_from_slice(segment);
    packet
}

fn octets(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    };
    let mut sum: u32 = bytes.chunks(2).map(word).fold(0, |sum, word| {
        let sum = sum.wrapping_add(word);
        (sum & 0xFFFF).wrapping_add(sum >> 16)
    });
    sum = (sum & 0xFFFF).wrapping_add(sum >> 16);
    !u16::try_from(sum).unwrap_or(u16::MAX)
}
