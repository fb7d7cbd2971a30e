//! The attributes of a route with several advertisements.

use fairway_ground::{Community, LargeCommunity, LinkBandwidth};
use fairway_model::{Bandwidth, CommunityAliases, CommunityReference, CommunityValue};

use super::*;

fn community(text: &str) -> CommunityReference {
    CommunityReference::Value(match text.parse::<Community>() {
        Ok(community) => CommunityValue::Standard(community),
        Err(_) => CommunityValue::Large(text.parse::<LargeCommunity>().unwrap()),
    })
}

fn with_communities(called: &str, texts: &[&str]) -> BgpAdvertisement {
    let communities = texts.iter().map(|text| community(text)).collect();
    BgpAdvertisement { communities, ..advertisement(called) }
}

fn with_local_pref(called: &str, local_pref: u32) -> BgpAdvertisement {
    BgpAdvertisement { local_pref: Some(local_pref), ..advertisement(called) }
}

fn to(peers: &[&str], advertisement: BgpAdvertisement) -> BgpAdvertisement {
    BgpAdvertisement { peers: names(peers), ..advertisement }
}

//= RFC 8092 §3 MUST NOT: the same large community is sent twice.
#[test]
fn communities_of_all_advertisements_of_a_prefix_are_united() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    cluster.advertisement(with_communities("all", &["65000:2", "large:1:2:3"]));
    cluster.advertisement(with_communities("more", &["65000:1", "65000:2", "large:1:2:3"]));
    let expected = ["198.51.100.0/32 > 192.0.2.1: 65000:1 65000:2 1:2:3"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn communities_unite_across_services_that_share_a_prefix() {
    let mut cluster = Cluster::small();
    cluster.index.bgp_advertisements.clear();
    cluster.service(service("a")).service(service("b"));
    for (service, value) in [("a", "65000:1"), ("b", "65000:2")] {
        cluster.advertisement(BgpAdvertisement {
            aggregation_length_ipv4: 24,
            service_selectors: selecting(&format!("app={service}")),
            ..with_communities(service, &[value])
        });
    }
    let expected = ["198.51.100.0/24 > 192.0.2.1: 65000:1 65000:2"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn aliases_are_resolved_and_an_unknown_one_takes_only_its_advertisement_out() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let value = CommunityValue::Standard("65000:7".parse().unwrap());
    let aliases = BTreeMap::from([("seven".to_owned(), value)]);
    cluster.add(Object::Community(CommunityAliases { name: name("names"), aliases }));
    let alias = |called: &str, alias: &str| BgpAdvertisement {
        communities: BTreeSet::from([CommunityReference::Alias(alias.to_owned())]),
        ..advertisement(called)
    };
    cluster.advertisement(alias("all", "seven")).advertisement(alias("other", "eight"));
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["198.51.100.0/32 > 192.0.2.1: 65000:7"]);
    assert_eq!(
        plan.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["BGPAdvertisement default/other is left out: no Community defines \"eight\""]
    );
}

#[test]
fn a_name_that_everybody_knows_is_what_a_community_object_says_and_else_what_they_know() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let alias = CommunityReference::Alias("blackhole".to_owned());
    let communities = BTreeSet::from([alias]);
    cluster.advertisement(BgpAdvertisement { communities, ..advertisement("all") });
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1: blackhole"]);
    let value = CommunityValue::Standard("65000:666".parse().unwrap());
    let aliases = BTreeMap::from([("blackhole".to_owned(), value)]);
    cluster.add(Object::Community(CommunityAliases { name: name("names"), aliases }));
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1: 65000:666"]);
}

