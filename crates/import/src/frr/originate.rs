//! `network` and `default-originate` as BGPAdvertisements.
//!
//! Answers which prefixes of this router go to which peers, with which attributes: what route maps and prefix lists make of
//! each is worked out here, since `toAdvertise` of a peer is about learned routes alone.

use fairway_ground::AsPathPattern;
use ipnet::IpNet;

use super::lists::Entry;
use super::map_entry::Use;
use super::peer::{Neighbor, Scene};
use super::policy::Direction;
use super::route_map::OwnMap;
use super::router::Network;
use super::settings::{Scope, Setting};
use crate::outcome::Outcome;
use crate::policy::{Advertisements, OwnRoute, PREPEND_MAX, Range, RangeIndex};

impl Advertisements {
    /// Adds the networks of one router.
    pub(super) fn add(&mut self, scene: &Scene<'_>, neighbors: &[Neighbor], outcome: &mut Outcome) {
        let mut origins = Vec::new();
        for network in &scene.router.networks {
            origins.extend(origin(scene, network, outcome).map(|route| (network.prefix, route)));
        }
        for neighbor in neighbors {
            for ipv6 in [false, true].into_iter().filter(|it| neighbor.families.has(*it)) {
                self.defaults(scene, neighbor, ipv6, outcome);
                let of_family = |it: &&(IpNet, OwnRoute)| it.0.addr().is_ipv6() == ipv6;
                let Some(out) = Out::of(scene, neighbor, ipv6) else { continue };
                for (prefix, route) in origins.iter().filter(of_family) {
                    if let Some(route) = out.route(*prefix, route, outcome) {
                        self.announce(route, *prefix, &neighbor.name);
                    }
                }
            }
        }
    }

    fn defaults(
        &mut self,
        scene: &Scene<'_>,
        neighbor: &Neighbor,
        ipv6: bool,
        outcome: &mut Outcome,
    ) {
        let setting = neighbor.settings.on(Scope::of_family(ipv6), "default-originate");
        let Some(setting) = setting else { return };
        if !setting.words.is_empty() {
            let why = "a default route with a condition has no equal; announce it in a BGPAdvertisement with \
                       prefixes and peers if it is always to be there";
            return outcome.untranslated(setting.line, &setting.text, why);
        }
        let prefix: IpNet = if ipv6 { "::/0" } else { "0.0.0.0/0" }.parse().unwrap_or_default();
        let local_pref = scene.router.defaults.local_preference;
        let route = OwnRoute { med: Some(0), local_pref, ..OwnRoute::default() };
        self.announce(route, prefix, &neighbor.name);
    }
}

/// The route as this router originates it; `None` if its route map rejects it.
fn origin(scene: &Scene<'_>, network: &Network, outcome: &mut Outcome) -> Option<OwnRoute> {
    // FRR sends the metric of the route in its table, which is 0 for its own networks.
    let local_pref = scene.router.defaults.local_preference;
    let is_blackhole = scene.router.vrf.is_none() && scene.blackholes.contains(&network.prefix);
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
    if let Err(why) = scene.maps.whole(name) {
        outcome.untranslated(network.line, &network.text, why);
        return None;
    }
    let ipv6 = network.prefix.addr().is_ipv6();
    let how = Use { ipv6, outbound: true, asn: Some(scene.router.asn) };
    let map = OwnMap::of(entries, scene.lists, how, scene.router.asn);
    let (route, flaws) = map.apply(network.prefix, &route);
    for flaw in flaws {
        outcome.untranslated(flaw.line, &flaw.text, flaw.why);
    }
    route
}

/// What decides which own routes a neighbor receives, of one family.
struct Out<'a> {
    neighbor: &'a Neighbor,
    prefixes: Option<(RangeIndex, Vec<&'a Entry<Range>>)>,
    paths: Option<Vec<&'a Entry<String>>>,
    map: Option<(&'a Setting, OwnMap<'a>)>,
    asn: u32,
}

impl<'a> Out<'a> {
    /// `None`: it receives none, and why was said with its policy.
    fn of(scene: &'a Scene<'a>, neighbor: &'a Neighbor, ipv6: bool) -> Option<Self> {
        let filters = scene.filters(neighbor, Direction::Out);
        let filter =
            |kind: &str| neighbor.settings.on(Scope::of_family(ipv6), &format!("{kind} out"));
        let [map, list, paths, distribute] =
            ["route-map", "prefix-list", "filter-list", "distribute-list"].map(filter);
        let is_unfiltered =
            map.is_none() && list.is_none() && paths.is_none() && distribute.is_none();
        if distribute.is_some() || is_unfiltered && neighbor.requires_policy {
            return None;
        }
        let asn = scene.own_asn(&neighbor.settings);
        let mut out = Self { neighbor, prefixes: None, paths: None, map: None, asn };
        if let Some(list) = list {
            let name = list.words.first()?;
            scene.lists.whole(name).ok()?;
            let list = scene.lists.prefixes(ipv6, name)?;
            out.prefixes = Some((RangeIndex::of(list.iter().map(|it| it.value)), list));
        }
        if let Some(paths) = paths {
            let name = paths.words.first()?;
            scene.lists.whole(name).ok()?;
            out.paths = Some(scene.lists.as_paths(name)?);
        }
        if let Some(map) = map {
            let name = map.words.first()?;
            scene.maps.whole(name).ok()?;
            let entries = scene.maps.entries(name)?;
            let how = filters.how(ipv6, Direction::Out);
            out.map = Some((map, OwnMap::of(entries, scene.lists, how, asn)));
        }
        Some(out)
    }

    /// The route as the neighbor receives it; `None` if it does not.
    fn route(&self, prefix: IpNet, route: &OwnRoute, outcome: &mut Outcome) -> Option<OwnRoute> {
        if let Some((index, list)) = &self.prefixes {
            list.get(index.first(prefix)?)?.permits.then_some(())?;
        }
        if let Some(paths) = &self.paths {
            let path = vec![self.asn.to_string(); route.prepend].join(" ");
            let is_found = |it: &str| AsPathPattern::new(it).is_ok_and(|it| it.is_in(&path));
            paths.iter().find(|it| is_found(&it.value))?.permits.then_some(())?;
        }
        let Some((setting, map)) = &self.map else { return Some(route.clone()) };
        let (route, flaws) = map.apply(prefix, route);
        for flaw in flaws {
            outcome.untranslated(flaw.line, &flaw.text, flaw.why);
        }
        let route = route?;
        if route.prepend > 0 && !self.neighbor.is_external {
            let why = format!(
                "AS numbers are prepended for external neighbors only; {prefix} is announced without"
            );
            outcome.untranslated(setting.line, &setting.text, why);
        }
        if route.prepend > PREPEND_MAX {
            let why =
                format!("{prefix} has our AS more than {PREPEND_MAX} times; it is not announced");
            outcome.untranslated(setting.line, &setting.text, why);
            return None;
        }
        Some(route)
    }
}
