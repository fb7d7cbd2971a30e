//! Which routers have the routes of which Service: compares the plan with the backend's view.

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

/// Whether an UPDATE with `prefix` has been sent in the current session.
fn is_told(peer: &PeerView, prefix: Prefix) -> bool {
    peer.advertised.binary_search_by(|route| route.prefix.cmp(&prefix)).is_ok()
}
