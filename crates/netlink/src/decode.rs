//! Bytes of the kernel to facts.
//!
//! Each message is parsed attribute by attribute: one that is unknown, or that does not parse, is left out
//! and does not cost the rest. The [`Envelope`] shows whether a fact is an event or part of an answer; what
//! it changes is [`crate::machine`]'s. The follower is the caller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{
    DoneBuffer, Emitable, ErrorBuffer, NLM_F_DUMP_INTR, NLM_F_REPLACE, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NlaBuffer, NlasIterator, Parseable, ParseableParametrized, parse_string,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeader};
use netlink_packet_route::link::{InfoVrf, LinkAttribute, LinkFlags, LinkHeader, Prop};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourHeader,
    NeighbourState as KernelState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteLwEnCapType, RouteNextHop,
    RouteType, RouteVia,
};

use crate::address::Address;
use crate::link::Link;
use crate::neighbour::{Neighbour, NeighbourState};
use crate::route::{NextHop, Route, RouteKind};

/// Ways of one route that are kept: the kernel's own limit for IPv6 is lower, and no hash spreads wider.
const NEXT_HOPS_MAX: usize = 1024;
/// Other names of one interface that are kept.
const ALTERNATIVE_NAMES_MAX: usize = 64;

/// What a message is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The current state of an interface.
    Link(Link),
    /// The interface of this number is gone, and everything on it.
    LinkGone(u32),
    /// The current state of an address.
    Address(Address),
    /// An address is gone.
    AddressGone(Address),
    /// A route is there; with `replaces` in place of one that differs in its ways.
    Route {
        /// The route.
        route: Route,
        /// Whether it took the place of another.
        replaces: bool,
    },
    /// A route is gone.
    RouteGone(Route),
    /// The current state of a neighbour.
    Neighbour(Neighbour),
    /// The entry of a neighbour is gone.
    NeighbourGone(u32, IpAddr),
    /// An answer is complete.
    Done {
        /// The error that ended it early, as a negative number; 0 for none.
        code: i32,
    },
    /// The kernel refused a request, for the reason of this error number.
    Refused {
        /// The error, as a negative number; 0 acknowledges.
        code: i32,
    },
}

/// What is around a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The number of the request that it answers, or, of an event, of the request that caused it.
    pub sequence: u32,
    /// The port number of the socket that made this request.
    pub port: u32,
    /// The table changed while it was read.
    pub is_interrupted: bool,
}

/// A datagram is not a sequence of messages: something was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of the kernel is cut off or malformed")]
pub struct Malformed;

/// The messages of a datagram. A message that is of no interest, or that cannot be read, has no fact; it
/// still has an envelope.
pub fn messages(
    datagram: &[u8],
) -> impl Iterator<Item = Result<(Envelope, Option<Fact>), Malformed>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Ok(message) = NetlinkBuffer::new_checked(rest) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        let length = usize::try_from(message.length()).unwrap_or(usize::MAX);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        let (sequence, port) = (message.sequence_number(), message.port_number());
        let flags = message.flags();
        let envelope = Envelope { sequence, port, is_interrupted: flags & NLM_F_DUMP_INTR != 0 };
        Some(Ok((envelope, fact(message.message_type(), flags, message.payload()))))
    })
}

