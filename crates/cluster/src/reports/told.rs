//! Which routers have the routes of which Service, and which Services are answered for on the local segment:
//! compares the plan with what is done.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{PeerKey, Prefix};
use fairway_model::ObjectName;
use fairway_seam::PeerView;

use super::ReportFacts;

/// Each Service with routes sent to a peer, with the names of the BGPPeers.
pub(super) fn services<'a>(facts: &ReportFacts<'a>) -> BTreeMap<&'a ObjectName, BTreeSet<&'a str>> {
    // Neighbours of a range are behind the range.
    let mut peers: BTreeMap<PeerKey, Vec<&PeerView>> = BTreeMap::new();
    for peer in &facts.bgp.peers {
        peers.entry(peer.config.route_key()).or_default().push(peer);
    }
    let announcements = facts.plan.into_iter().flat_map(|plan| &plan.services);
    let told = announcements.map(|(name, announcement)| {
        let routes = announcement.told();
        let routes = routes.flat_map(|(prefix, keys)| keys.iter().map(move |key| (prefix, key)));
        let told = routes.flat_map(|(prefix, key)| {
            let behind = peers.get(key).into_iter().flatten();
            behind.filter(move |peer| is_told(peer, prefix)).map(|peer| peer.config.name.as_str())
        });
        (name, told.collect::<BTreeSet<&str>>())
    });
    told.filter(|(_, peers)| !peers.is_empty()).collect()
}

/// Each Service that this node answers for, with the interfaces if its advertisements name some. Its first
/// address decides, as in MetalLB.
pub(super) fn answered<'a>(
    facts: &ReportFacts<'a>,
) -> BTreeMap<&'a ObjectName, Option<BTreeSet<&'a str>>> {
    let mut answered = BTreeMap::new();
    let Some(view) = facts.layer2 else { return answered };
    for planned in facts.plan.into_iter().flat_map(|plan| &plan.layer2) {
        let Some(address) = view.addresses.get(&planned.address) else { continue };
        if address.interfaces.is_empty() {
            continue;
        }
        let names = planned.interfaces.as_ref().map(|_| address.interfaces.iter());
        let names: Option<BTreeSet<&str>> = names.map(|it| it.map(String::as_str).collect());
        for service in &planned.services {
            answered.entry(service).or_insert_with(|| names.clone());
        }
    }
    answered
}

/// Whether an UPDATE with `prefix` has been sent in the current session.
fn is_told(peer: &PeerView, prefix: Prefix) -> bool {
    peer.advertised.binary_search_by(|route| route.prefix.cmp(&prefix)).is_ok()
}
