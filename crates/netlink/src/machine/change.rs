//! How a fact changes a snapshot.
//!
//! Another part of [`Machine`]. Returns what changed, and where a fact leaves in doubt what the kernel has now.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::Machine;
use crate::address::Address;
use crate::decode::Fact;
use crate::kind::{Kind, Kinds};
use crate::route::{Route, RouteKind};

/// Interfaces that are kept: a node with a veth pair for each of thousands of containers has fewer.
const LINKS_MAX: usize = 16_384;
/// Addresses that are kept: four for each interface.
const ADDRESSES_MAX: usize = 65_536;
/// Routes that are kept. Each change copies the table once while a reader has it; a caller that needs more has
/// to ask for fewer (`RouteScope`).
const ROUTES_MAX: usize = 16_384;
/// Neighbours that are kept: sixteen times what the kernel keeps of each family by default.
const NEIGHBOURS_MAX: usize = 16_384;

/// What a fact did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Applied {
    /// The tables that have changed.
    pub(crate) changed: Kinds,
    /// The tables of the kernel that may differ from the snapshot now: it changes some without a message.
    pub(crate) unclear: Kinds,
}

impl Applied {
    fn changed(kind: Kind, has_changed: bool) -> Self {
        let changed = if has_changed { kind.into() } else { Kinds::NONE };
        Self { changed, unclear: Kinds::NONE }
    }

    fn and_unclear(self, kind: Kind, is_unclear: bool) -> Self {
        let unclear = if is_unclear { kind.into() } else { Kinds::NONE };
        Self { unclear: self.unclear.union(unclear), ..self }
    }
}

impl Machine {
    /// Applies an event.
    pub(crate) fn apply(&mut self, fact: &Fact) -> Applied {
        match fact {
            Fact::Link(link) => {
                let before = self.links.get(&link.index);
                let (is_known, is_same) = (before.is_some(), before == Some(link));
                // IPv4 routes of an interface that goes down vanish without a message.
                let goes_down = before.is_some_and(|it| it.is_up && !link.is_up);
                let is_lost = before.is_some_and(|it| it.is_usable() && !link.is_usable());
                let vrf_changes = before.and_then(|it| it.vrf_table) != link.vrf_table;
                if is_same || self.is_full(Kind::Link, is_known) {
                    return Applied::default();
                }
                if is_lost {
                    self.lose_link();
                }
                Arc::make_mut(&mut self.links).insert(link.index, link.clone());
                Applied::changed(Kind::Link, true)
                    .and_unclear(Kind::Route, goes_down || vrf_changes)
            }
            Fact::LinkGone(index) => self.remove_link(*index),
            Fact::Address(address) => Applied::changed(Kind::Address, self.place(address, false)),
            Fact::AddressGone(address) => {
                let gone = self.remove_address(address);
                // So do those with it as their preferred source.
                Applied::changed(Kind::Address, gone).and_unclear(Kind::Route, gone)
            }
            Fact::Route { route, replaces } => self.add_route(route, *replaces),
            Fact::RouteGone(route) => {
                let gone = self.routes.contains(route);
                if gone {
                    Arc::make_mut(&mut self.routes).remove(route);
                    return Applied::changed(Kind::Route, true);
                }
                let is_other = self.competitors(route).next().is_some();
                Applied::default().and_unclear(Kind::Route, is_other)
            }
            Fact::Neighbour(neighbour) => {
                let key = (neighbour.index, neighbour.address);
                let before = self.neighbours.get(&key);
                let (is_known, is_same) = (before.is_some(), before == Some(neighbour));
                if is_same || self.is_full(Kind::Neighbour, is_known) {
                    return Applied::default();
                }
                Arc::make_mut(&mut self.neighbours).insert(key, neighbour.clone());
                Applied::changed(Kind::Neighbour, true)
            }
            Fact::NeighbourGone(index, address) => {
                let is_known = self.neighbours.contains_key(&(*index, *address));
                if is_known {
                    Arc::make_mut(&mut self.neighbours).remove(&(*index, *address));
                }
                Applied::changed(Kind::Neighbour, is_known)
            }
            Fact::Done { .. } | Fact::Refused { .. } => Applied::default(),
        }
    }

    /// Applies an entry of a list that was requested from the kernel: what is listed exists, in this order.
    pub(crate) fn list(&mut self, fact: &Fact) {
        match fact {
            Fact::Address(address) => {
                self.place(address, true);
            }
            Fact::Route { route, .. } => {
                if !self.is_full(Kind::Route, self.routes.contains(route)) {
                    Arc::make_mut(&mut self.routes).insert(route.clone());
                }
            }
            fact => {
                self.apply(fact);
            }
        }
    }

    /// Replaces this table with that of `fresh`. Returns whether it differs.
    pub(crate) fn replace(&mut self, kind: Kind, fresh: Self) -> bool {
        let differs = self.differs(&fresh, kind);
        self.truncated = self.truncated.without(kind.into());
        if fresh.truncated.contains(kind) {
            self.truncated.add(kind.into());
        }
        if differs {
            match kind {
                Kind::Link => {
                    // What was lost meanwhile is not known.
                    self.lose_link();
                    self.links = fresh.links;
                }
                Kind::Address => {
                    self.addresses = fresh.addresses;
                    self.address_count = fresh.address_count;
                }
                Kind::Route => self.routes = fresh.routes,
                Kind::Neighbour => self.neighbours = fresh.neighbours,
            }
        }
        differs
    }

