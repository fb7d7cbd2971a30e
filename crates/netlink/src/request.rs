//! Requests to the kernel, as bytes.
//!
//! Those that read a table, for the follower, and those that change addresses and routes, for [`crate::Requests`]. A request
//! knows nothing of its answer, which is [`crate::decode`]'s.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, CacheInfo};
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteNextHop, RouteType, RouteVia,
};

use crate::kind::Kind;
use crate::route::{NextHop, Route, RouteKind, RouteOrder};

/// Requests all of a table. The answer carries `sequence`.
pub fn dump(kind: Kind, sequence: u32) -> Vec<u8> {
    let message = match kind {
        Kind::Link => {
            let mut link = LinkMessage::default();
            // Counters are half of the answer, and are not used.
            link.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
            RouteNetlinkMessage::GetLink(link)
        }
        Kind::Address => RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        Kind::Route => RouteNetlinkMessage::GetRoute(RouteMessage::default()),
        Kind::Neighbour => RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
    };
    encode(message, NLM_F_DUMP, sequence)
}

/// Whether an address may be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The kernel refuses it where it is there.
    New,
    /// It is there, and gets another lifetime.
    Present,
}

/// Puts `address` alone, without a network, on the interface of number `index` for so many seconds, after which the
/// kernel removes it. No connection of this machine is made from it, and duplicates are not looked for.
pub fn add_address(
    index: u32,
    address: IpAddr,
    lifetime_seconds: u32,
    presence: Presence,
    is_acknowledged: bool,
    sequence: u32,
) -> Vec<u8> {
    let mut message = of_address(index, address);
    let mut lifetime = CacheInfo::default();
    // Deprecated from the beginning: other addresses are better sources.
    lifetime.ifa_preferred = 0;
    lifetime.ifa_valid = lifetime_seconds;
    message.attributes.push(AddressAttribute::CacheInfo(lifetime));
    message
        .attributes
        .push(AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute));
    let presence = match presence {
        Presence::New => NLM_F_EXCL,
        Presence::Present => NLM_F_REPLACE,
    };
    let acknowledged = if is_acknowledged { NLM_F_ACK } else { 0 };
    let message = RouteNetlinkMessage::NewAddress(message);
    encode(message, acknowledged | NLM_F_CREATE | presence, sequence)
}

/// Makes an interface of kind `dummy`, which stays down: its addresses are this machine's, and no packet leaves by it.
pub fn add_dummy(name: &str, sequence: u32) -> Vec<u8> {
    let mut message = LinkMessage::default();
    (message.header.flags, message.header.change_mask) = (LinkFlags::Noarp, LinkFlags::Noarp);
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Dummy)]));
    let message = RouteNetlinkMessage::NewLink(message);
    encode(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sequence)
}

/// Removes the interface of this number, with all its addresses.
pub fn remove_link(index: u32, sequence: u32) -> Vec<u8> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    encode(RouteNetlinkMessage::DelLink(message), NLM_F_ACK, sequence)
}

/// Takes it away.
pub fn remove_address(index: u32, address: IpAddr, sequence: u32) -> Vec<u8> {
    let message = RouteNetlinkMessage::DelAddress(of_address(index, address));
    encode(message, NLM_F_ACK, sequence)
}

fn of_address(index: u32, address: IpAddr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    (message.header.family, message.header.prefix_len) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message
}

/// Changes a route.
pub fn change_route(order: &RouteOrder, acknowledges: bool, sequence: u32) -> Vec<u8> {
    let acknowledges = if acknowledges { NLM_F_ACK } else { 0 };
    let (message, flags) = match order {
        RouteOrder::Add(route) => {
            (RouteNetlinkMessage::NewRoute(of_route(route)), NLM_F_CREATE | NLM_F_EXCL)
        }
        RouteOrder::Replace(route) => {
            (RouteNetlinkMessage::NewRoute(of_route(route)), NLM_F_CREATE | NLM_F_REPLACE)
        }
        RouteOrder::Remove(route) => {
            // Without ways: all of them go. Of no kind: whatever it does to a packet.
            let route = Route { next_hops: Vec::new(), ..route.clone() };
            let mut message = of_route(&route);
            message.header.kind = RouteType::Unspec;
            (RouteNetlinkMessage::DelRoute(message), 0)
        }
    };
    encode(message, flags | acknowledges, sequence)
}

/// A route as the kernel has it in messages.
pub(crate) fn of_route(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    let destination = route.destination;
    message.header.address_family = match destination.addr() {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    message.header.destination_prefix_length = destination.prefix_len();
    message.header.tos = route.type_of_service;
    message.header.protocol = route.protocol.into();
    message.header.kind = match route.kind {
        RouteKind::Unicast => RouteType::Unicast,
        RouteKind::Blackhole => RouteType::BlackHole,
        RouteKind::Unreachable => RouteType::Unreachable,
        RouteKind::Prohibit => RouteType::Prohibit,
        RouteKind::Throw => RouteType::Throw,
    };
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Destination(destination.addr().into()));
    attributes.push(RouteAttribute::Priority(route.metric));
    attributes.push(RouteAttribute::Table(route.table));
    attributes.extend(route.source.map(|source| RouteAttribute::PrefSource(source.into())));
    match route.next_hops.as_slice() {
        [] => {}
        [way] => {
            attributes.extend(gateway(way, destination));
            attributes.extend(way.index.map(RouteAttribute::Oif));
        }
        ways => {
            let ways = ways.iter().map(|way| next_hop(way, destination));
            attributes.push(RouteAttribute::MultiPath(ways.collect()));
        }
    }
    message
}

fn next_hop(way: &NextHop, destination: IpNet) -> RouteNextHop {
    let mut next_hop = RouteNextHop::default();
    next_hop.interface_index = way.index.unwrap_or(0);
    // The kernel counts from 0.
    next_hop.hops = u8::try_from(way.weight.saturating_sub(1)).unwrap_or(u8::MAX);
    next_hop.attributes.extend(gateway(way, destination));
    next_hop
}

/// The router of a way, which has another attribute where it is of the other family (RFC 8950).
fn gateway(way: &NextHop, destination: IpNet) -> Option<RouteAttribute> {
    let gateway = way.gateway?;
    Some(match gateway.is_ipv4() == destination.addr().is_ipv4() {
        true => RouteAttribute::Gateway(gateway.into()),
        false => RouteAttribute::Via(RouteVia::from(gateway)),
    })
}

fn encode(message: RouteNetlinkMessage, flags: u16, sequence: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
