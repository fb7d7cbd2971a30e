//! What a neighbour should have been sent, in addition to what FRR shows: communities that FRR does not show,
//! and routes that the neighbour cannot receive.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{Community, ExtendedCommunity, NextHop, PathId, PeerKind, Prefix};
use fairway_seam::{Desired, DrainState, PeerConfig, PeerRoute, PeerView, RouteAttributes};

use super::attributes::is_here;
use super::tables::AdvertisedRoute;

/// The routes that one neighbour should receive.
pub(super) struct Wanted<'a> {
    routes: BTreeMap<Prefix, &'a RouteAttributes>,
    drain: DrainState,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(desired: &'a Desired, config: &PeerConfig) -> Self {
        let key = config.route_key();
        let own = desired.routes.iter().filter(|route| route.peers.contains(&key));
        let routes = own.map(|route| (route.prefix, &*route.attributes)).collect();
        Self { routes, drain: desired.drain }
    }

    /// A route as it was sent: FRR shows it before it adds its own AS and next hop.
    pub(super) fn as_sent(
        &self,
        told: AdvertisedRoute,
        config: &PeerConfig,
        here: Option<NextHop>,
    ) -> PeerRoute {
        let AdvertisedRoute { prefix, path_id, mut attributes, has_communities } = told;
        if let (false, Some(wanted)) = (has_communities, self.routes.get(&prefix)) {
            attributes.communities = wanted.communities.as_slice().into();
            if self.drain == DrainState::Draining {
                attributes = attributes.with_community(Community::GRACEFUL_SHUTDOWN);
            }
            attributes.large_communities = wanted.large_communities.as_slice().into();
            attributes.extended_communities = bandwidth(wanted, config).into_iter().collect();
        }
        if config.kind() == PeerKind::External {
            attributes.as_path = attributes.as_path.prepended(config.local_asn.get());
            attributes.local_pref = None;
        }
        if let Some(here) = here.filter(|_| is_here(attributes.next_hop.address())) {
            attributes.next_hop = here;
        }
        // The path identifier is valid only if several paths are sent.
        let path_id = path_id.filter(|_| config.add_path.send.is_some()).unwrap_or(PathId::NONE);
        PeerRoute { prefix, path_id, attributes: Arc::new(attributes), stale: false }
    }
}

fn bandwidth(wanted: &RouteAttributes, config: &PeerConfig) -> Option<ExtendedCommunity> {
    let transitive = config.kind() == PeerKind::External;
    let community =
        |it: fairway_ground::LinkBandwidth| it.community(config.local_asn.get(), transitive);
    wanted.link_bandwidth.map(community)
}

/// The routes for `peer` that it cannot receive, as far as that follows from the desired state and its
/// session. FRR does not show other reasons.
pub(super) fn note_unannounced(peer: &mut PeerView, desired: &Desired) {
    let Some(session) = &peer.session else { return };
    let (families, key) = (session.families, peer.config.route_key());
    let is_drained = desired.drain == DrainState::Drained;
    if !is_drained && peer.config.families.intersection(families) == peer.config.families {
        return;
    }
    let reason = |prefix: Prefix| match families.contains(prefix.family()) {
        false => Some(format!("the session does not carry {}", prefix.family())),
        true => is_drained.then(|| "the node is drained".to_owned()),
    };
    let own = desired.routes.iter().filter(|route| route.peers.contains(&key));
    peer.unannounced =
        own.filter_map(|route| Some((route.prefix, reason(route.prefix)?))).collect();
}
