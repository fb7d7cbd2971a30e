//! What is announced, and what is not and why.

use super::*;

#[test]
fn a_service_is_announced_as_a_host_route_to_every_peer() {
    let mut cluster = Cluster::small();
    cluster.peer(peer("second", "192.0.2.2")).service(service("web"));
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["198.51.100.0/32 > 192.0.2.1 192.0.2.2"]);
    let announcement = &plan.services[&name("web")];
    assert!(announcement.is_announced());
    let told = &announcement.addresses[0].prefixes[0];
    assert_eq!(*told.advertisements, [name("all")]);
    assert_eq!(*told.peers, BTreeSet::from([key("192.0.2.1"), key("192.0.2.2")]));
}

#[test]
fn endpoints_and_traffic_policy_decide_which_nodes_announce() {
    // Endpoints, the result for node n1 with policy Cluster, and with policy Local.
    let matrix: [(Option<&str>, &[&str], &[&str]); 7] = [
        (None, &[], &[]),
        (Some(""), &["noEndpoints"], &["noLocalEndpoints"]),
        (Some("!n1 !n2"), &["noEndpoints"], &["noLocalEndpoints"]),
        (Some("n2"), &[], &["noLocalEndpoints"]),
        (Some("n2 !n1"), &[], &["noLocalEndpoints"]),
        (Some("!n2 n1"), &[], &[]),
        (Some("-"), &[], &["noLocalEndpoints"]),
    ];
    for (endpoints, cluster_policy, local_policy) in matrix {
        for (traffic_policy, expected) in
            [(TrafficPolicy::Cluster, cluster_policy), (TrafficPolicy::Local, local_policy)]
        {
            let mut cluster = Cluster::small();
            cluster.service(Service { traffic_policy, ..service("web") });
            if let Some(endpoints) = endpoints {
                cluster.slice(slice("web-1", "web", endpoints));
            }
            let plan = cluster.plan();
            assert_eq!(why(&plan, "web"), expected, "{endpoints:?} {traffic_policy:?}");
            assert_eq!(plan.routes.is_empty(), !expected.is_empty());
        }
    }
}

#[test]
fn the_slices_of_a_service_add_up() {
    let mut cluster = Cluster::small();
    cluster.service(Service { traffic_policy: TrafficPolicy::Local, ..service("web") });
    cluster.slice(slice("web-1", "web", "!n1 n2")).slice(slice("web-2", "web", "n1"));
    cluster.slice(slice("db-1", "db", ""));
    assert_eq!(why(&cluster.plan(), "web"), [""; 0]);
}

#[test]
fn a_node_without_network_or_with_the_exclude_label_announces_nothing_but_keeps_its_peers() {
    let mut cluster = Cluster::small();
    let prefixes = vec![prefix("203.0.113.0/24")];
    cluster.service(service("web"));
    cluster.advertisement(BgpAdvertisement { prefixes, ..advertisement("own") });
    let mut dark = node("n1");
    dark.network_unavailable = true;
    let mut excluded = node("n1");
    excluded.labels.insert(Node::EXCLUDE_LABEL.to_owned(), String::new());
    for (node, word) in
        [(dark, "nodeNetworkUnavailable"), (excluded, "nodeLabeledExcludeBalancers")]
    {
        let plan = cluster.plan_for(&node);
        assert_eq!(why(&plan, "web"), [word]);
        assert!(plan.routes.is_empty());
        assert_eq!(plan.peers.len(), 1);
    }
}

#[test]
fn a_node_announces_its_blocks_of_addresses_of_pods() {
    let mut cluster = Cluster::small();
    let of_blocks = BgpAdvertisement { pod_blocks: true, blackhole: true, ..advertisement("pods") };
    assert!(of_blocks.is_about_prefixes_alone(), "no Service gets its attributes");
    cluster.advertisement(of_blocks.clone());
    let blocks = [("10.244.1.64/26", "v4"), ("10.244.9.7/32", "v4"), ("fd00:244::/122", "v6")];
    let blocks: BTreeMap<Prefix, String> =
        blocks.into_iter().map(|(block, pool)| (prefix(block), pool.to_owned())).collect();
    let plan = |cluster: &Cluster, pod_blocks: &BTreeMap<Prefix, String>| {
        let mut planner = NodePlanner::new(node("n1"), OPTIONS);
        planner.set_local(Local { pod_blocks: pod_blocks.clone(), ..Local::default() });
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        let routes = planner.plan().routes.iter().map(|route| route.prefix).collect();
        let dropped = planner.plan().blackholes.iter().map(|(prefix, _)| *prefix).collect();
        (routes, dropped)
    };
    let (routes, dropped): (BTreeSet<Prefix>, Vec<Prefix>) = plan(&cluster, &blocks);
    let of_several = ["10.244.1.64/26", "fd00:244::/122"].map(prefix);
    assert_eq!((routes, dropped), (blocks.keys().copied().collect(), of_several.to_vec()));
    assert_eq!(plan(&cluster, &BTreeMap::new()).0, BTreeSet::new());
    // Those of some pools.
    let pod_block_pools = BTreeSet::from(["v6".to_owned()]);
    cluster.advertisement(BgpAdvertisement { pod_block_pools, ..of_blocks });
    assert_eq!(plan(&cluster, &blocks).0, BTreeSet::from([prefix("fd00:244::/122")]));
}

