//! Objects of Cilium's BGP control plane, of its addresses for Services, and of its announcements on layer 2.
//!
//! Answers a BGPPeer for each peer of each instance. Knows neither what the peers are told nor pools: the modules below do.
//! Called by `kubernetes`.

mod advertisement;
mod peer_config;
mod policy;
mod pool;

use std::net::IpAddr;

use advertisement::Advertised;
use peer_config::{Afi, PeerConfig};
use pool::Pool;
use serde_json::json;

use super::field::{Section, SourceObject};
use super::peers::rival;
use super::selector::{Selection, Selector, selection};
use super::work::Work;
use crate::object::Fields;

/// Kinds that agents and the operator write, or that have nothing to do with routes.
const WRITTEN_BY_CILIUM: &[&str] = &[
    "CiliumBGPNodeConfig",
    "CiliumEndpoint",
    "CiliumEndpointSlice",
    "CiliumIdentity",
    "CiliumNode",
];

pub(super) fn import(objects: &[&SourceObject], work: &mut Work) {
    let of = |kind: &str| -> Vec<&SourceObject> {
        objects.iter().copied().filter(|it| it.kind() == kind).collect()
    };
    let pools: Vec<Pool> =
        of("CiliumLoadBalancerIPPool").into_iter().filter_map(|it| pool::pool(it, work)).collect();
    if let Some(first) = of("CiliumLoadBalancerIPPool").first() {
        first.spec().note_here(
            "Services have other annotations: lbipam.cilium.io/ips is metallb.io/loadBalancerIPs, and \
             lbipam.cilium.io/sharing-key is metallb.io/allow-shared-ip; a loadBalancerClass is the option --lb-class",
        );
    }
    let mut translation = Translation {
        configs: of("CiliumBGPPeerConfig"),
        used: Vec::new(),
        advertised: of("CiliumBGPAdvertisement").into_iter().map(Advertised::new).collect(),
        work,
    };
    for object in of("CiliumBGPClusterConfig") {
        translation.cluster_config(object);
    }
    let Translation { configs, used, advertised, work } = translation;
    for object in configs.iter().filter(|it| !used.contains(&it.name())) {
        object.spec().note_here("is left out: no peer in the text refers to it");
        object.skip();
    }
    for object in of("CiliumBGPPeeringPolicy") {
        policy::import(object, &pools, work);
    }
    for it in advertised {
        advertisement::import(it, &pools, work);
    }
    for object in of("CiliumL2AnnouncementPolicy") {
        pool::layer2(object, work);
    }
    for object in of("CiliumBGPNodeConfigOverride") {
        for instance in object.spec().sections("bgpInstances") {
            instance.untranslated_here(
                "is not applied: write BGPPeers with nodeSelectors for the label kubernetes.io/hostname and with routerID, \
                 myASN and sourceAddress of that node, and exclude it from the others",
            );
        }
    }
    for object in objects {
        others(object);
    }
}

/// Kinds that are no part of any translation.
fn others(object: &SourceObject) {
    let is_known = [
        "CiliumBGPClusterConfig",
        "CiliumBGPPeerConfig",
        "CiliumBGPAdvertisement",
        "CiliumBGPPeeringPolicy",
        "CiliumBGPNodeConfigOverride",
        "CiliumLoadBalancerIPPool",
        "CiliumL2AnnouncementPolicy",
    ];
    if is_known.contains(&object.kind()) {
        return;
    }
    if !WRITTEN_BY_CILIUM.contains(&object.kind()) {
        let why = "is of a kind that has no equal in Fairway: what carries it out has to stay";
        object.root().untranslated_here(why);
    }
    object.skip();
}

struct Translation<'a, 'w> {
    configs: Vec<&'a SourceObject>,
    /// Names of those that peers refer to.
    used: Vec<&'a str>,
    advertised: Vec<Advertised<'a>>,
    work: &'w mut Work,
}

/// What the peers of an instance have in common.
struct Instance<'a> {
    my_asn: u64,
    name: String,
    nodes: &'a [Selector],
}