#[test]
fn disjoint_peers_may_hear_different_things_about_one_prefix() {
    let mut cluster = Cluster::small();
    cluster.peer(peer("second", "192.0.2.2")).service(service("web"));
    cluster.advertisement(to(&["tor"], with_local_pref("all", 100)));
    cluster.advertisement(to(&["second"], with_local_pref("other", 200)));
    let expected = ["198.51.100.0/32 > 192.0.2.1: 100", "198.51.100.0/32 > 192.0.2.2: 200"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn peers_that_only_some_advertisements_name_get_only_what_those_say() {
    let mut cluster = Cluster::small();
    cluster.peer(peer("second", "192.0.2.2")).service(service("web"));
    cluster.advertisement(with_communities("all", &["65000:1"]));
    cluster.advertisement(to(&["second"], with_communities("other", &["65000:2"])));
    let expected =
        ["198.51.100.0/32 > 192.0.2.1: 65000:1", "198.51.100.0/32 > 192.0.2.2: 65000:1 65000:2"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn two_local_prefs_for_one_peer_silence_the_service_and_no_other() {
    let mut cluster = Cluster::small();
    cluster.service(service("a")).service(service("b"));
    cluster.advertisement(with_local_pref("all", 100));
    let service_selectors = selecting("app=a");
    cluster
        .advertisement(BgpAdvertisement { service_selectors, ..with_local_pref("special", 200) });
    // It would be fine alone, but which of the others is intended is unknown.
    cluster.advertisement(BgpAdvertisement {
        aggregation_length_ipv4: 28,
        service_selectors: selecting("app=a"),
        ..advertisement("wide")
    });
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["198.51.100.1/32 > 192.0.2.1: 100"]);
    let text = plan.services[&name("a")].reason.as_ref().unwrap().to_string();
    assert!(text.contains("default/all and default/special"), "{text}");
    assert!(text.contains("192.0.2.1"), "{text}");
    assert_eq!(why(&plan, "b"), [""; 0]);
}

#[test]
fn far_more_communities_than_metallb_allows_are_united() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    for part in 0..4 {
        let values = (0..40).map(|number| format!("65000:{}", part * 30 + number));
        let values: Vec<_> = values.collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        cluster.advertisement(with_communities(&format!("part-{part}"), &values));
    }
    let plan = cluster.plan();
    assert_eq!(plan.routes[0].attributes.communities.len(), 130);
}

#[test]
fn different_local_prefs_for_different_lengths_do_not_conflict() {
    let mut cluster = Cluster::small();
    cluster.service(service("web")).advertisement(with_local_pref("all", 100));
    cluster.advertisement(BgpAdvertisement {
        aggregation_length_ipv4: 24,
        ..with_local_pref("wide", 200)
    });
    let expected = ["198.51.100.0/24 > 192.0.2.1: 200", "198.51.100.0/32 > 192.0.2.1: 100"];
    assert_eq!(routes(&cluster.plan()), expected);
}

#[test]
fn of_two_services_that_disagree_about_a_shared_prefix_the_first_is_heard() {
    let mut cluster = Cluster::small();
    cluster.index.bgp_advertisements.clear();
    cluster.service(service("a")).service(service("b"));
    for (service, local_pref) in [("a", 100), ("b", 200)] {
        cluster.advertisement(BgpAdvertisement {
            aggregation_length_ipv4: 24,
            service_selectors: selecting(&format!("app={service}")),
            ..with_local_pref(service, local_pref)
        });
    }
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["198.51.100.0/24 > 192.0.2.1: 100"]);
    assert_eq!(why(&plan, "b"), ["conflictingAdvertisements"]);
}

#[test]
fn a_prefix_that_is_written_out_in_two_ways_is_a_fault_of_the_second() {
    let mut cluster = Cluster::small();
    let prefixes = vec![prefix("203.0.113.0/24")];
    for (called, local_pref) in [("one", 100), ("two", 200)] {
        let prefixes = prefixes.clone();
        let it = BgpAdvertisement { prefixes, ..with_local_pref(called, local_pref) };
        cluster.advertisement(it);
    }
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["203.0.113.0/24 > 192.0.2.1: 100"]);
    assert!(plan.faults[0].to_string().contains("BGPAdvertisement default/two"));
}

#[test]
fn what_a_route_has_once_is_told_and_may_not_be_contradicted() {
    let speaking = BgpAdvertisement {
        med: Some(0),
        as_path_prepend: 16,
        link_bandwidth: Some(Bandwidth::Fixed(LinkBandwidth { bits_per_second: 7 })),
        ..advertisement("all")
    };
    let mut cluster = Cluster::small();
    cluster.service(service("web")).advertisement(speaking.clone());
    let expected = ["198.51.100.0/32 > 192.0.2.1: med 0 prepend 16 7 bit/s"];
    assert_eq!(routes(&cluster.plan()), expected);
    for (field, other) in [
        ("med", BgpAdvertisement { med: None, ..speaking.clone() }),
        ("asPathPrepend", BgpAdvertisement { as_path_prepend: 0, ..speaking.clone() }),
        (
            "linkBandwidth",
            BgpAdvertisement { link_bandwidth: Some(Bandwidth::Auto), ..speaking.clone() },
        ),
    ] {
        cluster.advertisement(BgpAdvertisement { name: name("other"), ..other });
        let plan = cluster.plan();
        assert_eq!(routes(&plan), [""; 0], "{field}");
        let reason = plan.services[&name("web")].reasons().next().unwrap().to_string();
        let expected = format!(
            "conflictingAdvertisements: default/all and default/other give peer 192.0.2.1 the same \
             prefix with different {field}"
        );
        assert_eq!(reason, expected);
    }
}

#[test]
fn defaults_apply_where_an_advertisement_says_nothing() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let attribute_defaults = AttributeDefaults { local_pref: Some(0), med: Some(7) };
    let attributes = |cluster: &Cluster| {
        let options = PlanOptions { attribute_defaults, ..OPTIONS };
        let plan = for_node(&cluster.index, &cluster.outcomes(), &node("n1"), options);
        let it = &plan.routes[0].attributes;
        (it.local_pref, it.med)
    };
    assert_eq!(attributes(&cluster), (Some(0), Some(7)));
    let med = Some(0);
    cluster.advertisement(BgpAdvertisement { med, ..with_local_pref("all", 200) });
    assert_eq!(attributes(&cluster), (Some(200), Some(0)));
}
