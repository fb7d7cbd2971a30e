//! FRRConfigurations of frr-k8s.
//!
//! Answers the BGPPeers and BGPAdvertisements of several of them together, since frr-k8s merges all that select a node.
//! Knows no field of a neighbor: the modules below do. Called by `kubernetes`.

mod advertise;
mod neighbor;
mod receive;

use std::collections::BTreeMap;

use advertise::{Advertised, Attributes};
use neighbor::Profiles;
use receive::Received;
use serde_json::{Value, json};

use super::field::{Section, SourceObject};
use super::peers::ToldRoutes;
use super::selector::{Selection, Selector, selection};
use super::work::Work;
use crate::object::Fields;

/// Kinds in which frr-k8s reports.
const REPORTS: &[&str] = &["BGPSessionState", "FRRNodeState"];

pub(super) fn import(objects: &[&SourceObject], work: &mut Work) {
    let mut profiles = Profiles::default();
    let mut merged = Merged::default();
    for object in objects {
        match object.kind() {
            "FRRConfiguration" => merged.configuration(object, &mut profiles, work),
            kind if REPORTS.contains(&kind) => object.skip(),
            "FRRK8sConfiguration" => {
                object.spec().note_here("is options of a daemon: see fairway speaker --help");
                object.skip();
            }
            _ => {
                object.root().untranslated_here("is of a kind that is not translated");
                object.skip();
            }
        }
    }
    merged.write(work);
}

/// The nodes of a configuration; none for all.
type Nodes = Option<Selector>;

/// A neighbor in a configuration.
struct Part<'a> {
    section: Section<'a>,
    nodes: Nodes,
    received: Received,
    advertised: Advertised,
}

/// A neighbor in all configurations.
struct Neighbor<'a> {
    name: String,
    session: Fields,
    parts: Vec<Part<'a>>,
}

/// All configurations.
#[derive(Default)]
struct Merged<'a> {
    neighbors: Vec<Neighbor<'a>>,
    /// The prefixes of routers, each with VRF and nodes.
    prefixes: Vec<(Option<String>, Nodes, String)>,
}

impl<'a> Merged<'a> {
    fn configuration(
        &mut self,
        object: &'a SourceObject,
        profiles: &mut Profiles,
        work: &mut Work,
    ) {
        let spec = object.spec();
        let nodes = match selection(&spec, "nodeSelector") {
            Selection::Missing => None,
            Selection::Selector(selector) => Some(selector).filter(|it| !it.is_everything()),
            // Without it all nodes would have the peers.
            Selection::Untranslated => return object.skip(),
        };
        if let Some(raw) = spec.section("raw") {
            raw.ignore(&["priority"]);
            let why = "are lines for FRR: with --bgp frr they go into the ConfigMap bgpextras (docs/frr.md)";
            raw.untranslated("rawConfig", why);
        }
        let Some(bgp) = spec.section("bgp") else { return };
        for section in bgp.sections("bfdProfiles") {
            profiles.add(object.name(), &section, work);
        }
        for router in bgp.sections("routers") {
            self.router(object.name(), &router, &nodes, profiles, work);
        }
    }

    fn router(
        &mut self,
        configuration: &str,
        router: &Section<'a>,
        nodes: &Nodes,
        profiles: &Profiles,
        work: &mut Work,
    ) {
        let Some(my_asn) = router.number("asn").filter(|it| *it > 0) else {
            return router.untranslated_here("has no AS number: its neighbors are left out");
        };
        let vrf = router.text("vrf");
        let prefixes = advertise::prefixes(router, "prefixes");
        for prefix in &prefixes {
            self.prefixes.push((vrf.clone(), nodes.clone(), prefix.clone()));
        }
        for field in ["imports", "evpn"] {
            router.untranslated(field, "has no equal: Fairway's VRFs do not exchange routes");
        }
        for section in router.sections("neighbors") {
            let context = neighbor::Router { my_asn, vrf: vrf.clone(), id: router.text("id") };
            let Some(session) =
                neighbor::session(&section, &context, configuration, profiles, work)
            else {
                section.settle();
                continue;
            };
            let received = receive::received(&section);
            let advertised = advertise::advertised(&section, &prefixes);
            let part = Part { section, nodes: nodes.clone(), received, advertised };
            self.add(session, part);
        }
    }

    fn add(&mut self, session: Fields, part: Part<'a>) {
        let neighbour =
            |it: &Fields| ["peerAddress", "interface", "vrf"].map(|field| it.0.get(field).cloned());
        let known =
            self.neighbors.iter_mut().find(|it| neighbour(&it.session) == neighbour(&session));
        let Some(known) = known else {
            let text = |field: &str| session.0.get(field).and_then(Value::as_str);
            let at = text("peerAddress").or_else(|| text("interface")).unwrap_or_default();
            let name = text("vrf").map_or_else(|| at.to_owned(), |vrf| format!("{vrf}-{at}"));
            self.neighbors.push(Neighbor { name, session, parts: vec![part] });
            return;
        };
        match neighbor::merged(&known.session, &session) {
            Ok(session) => {
                known.session = session;
                known.parts.push(part);
            }
            Err(field) => part.section.untranslated_here(format!(
                "has another {field} than the same neighbor in another FRRConfiguration: write a BGPPeer for it by hand, with \
                 nodeSelectors that exclude those of the other"
            )),
        }
    }