#[test]
fn a_node_announces_the_networks_of_its_own_pods_whatever_it_does_for_services() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    cluster.slice(slice("web-1", "web", "n1"));
    let of_pods = BgpAdvertisement { pod_cidrs: true, ..advertisement("pods") };
    assert!(of_pods.is_about_prefixes_alone(), "no Service gets its attributes");
    cluster.advertisement(of_pods.clone());
    let networks = vec![prefix("10.244.1.0/24"), prefix("2001:db8:1::/64")];
    let own = Node { pod_cidrs: networks.clone(), ..node("n1") };
    let other = Node { pod_cidrs: vec![prefix("10.244.2.0/24")], ..node("n2") };
    cluster.add(Object::Node(other));
    let announced = |cluster: &Cluster, node: &Node| -> Vec<Prefix> {
        cluster.plan_for(node).routes.iter().map(|route| route.prefix).collect()
    };
    let mut all = networks.clone();
    all.extend(announced(&cluster, &node("n1")));
    all.sort();
    assert_eq!(announced(&cluster, &own), all);
    let mut excluded = Node { network_unavailable: true, ..own.clone() };
    excluded.labels.insert(Node::EXCLUDE_LABEL.to_owned(), String::new());
    assert_eq!(announced(&cluster, &excluded), networks, "nobody else has these Pods");
    let node_selectors = selecting("rack=1");
    cluster.advertisement(BgpAdvertisement { node_selectors, ..of_pods });
    assert!(!announced(&cluster, &own).contains(&networks[0]), "it is for other nodes");
}

#[test]
fn what_nobody_takes_of_an_aggregate_is_dropped_where_that_is_asked() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    cluster.slice(slice("web-1", "web", "n1"));
    let vrf = "blue".parse().ok();
    cluster.peer(Peer { vrf, ..peer("blue", "192.0.2.9") });
    let prefixes = vec![prefix("10.20.0.0/16"), prefix("10.30.0.1/32")];
    let own = BgpAdvertisement { prefixes, blackhole: true, ..advertisement("own") };
    cluster.advertisement(own.clone());
    let mut planner = NodePlanner::new(node("n1"), OPTIONS);
    let mut dropped = |cluster: &Cluster| {
        let update =
            planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        (update.speaker, planner.plan().blackholes.iter().copied().collect::<Vec<_>>())
    };
    let aggregate = prefix("10.20.0.0/16");
    assert_eq!(dropped(&cluster), (true, vec![(aggregate, None), (aggregate, vrf)]));
    cluster.advertisement(BgpAdvertisement { peers: names(&["blue"]), ..own.clone() });
    assert_eq!(dropped(&cluster), (true, vec![(aggregate, vrf)]));
    cluster.advertisement(BgpAdvertisement { blackhole: false, ..own });
    assert_eq!(dropped(&cluster), (true, Vec::new()));
}

#[test]
fn an_advertisement_must_select_pool_node_and_service() {
    let cases = [
        ("notOwner", BgpAdvertisement { pools: names(&["b"]), ..advertisement("all") }),
        (
            "notOwner",
            BgpAdvertisement { pool_selectors: selecting("pool=b"), ..advertisement("all") },
        ),
        (
            "notOwner",
            BgpAdvertisement { node_selectors: selecting("rack=1"), ..advertisement("all") },
        ),
        (
            "noMatchingAdvertisement",
            BgpAdvertisement { service_selectors: selecting("app=db"), ..advertisement("all") },
        ),
    ];
    for (word, case) in cases {
        let mut cluster = Cluster::small();
        cluster.service(service("web")).advertisement(case);
        assert_eq!(why(&cluster.plan(), "web"), [word]);
    }
}

