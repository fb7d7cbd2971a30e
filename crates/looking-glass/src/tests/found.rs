//! What the search finds, in a table of three learned paths and one route of this node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_allocator::{Outcome, Outcomes};
use fairway_ground::{
    AsPath, Asn, Community, LargeCommunity, NextHop, PathId, PeerKey, PeerKind, Prefix, RouterId,
};
use fairway_model::{ClusterIndex, CommunityAliases, CommunityValue, Node, ObjectName};
use fairway_node::drain::DrainStatus;
use fairway_node::history::History;
use fairway_plan::NodePlan;
use fairway_seam::{
    BgpView, DecisionStep, DesiredRoute, LearnedRoute, Path, PathAttributes, PathSource,
    RouteAttributes,
};
use fairway_show::{Snapshot, VRF_DEFAULT};

use crate::{Found, Query};

/// Owns what a snapshot borrows.
pub(super) struct World {
    node: Node,
    pub(super) bgp: BgpView,
    index: ClusterIndex,
    outcomes: Outcomes,
    plan: NodePlan,
    history: History,
}

pub(super) fn name(namespace: &str, name: &str) -> ObjectName {
    ObjectName::new(namespace, name)
}

fn learned(
    prefix: &str,
    path: &[u32],
    communities: &[&str],
    lost_at: Option<DecisionStep>,
) -> LearnedRoute {
    let next_hop = NextHop::Ipv4("192.0.2.1".parse().unwrap());
    let mut attributes = PathAttributes::originated(AsPath::sequence(path.to_vec()), next_hop);
    attributes.communities = communities.iter().map(|it| it.parse().unwrap()).collect();
    attributes.large_communities =
        vec![LargeCommunity { global: 64512, local1: 7, local2: 8 }].into();
    attributes.med = Some(50);
    let source = PathSource {
        key: PeerKey::from("192.0.2.1".parse::<std::net::IpAddr>().unwrap()),
        address: "192.0.2.1".parse().unwrap(),
        kind: PeerKind::External,
        remote_asn: Asn::new(64512).unwrap(),
        router_id: RouterId::new(1).unwrap(),
        is_client: false,
    };
    let path =
        Path { source: Arc::new(source), path_id: PathId::NONE, attributes: Arc::new(attributes) };
    LearnedRoute {
        prefix: prefix.parse().unwrap(),
        path,
        lost_at,
        stale: false,
        origin_validation: None,
    }
}

