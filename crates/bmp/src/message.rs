//! The messages to a station, as bytes (RFC 7854 §4).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

/// The version of the protocol (§4.1).
const VERSION: u8 = 3;
/// The header of each message, in bytes.
pub const HEADER_LENGTH_BYTES: usize = 6;
/// The header about the neighbour, in bytes (§4.2).
pub const PEER_HEADER_LENGTH_BYTES: usize = 42;
/// The longest text of ours, in bytes: what operators name things.
const TEXT_BYTES_MAX: usize = 255;

/// The type of a message (§4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    RouteMonitoring = 0,
    StatisticsReport = 1,
    PeerDown = 2,
    PeerUp = 3,
    Initiation = 4,
    Termination = 5,
}

/// Flags about a neighbour (§4.2, RFC 8671 §4).
mod flag {
    pub(super) const IPV6: u8 = 0x80;
    pub(super) const POST_POLICY: u8 = 0x40;
    pub(super) const TWO_OCTET_AS: u8 = 0x20;
    pub(super) const ADJ_RIB_OUT: u8 = 0x10;
}

/// The table that a route is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// As the neighbour announced it.
    AdjRibInPrePolicy,
    /// As it was accepted.
    AdjRibInPostPolicy,
    /// As the neighbour was sent it (RFC 8671).
    AdjRibOutPostPolicy,
    /// As this node uses it (RFC 9069).
    LocRib,
}

/// Unix time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Of routes of which nobody noted when they came (RFC 7854 §5).
    pub const UNAVAILABLE: Self = Self(0);
}

/// A neighbour; for [`Table::LocRib`] this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitored {
    /// Its address; unspecified for this node.
    pub address: IpAddr,
    /// Its AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub router_id: Ipv4Addr,
    /// The VRF of the session; `None` for the main table.
    pub vrf: Option<String>,
    /// The interface of an address that is unique on its link only.
    pub interface: Option<String>,
    /// AS numbers in its messages have two octets.
    pub two_octet_as: bool,
}

/// Why a session ended (§4.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Down {
    /// We sent this NOTIFICATION.
    LocalNotification(Bytes),
    /// We closed the connection without one, for this event of RFC 4271 §8.1; 0 if there is none.
    Local(u16),
    /// The neighbour sent this NOTIFICATION.
    RemoteNotification(Bytes),
    /// The connection ended without one.
    Remote,
    /// It is not reported any more.
    Deconfigured,
}

/// A number about a neighbour (§4.8, RFC 8671 §6.2, RFC 9069 §6). Families are AFI and SAFI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Prefixes that the import policy rejected (type 0).
    Rejected(u32),
    /// Routes that are accepted (type 7).
    AdjRibIn(u64),
    /// Routes of this node (type 8).
    LocRib(u64),
    /// Accepted routes of a family (type 9).
    AdjRibInOf(u16, u8, u64),
    /// Routes of this node of a family (type 10).
    LocRibOf(u16, u8, u64),
    /// UPDATEs whose routes were treated as withdrawn (type 11).
    TreatedAsWithdrawn(u32),
    /// Routes that were sent (type 15).
    AdjRibOut(u64),
    /// Routes of a family that were sent (type 17).
    AdjRibOutOf(u16, u8, u64),
}

/// Why we end the connection (§4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// The daemon ends, or the station is not configured any more.
    AdministrativelyClosed = 0,
}

/// The first message (§4.3): what this system is, and how it is called. Both are ASCII on the wire (§4.4).
pub fn initiation(description: &str, name: &str) -> Bytes {
    let mut body = BytesMut::new();
    put_tlv(&mut body, 1, text(&ascii(description)));
    put_tlv(&mut body, 2, text(&ascii(name)));
    finish(Kind::Initiation, &[&body])
}

/// The last message.
pub fn termination(reason: Termination) -> Bytes {
    let mut body = BytesMut::new();
    put_tlv(&mut body, 1, &(reason as u16).to_be_bytes());
    finish(Kind::Termination, &[&body])
}