#[test]
fn reasons_come_in_the_order_of_metallb_and_say_what_is_missing() {
    let mut cluster = Cluster::small();
    cluster.service(Service { traffic_policy: TrafficPolicy::Local, ..service("web") });
    cluster.slice(slice("web-1", "web", "!n1"));
    let mut n1 = node("n1");
    n1.labels.insert(Node::EXCLUDE_LABEL.to_owned(), String::new());
    n1.network_unavailable = true;
    let node_selectors = selecting("rack=1");
    cluster.advertisement(BgpAdvertisement { node_selectors, ..advertisement("all") });
    let mut found = Vec::new();
    let mut look = |cluster: &Cluster, node: &Node| {
        let plan = cluster.plan_for(node);
        let reasons = plan.services[&name("web")].reasons().map(ToString::to_string);
        found.push(reasons.collect::<Vec<_>>().join("; "));
    };
    look(&cluster, &n1);
    let service_selectors = selecting("app=db");
    cluster.advertisement(BgpAdvertisement { service_selectors, ..advertisement("all") });
    look(&cluster, &n1);
    cluster.advertisement(advertisement("all"));
    cluster.advertisement(BgpAdvertisement { local_pref: Some(1), ..advertisement("other") });
    look(&cluster, &n1);
    cluster.advertisement(advertisement("other"));
    look(&cluster, &n1);
    n1.network_unavailable = false;
    look(&cluster, &n1);
    n1.labels.remove(Node::EXCLUDE_LABEL);
    look(&cluster, &n1);
    cluster.service(service("web"));
    look(&cluster, &n1);
    cluster.slice(slice("web-1", "web", "n1"));
    look(&cluster, &n1);
    assert_eq!(
        found,
        [
            "notOwner: no BGPAdvertisement that covers pool a selects node n1",
            "noMatchingAdvertisement: no BGPAdvertisement that covers pool a on node n1 selects the \
             labels of the Service",
            "conflictingAdvertisements: default/all and default/other give peer 192.0.2.1 the same \
             prefix with different localPref",
            "nodeNetworkUnavailable: condition NetworkUnavailable of node n1 is True",
            "nodeLabeledExcludeBalancers: node n1 has the label \
             node.kubernetes.io/exclude-from-external-load-balancers",
            "noLocalEndpoints: externalTrafficPolicy is Local and no ready endpoint is on n1",
            "noEndpoints: no endpoint is ready",
            "",
        ]
    );
}

#[test]
fn the_exclude_label_can_be_ignored() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let mut n1 = node("n1");
    n1.labels.insert(Node::EXCLUDE_LABEL.to_owned(), String::new());
    let options = PlanOptions { ignore_exclude_label: true, ..OPTIONS };
    let plan = for_node(&cluster.index, &cluster.outcomes(), &n1, options);
    assert_eq!(routes(&plan), ["198.51.100.0/32 > 192.0.2.1"]);
}

#[test]
fn in_a_cluster_a_service_without_slices_is_served_by_nobody() {
    let options = PlanOptions { unsliced_services_are_served: false, ..OPTIONS };
    for (traffic_policy, word) in
        [(TrafficPolicy::Cluster, "noEndpoints"), (TrafficPolicy::Local, "noLocalEndpoints")]
    {
        let mut cluster = Cluster::small();
        cluster.service(Service { traffic_policy, ..service("web") });
        let plan = for_node(&cluster.index, &cluster.outcomes(), &node("n1"), options);
        assert_eq!(why(&plan, "web"), [word]);
        cluster.slice(slice("web-1", "web", "n1"));
        let plan = for_node(&cluster.index, &cluster.outcomes(), &node("n1"), options);
        assert_eq!(plan.routes.len(), 1);
    }
}

#[test]
fn names_and_labels_of_pools_add_up() {
    let mut cluster = Cluster::small();
    cluster.pool(pool("b", &["203.0.113.0/24"])).service(service("web"));
    cluster.service(Service { requested_pools: vec!["b".to_owned()], ..service("x") });
    let (pools, pool_selectors) = (names(&["a"]), selecting("pool=b"));
    cluster.advertisement(BgpAdvertisement { pools, pool_selectors, ..advertisement("all") });
    assert_eq!(cluster.plan().routes.len(), 2);
}

#[test]
fn an_advertisement_that_names_no_peer_of_this_node_tells_nobody() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    cluster.advertisement(BgpAdvertisement { peers: names(&["gone"]), ..advertisement("all") });
    let plan = cluster.plan();
    assert_eq!(why(&plan, "web"), ["noPeers"]);
    assert!(plan.routes.is_empty());
    assert!(!plan.services[&name("web")].is_announced());
}

#[test]
fn a_service_that_waits_for_an_address_says_what_for() {
    let mut cluster = Cluster::small();
    cluster.service(Service { requested_pools: vec!["none".to_owned()], ..service("web") });
    let plan = cluster.plan();
    let reason = plan.services[&name("web")].reason.as_ref().unwrap();
    assert_eq!(
        reason.to_string(),
        "notAllocated: unknown pool \"none\": there is no IPAddressPool of that name"
    );
}

