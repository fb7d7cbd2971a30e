//! What of the machine decides about routes of ours: its VRFs, the ways to its neighbours, and the routes of others.
//!
//! A view of one [`Machine`]. Knows no route of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{InterfaceName, Prefix, Remote};
use fairway_netlink::{Machine, NextHop, Route, RouteKind, RouteMark};
use fairway_seam::{Gateway, TrackedNextHop};
use ipnet::IpNet;

/// The routes that are ours: protocol `bgp`, as of other BGP daemons, and a metric that none of them uses by default (FRR
/// has 20, BIRD 32).
pub const MARK: RouteMark = RouteMark { protocol: 186, metric: 1790 };

const TABLE_MAIN: u32 = 254;

/// See the module.
#[derive(Debug, Default)]
pub struct Surroundings {
    machine: Machine,
    /// By table and destination; of several to one destination the one with the lowest metric.
    routes: BTreeMap<(u32, IpNet), Route>,
}

impl Surroundings {
    /// What `machine` has, without the routes that are ours.
    pub fn of(machine: Machine) -> Self {
        let mut routes: BTreeMap<(u32, IpNet), Route> = BTreeMap::new();
        for route in machine.routes().filter(|route| !MARK.is_of(route)) {
            // In the order of their metrics.
            routes.entry((route.table, route.destination)).or_insert_with(|| route.clone());
        }
        Self { machine, routes }
    }

    /// The table of a VRF; `None` where there is no such VRF.
    pub fn table(&self, vrf: Option<InterfaceName>) -> Option<u32> {
        match vrf {
            None => Some(TABLE_MAIN),
            Some(name) => self.machine.link_called(name.as_str())?.vrf_table,
        }
    }

    /// The VRF that a table belongs to.
    pub fn vrf_of_table(&self, table: u32) -> Option<Option<InterfaceName>> {
        if table == TABLE_MAIN {
            return Some(None);
        }
        let link = self.machine.links().find(|link| link.vrf_table == Some(table))?;
        link.name.parse().ok().map(Some)
    }

    /// A route of somebody else to the same destination.
    pub fn foreign(&self, table: u32, prefix: Prefix) -> Option<&Route> {
        self.routes.get(&(table, prefix.into()))
    }

    /// The destinations whose foreign routes differ from those of `other`.
    pub fn foreign_changes(&self, other: &Self) -> Vec<(u32, Prefix)> {
        let mut changes: Vec<(u32, IpNet)> = Vec::new();
        for (one, another) in [(&self.routes, &other.routes), (&other.routes, &self.routes)] {
            changes.extend(one.keys().filter(|key| !another.contains_key(*key)));
        }
        changes.iter().filter_map(|(table, net)| Some((*table, prefix(*net)?))).collect()
    }

    /// The ways that packets for the first rank of `gateways` take of which one can be reached, sorted; none if none can.
    pub fn ways(&self, vrf: Option<InterfaceName>, gateways: &[Gateway]) -> Arc<[NextHop]> {
        let Some(table) = self.table(vrf) else { return Arc::default() };
        let ranks = gateways.chunk_by(|one, next| one.rank == next.rank);
        let ways = ranks.map(|rank| {
            let ways = rank.iter().flat_map(|it| self.ways_to(table, it.address, it.on_link_of));
            ways.collect::<BTreeSet<NextHop>>()
        });
        let first = ways.into_iter().find(|ways| !ways.is_empty());
        first.into_iter().flatten().collect()
    }

    /// Whether packets can be sent to a next hop.
    pub fn reaches(&self, TrackedNextHop { vrf, address, on_link_of }: TrackedNextHop) -> bool {
        let table = self.table(vrf);
        table.is_some_and(|table| !self.ways_to(table, address, on_link_of).is_empty())
    }

    fn ways_to(&self, table: u32, address: IpAddr, on_link_of: Option<Remote>) -> Vec<NextHop> {
        if let Some(neighbour) = on_link_of {
            let way = |index| NextHop { index: Some(index), gateway: Some(address), weight: 1 };
            return self.link_of(table, neighbour).map(way).into_iter().collect();
        }
        let Some(route) = self.best_match(table, address) else { return Vec::new() };
        let usable = route.next_hops.iter().filter(|way| self.is_usable(way));
        let through = |way: &NextHop| NextHop {
            // On the link of the interface itself, or behind another router.
            gateway: way.gateway.or(Some(address)),
            ..way.clone()
        };
        usable.map(through).collect()
    }

    /// The number of the interface that leads to a neighbour, if that is up.
    fn link_of(&self, table: u32, neighbour: Remote) -> Option<u32> {
        let index = match neighbour {
            Remote::Interface(name) => self.machine.link_called(name.as_str())?.index,
            Remote::Address(address) => {
                let route = self.best_match(table, address)?;
                let is_direct = |way: &&NextHop| way.gateway.is_none();
                route.next_hops.iter().find(is_direct)?.index?
            }
            Remote::Range(_) | Remote::DefaultGateway(_) => return None,
        };
        self.machine.link(index).filter(|link| link.is_usable()).map(|link| link.index)
    }

    fn is_usable(&self, way: &NextHop) -> bool {
        let link = way.index.and_then(|index| self.machine.link(index));
        link.is_some_and(|link| link.is_usable())
    }

    /// The route with the longest match, which must forward. The default route is none: as in FRR, a next hop that has no
    /// other is not reachable.
    fn best_match(&self, table: u32, address: IpAddr) -> Option<&Route> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let mut matches = (1..=longest).rev().filter_map(|length| {
            let net = IpNet::new(address, length).ok()?.trunc();
            self.routes.get(&(table, net))
        });
        matches.next().filter(|route| route.kind == RouteKind::Unicast)
    }
}

/// As BGP writes it.
pub(crate) fn prefix(net: IpNet) -> Option<Prefix> {
    Prefix::new(net.addr(), net.prefix_len()).ok()
}
