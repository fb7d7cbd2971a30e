//! The routes of a speaker: all accepted paths and its own, as MRT or JSON, piece by piece.
//!
//! Answers what a view holds, for other programs. Knows no socket: the caller sends each piece before it asks for the next, so
//! a table of a million routes is never there as a whole beside its view.

mod json;
mod mrt;
mod peers;

use std::iter::Peekable;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::slice::Iter;

use fairway_ground::{AddressFamily, AsPath, NextHop, Prefix};
use fairway_seam::{BgpView, DesiredRoute, LearnedRoute, PathAttributes, ViewScope};

use crate::{DumpFormat, Stamp};
use peers::Peers;

/// A piece has so many bytes, or a route more.
const PIECE_BYTES: usize = 256 * 1024;

/// What of a view a dump needs.
pub const RIB_SCOPE: ViewScope =
    ViewScope { originated: true, learned: true, ..ViewScope::SESSIONS };

/// The format of the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RibFormat {
    /// MRT: TABLE_DUMP_V2 (RFC 6396 §4.3, RFC 8050).
    Mrt,
    /// One object.
    Json,
}

impl TryFrom<DumpFormat> for RibFormat {
    type Error = &'static str;

    fn try_from(format: DumpFormat) -> Result<Self, Self::Error> {
        match format {
            DumpFormat::Mrt => Ok(Self::Mrt),
            DumpFormat::Json => Ok(Self::Json),
            DumpFormat::Pcap => Err("routes are no packets; expected mrt or json"),
        }
    }
}

/// One path to a prefix.
#[derive(Debug, Clone, Copy)]
enum Route<'a> {
    Originated(&'a DesiredRoute),
    Learned(&'a LearnedRoute),
}

/// The pieces of a dump.
pub struct RibPieces<'a> {
    format: RibFormat,
    now: Stamp,
    peers: Peers,
    /// Our AS for most neighbours.
    local_asn: u32,
    originated: Peekable<Iter<'a, DesiredRoute>>,
    learned: Peekable<Iter<'a, LearnedRoute>>,
    next: Next,
    /// Prefixes written.
    sequence: u32,
    left_out: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Head,
    Routes,
    End,
}

impl<'a> RibPieces<'a> {
    /// Of `view`, which has [`RIB_SCOPE`], and was taken at `now`.
    pub fn new(view: &'a BgpView, format: RibFormat, now: Stamp) -> Self {
        Self {
            format,
            now,
            peers: Peers::of(view),
            local_asn: view.peers.first().map_or(0, |it| it.config.router_asn.get()),
            originated: view.routes.iter().peekable(),
            learned: view.learned.iter().peekable(),
            next: Next::Head,
            sequence: 0,
            left_out: 0,
        }
    }

    /// Paths that the format has no room for: a record of MRT holds 65535 octets of attributes, and 65535 neighbors.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// All routes to the next prefix.
    fn next_prefix(&mut self) -> Option<(Prefix, Vec<Route<'a>>)> {
        let originated = self.originated.peek().map(|it| it.prefix);
        let learned = self.learned.peek().map(|it| it.prefix);
        let prefix = originated.into_iter().chain(learned).min()?;
        let mut routes = Vec::new();
        while let Some(route) = self.originated.next_if(|it| it.prefix == prefix) {
            routes.push(Route::Originated(route));
        }
        while let Some(route) = self.learned.next_if(|it| it.prefix == prefix) {
            routes.push(Route::Learned(route));
        }
        Some((prefix, routes))
    }

    fn head(&self) -> Vec<u8> {
        match self.format {
            RibFormat::Mrt => mrt::peer_index_table(&self.peers, self.now),
            RibFormat::Json => json::head(&self.peers, self.now).into_bytes(),
        }
    }

    /// Whether there were routes.
    fn put_routes(&mut self, out: &mut Vec<u8>) -> bool {
        while out.len() < PIECE_BYTES {
            let Some((prefix, routes)) = self.next_prefix() else { return false };
            let left_out = match self.format {
                RibFormat::Mrt => mrt::put_rib(self, prefix, &routes, out),
                RibFormat::Json => json::put_routes(self, prefix, &routes, out),
            };
            self.left_out = self.left_out.saturating_add(left_out);
        }
        true
    }

    /// A route of our own as FRR has it in its table: without an AS, and without a next hop.
    fn originated(&self, route: &DesiredRoute) -> PathAttributes {
        let next_hop = match route.prefix.family() {
            AddressFamily::Ipv4Unicast => NextHop::Ipv4(Ipv4Addr::UNSPECIFIED),
            AddressFamily::Ipv6Unicast => {
                NextHop::Ipv6 { global: Ipv6Addr::UNSPECIFIED, link_local: None }
            }
        };
        let chosen = &route.attributes;
        let bandwidth = chosen.link_bandwidth.map(|it| it.community(self.local_asn, false));
        PathAttributes {
            local_pref: chosen.local_pref,
            med: chosen.med,
            communities: chosen.communities.as_slice().into(),
            extended_communities: bandwidth.into_iter().collect(),
            large_communities: chosen.large_communities.as_slice().into(),
            ..PathAttributes::originated(AsPath::default(), next_hop)
        }
    }
}

impl Iterator for RibPieces<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = match self.next {
            Next::Head => self.head(),
            Next::Routes => Vec::with_capacity(PIECE_BYTES),
            Next::End => return None,
        };
        self.next = Next::Routes;
        if !self.put_routes(&mut out) {
            self.next = Next::End;
            if self.format == RibFormat::Json {
                out.extend_from_slice(json::TAIL.as_bytes());
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests;