fn fact(message_type: u16, flags: u16, payload: &[u8]) -> Option<Fact> {
    match message_type {
        NLMSG_DONE => {
            let code = DoneBuffer::new_checked(payload).map_or(0, |done| done.code());
            Some(Fact::Done { code })
        }
        NLMSG_ERROR => {
            let error = ErrorBuffer::new_checked(payload).ok()?;
            Some(Fact::Refused { code: error.code().map_or(0, i32::from) })
        }
        libc::RTM_NEWLINK => link(payload).map(Fact::Link),
        libc::RTM_DELLINK => {
            let header = LinkHeader::parse(payload).ok()?;
            // A port that leaves its bridge is reported as a deleted link of the bridge's family.
            let is_whole = header.interface_family == AddressFamily::Unspec;
            is_whole.then_some(Fact::LinkGone(header.index))
        }
        libc::RTM_NEWADDR => address(payload).map(Fact::Address),
        libc::RTM_DELADDR => address(payload).map(Fact::AddressGone),
        libc::RTM_NEWROUTE => {
            let replaces = flags & NLM_F_REPLACE != 0;
            route(payload).map(|route| Fact::Route { route, replaces })
        }
        libc::RTM_DELROUTE => route(payload).map(Fact::RouteGone),
        libc::RTM_NEWNEIGH => neighbour(payload),
        libc::RTM_DELNEIGH => {
            let (header, attributes) = neighbour_parts(payload)?;
            let address = attributes.into_iter().find_map(neighbour_address)?;
            Some(Fact::NeighbourGone(header.ifindex, address))
        }
        _ => None,
    }
}

/// The attributes after a header of `header_length` bytes, up to the first that is cut off.
fn attributes(payload: &[u8], header_length: usize) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(payload.get(header_length..).unwrap_or_default()).map_while(Result::ok)
}

fn link(payload: &[u8]) -> Option<Link> {
    let header = LinkHeader::parse(payload).ok()?;
    // Bridges and IPv6 report their own side of an interface, with few of its attributes.
    if header.interface_family != AddressFamily::Unspec {
        return None;
    }
    let mut link = Link {
        index: header.index,
        name: String::new(),
        alternative_names: Vec::new(),
        kind: None,
        is_up: header.flags.contains(LinkFlags::Up),
        has_carrier: header.flags.contains(LinkFlags::LowerUp),
        is_loopback: header.flags.contains(LinkFlags::Loopback),
        resolves_addresses: !header.flags.contains(LinkFlags::Noarp),
        mtu_bytes: 0,
        mac: None,
        master: None,
        vrf_table: None,
    };
    for attribute in attributes(payload, header.buffer_len()) {
        match attribute.kind() {
            // An event of a wireless driver, with none of the other attributes.
            libc::IFLA_WIRELESS => return None,
            libc::IFLA_LINKINFO => {
                (link.kind, link.vrf_table) = link_info(attribute.value());
                continue;
            }
            libc::IFLA_IFNAME
            | libc::IFLA_MTU
            | libc::IFLA_ADDRESS
            | libc::IFLA_MASTER
            | libc::IFLA_PROP_LIST => {}
            _ => continue,
        }
        match LinkAttribute::parse_with_param(&attribute, header.interface_family) {
            Ok(LinkAttribute::IfName(name)) => link.name = name,
            Ok(LinkAttribute::Mtu(mtu_bytes)) => link.mtu_bytes = mtu_bytes,
            Ok(LinkAttribute::Address(mac)) => link.mac = mac_of(&mac),
            Ok(LinkAttribute::Controller(master)) => {
                link.master = Some(master).filter(|it| *it != 0)
            }
            Ok(LinkAttribute::PropList(properties)) => {
                let names = properties.into_iter().filter_map(|property| match property {
                    Prop::AltIfName(name) => Some(name),
                    _ => None,
                });
                link.alternative_names = names.take(ALTERNATIVE_NAMES_MAX).collect();
            }
            _ => {}
        }
    }
    (link.index != 0 && !link.name.is_empty()).then_some(link)
}

/// The kind of a virtual interface, and the table of a VRF.
fn link_info(value: &[u8]) -> (Option<String>, Option<u32>) {
    let mut kind = None;
    let mut vrf_table = None;
    for attribute in attributes(value, 0) {
        match attribute.kind() {
            libc::IFLA_INFO_KIND => kind = parse_string(attribute.value()).ok(),
            libc::IFLA_INFO_DATA if kind.as_deref() == Some("vrf") => {
                vrf_table =
                    attributes(attribute.value(), 0).find_map(|it| match InfoVrf::parse(&it) {
                        Ok(InfoVrf::TableId(table)) => Some(table),
                        _ => None,
                    });
            }
            _ => {}
        }
    }
    (kind, vrf_table)
}

