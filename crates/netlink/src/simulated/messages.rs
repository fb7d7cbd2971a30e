//! Messages as Linux writes them, and examples of what they are about.

use std::net::IpAddr;

use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Prop,
};
use netlink_packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState as KernelState,
};
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::address::Address;
use crate::link::Link;
use crate::neighbour::{Neighbour, NeighbourState};
use crate::request::of_route;
use crate::route::{NextHop, Route, RouteKind};

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

pub(crate) fn link_message(link: &Link) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = link.index;
    for (flag, is_set) in [
        (LinkFlags::Up, link.is_up),
        (LinkFlags::LowerUp, link.has_carrier),
        (LinkFlags::Loopback, link.is_loopback),
        (LinkFlags::Noarp, !link.resolves_addresses),
    ] {
        message.header.flags.set(flag, is_set);
    }
    let attributes = &mut message.attributes;
    attributes.push(LinkAttribute::IfName(link.name.clone()));
    attributes.push(LinkAttribute::TxQueueLen(1000));
    attributes.push(LinkAttribute::Mtu(link.mtu_bytes));
    attributes.push(LinkAttribute::Address(link.mac.unwrap_or_default().to_vec()));
    attributes.extend(link.master.map(LinkAttribute::Controller));
    let names = link.alternative_names.iter().cloned().map(Prop::AltIfName);
    if !link.alternative_names.is_empty() {
        attributes.push(LinkAttribute::PropList(names.collect()));
    }
    let kind = link.kind.as_deref().map(|kind| match kind {
        "vrf" => InfoKind::Vrf,
        "veth" => InfoKind::Veth,
        "bridge" => InfoKind::Bridge,
        other => InfoKind::Other(other.to_owned()),
    });
    let table =
        link.vrf_table.map(|table| LinkInfo::Data(InfoData::Vrf(vec![InfoVrf::TableId(table)])));
    let info: Vec<LinkInfo> = kind.map(LinkInfo::Kind).into_iter().chain(table).collect();
    if !info.is_empty() {
        attributes.push(LinkAttribute::LinkInfo(info));
    }
    message
}

pub(crate) fn address_message(address: &Address) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.address);
    message.header.index = address.index;
    message.header.prefix_len = address.prefix_length;
    message.header.scope = address.scope.into();
    let mut flags = AddressFlags::Permanent;
    for (flag, is_set) in [
        (AddressFlags::Tentative, address.is_tentative),
        (AddressFlags::Dadfailed, address.has_failed_detection),
        (AddressFlags::Deprecated, address.is_deprecated),
        (AddressFlags::Permanent, !address.has_lifetime),
        (AddressFlags::Secondary, address.is_secondary_or_temporary),
    ] {
        flags.set(flag, is_set);
    }
    let low = u8::try_from(flags.bits() & 0xFF).unwrap();
    message.header.flags = AddressHeaderFlags::from_bits_retain(low);
    let attributes = &mut message.attributes;
    attributes.push(AddressAttribute::Address(address.peer.unwrap_or(address.address)));
    // Linux leaves the own address of IPv6 out where there is no other end.
    if address.address.is_ipv4() || address.peer.is_some() {
        attributes.push(AddressAttribute::Local(address.address));
    }
    attributes.push(AddressAttribute::Label("label".to_owned()));
    let mut info = CacheInfo::default();
    info.cstamp = address.created_centiseconds;
    attributes.push(AddressAttribute::CacheInfo(info));
    attributes.push(AddressAttribute::Flags(flags));
    message
}

pub(crate) fn route_message(route: &Route) -> RouteMessage {
    let mut message = of_route(route);
    // A table that does not fit has its number in an attribute.
    message.header.table = u8::try_from(route.table).unwrap_or(252);
    if route.destination.prefix_len() == 0 {
        message.attributes.retain(|it| !matches!(it, RouteAttribute::Destination(_)));
    }
    message
}

pub(crate) fn neighbour_message(neighbour: &Neighbour) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(neighbour.address);
    message.header.ifindex = neighbour.index;
    message.header.state = match neighbour.state {
        NeighbourState::Permanent => KernelState::Permanent,
        NeighbourState::Reachable => KernelState::Reachable,
        NeighbourState::Stale => KernelState::Stale,
        NeighbourState::Delay => KernelState::Delay,
        NeighbourState::Probe => KernelState::Probe,
        NeighbourState::Failed => KernelState::Failed,
    };
    message.header.flags.set(NeighbourFlags::Router, neighbour.is_router);
    message.attributes.push(NeighbourAttribute::Destination(neighbour.address.into()));
    let mac = neighbour.mac.map(|mac| NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    message.attributes.extend(mac);
    message
}

/// A message as the kernel sends it.
pub(crate) fn bytes(
    payload: NetlinkPayload<RouteNetlinkMessage>,
    flags: u16,
    sequence: u32,
    port: u32,
) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    (header.flags, header.sequence_number, header.port_number) = (flags, sequence, port);
    let mut message = NetlinkMessage::new(header, payload);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len().next_multiple_of(4)];
    message.serialize(&mut bytes);
    bytes
}

/// An event that was not requested.
pub(crate) fn event(message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    bytes(NetlinkPayload::InnerMessage(message), flags, 7, 99)
}

pub(crate) fn link(index: u32) -> Link {
    Link {
        index,
        name: format!("eth{index}"),
        alternative_names: Vec::new(),
        kind: Some("veth".to_owned()),
        is_up: true,
        has_carrier: true,
        is_loopback: false,
        resolves_addresses: true,
        mtu_bytes: 1500,
        mac: Some([2, 0, 0, 0, 0, u8::try_from(index).unwrap()]),
        master: None,
        vrf_table: None,
    }
}

pub(crate) fn address(index: u32, text: &str) -> Address {
    let network: ipnet::IpNet = text.parse().unwrap();
    Address {
        index,
        address: network.addr(),
        peer: None,
        prefix_length: network.prefix_len(),
        scope: 0,
        is_tentative: false,
        has_failed_detection: false,
        is_deprecated: false,
        has_lifetime: false,
        is_secondary_or_temporary: false,
        created_centiseconds: 0,
    }
}

pub(crate) fn route(destination: &str, index: u32, gateway: Option<&str>) -> Route {
    let gateway = gateway.map(|it| it.parse().unwrap());
    Route {
        table: crate::route::TABLE_MAIN,
        destination: destination.parse().unwrap(),
        metric: 0,
        type_of_service: 0,
        kind: RouteKind::Unicast,
        protocol: 186,
        source: None,
        next_hops: vec![NextHop { index: Some(index), gateway, weight: 1 }],
    }
}

pub(crate) fn neighbour(index: u32, address: &str) -> Neighbour {
    Neighbour {
        index,
        address: address.parse().unwrap(),
        mac: Some([2, 0, 0, 0, 9, 9]),
        state: NeighbourState::Reachable,
        is_router: false,
    }
}