    fn write(self, work: &mut Work) {
        let mut advertisements: Vec<(Fields, Vec<ToldRoutes>)> = Vec::new();
        for neighbor in self.neighbors {
            let Neighbor { name, mut session, parts } = neighbor;
            let nodes = nodes_of(&parts);
            receive::write(&parts, &mut session);
            let vrf = session.0.get("vrf").and_then(Value::as_str).map(str::to_owned);
            let announced = json!({"frr-k8s": name});
            let peer = match work.peers.add(&name, session, &nodes, announced) {
                Ok(told) => told.peer,
                Err(other) => {
                    for part in &parts {
                        part.section.untranslated_here(super::peers::rival(&other));
                    }
                    continue;
                }
            };
            for (nodes_of_part, routes) in routes(&parts) {
                let is_originated = |prefix: &str| {
                    self.prefixes.iter().any(|(other_vrf, other_nodes, other)| {
                        *other_vrf == vrf
                            && other == prefix
                            && (other_nodes.is_none() || *other_nodes == nodes_of_part)
                    })
                };
                let nodes = nodes_of_part.clone().into_iter().collect::<Vec<_>>();
                let told = ToldRoutes { peer: peer.clone(), nodes };
                for (attributes, prefixes) in by_attributes(routes) {
                    let (known, unknown): (Vec<String>, Vec<String>) =
                        prefixes.into_iter().partition(|it| is_originated(it));
                    for prefix in unknown {
                        for part in parts.iter().filter(|it| it.nodes == nodes_of_part) {
                            advertise::say_not_originated(&part.section, &prefix);
                        }
                    }
                    if known.is_empty() {
                        continue;
                    }
                    let mut spec = Fields::default();
                    spec.set("prefixes", json!(known));
                    attributes.set(&mut spec);
                    match advertisements.iter_mut().find(|(other, _)| *other == spec) {
                        Some((_, all)) => all.push(told.clone()),
                        None => advertisements.push((spec, vec![told.clone()])),
                    }
                }
            }
        }
        for (spec, told) in advertisements {
            work.bgp_advertisement("prefixes", spec, told);
        }
    }
}

/// The nodes of all parts; none for all nodes.
fn nodes_of(parts: &[Part<'_>]) -> Vec<Selector> {
    let mut nodes: Vec<Selector> = Vec::new();
    for part in parts {
        match &part.nodes {
            None => return Vec::new(),
            Some(selector) if !nodes.contains(selector) => nodes.push(selector.clone()),
            Some(_) => {}
        }
    }
    nodes
}

type Routes = BTreeMap<String, Attributes>;

/// What the neighbor is told by the nodes of each configuration; what all nodes tell it is not repeated.
fn routes(parts: &[Part<'_>]) -> Vec<(Nodes, Routes)> {
    let mut all: Vec<(Nodes, Routes)> = Vec::new();
    for part in parts {
        let position = all.iter().position(|(nodes, _)| *nodes == part.nodes);
        if position.is_none() {
            all.push((part.nodes.clone(), BTreeMap::new()));
        }
        let Some((_, routes)) = all.iter_mut().find(|(nodes, _)| *nodes == part.nodes) else {
            continue;
        };
        for (prefix, attributes) in &part.advertised.routes {
            let known = routes.entry(prefix.clone()).or_default();
            if !known.merge(attributes) {
                advertise::say_conflict(&part.section, prefix);
            }
        }
    }
    let everywhere = all.iter().find(|(nodes, _)| nodes.is_none()).map(|(_, it)| it.clone());
    let Some(everywhere) = everywhere else { return all };
    for (nodes, routes) in all.iter_mut().filter(|(nodes, _)| nodes.is_some()) {
        routes.retain(|prefix, attributes| {
            let Some(other) = everywhere.get(prefix) else { return true };
            let is_same_preference = other.has_same_preference(attributes);
            if !is_same_preference {
                for part in parts.iter().filter(|it| it.nodes == *nodes) {
                    advertise::say_conflict(&part.section, prefix);
                }
            }
            is_same_preference && other != attributes
        });
    }
    all
}

fn by_attributes(routes: Routes) -> Vec<(Attributes, Vec<String>)> {
    let mut groups: Vec<(Attributes, Vec<String>)> = Vec::new();
    for (prefix, attributes) in routes {
        match groups.iter_mut().find(|(it, _)| *it == attributes) {
            Some((_, prefixes)) => prefixes.push(prefix),
            None => groups.push((attributes, vec![prefix])),
        }
    }
    groups
}