fn mac_of(bytes: &[u8]) -> Option<[u8; 6]> {
    bytes.try_into().ok().filter(|mac| *mac != [0; 6])
}

fn address(payload: &[u8]) -> Option<Address> {
    let header = AddressHeader::parse(payload).ok()?;
    let (mut local, mut other_end, mut created_centiseconds) = (None, None, 0);
    // The header has room for the first eight flags only.
    let mut flags = AddressFlags::from_bits_retain(header.flags.bits().into());
    for attribute in attributes(payload, header.buffer_len()) {
        match attribute.kind() {
            libc::IFA_LOCAL | libc::IFA_ADDRESS | libc::IFA_CACHEINFO | libc::IFA_FLAGS => {}
            _ => continue,
        }
        match AddressAttribute::parse(&attribute) {
            Ok(AddressAttribute::Local(address)) => local = Some(address),
            Ok(AddressAttribute::Address(address)) => other_end = Some(address),
            Ok(AddressAttribute::CacheInfo(info)) => created_centiseconds = info.cstamp,
            Ok(AddressAttribute::Flags(all)) => flags = all,
            _ => {}
        }
    }
    // Without another end there is one address, under one of the two names.
    let address = local.or(other_end)?;
    let is_of_family = match header.family {
        AddressFamily::Inet => |it: &IpAddr| it.is_ipv4(),
        AddressFamily::Inet6 => |it: &IpAddr| it.is_ipv6(),
        _ => return None,
    };
    if !is_of_family(&address) || header.index == 0 {
        return None;
    }
    let is_other = |it: &IpAddr| *it != address && is_of_family(it) && !it.is_unspecified();
    Some(Address {
        index: header.index,
        address,
        peer: other_end.filter(is_other),
        prefix_length: header.prefix_len,
        scope: header.scope.into(),
        is_tentative: flags.contains(AddressFlags::Tentative),
        has_failed_detection: flags.contains(AddressFlags::Dadfailed),
        is_deprecated: flags.contains(AddressFlags::Deprecated),
        has_lifetime: !flags.contains(AddressFlags::Permanent),
        is_secondary_or_temporary: flags.contains(AddressFlags::Secondary),
        created_centiseconds,
    })
}

fn route(payload: &[u8]) -> Option<Route> {
    let header = RouteHeader::parse(payload).ok()?;
    let unspecified: IpAddr = match header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let kind = match header.kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::BlackHole => RouteKind::Blackhole,
        RouteType::Unreachable => RouteKind::Unreachable,
        RouteType::Prohibit => RouteKind::Prohibit,
        RouteType::Throw => RouteKind::Throw,
        // The machine's own addresses, groups and broadcasts lead nowhere else.
        _ => return None,
    };
    // What the kernel learned for one destination, and routes of a source only, are no routes of the table.
    if header.flags.contains(RouteFlags::Cloned) || header.source_prefix_length != 0 {
        return None;
    }
    let mut table = u32::from(header.table);
    let (mut destination, mut source, mut metric) = (unspecified, None, 0);
    let mut single = NextHop { index: None, gateway: None, weight: 1 };
    let mut next_hops = Vec::new();
    for attribute in attributes(payload, header.buffer_len()) {
        match attribute.kind() {
            libc::RTA_DST
            | libc::RTA_GATEWAY
            | libc::RTA_VIA
            | libc::RTA_OIF
            | libc::RTA_PREFSRC => {}
            libc::RTA_TABLE | libc::RTA_PRIORITY | libc::RTA_MULTIPATH => {}
            _ => continue,
        }
        let param = (header.address_family, header.kind, RouteLwEnCapType::None);
        match RouteAttribute::parse_with_param(&attribute, param) {
            Ok(RouteAttribute::Destination(address)) => destination = route_address(&address)?,
            Ok(RouteAttribute::PrefSource(address)) => source = route_address(&address),
            Ok(RouteAttribute::Table(number)) => table = number,
            Ok(RouteAttribute::Priority(number)) => metric = number,
            Ok(RouteAttribute::Oif(index)) => single.index = Some(index),
            Ok(RouteAttribute::MultiPath(ways)) => {
                next_hops = ways.iter().take(NEXT_HOPS_MAX).map(next_hop).collect();
            }
            Ok(attribute) => single.gateway = gateway(&attribute).or(single.gateway),
            // A route with a next hop that cannot be read is of no use.
            Err(_) => return None,
        }
    }
    if next_hops.is_empty() && (single.index.is_some() || single.gateway.is_some()) {
        next_hops.push(single);
    }
    // The kernel sends what it drops over the loopback interface, inside.
    if kind != RouteKind::Unicast {
        next_hops.clear();
    }
    Some(Route {
        table,
        destination: IpNet::new(destination, header.destination_prefix_length).ok()?.trunc(),
        metric,
        type_of_service: header.tos,
        kind,
        protocol: header.protocol.into(),
        source,
        next_hops,
    })
}