/// A session is up, between these ends, with these OPENs as they were on the wire (§4.10).
pub fn peer_up(
    peer: &Monitored,
    at: Stamp,
    local: SocketAddr,
    remote_port: u16,
    opens: (&[u8], &[u8]),
) -> Bytes {
    let mut body = BytesMut::new();
    put_peer(&mut body, peer, None, at);
    put_address(&mut body, local.ip());
    body.put_u16(local.port());
    body.put_u16(remote_port);
    let mut tlvs = BytesMut::new();
    if let Some(vrf) = &peer.vrf {
        put_tlv(&mut tlvs, 3, text(vrf));
    }
    finish(Kind::PeerUp, &[&body, opens.0, opens.1, &tlvs])
}

/// A session is down (§4.9).
pub fn peer_down(peer: &Monitored, at: Stamp, why: &Down) -> Bytes {
    let mut body = BytesMut::new();
    put_peer(&mut body, peer, None, at);
    let (reason, event);
    let (code, data): (u8, &[u8]) = match why {
        Down::LocalNotification(message) => (1, message),
        Down::Local(number) => {
            event = number.to_be_bytes();
            (2, &event)
        }
        Down::RemoteNotification(message) => (3, message),
        Down::Remote => (4, &[]),
        Down::Deconfigured => (5, &[]),
    };
    reason = [code];
    finish(Kind::PeerDown, &[&body, &reason, data])
}

/// The table of this node is reported from now on, with a made-up OPEN for both ends (RFC 9069 §5.2). Nothing ends that but the
/// end of the connection.
pub fn loc_rib_up(node: &Monitored, at: Stamp, name: &str, open: &[u8]) -> Bytes {
    let mut body = BytesMut::new();
    put_peer(&mut body, node, Some(Table::LocRib), at);
    // No address and no ports: there is no session.
    body.put_bytes(0, 20);
    let mut tlvs = BytesMut::new();
    put_tlv(&mut tlvs, 3, text(name));
    finish(Kind::PeerUp, &[&body, open, open, &tlvs])
}

/// An UPDATE, as it was on the wire, or as it would be (§4.6).
pub fn route_monitoring(peer: &Monitored, table: Table, at: Stamp, update: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(PEER_HEADER_LENGTH_BYTES);
    put_peer(&mut body, peer, Some(table), at);
    finish(Kind::RouteMonitoring, &[&body, update])
}

/// Numbers about a neighbour, or about the table of this node (§4.8).
pub fn statistics(
    peer: &Monitored,
    table: Option<Table>,
    at: Stamp,
    numbers: &[Statistic],
) -> Bytes {
    let mut body = BytesMut::new();
    put_peer(&mut body, peer, table.filter(|it| *it == Table::LocRib), at);
    body.put_u32(u32::try_from(numbers.len()).unwrap_or(0));
    for number in numbers {
        match *number {
            Statistic::Rejected(count) => put_tlv(&mut body, 0, &count.to_be_bytes()),
            Statistic::AdjRibIn(count) => put_tlv(&mut body, 7, &count.to_be_bytes()),
            Statistic::LocRib(count) => put_tlv(&mut body, 8, &count.to_be_bytes()),
            Statistic::AdjRibInOf(afi, safi, count) => put_of(&mut body, 9, afi, safi, count),
            Statistic::LocRibOf(afi, safi, count) => put_of(&mut body, 10, afi, safi, count),
            Statistic::TreatedAsWithdrawn(count) => put_tlv(&mut body, 11, &count.to_be_bytes()),
            Statistic::AdjRibOut(count) => put_tlv(&mut body, 15, &count.to_be_bytes()),
            Statistic::AdjRibOutOf(afi, safi, count) => put_of(&mut body, 17, afi, safi, count),
        }
    }
    finish(Kind::StatisticsReport, &[&body])
}

