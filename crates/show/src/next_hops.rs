//! `show bgp nexthop`: the next hops of accepted paths, and the neighbours with a session.
//!
//! FRR tracks next hops in the kernel's table and shows interfaces, networks and times. Here a path whose
//! next hop is not on a network of this machine is not accepted at all, so every listed one is valid; the
//! rest is not known and left out.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use fairway_ground::AddressFamily;

use super::Snapshot;
use super::neighbor::{family_word, is_established};
use super::object::Object;

#[derive(Debug, Default)]
struct NextHop {
    paths: usize,
    is_peer: bool,
}

fn next_hops(snapshot: &Snapshot<'_>, wanted: Option<&str>) -> BTreeMap<IpAddr, NextHop> {
    let mut found: BTreeMap<IpAddr, NextHop> = BTreeMap::new();
    let established = snapshot.bgp.peers.iter().filter(|peer| is_established(peer));
    for address in established.filter_map(|peer| Some(peer.session.as_ref()?.remote.ip())) {
        found.entry(address).or_default().is_peer = true;
    }
    for learned in &snapshot.bgp.learned {
        let next_hop = found.entry(learned.path.attributes.next_hop.address()).or_default();
        next_hop.paths = next_hop.paths.saturating_add(1);
    }
    if let Some(wanted) = wanted {
        let wanted = wanted.parse::<IpAddr>().ok();
        found.retain(|address, _| wanted == Some(*address));
    }
    found
}

/// One line per next hop.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: Option<&str>) -> String {
    let next_hops = next_hops(snapshot, wanted);
    if wanted.is_some() && next_hops.is_empty() {
        return "specified nexthop does not have entry\n".to_owned();
    }
    let mut text = "Current BGP nexthop cache:\n".to_owned();
    for (address, NextHop { paths, is_peer }) in next_hops {
        let peer = if is_peer { format!(", peer {address}") } else { String::new() };
        let _ = writeln!(text, " {address} valid [IGP metric 0], #paths {paths}{peer}");
    }
    text
}

/// An object keyed by family and address, as in FRR 10.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: Option<&str>) -> Object {
    let next_hops = next_hops(snapshot, wanted);
    let of_family = |family: AddressFamily| -> Object {
        let of_family = next_hops.iter().filter(|(it, _)| AddressFamily::of(**it) == family);
        let one = |(address, next_hop): (&IpAddr, &NextHop)| {
            let object = Object::new()
                .field("valid", true)
                .field("complete", true)
                .field("igpMetric", 0)
                .field("pathCount", next_hop.paths)
                .optional("peer", next_hop.is_peer.then(|| address.to_string()));
            (address.to_string(), object.into())
        };
        of_family.map(one).collect()
    };
    let families = AddressFamily::ALL.into_iter();
    families.map(|family| (family_word(family).to_owned(), of_family(family).into())).collect()
}
