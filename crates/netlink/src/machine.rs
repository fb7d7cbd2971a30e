//! The snapshot: the last state that the kernel reported, and queries on it.
//!
//! Immutable except to the [`crate::Follower`]; a clone shares its tables, so that it can be handed to every
//! task. Refuses to know how facts arrive, and what they are used for.

mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::address::Address;
use crate::decode::Fact;
use crate::kind::{Kind, Kinds};
use crate::link::Link;
use crate::neighbour::Neighbour;
use crate::route::{PROTOCOL_BGP, Route, TABLE_MAIN};

pub(crate) use change::Applied;

/// Links, addresses, routes and neighbours of a network namespace at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Machine {
    links: Arc<BTreeMap<u32, Link>>,
    /// By interface; each list is in the order of [`Address::rank`].
    addresses: Arc<BTreeMap<u32, Vec<Address>>>,
    /// How many there are of all interfaces.
    address_count: usize,
    routes: Arc<BTreeSet<Route>>,
    neighbours: Arc<BTreeMap<(u32, IpAddr), Neighbour>>,
    truncated: Kinds,
    losses: Losses,
}

/// How many times an interface stopped being usable: not what the kernel has, and so no difference.
#[derive(Debug, Clone, Copy, Default)]
struct Losses(u64);

impl PartialEq for Losses {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Losses {}

impl FromIterator<Fact> for Machine {
    /// The machine after these facts, applied one after the other.
    fn from_iter<T: IntoIterator<Item = Fact>>(facts: T) -> Self {
        let mut machine = Self::default();
        facts.into_iter().for_each(|fact| {
            machine.apply(&fact);
        });
        machine
    }
}

impl Machine {
    /// All interfaces, by number.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.values()
    }

    /// The interface of this number.
    pub fn link(&self, index: u32) -> Option<&Link> {
        self.links.get(&index)
    }

    /// The interface with this own name.
    pub fn link_named(&self, name: &str) -> Option<&Link> {
        self.links().find(|link| link.name == name)
    }

    /// The interface with the name `name`; its own name precedes another's alternative one.
    pub fn link_called(&self, name: &str) -> Option<&Link> {
        self.link_named(name).or_else(|| self.links().find(|link| link.is_called(name)))
    }

    /// The device of the VRF that an interface is a port of, or that it is itself.
    pub fn vrf_of(&self, index: u32) -> Option<&Link> {
        let link = self.link(index)?;
        if link.is_vrf() {
            return Some(link);
        }
        self.link(link.master?).filter(|master| master.is_vrf())
    }

    /// The interfaces of a VRF with its device, which carries its loopback address; with `None` those that
    /// are in no VRF.
    pub fn links_in(&self, vrf: Option<u32>) -> impl Iterator<Item = &Link> {
        self.links().filter(move |link| self.vrf_of(link.index).map(|it| it.index) == vrf)
    }

