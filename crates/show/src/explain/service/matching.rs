//! Why an advertisement does not apply to a Service on this node, and why a peer has no session with this
//! node.
//!
//! The plan names those that do apply; this module explains the others.

use std::collections::BTreeSet;

use fairway_allocator::{Outcome, PoolLookup};
use fairway_model::{BgpAdvertisement, ObjectName, Pool, Service, any_matches};
use fairway_plan::{Announcement, Fault};

use crate::Snapshot;

/// A BGPAdvertisement that announces nothing of the Service on this node.
pub(super) struct Mismatch<'a> {
    pub(super) name: &'a ObjectName,
    pub(super) why: String,
}

/// All of them, in name order; empty while the Service has no address.
pub(super) fn mismatches<'a>(
    snapshot: &Snapshot<'a>,
    service: &Service,
    outcome: Option<&Outcome>,
    announcement: Option<&Announcement>,
) -> Vec<Mismatch<'a>> {
    let lookup = PoolLookup::new(snapshot.index);
    let addresses = outcome.map(|it| it.addresses.as_slice()).unwrap_or_default();
    let pools: Vec<&Pool> = addresses.iter().filter_map(|it| lookup.offering(*it)).collect();
    if pools.is_empty() {
        return Vec::new();
    }
    let prefixes =
        announcement.into_iter().flat_map(|it| &it.addresses).flat_map(|address| &address.prefixes);
    let matching: BTreeSet<&ObjectName> =
        prefixes.flat_map(|it| it.advertisements.iter()).collect();
    let others = snapshot.index.bgp_advertisements.values();
    let others = others.filter(|it| !matching.contains(&it.name));
    others
        .filter_map(|it| {
            Some(Mismatch { name: &it.name, why: why(snapshot, service, &pools, it)? })
        })
        .collect()
}

/// Why it does not apply; `None` if no selector of its own excludes the Service.
fn why(
    snapshot: &Snapshot<'_>,
    service: &Service,
    pools: &[&Pool],
    it: &BgpAdvertisement,
) -> Option<String> {
    let mut reasons = Vec::new();
    if it.is_about_prefixes_alone() {
        reasons.push("it is about its prefixes alone".to_owned());
    } else if !pools.iter().any(|pool| it.selects_pool(&pool.name.name, &pool.labels)) {
        let names: Vec<_> = pools.iter().map(|pool| pool.name.name.as_str()).collect();
        let given: Vec<_> = it.pools.iter().map(String::as_str).collect();
        reasons.push(match (given.is_empty(), it.pool_selectors.is_empty()) {
            (false, true) => format!("it is for pool {}", given.join(", ")),
            _ => format!("its ipAddressPoolSelectors do not select pool {}", names.join(" or ")),
        });
    }
    if !it.selects_node(&snapshot.node.labels) {
        reasons.push(format!("its nodeSelectors do not select {}", snapshot.node.name));
    }
    if !it.selects_service(service) {
        reasons.push("its serviceSelectors do not select the labels of the Service".to_owned());
    }
    let faults = snapshot.plan.faults.iter();
    let own = faults.filter(|fault| {
        matches!(fault, Fault::UnknownCommunity { advertisement, .. } if *advertisement == it.name)
    });
    reasons.extend(own.map(ToString::to_string));
    (!reasons.is_empty()).then(|| reasons.join(", and "))
}

/// Peers that this node has no session with.
pub(in crate::explain) fn peers_elsewhere<'a>(
    snapshot: &Snapshot<'a>,
) -> Vec<(&'a ObjectName, String)> {
    let left_out = |name: &ObjectName| {
        let mut faults = snapshot.plan.faults.iter();
        faults.find(|fault| match fault {
            Fault::MissingSecret { peer, .. }
            | Fault::NoGateway { peer, .. }
            | Fault::LinkLocalGateway { peer, .. }
            | Fault::SameRemote { peer, .. } => peer == name,
            Fault::UnknownCommunity { .. }
            | Fault::PrefixNotOriginated { .. }
            | Fault::BmpStationLeftOut { .. }
            | Fault::TooManyRpkiServers { .. } => false,
        })
    };
    let peers = snapshot.index.peers.values();
    let elsewhere = peers.filter_map(|peer| {
        if !any_matches(&peer.node_selectors, &snapshot.node.labels) {
            let why = format!("its nodeSelectors do not select {}", snapshot.node.name);
            return Some((&peer.name, why));
        }
        left_out(&peer.name).map(|fault| (&peer.name, fault.to_string()))
    });
    elsewhere.collect()
}
