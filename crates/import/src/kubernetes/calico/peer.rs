//! BGPPeer of Calico: a router, or other nodes.
//!
//! Answers the BGPPeer of a router with what BIRD does by default: it accepts all routes, installs them, and is restarted
//! gracefully. Refuses peers that are nodes or Pods. Knows no announcement.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

use super::configuration::Configuration;
use super::filter::{Rule, received, rules};
use super::number::{as_number, seconds_of};
use super::selector::selectors;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::peers::{ToldRoutes, rival, seconds};
use crate::kubernetes::selector::Selector;
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// BIRD's hold time.
const HOLD_TIME: u64 = 240;
/// BIRD's restart time, and Fairway's.
const RESTART_TIME: u64 = 120;
const PORT_MAX: u16 = 16_384;
/// The largest number of rules of a BGPPeer.
const RULES_MAX: usize = fairway_ground::ROUTE_RULES_MAX;

pub(super) struct Readers<'r, 'a> {
    pub(super) configuration: &'r Configuration<'a>,
    pub(super) filters: &'r BTreeMap<&'a str, &'a SourceObject>,
    pub(super) work: &'r mut Work,
}

/// A peer that was written, and what it may be told.
pub(super) struct Neighbour<'a> {
    pub(super) told: ToldRoutes,
    pub(super) is_ipv4: bool,
    pub(super) is_external: bool,
    /// Names of its filters.
    pub(super) filters: Vec<String>,
    /// Nothing where a filter is unknown: it is told nothing.
    pub(super) exports: Option<Vec<Rule<'a>>>,
}

/// The rules of all filters of a peer.
struct Filters<'a> {
    names: Vec<String>,
    import: Vec<Rule<'a>>,
    /// Nothing where a filter is unknown.
    export: Option<Vec<Rule<'a>>>,
}

