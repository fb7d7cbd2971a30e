//! A simulated kernel for tests: tables, events, lists in pieces, and a socket buffer that overruns.
//!
//! Implemented a second time after what Linux does, with the encoders of `netlink-packet-route`, so that the
//! decoders and the follower are compared with something that they do not share.

mod messages;

use std::collections::{BTreeMap, VecDeque};

use netlink_packet_core::{
    DoneMessage, NLM_F_DUMP_INTR, NLM_F_MULTIPART, NLM_F_REPLACE, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;

use crate::address::Address;
use crate::kind::Kind;
use crate::link::Link;
use crate::neighbour::Neighbour;
use crate::route::{NextHop, Route, RouteKind};

pub(crate) use messages::{
    address, address_message, bytes, event, link, link_message, neighbour, neighbour_message,
    route, route_message,
};

/// The socket of the follower under test.
pub(crate) const PORT: u32 = 4711;

/// Small random numbers by seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((z ^ (z >> 31)) % u64::from(limit)).unwrap()
    }

    pub(crate) fn one_in(&mut self, limit: u32) -> bool {
        self.below(limit) == 0
    }
}

/// What the follower's socket gives.
#[derive(Debug)]
pub(crate) enum Socket {
    Datagram(Vec<u8>),
    Overrun,
    Nothing,
}

/// A list that is being given, piece by piece.
struct Listing {
    kind: Kind,
    sequence: u32,
    position: usize,
    is_interrupted: bool,
}

/// Datagrams that wait in the socket at most.
const QUEUE_MAX: usize = 12;

#[derive(Default)]
pub(crate) struct Kernel {
    pub(crate) links: BTreeMap<u32, Link>,
    /// In the kernel's order: IPv4 primary, then secondary; IPv6 newest first.
    pub(crate) addresses: BTreeMap<u32, Vec<Address>>,
    pub(crate) routes: Vec<Route>,
    pub(crate) neighbours: Vec<Neighbour>,
    clock: u32,
    queue: VecDeque<Vec<u8>>,
    is_congested: bool,
    has_overrun: bool,
    listing: Option<Listing>,
    pub(crate) overruns: u32,
    pub(crate) interruptions: u32,
}

impl Kernel {
    fn tell(&mut self, kind: Kind, message: RouteNetlinkMessage, flags: u16) {
        if let Some(listing) = self.listing.as_mut().filter(|it| it.kind == kind) {
            listing.is_interrupted = true;
        }
        if self.is_congested || self.queue.len() >= QUEUE_MAX {
            self.has_overrun |= !self.is_congested;
            self.is_congested = true;
            return;
        }
        self.queue.push_back(event(message, flags));
    }

    pub(crate) fn put_link(&mut self, link: Link) {
        if !link.is_up {
            // Without an event.
            let index = Some(link.index);
            self.routes.retain(|it| {
                it.destination.addr().is_ipv6() || it.next_hops.iter().all(|it| it.index != index)
            });
            self.interrupt(Kind::Route);
        }
        self.links.insert(link.index, link.clone());
        self.tell(Kind::Link, RouteNetlinkMessage::NewLink(link_message(&link)), 0);
    }

    fn interrupt(&mut self, kind: Kind) {
        if let Some(listing) = self.listing.as_mut().filter(|it| it.kind == kind) {
            listing.is_interrupted = true;
        }
    }

    /// The kernel does not notice that a list is no longer of one moment.
    pub(crate) fn overlook(&mut self) {
        if let Some(listing) = &mut self.listing {
            listing.is_interrupted = false;
        }
    }

    pub(crate) fn remove_link(&mut self, index: u32) {
        let Some(link) = self.links.get(&index).cloned() else { return };
        for address in self.addresses.get(&index).cloned().unwrap_or_default() {
            self.remove_address(&address);
        }
        self.put_link(Link { is_up: false, has_carrier: false, ..link.clone() });
        for route in self.routes.clone() {
            if route.next_hops.iter().any(|it| it.index == Some(index)) {
                self.remove_route(&route);
            }
        }
        for neighbour in self.neighbours.clone().into_iter().filter(|it| it.index == index) {
            self.remove_neighbour(&neighbour);
        }
        self.links.remove(&index);
        self.tell(Kind::Link, RouteNetlinkMessage::DelLink(link_message(&link)), 0);
    }

    pub(crate) fn add_address(&mut self, address: Address) {
        self.clock += 1;
        let created_centiseconds = self.clock;
        let list = self.addresses.entry(address.index).or_default();
        let key = (address.address, address.address.is_ipv4().then_some(address.prefix_length));
        let same =
            |it: &Address| (it.address, it.address.is_ipv4().then_some(it.prefix_length)) == key;
        if list.iter().any(same) {
            return;
        }
        let is_secondary =
            address.address.is_ipv4() && list.iter().any(|it| it.network() == address.network());
        let is_secondary_or_temporary = address.is_secondary_or_temporary || is_secondary;
        let address = Address { created_centiseconds, is_secondary_or_temporary, ..address };
        let is_last = is_secondary || address.address.is_ipv6();
        let is_before =
            |it: &Address| it.address.is_ipv4() && (is_last || !it.is_secondary_or_temporary);
        let place = list.iter().take_while(|it| is_before(it)).count();
        list.insert(place, address.clone());
        self.tell(Kind::Address, RouteNetlinkMessage::NewAddress(address_message(&address)), 0);
    }

    pub(crate) fn remove_address(&mut self, address: &Address) {
        let list = self.addresses.entry(address.index).or_default();
        list.retain(|it| it != address);
        self.tell(Kind::Address, RouteNetlinkMessage::DelAddress(address_message(address)), 0);
        let source = Some(address.address);
        // Without an event, too.
        self.routes.retain(|it| it.destination.addr().is_ipv6() || it.source != source);
        self.interrupt(Kind::Route);
    }

