//! A route of the kernel.
//!
//! Knows its own attributes only. Which tables are kept is [`crate::Scope`]'s. Made by [`crate::decode`].

use std::net::IpAddr;

use ipnet::IpNet;

/// The main table, of what is in no VRF.
pub const TABLE_MAIN: u32 = 254;

/// What BGP daemons install (`/etc/iproute2/rt_protos`).
pub(crate) const PROTOCOL_BGP: u8 = 186;

/// A route, as the kernel last described it. The order is by the fields that identify a route to the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The table that it is in: [`TABLE_MAIN`], or that of a VRF.
    pub table: u32,
    /// Its destination.
    pub destination: IpNet,
    /// Its metric: the smallest wins.
    pub metric: u32,
    /// Packets of this type of service only; 0 for all.
    pub type_of_service: u8,
    /// What it does to a packet.
    pub kind: RouteKind,
    /// Which program installed it, in the numbers of `/etc/iproute2/rt_protos`: 2 is the kernel, 186 BGP.
    pub protocol: u8,
    /// The source address that the kernel prefers for it.
    pub source: Option<IpAddr>,
    /// The ways that it can take; none for a route that drops.
    pub next_hops: Vec<NextHop>,
}

/// What tells the routes of one program from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteMark {
    /// [`Route::protocol`].
    pub protocol: u8,
    /// [`Route::metric`].
    pub metric: u32,
}

impl RouteMark {
    /// Whether `route` has it.
    pub fn is_of(self, route: &Route) -> bool {
        (self.protocol, self.metric) == (route.protocol, route.metric)
    }
}

/// A change of one route in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteOrder {
    /// Adds it. Refused where there is one of its table, destination and metric.
    Add(Route),
    /// Takes the place of the one with its table, destination and metric, which may be another program's.
    Replace(Route),
    /// Removes the one of its table, destination, metric and protocol, whatever that does to a packet.
    Remove(Route),
}

impl RouteOrder {
    /// The route that it is about.
    pub fn route(&self) -> &Route {
        let (Self::Add(route) | Self::Replace(route) | Self::Remove(route)) = self;
        route
    }
}

/// One way of a route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    /// The number of the interface.
    pub index: Option<u32>,
    /// The router, unless the destination is on the link. May be of the other family (RFC 8950).
    pub gateway: Option<IpAddr>,
    /// Its share among the ways, from 1 to 256.
    pub weight: u16,
}

/// What a route does to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteKind {
    /// Forwards it.
    Unicast,
    /// Drops it silently.
    Blackhole,
    /// Drops it and answers that there is no route.
    Unreachable,
    /// Drops it and answers that it is prohibited.
    Prohibit,
    /// Looks in the next table.
    Throw,
}

impl Route {
    /// Whether the kernel would take `other` for the same route with other ways.
    pub(crate) fn competes_with(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.table, it.destination, it.metric, it.type_of_service);
        key(self) == key(other)
    }
}
