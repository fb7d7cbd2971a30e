//! The attributes of a path, from a detailed answer.
//!
//! FRR does not name attributes that it does not interpret, and prints some extended communities in a form
//! that cannot be parsed: those are left out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairway_ground::{AsPath, AsPathSegment, ExtendedCommunity, NextHop};
use fairway_seam::{Aggregator, Origin, PathAttributes};
use serde_json::Value;

use super::answer::Fields;

/// Subtypes of the extended communities that are parsed.
const ROUTE_TARGET: (&str, u8) = ("RT", 2);
const SITE_OF_ORIGIN: (&str, u8) = ("SoO", 3);

/// The attributes of a path; `None` without a next hop.
pub(super) fn attributes(path: Fields<'_>) -> Option<PathAttributes> {
    let mut attributes = PathAttributes::originated(as_path(path), next_hop(path)?);
    attributes.origin = origin(path.text("origin").unwrap_or_default());
    attributes.med = path.number("metric").or_else(|| path.number("med"));
    attributes.local_pref = path.number("locPrf");
    attributes.atomic_aggregate = path.is("atomicAggregate");
    attributes.aggregator = aggregator(path);
    attributes.communities = words(path, "community").filter_map(|it| it.parse().ok()).collect();
    attributes.communities.sort_unstable();
    attributes.large_communities =
        words(path, "largeCommunity").filter_map(|it| it.parse().ok()).collect();
    attributes.large_communities.sort_unstable();
    attributes.extended_communities =
        words(path, "extendedCommunity").filter_map(extended_community).collect();
    attributes.extended_communities.sort_unstable();
    attributes.only_to_customer = path.number("otc");
    Some(attributes)
}

/// Communities as operators write them.
fn words<'a>(path: Fields<'a>, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    path.below(name).text("string").unwrap_or_default().split_whitespace()
}

pub(super) fn origin(word: &str) -> Origin {
    match word {
        "IGP" | "i" => Origin::Igp,
        "EGP" | "e" => Origin::Egp,
        _ => Origin::Incomplete,
    }
}

fn as_path(path: Fields<'_>) -> AsPath {
    let said = path.below("aspath");
    let segments = said.list("segments").iter().filter_map(|segment| {
        let segment = Fields::from(segment);
        let number = |it: &Value| it.as_u64().and_then(|it| u32::try_from(it).ok());
        let asns = segment.list("list").iter().filter_map(number).collect();
        match segment.text("type")? {
            "as-sequence" => Some(AsPathSegment::Sequence(asns)),
            "as-set" => Some(AsPathSegment::Set(asns)),
            // Confederation segments: they do not leave a confederation, and we are in none.
            _ => None,
        }
    });
    AsPath(segments.collect())
}

/// A path as a table prints it: separated by blanks, sets in braces.
pub(super) fn as_path_of_text(text: &str) -> AsPath {
    let mut segments: Vec<AsPathSegment> = Vec::new();
    for word in text.split_whitespace() {
        let set = word.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        if let Some(set) = set {
            let asns = set.split(',').filter_map(|it| it.parse().ok()).collect();
            segments.push(AsPathSegment::Set(asns));
        } else if let Ok(asn) = word.parse() {
            match segments.last_mut() {
                Some(AsPathSegment::Sequence(asns)) => asns.push(asn),
                _ => segments.push(AsPathSegment::Sequence(vec![asn])),
            }
        }
    }
    AsPath(segments)
}

fn aggregator(path: Fields<'_>) -> Option<Aggregator> {
    Some(Aggregator { asn: path.number("aggregatorAs")?, router: path.parsed("aggregatorId")? })
}

/// The global address, with the link-local one if there is one.
fn next_hop(path: Fields<'_>) -> Option<NextHop> {
    let mut addresses = path.list("nexthops").iter().filter_map(|it| {
        let it = Fields::from(it);
        Some((it.parsed::<IpAddr>("ip")?, it.text("scope") == Some("link-local")))
    });
    let (first, _) = addresses.next()?;
    Some(match first {
        IpAddr::V4(address) => NextHop::Ipv4(address),
        IpAddr::V6(global) => {
            let second = addresses.find_map(|(address, is_link_local)| match address {
                IpAddr::V6(address) if is_link_local => Some(address),
                _ => None,
            });
            NextHop::ipv6(global, second)
        }
    })
}

/// `RT:65010:77`, `SoO:192.0.2.1:9`.
fn extended_community(text: &str) -> Option<ExtendedCommunity> {
    let (name, rest) = text.split_once(':')?;
    let (_, subtype) = [ROUTE_TARGET, SITE_OF_ORIGIN].into_iter().find(|(it, _)| *it == name)?;
    let (global, local) = rest.rsplit_once(':')?;
    if let Ok(address) = global.parse::<Ipv4Addr>() {
        let ([a, b, c, d], [e, f]) = (address.octets(), local.parse::<u16>().ok()?.to_be_bytes());
        return Some(ExtendedCommunity([1, subtype, a, b, c, d, e, f]));
    }
    if let Ok(asn) = global.parse::<u16>() {
        let ([a, b], [c, d, e, f]) = (asn.to_be_bytes(), local.parse::<u32>().ok()?.to_be_bytes());
        return Some(ExtendedCommunity([0, subtype, a, b, c, d, e, f]));
    }
    let asn = global.parse::<u32>().ok()?.to_be_bytes();
    let ([a, b, c, d], [e, f]) = (asn, local.parse::<u16>().ok()?.to_be_bytes());
    Some(ExtendedCommunity([2, subtype, a, b, c, d, e, f]))
}

/// Whether the address stands for FRR itself.
pub(super) fn is_here(address: IpAddr) -> bool {
    address.is_unspecified()
}

/// The next hop of a flat answer: one key for each family.
pub(super) fn flat_next_hop(route: Fields<'_>) -> Option<NextHop> {
    let ipv4 = || route.parsed::<Ipv4Addr>("nextHop").map(NextHop::Ipv4);
    let global = route.parsed::<Ipv6Addr>("nextHopGlobal");
    global.map(|global| NextHop::ipv6(global, None)).or_else(ipv4)
}
