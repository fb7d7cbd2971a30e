//! The next hops of a path, as FRR lists them.

use std::net::{IpAddr, Ipv6Addr};

use fairway_ground::{AddressFamily, NextHop};
use serde_json::Value;

use super::neighbor::family_word;
use super::object::Object;
use super::route::{EntryPath, unspecified};

/// Whether a list goes with the details of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// A row of a table.
    Row,
    /// The entry of a prefix.
    Entry,
}

impl EntryPath<'_> {
    /// The link-local address beside a global one.
    pub(super) fn link_local(self) -> Option<Ipv6Addr> {
        match self {
            Self::Learned(learned) => match learned.path.attributes.next_hop {
                NextHop::Ipv6 { link_local, .. } => link_local,
                NextHop::Ipv4(_) => None,
            },
            Self::Originated(_) => None,
        }
    }

    /// `nexthops`: one, or the global and the link-local address, of which the second is used, as in FRR.
    /// `host` is the name of the neighbour.
    pub(super) fn next_hops(self, host: Option<&str>, detail: Detail) -> Vec<Value> {
        let link_local = self.link_local();
        let first = match self {
            Self::Originated(route) => unspecified(route.prefix.family()),
            Self::Learned(learned) => learned.path.attributes.next_hop.address(),
        };
        let metric = (detail == Detail::Entry).then_some(0);
        let accessible = (detail == Detail::Entry).then_some(self.is_accessible());
        let one = |address: IpAddr| {
            Object::new()
                .field("ip", address.to_string())
                .optional("hostname", host)
                .field("afi", family_word(AddressFamily::of(address)))
                .optional("scope", scope(address))
        };
        let first = one(first)
            .optional("metric", metric)
            .optional("accessible", accessible)
            .flag("used", link_local.is_none());
        let second = link_local.map(|address: Ipv6Addr| {
            one(address.into()).optional("accessible", accessible).field("used", true)
        });
        std::iter::once(first).chain(second).map(Value::from).collect()
    }
}

/// IPv4 addresses have none.
fn scope(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) if address.is_unicast_link_local() => Some("link-local"),
        IpAddr::V6(_) => Some("global"),
    }
}