    /// All addresses, by interface; of each, IPv4 first. The first of several is the one that was there
    /// first.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.values().flatten()
    }

    /// The addresses of an interface, in the same order.
    pub fn addresses_of(&self, index: u32) -> &[Address] {
        self.addresses.get(&index).map(Vec::as_slice).unwrap_or_default()
    }

    /// The first settled IPv4 address of the interface that is neither loopback nor link-local.
    pub fn global_ipv4(&self, index: u32) -> Option<IpAddr> {
        self.first_global(index, IpAddr::is_ipv4)
    }

    /// The same of IPv6.
    pub fn global_ipv6(&self, index: u32) -> Option<IpAddr> {
        self.first_global(index, IpAddr::is_ipv6)
    }

    fn first_global(&self, index: u32, is_of_family: fn(&IpAddr) -> bool) -> Option<IpAddr> {
        let mut settled =
            self.addresses_of(index).iter().filter(|it| it.is_settled() && it.is_global());
        settled.find(|it| is_of_family(&it.address)).map(|it| it.address)
    }

    /// The settled link-local IPv6 addresses of an interface.
    pub fn link_local(&self, index: u32) -> impl Iterator<Item = Ipv6Addr> {
        let settled = self.addresses_of(index).iter().filter(|it| it.is_settled());
        settled.filter_map(|it| match it.address {
            IpAddr::V6(address) if address.is_unicast_link_local() => Some(address),
            _ => None,
        })
    }

    /// Whether `remote` is on a network of an interface in `vrf`: no router is between. The address of this
    /// machine there need not be settled.
    pub fn is_on_link(&self, remote: IpAddr, vrf: Option<u32>) -> bool {
        let mut networks = self
            .links_in(vrf)
            .flat_map(|link| self.addresses_of(link.index))
            .filter_map(Address::network);
        networks.any(|network| network.contains(&remote))
    }

    /// How many times an interface went away, went down or lost its carrier: routes over it went with it, even if it is back
    /// in the next snapshot.
    pub fn link_losses(&self) -> u64 {
        self.losses.0
    }

    fn lose_link(&mut self) {
        self.losses.0 = self.losses.0.wrapping_add(1);
    }

    /// All followed routes, by table and destination.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// The router of the default route with the smallest metric, in the main table or in that of a VRF; not of one that BGP
    /// learned, which would decide about the session that it came from. Of several next hops the first one with a router
    /// of the same family.
    pub fn default_gateway(&self, vrf: Option<u32>, is_ipv6: bool) -> Option<IpAddr> {
        let table = match vrf {
            Some(vrf) => self.link(vrf)?.vrf_table?,
            None => TABLE_MAIN,
        };
        let is_default = |route: &&Route| {
            let destination = route.destination;
            route.table == table
                && destination.prefix_len() == 0
                && destination.addr().is_ipv6() == is_ipv6
                && route.type_of_service == 0
                && route.protocol != PROTOCOL_BGP
        };
        let best = self.routes().filter(is_default).min_by_key(|route| route.metric)?;
        let mut gateways = best.next_hops.iter().filter_map(|it| it.gateway);
        gateways.find(|it| it.is_ipv6() == is_ipv6)
    }

    /// All neighbours, by interface.
    pub fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.values()
    }

    /// The neighbour with `address` on the link of this interface.
    pub fn neighbour(&self, index: u32, address: IpAddr) -> Option<&Neighbour> {
        self.neighbours.get(&(index, address))
    }

    /// Whether the neighbour with `address` on this link announced itself as a router.
    pub fn is_router(&self, index: u32, address: IpAddr) -> bool {
        self.neighbour(index, address).is_some_and(|it| it.is_router)
    }

    /// The tables of which this is only a part: the kernel has more entries than are kept.
    pub fn truncated(&self) -> Kinds {
        self.truncated
    }

    /// The tables in which this snapshot differs from `other`.
    pub fn differences(&self, other: &Self) -> Kinds {
        Kind::ALL.into_iter().filter(|kind| self.differs(other, *kind)).collect()
    }

    /// Two snapshots that share a table are not compared entry by entry.
    fn differs(&self, other: &Self, kind: Kind) -> bool {
        fn differ<T: PartialEq>(one: &Arc<T>, other: &Arc<T>) -> bool {
            !Arc::ptr_eq(one, other) && one != other
        }
        match kind {
            Kind::Link => differ(&self.links, &other.links),
            Kind::Address => differ(&self.addresses, &other.addresses),
            Kind::Route => differ(&self.routes, &other.routes),
            Kind::Neighbour => differ(&self.neighbours, &other.neighbours),
        }
    }

    /// Whether routes of this table are followed: it is the main one, or that of a VRF.
    pub(crate) fn follows_table(&self, table: u32) -> bool {
        table == TABLE_MAIN || self.links().any(|link| link.vrf_table == Some(table))
    }
}

#[cfg(test)]
mod tests;