    pub(crate) fn add_route(&mut self, route: Route, replaces: bool) {
        let is_ipv6 = route.destination.addr().is_ipv6();
        let before = self.routes.iter().position(|it| it.competes_with(&route));
        let flags = match before {
            Some(place) if replaces => {
                if self.routes.contains(&route) {
                    return;
                }
                self.routes[place] = route.clone();
                NLM_F_REPLACE
            }
            Some(place) if is_ipv6 => {
                if self.routes[place] == route {
                    return;
                }
                // The next hops of both, reported as one.
                let mut whole = self.routes[place].clone();
                let new = route.next_hops.into_iter().filter(|it| !whole.next_hops.contains(it));
                let new: Vec<NextHop> = new.collect();
                whole.next_hops.extend(new);
                whole.kind = RouteKind::Unicast;
                self.routes[place] = whole.clone();
                self.tell(Kind::Route, RouteNetlinkMessage::NewRoute(route_message(&whole)), 0);
                return;
            }
            Some(_) if self.routes.contains(&route) => return,
            _ => {
                self.routes.push(route.clone());
                0
            }
        };
        self.tell(Kind::Route, RouteNetlinkMessage::NewRoute(route_message(&route)), flags);
    }

    pub(crate) fn remove_route(&mut self, route: &Route) {
        self.routes.retain(|it| it != route);
        self.tell(Kind::Route, RouteNetlinkMessage::DelRoute(route_message(route)), 0);
    }

    /// One way of a route with several: only this way is reported.
    pub(crate) fn remove_way(&mut self, route: &Route) {
        let Some(it) = self.routes.iter_mut().find(|it| *it == route) else { return };
        let Some(way) = it.next_hops.pop() else { return };
        let gone = Route { next_hops: vec![NextHop { weight: 1, ..way }], ..route.clone() };
        self.tell(Kind::Route, RouteNetlinkMessage::DelRoute(route_message(&gone)), 0);
    }

    pub(crate) fn put_neighbour(&mut self, neighbour: Neighbour) {
        self.neighbours.retain(|it| (it.index, it.address) != (neighbour.index, neighbour.address));
        self.neighbours.push(neighbour.clone());
        self.tell(
            Kind::Neighbour,
            RouteNetlinkMessage::NewNeighbour(neighbour_message(&neighbour)),
            0,
        );
    }

    pub(crate) fn remove_neighbour(&mut self, neighbour: &Neighbour) {
        self.neighbours.retain(|it| it != neighbour);
        self.tell(
            Kind::Neighbour,
            RouteNetlinkMessage::DelNeighbour(neighbour_message(neighbour)),
            0,
        );
    }

    /// Takes a request of the follower.
    pub(crate) fn ask(&mut self, request: &[u8]) {
        let request = NetlinkMessage::<RouteNetlinkMessage>::deserialize(request).unwrap();
        let kind = match request.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::GetLink(_)) => Kind::Link,
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::GetAddress(_)) => Kind::Address,
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::GetRoute(_)) => Kind::Route,
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::GetNeighbour(_)) => Kind::Neighbour,
            other => panic!("{other:?}"),
        };
        let sequence = request.header.sequence_number;
        self.listing = Some(Listing { kind, sequence, position: 0, is_interrupted: false });
    }

    /// The follower reads its socket. The next piece of a list is made once there is room.
    pub(crate) fn receive(&mut self) -> Socket {
        if std::mem::take(&mut self.has_overrun) {
            self.overruns += 1;
            return Socket::Overrun;
        }
        let datagram = self.queue.pop_front();
        if self.queue.len() < QUEUE_MAX / 2 {
            self.list();
        }
        if self.queue.is_empty() {
            self.is_congested = false;
        }
        datagram.or_else(|| self.queue.pop_front()).map_or(Socket::Nothing, Socket::Datagram)
    }

    fn list(&mut self) {
        let Some(Listing { kind, sequence, position, is_interrupted }) = self.listing else {
            return;
        };
        let all: Vec<RouteNetlinkMessage> = match kind {
            Kind::Link => self
                .links
                .values()
                .map(|it| RouteNetlinkMessage::NewLink(link_message(it)))
                .collect(),
            Kind::Address => {
                let all = self.addresses.values().flatten();
                all.map(|it| RouteNetlinkMessage::NewAddress(address_message(it))).collect()
            }
            Kind::Route => self
                .routes
                .iter()
                .map(|it| RouteNetlinkMessage::NewRoute(route_message(it)))
                .collect(),
            Kind::Neighbour => self
                .neighbours
                .iter()
                .map(|it| RouteNetlinkMessage::NewNeighbour(neighbour_message(it)))
                .collect(),
        };
        let interrupted = if is_interrupted { NLM_F_DUMP_INTR } else { 0 };
        let flags = NLM_F_MULTIPART | interrupted;
        let mut datagram = Vec::new();
        for message in all.iter().skip(position).take(3) {
            let payload = NetlinkPayload::InnerMessage(message.clone());
            datagram.extend(bytes(payload, flags, sequence, PORT));
        }
        if position + 3 >= all.len() {
            datagram.extend(bytes(
                NetlinkPayload::Done(DoneMessage::default()),
                flags,
                sequence,
                PORT,
            ));
            self.interruptions += u32::from(is_interrupted);
            self.listing = None;
        } else if let Some(listing) = &mut self.listing {
            listing.position += 3;
        }
        self.queue.push_back(datagram);
    }
}