impl<'a> Translation<'a, '_> {
    fn cluster_config(&mut self, object: &SourceObject) {
        let spec = object.spec();
        let nodes = match selection(&spec, "nodeSelector") {
            Selection::Missing => Vec::new(),
            Selection::Selector(selector) => vec![selector],
            // Without it the peers would be on all nodes.
            Selection::Untranslated => return object.skip(),
        };
        for section in spec.sections("bgpInstances") {
            let name = section.text("name").unwrap_or_default();
            let Some(my_asn) = section.number("localASN").filter(|it| *it > 0) else {
                section.untranslated_here(
                    "has no localASN, which nodes override one by one: write a BGPPeer with myASN for each node",
                );
                continue;
            };
            if section.number("localPort").is_some_and(|port| port != 179) {
                let why = "is an option of the daemon: --bgp-listen ADDRESS:PORT; without it, it listens on port 179 only \
                           where a peer is passive";
                section.note("localPort", why);
            }
            let instance = Instance { my_asn, name, nodes: &nodes };
            for peer in section.sections("peers") {
                self.peer(&peer, &instance);
            }
        }
    }

    fn peer(&mut self, section: &Section<'_>, instance: &Instance<'_>) {
        let name = section.text("name").unwrap_or_default();
        let Some(peer_asn) = section.number("peerASN").filter(|it| *it > 0) else {
            return section.untranslated_here(
                "accepts any AS, which Fairway does not: write a BGPPeer with peerASN, or with dynamicASN: external or internal",
            );
        };
        let mut spec = Fields::default();
        spec.set("myASN", json!(instance.my_asn)).set("peerASN", json!(peer_asn));
        let Some(own) = neighbour(section, &mut spec) else { return section.settle() };
        let Some(config) = self.config(section) else { return section.settle() };
        let settings = match config {
            None => PeerConfig::default(),
            Some(object) => {
                let is_external = instance.my_asn != peer_asn;
                match peer_config::read(object, is_external, &mut spec, self.work) {
                    Some(settings) => settings,
                    None => return section.settle(),
                }
            }
        };
        let carried = settings.carried(own);
        spec.set_if("dualStackAddressFamily", own.is_some() && carried.len() > 1);
        let full_name = format!("{}-{name}", instance.name);
        let selected: Vec<bool> =
            self.advertised.iter().map(|it| settings.selects(it, &carried)).collect();
        match self.work.peers.add(&full_name, spec, instance.nodes, json!(selected)) {
            Ok(told) => {
                let advertised = self.advertised.iter_mut().zip(selected);
                for (advertised, _) in advertised.filter(|(_, is_selected)| *is_selected) {
                    advertised.told.push(told.clone());
                }
            }
            Err(other) => section.untranslated_here(rival(&other)),
        }
    }

    /// The object that the peer refers to, if it does.
    fn config(&mut self, section: &Section<'_>) -> Option<Option<&'a SourceObject>> {
        let Some(reference) = section.section("peerConfigRef") else {
            section.note_here(
                "has no peerConfigRef: Cilium announces nothing to it, and so does Fairway",
            );
            return Some(None);
        };
        reference.ignore(&["group", "kind"]);
        let name = reference.text("name").unwrap_or_default();
        let Some(object) = self.configs.iter().copied().find(|it| it.name() == name) else {
            let why = format!(
                "the text has no CiliumBGPPeerConfig {name}, so the peer is left out: add that object"
            );
            reference.untranslated("name", why);
            return None;
        };
        self.used.push(object.name());
        Some(Some(object))
    }
}

/// Sets the neighbour of a peer. Answers the address family of the session; a session over an interface has both.
fn neighbour(section: &Section<'_>, spec: &mut Fields) -> Option<Option<Afi>> {
    if let Some(address) = section.text("peerAddress") {
        let Ok(parsed) = address.trim().parse::<IpAddr>() else {
            let why = "is no address that Fairway dials: for a link-local one, write a BGPPeer with interface";
            section.untranslated("peerAddress", why);
            return None;
        };
        spec.set("peerAddress", json!(parsed.to_string()));
        return Some(Some(Afi::of(parsed)));
    }
    let Some(discovery) = section.section("autoDiscovery") else {
        section.missing("peerAddress", "is missing, and so is autoDiscovery: the peer is left out");
        return None;
    };
    match discovery.text("mode").as_deref() {
        Some("DefaultGateway") => {
            let gateway = discovery.section("defaultGateway");
            let family = gateway.and_then(|it| it.text("addressFamily")).unwrap_or_default();
            let Some(own) = Afi::named(&family) else {
                discovery
                    .untranslated_here("has no addressFamily, ipv4 or ipv6: the peer is left out");
                return None;
            };
            spec.set("autoDiscovery", json!({"mode": "DefaultGateway", "addressFamily": family}));
            Some(Some(own))
        }
        Some("Unnumbered") => {
            let interface = discovery.section("unnumbered").and_then(|it| it.text("interface"));
            let Some(interface) = interface else {
                discovery.untranslated_here("has no interface: the peer is left out");
                return None;
            };
            spec.set("interface", json!(interface));
            Some(None)
        }
        _ => {
            discovery.untranslated_here("is no way to find a neighbor that Fairway has");
            None
        }
    }
}