/// The header about a neighbour (§4.2). Without a table it is about the session.
fn put_peer(to: &mut BytesMut, peer: &Monitored, table: Option<Table>, at: Stamp) {
    let of_session = |it: u8| {
        let family = if peer.address.is_ipv6() { flag::IPV6 } else { 0 };
        it | family | if peer.two_octet_as { flag::TWO_OCTET_AS } else { 0 }
    };
    let flags = match table {
        None | Some(Table::AdjRibInPrePolicy) => of_session(0),
        // Routes that were accepted are encoded here, with AS numbers of four octets.
        Some(Table::AdjRibInPostPolicy) => {
            (of_session(0) & !flag::TWO_OCTET_AS) | flag::POST_POLICY
        }
        Some(Table::AdjRibOutPostPolicy) => of_session(flag::POST_POLICY | flag::ADJ_RIB_OUT),
        // All routes are reported (RFC 9069 §4.2).
        Some(Table::LocRib) => 0,
    };
    let distinguisher = distinguisher(peer);
    let kind = match (table, distinguisher) {
        (Some(Table::LocRib), _) => 3,
        (_, 0) => 0,
        _ => 2,
    };
    to.put_u8(kind);
    to.put_u8(flags);
    to.put_u64(distinguisher);
    match table {
        Some(Table::LocRib) => to.put_bytes(0, 16),
        _ => put_address(to, peer.address),
    }
    to.put_u32(peer.asn);
    to.put_slice(&peer.router_id.octets());
    let Stamp(micros) = at;
    to.put_u32(u32::try_from(micros / 1_000_000).unwrap_or(u32::MAX));
    to.put_u32(u32::try_from(micros % 1_000_000).unwrap_or(0));
}

/// A number that stays the same for a VRF and an interface; 0 without both. FNV-1a of their names, since a VRF of Linux has no
/// route distinguisher, and the index of an interface changes.
fn distinguisher(peer: &Monitored) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325_u64;
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    let of_vrf = peer.vrf.as_deref().map(|it| it.bytes().fold(start, add));
    let of_interface = peer
        .interface
        .as_deref()
        .map(|it| it.bytes().fold(add(of_vrf.unwrap_or(start), b'%'), add));
    of_interface.or(of_vrf).unwrap_or(0)
}

/// An address in 16 octets: that of IPv4 in the last four.
fn put_address(to: &mut BytesMut, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            to.put_bytes(0, 12);
            to.put_slice(&address.octets());
        }
        IpAddr::V6(address) => to.put_slice(&address.octets()),
    }
}

fn put_tlv(to: &mut BytesMut, kind: u16, value: &[u8]) {
    to.put_u16(kind);
    to.put_u16(u16::try_from(value.len()).unwrap_or(0));
    to.put_slice(value);
}

fn put_of(to: &mut BytesMut, kind: u16, afi: u16, safi: u8, count: u64) {
    to.put_u16(kind);
    to.put_u16(11);
    to.put_u16(afi);
    to.put_u8(safi);
    to.put_u64(count);
}

/// The same with `?` for each character that is not ASCII.
fn ascii(text: &str) -> String {
    text.chars().map(|it| if it.is_ascii() { it } else { '?' }).collect()
}

/// At most [`TEXT_BYTES_MAX`] of it, and whole characters.
fn text(all: &str) -> &[u8] {
    let end = (0..=TEXT_BYTES_MAX.min(all.len())).rev().find(|at| all.is_char_boundary(*at));
    end.and_then(|it| all.get(..it)).unwrap_or_default().as_bytes()
}

fn finish(kind: Kind, parts: &[&[u8]]) -> Bytes {
    let body = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
    let length = body.saturating_add(HEADER_LENGTH_BYTES);
    let mut message = BytesMut::with_capacity(length);
    message.put_u8(VERSION);
    message.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.put_u8(kind as u8);
    for part in parts {
        message.put_slice(part);
    }
    message.freeze()
}

#[cfg(test)]
mod tests;
