//! Objects of Calico: BGPConfiguration, BGPPeer, BGPFilter and IPPool.
//!
//! Answers which object is read by which module below, and names those of which Fairway has no equal. Called by
//! `kubernetes`.

mod configuration;
mod filter;
mod number;
mod own_route;
mod peer;
mod pool;
mod range;
mod selector;

use std::collections::BTreeMap;

use configuration::Configuration;
use own_route::OwnRoutes;

use super::field::SourceObject;
use super::work::Work;

/// Kinds that Calico's programs write, or that `fairway --ipam` reads as they are.
const LEFT_ALONE: &[&str] = &[
    "BlockAffinity",
    "CalicoNodeStatus",
    "ClusterInformation",
    "IPAMBlock",
    "IPAMConfig",
    "IPAMConfiguration",
    "IPAMHandle",
    "IPReservation",
];
const TRANSLATED: &[&str] = &["BGPConfiguration", "BGPFilter", "BGPPeer", "IPPool"];
/// The BGPConfiguration that is for all nodes.
const DEFAULT: &str = "default";

pub(super) fn import(objects: &[&SourceObject], work: &mut Work) {
    let of = |kind: &str| -> Vec<&SourceObject> {
        objects.iter().copied().filter(|it| it.kind() == kind).collect()
    };
    let mut own_routes = OwnRoutes::default();
    let pools: Vec<pool::Pool> =
        of("IPPool").into_iter().filter_map(|it| pool::pool(it, work, &mut own_routes)).collect();
    let configurations = of("BGPConfiguration");
    for object in configurations.iter().filter(|it| it.name() != DEFAULT) {
        object.spec().untranslated_here(
            "is for one node: write BGPPeers with nodeSelectors for the label kubernetes.io/hostname, and what differs there",
        );
    }
    let default = configurations.into_iter().find(|it| it.name() == DEFAULT);
    let configuration = match default {
        Some(object) => Configuration::read(object, pools, &mut own_routes, work),
        None => Configuration::default(),
    };
    let filters: BTreeMap<&str, &SourceObject> =
        of("BGPFilter").into_iter().map(|it| (it.name(), it)).collect();
    let peers = of("BGPPeer");
    if let Some(first) = peers.first().filter(|_| default.is_none()) {
        first.spec().note_here(format!(
            "the text has no BGPConfiguration default: AS {} is Calico's own default; without that object Calico has a mesh of \
             all nodes, too, which Fairway has not",
            configuration.my_asn
        ));
    }
    if let Some(first) = peers.first() {
        first.spec().note_here(
            "BIRD accepts all routes that filters do not reject, and installs them: so do the BGPPeers; installRoutes needs the \
             capability NET_ADMIN (speaker.installRoutes of the chart)",
        );
    }
    let has_peers = !peers.is_empty();
    let mut readers = peer::Readers { configuration: &configuration, filters: &filters, work };
    let told: Vec<peer::Neighbour<'_>> =
        peers.into_iter().filter_map(|it| readers.peer(it)).collect();
    for (name, object) in &filters {
        let is_used = told.iter().any(|it| it.filters.iter().any(|it| it == name));
        if !is_used {
            object.spec().note_here("is left out: no peer of the result has this filter");
            object.skip();
        }
    }
    own_routes.write(&configuration, &told, has_peers, work);
    for object in objects {
        others(object);
    }
}

fn others(object: &SourceObject) {
    if TRANSLATED.contains(&object.kind()) {
        return;
    }
    if object.kind() == "Node" {
        if let Some(bgp) = object.spec().section("bgp") {
            for field in ["asNumber", "routeReflectorClusterID"] {
                bgp.untranslated(
                    field,
                    "is for one node: write BGPPeers with nodeSelectors for the label kubernetes.io/hostname; a route \
                     reflector has routeReflectorClient and clusterID in the BGPPeers of its clients",
                );
            }
        }
    } else if !LEFT_ALONE.contains(&object.kind()) {
        let why = "is of a kind that has no equal in Fairway: what carries it out has to stay";
        object.root().untranslated_here(why);
    }
    object.skip();
}