impl World {
    pub(super) fn new() -> Self {
        let prefix: Prefix = "198.51.100.10/32".parse().unwrap();
        let route = DesiredRoute {
            prefix,
            peers: Arc::new(BTreeSet::new()),
            attributes: Arc::new(RouteAttributes {
                communities: vec![Community(0xFDE9_0064), Community::NO_EXPORT],
                ..RouteAttributes::default()
            }),
        };
        let bgp = BgpView {
            routes: vec![route],
            learned: vec![
                learned("0.0.0.0/0", &[64512, 64999], &[], None),
                learned("10.0.0.0/8", &[64512], &["65001:100"], None),
                learned(
                    "10.1.0.0/16",
                    &[64512, 65010],
                    &["no-export"],
                    Some(DecisionStep::AsPathLength),
                ),
            ],
            ..BgpView::default()
        };
        let mut index = ClusterIndex::default();
        let alias = CommunityValue::Standard(Community(0xFDE9_0064));
        index.communities.insert(
            name("metallb-system", "ours"),
            CommunityAliases {
                name: name("metallb-system", "ours"),
                aliases: BTreeMap::from([("customers".to_owned(), alias)]),
            },
        );
        let outcome = Outcome {
            addresses: vec!["198.51.100.10".parse().unwrap()],
            pool: Some("public".to_owned()),
            reason: None,
        };
        Self {
            node: Node::assumed("node-a", vec!["10.0.0.1".parse().unwrap()]),
            bgp,
            index,
            outcomes: [(name("shop", "web"), outcome)].into_iter().collect(),
            plan: NodePlan::default(),
            history: History::default(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            now_epoch_seconds: super::view::NOW_EPOCH_SECONDS,
            started_epoch_seconds: super::view::NOW_EPOCH_SECONDS - 60,
            commit: "unknown",
            node: &self.node,
            router_id: RouterId::new(1).unwrap(),
            vrf_name: VRF_DEFAULT,
            bgp: &self.bgp,
            layer2: None,
            members: None,
            index: &self.index,
            outcomes: &self.outcomes,
            plan: &self.plan,
            history: &self.history,
            findings: &[],
            stale: &[],
            sources: &[],
            outage: None,
            drain: DrainStatus::InService,
        }
    }

    /// The prefixes that `text` finds, in their order, and what else is said.
    fn find(&self, text: &str) -> (Vec<String>, String) {
        let found = Found::of(&self.snapshot(), &Query::new(text).unwrap());
        let json = serde_json::to_value(&found).unwrap();
        let rows = json["rows"].as_array().unwrap();
        let prefixes = rows.iter().map(|it| it["prefix"].as_str().unwrap().to_owned()).collect();
        (prefixes, json.to_string())
    }
}

#[test]
fn an_address_finds_the_longest_match_and_what_is_around_it() {
    let (prefixes, json) = World::new().find("10.1.2.3");
    assert_eq!(prefixes, ["10.1.0.0/16", "10.0.0.0/8", "0.0.0.0/0"]);
    assert_eq!(json.matches(r#""is_longest":true"#).count(), 1);
}

#[test]
fn a_prefix_finds_the_longest_match_first_and_then_what_it_contains() {
    let (prefixes, _) = World::new().find("10.0.0.0/8");
    assert_eq!(prefixes, ["10.0.0.0/8", "0.0.0.0/0", "10.1.0.0/16"]);
}

#[test]
fn as_numbers_communities_and_their_names_find_routes() {
    let world = World::new();
    for text in ["AS65010", "65010", "as65010"] {
        assert_eq!(world.find(text).0, ["10.1.0.0/16"], "{text}");
    }
    for text in ["no-export", "65535:65281"] {
        assert_eq!(world.find(text).0, ["198.51.100.10/32", "10.1.0.0/16"], "{text}");
    }
    for text in ["customers", "65001:100"] {
        let (prefixes, json) = world.find(text);
        assert_eq!(prefixes, ["198.51.100.10/32", "10.0.0.0/8"], "{text}");
        assert!(json.contains(r#"{"value":"65001:100","names":["customers"]}"#), "{json}");
    }
    assert_eq!(world.find("64512:7:8").0.len(), 3);
}

#[test]
fn a_service_finds_its_route_with_or_without_its_namespace() {
    for text in ["shop/web", "web"] {
        let (prefixes, json) = World::new().find(text);
        assert_eq!(prefixes, ["198.51.100.10/32"], "{text}");
        assert!(json.contains(r#""services":["shop/web"]"#), "{json}");
    }
}

#[test]
fn what_means_nothing_finds_nothing_and_says_so() {
    let (prefixes, json) = World::new().find("<b>");
    assert!(prefixes.is_empty() && json.contains(r#""meanings":[]"#), "{json}");
    assert_eq!(Query::new(" \n"), None);
}

#[test]
fn a_search_for_everything_has_a_bound_and_counts_the_rest() {
    let mut world = World::new();
    let prefix = |it: u32| format!("10.{}.{}.0/24", it / 256, it % 256);
    world.bgp.learned.extend((0..5_000).map(|it| learned(&prefix(it), &[64512], &[], None)));
    let (prefixes, json) = world.find("0.0.0.0/0");
    assert_eq!(prefixes.len(), 200);
    assert!(json.contains(r#""more":4804"#), "{json:.200}");
}