    /// Whether one more entry would be too many. Notes that the table is no longer whole.
    fn is_full(&mut self, kind: Kind, is_known: bool) -> bool {
        let is_full = match kind {
            Kind::Link => self.links.len() >= LINKS_MAX,
            Kind::Address => self.address_count >= ADDRESSES_MAX,
            Kind::Route => self.routes.len() >= ROUTES_MAX,
            Kind::Neighbour => self.neighbours.len() >= NEIGHBOURS_MAX,
        };
        if is_full && !is_known {
            self.truncated.add(kind.into());
        }
        is_full && !is_known
    }

    /// What was on the interface goes with it, whether or not the kernel reports each entry.
    fn remove_link(&mut self, index: u32) -> Applied {
        if !self.links.contains_key(&index) {
            return Applied::default();
        }
        let mut changed: Kinds = Kind::Link.into();
        self.lose_link();
        Arc::make_mut(&mut self.links).remove(&index);
        if self.addresses.contains_key(&index) {
            let gone = Arc::make_mut(&mut self.addresses).remove(&index).unwrap_or_default();
            self.address_count = self.address_count.saturating_sub(gone.len());
            changed.add(Kind::Address.into());
        }
        let first = (index, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        if self.neighbours.range(first..).next().is_some_and(|((it, _), _)| *it == index) {
            Arc::make_mut(&mut self.neighbours).retain(|(it, _), _| *it != index);
            changed.add(Kind::Neighbour.into());
        }
        Applied { changed, unclear: Kind::Route.into() }
    }

    /// Puts an address in its place; with `is_listed` behind all others of its rank. Returns whether that
    /// changed anything.
    fn place(&mut self, address: &Address, is_listed: bool) -> bool {
        let key = address.key();
        let list = self.addresses.get(&address.index).map(Vec::as_slice).unwrap_or_default();
        let before = list.iter().find(|it| it.key() == key);
        let is_known = before.is_some();
        let keeps_place = !is_listed && before.is_some_and(|it| it.rank() == address.rank());
        let is_same = keeps_place && before == Some(address);
        if is_same || self.is_full(Kind::Address, is_known) {
            return false;
        }
        let addresses: &mut BTreeMap<u32, Vec<Address>> = Arc::make_mut(&mut self.addresses);
        let list = addresses.entry(address.index).or_default();
        match list.iter_mut().find(|it| it.key() == key) {
            Some(before) if keeps_place => before.clone_from(address),
            _ => {
                list.retain(|it| it.key() != key);
                let place = list.partition_point(|it| it.rank() <= address.rank());
                list.insert(place, address.clone());
            }
        }
        self.address_count = self.address_count.saturating_add(usize::from(!is_known));
        true
    }

    fn remove_address(&mut self, address: &Address) -> bool {
        let key = address.key();
        let list = self.addresses.get(&address.index);
        if !list.is_some_and(|list| list.iter().any(|it| it.key() == key)) {
            return false;
        }
        let addresses = Arc::make_mut(&mut self.addresses);
        if let Some(list) = addresses.get_mut(&address.index) {
            list.retain(|it| it.key() != key);
            self.address_count = self.address_count.saturating_sub(1);
            if list.is_empty() {
                addresses.remove(&address.index);
            }
        }
        true
    }

    /// The routes that differ from this one only in their next hops for the kernel.
    fn competitors<'a>(&'a self, route: &'a Route) -> impl Iterator<Item = &'a Route> {
        let first = Route {
            kind: RouteKind::Unicast,
            protocol: 0,
            source: None,
            next_hops: Vec::new(),
            ..*route
        };
        self.routes.range(first..).take_while(|it| it.competes_with(route))
    }

    /// A route that takes the place of another one is only reported to do so; where it is not certain which
    /// one that was, the table is unclear.
    fn add_route(&mut self, route: &Route, replaces: bool) -> Applied {
        let is_known = self.routes.contains(route);
        let others: Vec<Route> =
            self.competitors(route).filter(|it| *it != route).cloned().collect();
        // IPv6 adds a way to a route by reporting all of its ways, without saying that they replace any.
        let may_replace = replaces || route.destination.addr().is_ipv6();
        let is_unclear = !others.is_empty() && (!replaces || others.len() > 1 || is_known);
        let is_full = self.is_full(Kind::Route, is_known || (may_replace && !others.is_empty()));
        if is_full || (is_known && others.is_empty()) {
            return Applied::default();
        }
        let routes: &mut BTreeSet<Route> = Arc::make_mut(&mut self.routes);
        if may_replace {
            others.iter().for_each(|it| {
                routes.remove(it);
            });
        }
        routes.insert(route.clone());
        let is_unclear = is_unclear && may_replace;
        Applied::changed(Kind::Route, true).and_unclear(Kind::Route, is_unclear)
    }
}
