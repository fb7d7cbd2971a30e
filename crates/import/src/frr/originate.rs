//! `network` and `default-originate` as BGPAdvertisements.
//!
//! Answers which prefixes of this router go to which peers, with which attributes: what route maps and prefix lists make of
//! each is worked out here, since `toAdvertise` of a peer is about learned routes alone.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde_json::json;

use super::map_entry::Use;
use super::peer::{Neighbor, Scene};
use super::policy::Direction;
use super::route_map::{OwnRoute, apply};
use super::router::Network;
use super::settings::Scope;
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;

/// What is announced alike.
#[derive(Debug, Default)]
pub(super) struct Advertisements {
    /// By the attributes: the peers of each prefix.
    routes: BTreeMap<OwnRoute, BTreeMap<IpNet, BTreeSet<String>>>,
}

impl Advertisements {
    /// Adds the networks of one router.
    pub(super) fn add(&mut self, scene: &Scene<'_>, neighbors: &[Neighbor], outcome: &mut Outcome) {
        for network in &scene.router.networks {
            let Some(route) = origin(scene, network, outcome) else { continue };
            let ipv6 = network.prefix.addr().is_ipv6();
            let to = neighbors.iter().filter(|it| it.families.has(ipv6));
            for neighbor in to {
                if let Some(route) = exported(scene, neighbor, network.prefix, &route, outcome) {
                    self.announce(route, network.prefix, &neighbor.name);
                }
            }
        }
        for neighbor in neighbors {
            for (scope, ipv6, prefix) in
                [(Scope::Ipv4, false, "0.0.0.0/0"), (Scope::Ipv6, true, "::/0")]
            {
                let setting = neighbor.settings.on(scope, "default-originate");
                let Some(setting) = setting.filter(|_| neighbor.families.has(ipv6)) else {
                    continue;
                };
                if !setting.words.is_empty() {
                    let why = "a default route with a condition has no equal; announce it in a BGPAdvertisement with \
                               prefixes and peers if it is always to be there";
                    outcome.untranslated(setting.line, &setting.text, why);
                    continue;
                }
                let prefix: IpNet = prefix.parse().unwrap_or_default();
                let route = OwnRoute { med: Some(0), ..OwnRoute::default() };
                self.announce(route, prefix, &neighbor.name);
            }
        }
    }

    fn announce(&mut self, route: OwnRoute, prefix: IpNet, peer: &str) {
        let peers = self.routes.entry(route).or_default().entry(prefix).or_default();
        peers.insert(peer.to_owned());
    }

    /// One object for all prefixes with the same attributes and peers.
    pub(super) fn objects(self, all_peers: &BTreeSet<String>) -> Vec<Translated> {
        let (mut objects, mut names) = (Vec::new(), Names::default());
        for (route, prefixes) in self.routes {
            let mut by_peers: BTreeMap<BTreeSet<String>, Vec<String>> = BTreeMap::new();
            for (prefix, peers) in prefixes {
                by_peers.entry(peers).or_default().push(prefix.to_string());
            }
            for (peers, prefixes) in by_peers {
                let mut spec = Fields::default();
                spec.set("prefixes", json!(prefixes));
                spec.set("peers", (peers != *all_peers).then(|| json!(peers)));
                spec.set("localPref", route.local_pref.filter(|it| *it > 0).map(|it| json!(it)));
                spec.set("med", route.med.map(|it| json!(it)));
                spec.set("asPathPrepend", (route.prepend > 0).then(|| json!(route.prepend)));
                let communities = &route.communities;
                spec.set("communities", (!communities.is_empty()).then(|| json!(communities)));
                spec.set_if("blackhole", route.is_blackhole);
                let name = names.give("networks");
                objects.push(Translated::new(
                    "metallb.io/v1beta1",
                    "BGPAdvertisement",
                    &name,
                    spec,
                ));
            }
        }
        objects
    }
}

/// The route as this router originates it; `None` if its route map rejects it.
fn origin(scene: &Scene<'_>, network: &Network, outcome: &mut Outcome) -> Option<OwnRoute> {
    // FRR sends the metric of the route in its table, which is 0 for its own networks.
    let local_pref = scene.router.defaults.local_preference;
    let is_blackhole = scene.blackholes.contains(&network.prefix);
    let route = OwnRoute { med: Some(0), local_pref, is_blackhole, ..OwnRoute::default() };
    let Some(name) = &network.route_map else { return Some(route) };
    let Some(entries) = scene.maps.entries(name) else {
        outcome.note(
            network.line,
            &network.text,
            "the route map is not defined, so that it is not announced",
        );
        return None;
    };
    let ipv6 = network.prefix.addr().is_ipv6();
    let how = Use { ipv6, outbound: true, asn: Some(scene.router.asn) };
    let (route, flaws) = apply(entries, scene.lists, how, network.prefix, &route);
    for flaw in flaws {
        outcome.untranslated(flaw.line, &flaw.text, flaw.why);
    }
    route
}

/// The route as the neighbor receives it; `None` if it does not.
fn exported(
    scene: &Scene<'_>,
    neighbor: &Neighbor,
    prefix: IpNet,
    route: &OwnRoute,
    outcome: &mut Outcome,
) -> Option<OwnRoute> {
    let ipv6 = prefix.addr().is_ipv6();
    let filters = scene.filters(neighbor, Direction::Out);
    let [map, list, paths, distribute] =
        ["route-map", "prefix-list", "filter-list", "distribute-list"]
            .map(|kind| filters.filter(ipv6, Direction::Out, kind));
    let is_unfiltered = map.is_none() && list.is_none() && paths.is_none() && distribute.is_none();
    if distribute.is_some() || is_unfiltered && neighbor.requires_policy {
        return None;
    }
    if let Some(list) = list {
        let name = list.words.first()?;
        scene.lists.whole(name).ok()?;
        let entry =
            scene.lists.prefixes(ipv6, name)?.iter().find(|it| it.value.contains(prefix))?;
        entry.permits.then_some(())?;
    }
    if let Some(paths) = paths {
        let name = paths.words.first()?;
        scene.lists.whole(name).ok()?;
        let is_found =
            |it: &str| fairway_ground::AsPathPattern::new(it).is_ok_and(|it| it.is_in(""));
        let entry = scene.lists.as_paths(name)?.iter().find(|it| is_found(&it.value))?;
        entry.permits.then_some(())?;
    }
    let Some(map) = map else { return Some(route.clone()) };
    let entries = scene.maps.entries(map.words.first()?)?;
    let how = filters.how(ipv6, Direction::Out);
    let (route, flaws) = apply(entries, scene.lists, how, prefix, route);
    for flaw in flaws {
        outcome.untranslated(flaw.line, &flaw.text, flaw.why);
    }
    route
}