fn next_hop(way: &RouteNextHop) -> NextHop {
    NextHop {
        index: Some(way.interface_index).filter(|it| *it != 0),
        gateway: way.attributes.iter().find_map(gateway),
        weight: u16::from(way.hops).saturating_add(1),
    }
}

fn gateway(attribute: &RouteAttribute) -> Option<IpAddr> {
    match attribute {
        RouteAttribute::Gateway(address) => route_address(address),
        RouteAttribute::Via(RouteVia::Inet(address)) => Some((*address).into()),
        RouteAttribute::Via(RouteVia::Inet6(address)) => Some((*address).into()),
        _ => None,
    }
}

fn route_address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// The header and the attributes that are kept, of a neighbour and of no bridge's table.
fn neighbour_parts(payload: &[u8]) -> Option<(NeighbourHeader, Vec<NeighbourAttribute>)> {
    let header = NeighbourHeader::parse(payload).ok()?;
    let family = header.family;
    let is_kept = matches!(family, AddressFamily::Inet | AddressFamily::Inet6)
        && !header.flags.contains(NeighbourFlags::Proxy);
    let wanted = |it: &NlaBuffer<&[u8]>| matches!(it.kind(), libc::NDA_DST | libc::NDA_LLADDR);
    let all = attributes(payload, header.buffer_len()).filter(wanted);
    let parsed = all.filter_map(|it| NeighbourAttribute::parse_with_param(&it, family).ok());
    is_kept.then(|| (header.clone(), parsed.collect()))
}

fn neighbour(payload: &[u8]) -> Option<Fact> {
    let (header, attributes) = neighbour_parts(payload)?;
    let mac = attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => mac_of(bytes),
        _ => None,
    });
    let address = attributes.into_iter().find_map(neighbour_address)?;
    let state = match header.state {
        KernelState::Permanent => NeighbourState::Permanent,
        KernelState::Reachable => NeighbourState::Reachable,
        KernelState::Stale => NeighbourState::Stale,
        KernelState::Delay => NeighbourState::Delay,
        KernelState::Probe => NeighbourState::Probe,
        KernelState::Failed => NeighbourState::Failed,
        // Still being resolved, or a group: the kernel does not report when such entries come.
        _ => return Some(Fact::NeighbourGone(header.ifindex, address)),
    };
    let is_router = header.flags.contains(NeighbourFlags::Router);
    let index = header.ifindex;
    Some(Fact::Neighbour(Neighbour { index, address, mac, state, is_router }))
}

fn neighbour_address(attribute: NeighbourAttribute) -> Option<IpAddr> {
    match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(address.into()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(address.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
