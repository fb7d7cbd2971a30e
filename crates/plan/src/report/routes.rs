//! Routes as a router receives them: attributes in words, and the peers by name.
//!
//! Knows one plan at a time.

use std::collections::BTreeMap;

use fairway_ground::{PeerKey, Prefix};
use fairway_seam::{PeerConfig, RouteAttributes};
use serde_json::{Map, Value, json};

use super::super::{Layer2Announcement, NodePlan};
use fairway_ground::columns::or_none;

/// A route to one peer of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RouteToPeer<'a> {
    pub(super) prefix: Prefix,
    pub(super) attributes: &'a RouteAttributes,
    pub(super) services: Vec<String>,
}

/// The routes to each peer of a node, by the name of the peer.
pub(super) type RoutesByPeer<'a> = BTreeMap<String, Vec<RouteToPeer<'a>>>;

/// The peers of a node, by their keys in routes.
pub(super) struct Peers<'a>(BTreeMap<PeerKey, &'a PeerConfig>);

impl<'a> Peers<'a> {
    pub(super) fn of(plan: &'a NodePlan) -> Self {
        Self(plan.peers.iter().map(|peer| (peer.key, peer)).collect())
    }

    /// Whether the session to a peer carries the family of `prefix`. Whether there is a next hop for
    /// it is known on the machine only.
    pub(super) fn carry(&self, key: PeerKey, prefix: Prefix) -> bool {
        self.0.get(&key).is_none_or(|peer| peer.families.contains(prefix.family()))
    }

    /// The name of the BGPPeer.
    pub(super) fn name(&self, key: PeerKey) -> String {
        self.0.get(&key).map_or_else(|| key.to_string(), |peer| peer.name.clone())
    }
}

/// The routes to each peer of a node; the routes by prefix.
pub(super) fn by_peer(plan: &NodePlan) -> RoutesByPeer<'_> {
    let (services, known) = (plan.services_by_route(), Peers::of(plan));
    let mut peers = RoutesByPeer::new();
    for peer in &plan.peers {
        peers.entry(peer.name.clone()).or_default();
    }
    for route in plan.routes.iter() {
        for key in route.peers.iter().filter(|key| known.carry(**key, route.prefix)) {
            let services = services.get(&(route.prefix, *key)).into_iter().flatten();
            peers.entry(known.name(*key)).or_default().push(RouteToPeer {
                prefix: route.prefix,
                attributes: &route.attributes,
                services: services.map(ToString::to_string).collect(),
            });
        }
    }
    for routes in peers.values_mut() {
        routes.sort_by_key(|route| route.prefix);
    }
    peers
}

/// Each attribute by the name of its field, with its value; empty if it is not set.
fn words(attributes: &RouteAttributes) -> [(&'static str, String); 6] {
    fn number<T: ToString>(number: Option<T>) -> String {
        number.map(|it| it.to_string()).unwrap_or_default()
    }
    fn list<T: ToString>(list: &[T]) -> String {
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
    let RouteAttributes {
        local_pref,
        communities,
        large_communities,
        med,
        as_path_prepend,
        link_bandwidth,
    } = attributes;
    [
        ("localPref", number(*local_pref)),
        ("med", number(*med)),
        ("asPathPrepend", number(Some(*as_path_prepend).filter(|count| *count > 0))),
        ("linkBandwidth", number(link_bandwidth.map(|it| it.bits_per_second))),
        ("communities", list(communities)),
        ("largeCommunities", list(large_communities)),
    ]
}

/// `localPref 200, communities 64500:1 64500:2`.
pub(super) fn attributes(attributes: &RouteAttributes) -> String {
    let said = words(attributes).into_iter().filter(|(_, value)| !value.is_empty());
    let said: Vec<_> = said.map(|(name, value)| format!("{name} {value}")).collect();
    or_none(said.join(", "))
}

/// `localPref 100 -> 200`: only what differs.
pub(super) fn difference(before: &RouteAttributes, after: &RouteAttributes) -> String {
    let pairs = words(before).into_iter().zip(words(after));
    let different = pairs.filter(|((_, before), (_, after))| before != after);
    let different: Vec<_> = different
        .map(|((name, before), (_, after))| {
            format!("{name} {} -> {}", or_none(before), or_none(after))
        })
        .collect();
    different.join(", ")
}

/// The attributes as fields. An attribute that is not set is null, 0 or an empty list;
/// `linkBandwidth`, in bits per second, is present only if it is used.
pub(super) fn fields(attributes: &RouteAttributes) -> Map<String, Value> {
    fn list<T: ToString>(list: &[T]) -> Value {
        list.iter().map(ToString::to_string).collect()
    }
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    field("localPref", json!(attributes.local_pref));
    // In numbers: `no-advertise` is for people.
    let numbers =
        attributes.communities.iter().map(|it| format!("{}:{}", it.0 >> 16, it.0 & 0xFFFF));
    field("communities", numbers.collect());
    field("largeCommunities", list(&attributes.large_communities));
    field("med", json!(attributes.med));
    field("asPathPrepend", json!(attributes.as_path_prepend));
    if let Some(bandwidth) = attributes.link_bandwidth {
        field("linkBandwidth", json!(bandwidth.bits_per_second));
    }
    fields
}

/// `eth0, eth1`, or `all`; and whether the address is to be on one of them.
pub(super) fn interfaces(answer: &Layer2Announcement) -> String {
    let names = match &answer.interfaces {
        None => "all".to_owned(),
        Some(interfaces) => super::listed(interfaces.iter().map(String::as_str)),
    };
    if answer.bind { format!("{names} (bound)") } else { names }
}
