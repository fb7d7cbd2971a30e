//! TABLE_DUMP_V2 (RFC 6396 §4.3), with path identifiers as RFC 8050 §4.1 has them.
//!
//! `Ours:` the time at which a route was received (§4.3.4) is the time of the dump, since none is kept for each route.

use std::borrow::Cow;
use std::net::IpAddr;

use fairway_bgp::wire::EXTENDED_MESSAGE_LENGTH_BYTES_MAX;
use fairway_bgp::wire::announce::{AttributeBlock, next_hop_octets};
use fairway_bgp::wire::attribute::{code, flag};
use fairway_bgp::wire::nlri;
use fairway_ground::{AddressFamily, NextHop, Nlri, PathId, Prefix};
use fairway_seam::PathAttributes;

use super::peers::Peers;
use super::{RibPieces, Route};
use crate::Stamp;

const TABLE_DUMP_V2: u16 = 13;
const PEER_INDEX_TABLE: u16 = 1;
/// The bits of the type of a peer (§4.3.1).
const PEER_IS_IPV6: u8 = 1;
const PEER_HAS_FOUR_OCTET_AS: u8 = 2;

pub(super) fn peer_index_table(peers: &Peers, now: Stamp) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&peers.collector.octets());
    // The name of a view, which there is none of.
    body.extend_from_slice(&[0, 0]);
    body.extend_from_slice(&u16::try_from(peers.list.len()).unwrap_or(u16::MAX).to_be_bytes());
    for peer in &peers.list {
        let kind = if peer.address.is_ipv6() { PEER_IS_IPV6 } else { 0 };
        body.push(kind | PEER_HAS_FOUR_OCTET_AS);
        body.extend_from_slice(&peer.router_id.octets());
        match peer.address {
            IpAddr::V4(address) => body.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => body.extend_from_slice(&address.octets()),
        }
        body.extend_from_slice(&peer.asn.to_be_bytes());
    }
    let mut out = Vec::with_capacity(body.len().saturating_add(12));
    put_record(PEER_INDEX_TABLE, &body, now, &mut out);
    out
}

/// Appends the record of a prefix. How many of its paths do not fit.
pub(super) fn put_rib(
    rib: &mut RibPieces<'_>,
    prefix: Prefix,
    routes: &[Route<'_>],
    out: &mut Vec<u8>,
) -> u64 {
    // One neighbor with several paths is enough: a record has entries of one kind.
    let has_path_ids = routes.iter().any(|it| path_id(*it) != PathId::NONE);
    let mut entries = Vec::new();
    let (mut count, mut left_out) = (0_u16, 0_u64);
    for route in routes {
        match entry(rib, *route, has_path_ids) {
            Some(entry) if count < u16::MAX => {
                entries.extend_from_slice(&entry);
                count = count.saturating_add(1);
            }
            _ => left_out = left_out.saturating_add(1),
        }
    }
    if count == 0 {
        return left_out;
    }
    let mut body = Vec::with_capacity(entries.len().saturating_add(32));
    body.extend_from_slice(&rib.sequence.to_be_bytes());
    rib.sequence = rib.sequence.wrapping_add(1);
    nlri::encode(Nlri::from(prefix), false, &mut body);
    body.extend_from_slice(&count.to_be_bytes());
    body.extend_from_slice(&entries);
    let subtype = match (prefix.family(), has_path_ids) {
        (AddressFamily::Ipv4Unicast, false) => 2,
        (AddressFamily::Ipv6Unicast, false) => 4,
        (AddressFamily::Ipv4Unicast, true) => 8,
        (AddressFamily::Ipv6Unicast, true) => 10,
    };
    put_record(subtype, &body, rib.now, out);
    left_out
}

fn path_id(route: Route<'_>) -> PathId {
    match route {
        Route::Originated(_) => PathId::NONE,
        Route::Learned(learned) => learned.path.path_id,
    }
}

/// The entry of a path (§4.3.4), if it has room.
fn entry(rib: &RibPieces<'_>, route: Route<'_>, has_path_ids: bool) -> Option<Vec<u8>> {
    let (peer, attributes) = match route {
        Route::Originated(route) => (Peers::OURSELVES, Cow::Owned(rib.originated(route))),
        Route::Learned(learned) => {
            let path = &learned.path;
            (rib.peers.number(&path.source)?, Cow::Borrowed(&*path.attributes))
        }
    };
    let attributes = octets(&attributes)?;
    let length = u16::try_from(attributes.len()).ok()?;
    let mut entry = Vec::with_capacity(attributes.len().saturating_add(12));
    entry.extend_from_slice(&peer.to_be_bytes());
    entry.extend_from_slice(&rib.now.seconds().to_be_bytes());
    if has_path_ids {
        entry.extend_from_slice(&path_id(route).get().to_be_bytes());
    }
    entry.extend_from_slice(&length.to_be_bytes());
    entry.extend_from_slice(&attributes);
    Some(entry)
}

/// The attributes with AS numbers of four octets, and of MP_REACH_NLRI the next hop (§4.3.4).
fn octets(attributes: &PathAttributes) -> Option<Vec<u8>> {
    let block = AttributeBlock::encode_within(EXTENDED_MESSAGE_LENGTH_BYTES_MAX, attributes, true);
    let block = block.ok()?;
    let mut octets = Vec::with_capacity(block.bytes().len().saturating_add(40));
    if let NextHop::Ipv6 { .. } = attributes.next_hop {
        let next_hop = next_hop_octets(attributes.next_hop);
        let length = u8::try_from(next_hop.len()).ok()?;
        octets.extend_from_slice(&[flag::OPTIONAL, code::MP_REACH_NLRI]);
        octets.extend_from_slice(&[length.checked_add(1)?, length]);
        octets.extend_from_slice(&next_hop);
    }
    octets.extend_from_slice(block.bytes());
    Some(octets)
}

fn put_record(subtype: u16, body: &[u8], now: Stamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&now.seconds().to_be_bytes());
    out.extend_from_slice(&TABLE_DUMP_V2.to_be_bytes());
    out.extend_from_slice(&subtype.to_be_bytes());
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(body);
}
