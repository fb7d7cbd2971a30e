//! The share of the traffic that a node requests.

use fairway_ground::LinkBandwidth;
use fairway_model::Bandwidth;

use super::*;

const V6: AddressFamily = AddressFamily::Ipv6Unicast;

/// A cluster with one advertisement that weighs by endpoints.
fn weighing() -> Cluster {
    let mut cluster = Cluster::small();
    cluster.advertisement(weighted("all"));
    cluster
}

fn weighted(called: &str) -> BgpAdvertisement {
    BgpAdvertisement { link_bandwidth: Some(Bandwidth::Auto), ..advertisement(called) }
}

#[test]
fn a_node_asks_for_as_much_as_it_has_endpoints() {
    let mut cluster = weighing();
    cluster.service(service("web")).slice(slice("web-1", "web", "n1 n1 n1 !n1 n2"));
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1: 3000000000 bit/s"]);
    let other = cluster.plan_for(&node("n2"));
    assert_eq!(routes(&other), ["198.51.100.0/32 > 192.0.2.1: 1000000000 bit/s"]);
    let without = cluster.plan_for(&node("n3"));
    assert_eq!(routes(&without), ["198.51.100.0/32 > 192.0.2.1: 100000000 bit/s"]);
}

#[test]
fn one_endpoint_more_among_many_changes_nothing() {
    let mut cluster = weighing();
    cluster.service(service("web")).slice(slice("web-1", "web", &"n1 ".repeat(8)));
    let before = routes(&cluster.plan());
    cluster.slice(slice("web-1", "web", &"n1 ".repeat(11)));
    assert_eq!(routes(&cluster.plan()), before);
    cluster.slice(slice("web-1", "web", &"n1 ".repeat(12)));
    assert_ne!(routes(&cluster.plan()), before);
}

#[test]
fn an_endpoint_with_two_addresses_counts_once() {
    let mut cluster = weighing();
    cluster.service(service("web")).slice(slice("web-1", "web", "n1 n1"));
    cluster.slice(EndpointSlice { family: Some(V6), ..slice("web-2", "web", "n1 n1") });
    // A Service with more endpoints than a slice holds has several slices of each family.
    cluster.slice(slice("web-3", "web", "n1"));
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1: 3000000000 bit/s"]);
}

#[test]
fn services_behind_one_prefix_add_up() {
    let mut cluster = weighing();
    cluster.index.bgp_advertisements.clear();
    cluster.advertisement(BgpAdvertisement { aggregation_length_ipv4: 24, ..weighted("wide") });
    cluster.service(service("a")).slice(slice("a-1", "a", "n1 n1"));
    // No slice: this machine serves it itself, as one endpoint.
    cluster.service(service("b"));
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/24 > 192.0.2.1: 3000000000 bit/s"]);
}

#[test]
fn a_prefix_without_a_service_and_a_bandwidth_that_is_written_do_not_depend_on_endpoints() {
    let mut cluster = weighing();
    let prefixes = vec![prefix("203.0.113.0/24")];
    cluster.advertisement(BgpAdvertisement { prefixes, ..weighted("all") });
    assert_eq!(routes(&cluster.plan()), ["203.0.113.0/24 > 192.0.2.1: 1000000000 bit/s"]);
    let fixed = Bandwidth::Fixed(LinkBandwidth { bits_per_second: 5 });
    cluster.advertisement(BgpAdvertisement { link_bandwidth: Some(fixed), ..advertisement("all") });
    cluster.service(service("web")).slice(slice("web-1", "web", "n1 n1"));
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1: 5 bit/s"]);
}