#[test]
fn addresses_that_outlive_all_pools_are_not_announced() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let mut allocator = Allocator::default();
    allocator.converge(Instant::ZERO, &cluster.index, &Changes::default());
    let pools = cluster.index.keys().filter(|key| key.kind == Kind::IpAddressPool);
    for key in pools.collect::<Vec<_>>() {
        let changes = cluster.index.delete(&key);
        allocator.converge(Instant::ZERO, &cluster.index, &changes);
    }
    let plan = for_node(&cluster.index, allocator.outcomes(), &node("n1"), OPTIONS);
    assert!(plan.routes.is_empty());
    assert_eq!(why(&plan, "web"), ["ipNotAllowed"]);
}

#[test]
fn a_dual_stack_service_is_announced_in_both_families_by_their_lengths() {
    let mut cluster = Cluster::small();
    cluster.pool(pool("a", &["198.51.100.0/24", "2001:db8::/64"]));
    cluster.service(Service { families: FamilyPolicy::RequireDual(V4), ..service("web") });
    cluster.advertisement(BgpAdvertisement {
        aggregation_length_ipv4: 24,
        aggregation_length_ipv6: 64,
        ..advertisement("all")
    });
    let expected = ["198.51.100.0/24 > 192.0.2.1", "2001:db8::/64 > 192.0.2.1"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn two_services_in_one_prefix_are_one_route_until_the_last_is_gone() {
    let mut cluster = Cluster::small();
    cluster.service(service("a")).service(service("b"));
    let aggregated = BgpAdvertisement { aggregation_length_ipv4: 24, ..advertisement("all") };
    cluster.advertisement(aggregated);
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["198.51.100.0/24 > 192.0.2.1"]);
    let by_route = plan.services_by_route();
    let services = &by_route[&(prefix("198.51.100.0/24"), key("192.0.2.1"))];
    assert_eq!(services.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    cluster.slice(slice("a-1", "a", ""));
    assert_eq!(cluster.plan().routes.len(), 1);
    cluster.slice(slice("b-1", "b", ""));
    assert!(cluster.plan().routes.is_empty());
}

#[test]
fn prefixes_of_an_advertisement_need_no_service_and_no_pool() {
    let mut cluster = Cluster::empty();
    cluster.peer(peer("tor", "192.0.2.1"));
    cluster.advertisement(BgpAdvertisement {
        prefixes: vec![prefix("203.0.113.0/24"), prefix("2001:db8::/48")],
        local_pref: Some(200),
        ..advertisement("own")
    });
    let expected = ["203.0.113.0/24 > 192.0.2.1: 200", "2001:db8::/48 > 192.0.2.1: 200"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn blackhole_for_one_prefix_does_not_land_on_services() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let alias = fairway_model::CommunityReference::Alias("blackhole".to_owned());
    let blackhole = BgpAdvertisement {
        prefixes: vec![prefix("203.0.113.66/32")],
        communities: BTreeSet::from([alias]),
        local_pref: Some(200),
        ..advertisement("blackhole")
    };
    cluster.advertisement(blackhole.clone());
    let plan = cluster.plan();
    let expected = ["198.51.100.0/32 > 192.0.2.1", "203.0.113.66/32 > 192.0.2.1: 200 blackhole"];
    assert_eq!(routes(&plan), expected);
    let web = &plan.services[&name("web")].addresses[0].prefixes[0];
    assert_eq!(*web.advertisements, [name("all")]);
    // With a selector of pools or of Services it announces Services too.
    cluster.index.bgp_advertisements.clear();
    for also in [
        BgpAdvertisement { pools: names(&["a"]), ..blackhole.clone() },
        BgpAdvertisement { pool_selectors: selecting("pool=a"), ..blackhole.clone() },
        BgpAdvertisement { service_selectors: selecting("app=web"), ..blackhole.clone() },
    ] {
        cluster.advertisement(also);
        let expected = [
            "198.51.100.0/32 > 192.0.2.1: 200 blackhole",
            "203.0.113.66/32 > 192.0.2.1: 200 blackhole",
        ];
        assert_eq!(routes(&cluster.plan()), expected);
    }
    // Selectors of nodes and peers select receivers and places, and no routes.
    let here = BgpAdvertisement { peers: names(&["tor"]), ..blackhole };
    cluster.advertisement(here);
    assert_eq!(why(&cluster.plan(), "web"), ["notOwner"]);
}

#[test]
fn routes_of_many_services_share_their_peers_and_attributes() {
    let mut cluster = Cluster::small();
    for number in 0..50 {
        cluster.service(service(&format!("s{number:02}")));
    }
    let plan = cluster.plan();
    let first = &plan.routes[0];
    assert!(plan.routes.iter().all(|route| {
        Arc::ptr_eq(&route.peers, &first.peers) && Arc::ptr_eq(&route.attributes, &first.attributes)
    }));
    assert!(plan.routes.is_sorted_by_key(|route| route.prefix));
}