impl<'a> Readers<'_, 'a> {
    pub(super) fn peer(&mut self, object: &'a SourceObject) -> Option<Neighbour<'a>> {
        let told = self.translated(object);
        if told.is_none() {
            object.spec().settle();
        }
        told
    }

    fn translated(&mut self, object: &'a SourceObject) -> Option<Neighbour<'a>> {
        let source = object.spec();
        for field in ["peerSelector", "localWorkloadSelector"] {
            if source.text(field).is_some() {
                source.untranslated(
                    field,
                    "selects nodes or Pods as peers: write a BGPPeer with peerAddress for each of them, and with \
                     routeReflectorClient on route reflectors, or one with listenRange for their network",
                );
                return None;
            }
        }
        let nodes = nodes(&source)?;
        let (address, port) = address(&source)?;
        let Some(peer_asn) = source.text("asNumber").and_then(|it| as_number(&it)) else {
            source.missing("asNumber", "is missing, or no AS number: the peer is left out");
            return None;
        };
        let local = source.text("localASNumber").and_then(|it| as_number(&it));
        let my_asn = self.configuration.my_asn;
        let local = local.map(fairway_ground::Asn::get).filter(|it| *it != my_asn);
        let is_internal_by_local = local == Some(peer_asn.get());
        let mut spec = Fields::default();
        spec.set("myASN", json!(if is_internal_by_local { peer_asn.get() } else { my_asn }));
        spec.set("localASN", local.filter(|_| !is_internal_by_local).map(|it| json!(it)));
        spec.set("peerASN", json!(peer_asn.get()));
        let is_external = peer_asn.get() != local.unwrap_or(my_asn);
        if !is_external {
            source.note(
                "asNumber",
                "is our own AS: since 3.32 Calico announces to such a peer with LOCAL_PREF 2147482623, and Fairway with \
                 100; while nodes with each of them announce one prefix, routers choose Calico's: set localPref in the \
                 BGPAdvertisements",
            );
        }
        spec.set("peerAddress", json!(address.to_string()));
        spec.set("peerPort", port.map(|it| json!(it)));
        self.session(&source, is_external, &mut spec);
        let filters = self.filters(&source, address.is_ipv4());
        // Where a filter is unknown, an accepting rule of another one may accept what it rejects.
        let rules = match &filters.export {
            Some(_) => received(&filters.import, is_external),
            None => vec![json!({"action": "reject"})],
        };
        receive(&source, rules, &mut spec);
        let announced = json!([filters.export.is_some(), filters.names]);
        match self.work.peers.add(object.name(), spec, &nodes, announced) {
            Ok(told) => Some(Neighbour {
                told,
                is_ipv4: address.is_ipv4(),
                is_external,
                filters: filters.names,
                exports: filters.export,
            }),
            Err(other) => {
                source.untranslated_here(rival(&other));
                None
            }
        }
    }

    /// Sets what concerns the session.
    fn session(&mut self, source: &Section<'_>, is_external: bool, spec: &mut Fields) {
        spec.set("holdTime", seconds(HOLD_TIME));
        if let Some(text) = source.text("keepaliveTime") {
            match seconds_of(&text).filter(|it| (1..=HOLD_TIME).contains(it)) {
                Some(time) => {
                    spec.set("keepaliveTime", seconds(time));
                }
                None => source
                    .untranslated("keepaliveTime", "is not a time of whole seconds up to 240s"),
            }
        }
        let hops = source.number("ttlSecurity").filter(|it| *it > 0);
        spec.set_if("ebgpMultiHop", is_external && hops.is_none());
        spec.set("ttlSecurityHops", hops.map(|it| json!(it)));
        if let Some(secret) = source.section("password").and_then(|it| it.section("secretKeyRef")) {
            secret.ignore(&["optional"]);
            let key = secret.text("key").unwrap_or_default();
            let name = secret.text("name").unwrap_or_default();
            let name = self.work.password(&secret, "name", (&name, &key));
            spec.set("passwordSecret", json!({"name": name}));
        }
        spec.set_if("enableGracefulRestart", true);
        if let Some(text) = source.text("maxRestartTime") {
            match seconds_of(&text).filter(|it| (1..=4095).contains(it)) {
                Some(RESTART_TIME) => {}
                Some(time) => {
                    spec.set("gracefulRestart", json!({"restartTime": seconds(time)}));
                }
                None => source
                    .untranslated("maxRestartTime", "is not a time of 1 to 4095 whole seconds"),
            }
        }
        match source.number("numAllowedLocalASNumbers") {
            None | Some(0) => {}
            Some(count @ 1..=10) => {
                spec.set("allowASIn", json!(count));
            }
            Some(_) => {
                let why = "is more than 10: paths with our AS are rejected; set allowASIn, 1 to 10";
                source.untranslated("numAllowedLocalASNumbers", why);
            }
        }
        let keeps = source.is_set("keepOriginalNextHop")
            || source.text("nextHopMode").as_deref() == Some("Keep");
        if keeps {
            let why = "is about routes that are passed on, and Fairway passes on none without toAdvertise";
            source.note("keepOriginalNextHop", why);
            source.note("nextHopMode", why);
        }
        if source.text("sourceAddress").as_deref() == Some("UseNodeIP") {
            source.note(
                "sourceAddress",
                "is left to the kernel: BGPPeers have sourceAddress for one node each",
            );
        }
        source.untranslated(
            "reachableBy",
            "is a static route to the peer, which Fairway does not make: add it on the nodes (ip route add)",
        );
        source.ignore(&["reversePeering"]);
    }

    fn filters(&self, source: &Section<'_>, is_ipv4: bool) -> Filters<'a> {
        let mut filters =
            Filters { names: Vec::new(), import: Vec::new(), export: Some(Vec::new()) };
        for (position, name) in source.texts("filters") {
            // A second time it does nothing: what it decides is decided.
            if filters.names.contains(&name) {
                continue;
            }
            let Some(object) = self.filters.get(name.as_str()) else {
                let why = format!(
                    "the text has no BGPFilter {name}: nothing is accepted from this peer, and it is told nothing; Calico \
                     goes on without that filter"
                );
                source.untranslated_at("filters", position, why);
                filters.export = None;
                continue;
            };
            let read = rules(object, is_ipv4);
            // Rules for the other family have no effect on this session, and are read for what is unknown in them.
            rules(object, !is_ipv4);
            filters.import.extend(read.import);
            if let Some(export) = &mut filters.export {
                export.extend(read.export);
            }
            filters.names.push(name);
        }
        filters
    }
}

/// Sets what is accepted from the peer.
fn receive(source: &Section<'_>, mut rules: Vec<Value>, spec: &mut Fields) {
    if rules.len() > RULES_MAX {
        source.untranslated(
            "filters",
            format!("are more than {RULES_MAX} rules: nothing is accepted from this peer"),
        );
        rules = vec![json!({"action": "reject"})];
    }
    spec.set_if("installRoutes", true);
    let mut receive = Fields::default();
    receive.set("allowed", json!({"mode": "all"}));
    receive.set("rules", (!rules.is_empty()).then_some(Value::Array(rules)));
    spec.set("toReceive", receive.some());
}

/// The nodes that have the peer; none for all. Nothing where they cannot be selected.
fn nodes(source: &Section<'_>) -> Option<Vec<Selector>> {
    if let Some(node) = source.text("node") {
        return Some(vec![Selector::node(&node)]);
    }
    let Some(text) = source.text("nodeSelector") else { return Some(Vec::new()) };
    match selectors(&text) {
        Ok(selectors) if selectors.iter().any(Selector::is_everything) => Some(Vec::new()),
        Ok(selectors) => Some(selectors),
        Err(why) => {
            let why = format!("is no list of label selectors: {why}; the peer is left out");
            source.untranslated("nodeSelector", why);
            None
        }
    }
}

/// `peerIP`, with a port or without.
fn address(source: &Section<'_>) -> Option<(IpAddr, Option<u16>)> {
    let text = source.text("peerIP").unwrap_or_default();
    let (address, port) = match (text.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
        (Ok(address), _) => (address, None),
        (_, Ok(socket)) => (socket.ip(), Some(socket.port()).filter(|it| *it != 179)),
        _ => {
            source.missing("peerIP", "is missing, or no address: the peer is left out");
            return None;
        }
    };
    if port.is_some_and(|it| it > PORT_MAX) {
        let why = format!(
            "its port is above {PORT_MAX}, which is the last port of MetalLB's resources: the peer is left out"
        );
        source.untranslated("peerIP", why);
        return None;
    }
    Some((address, port))
}
