//! Which endpoints take the connections of this node, n1 in zone a.

use super::*;

const SPEC: &str = "clusterIP: 10.96.0.1\nports: [{port: 80}]";

/// The real servers of a Service's first virtual server with these endpoints, without their ports.
fn chosen(spec: &str, endpoints: &[&str]) -> String {
    let plan = plan(&(service("web", spec) + &slice("web", endpoints)));
    let of = servers(&plan).into_iter().next().unwrap();
    of.split_whitespace()
        .skip(2)
        .map(|it| it.replace("10.1.0.", "").replace(":8080", ""))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn ready_endpoints_come_first_and_leaving_ones_only_where_none_is_ready() {
    assert_eq!(chosen(SPEC, &["10.1.0.1@n1", "10.1.0.2@n2", "10.1.0.3@n1 unready"]), "1 2");
    assert_eq!(chosen(SPEC, &["10.1.0.1@n1 leaving", "10.1.0.2@n2"]), "2");
    assert_eq!(
        chosen(SPEC, &["10.1.0.1@n1 leaving", "10.1.0.2@n2 gone", "10.1.0.3@n1 unready"]),
        "1"
    );
    assert_eq!(chosen(SPEC, &["10.1.0.1@n1 unready", "10.1.0.2@n2 gone"]), "");
}

#[test]
fn absent_conditions_mean_ready_and_serving() {
    let text =
        slice("web", &["10.1.0.1@n1"]).replace("conditions: {ready: true}", "conditions: {}");
    assert_eq!(servers(&plan(&(service("web", SPEC) + &text))), ["10.96.0.1 80/TCP 10.1.0.1:8080"]);
    let text = text.replace("conditions: {}", "conditions: {ready: false, terminating: true}");
    assert_eq!(servers(&plan(&(service("web", SPEC) + &text))), ["10.96.0.1 80/TCP 10.1.0.1:8080"]);
}

#[test]
fn hints_for_nodes_come_before_those_for_zones_and_one_without_switches_them_off() {
    let zones = ["10.1.0.1@n1 zone=a", "10.1.0.2@n2 zone=b"];
    assert_eq!(chosen(SPEC, &zones), "1");
    assert_eq!(chosen(SPEC, &[zones[0], zones[1], "10.1.0.3@n3"]), "1 2 3");
    assert_eq!(chosen(SPEC, &[zones[0], zones[1], "10.1.0.3@n3 unready"]), "1");
    assert_eq!(chosen(SPEC, &["10.1.0.1@n1 zone=c", zones[1]]), "1 2", "no hint names this zone");
    let nodes = ["10.1.0.1@n1 zone=b for=n1", "10.1.0.2@n2 zone=a for=n2"];
    assert_eq!(chosen(SPEC, &nodes), "1");
    assert_eq!(chosen(SPEC, &["10.1.0.1@n3 zone=b for=n3", nodes[1]]), "2", "none for this node");
    // Where no endpoint is ready, hints do not count.
    assert_eq!(chosen(SPEC, &["10.1.0.1@n1 leaving zone=a", "10.1.0.2@n2 leaving zone=b"]), "1 2");
    let no_zone = NODE.replace(", labels: {topology.kubernetes.io/zone: a}", "");
    let plan = plan(&(no_zone + &service("web", SPEC) + &slice("web", &zones)));
    assert_eq!(servers(&plan), ["10.96.0.1 80/TCP 10.1.0.1:8080 10.1.0.2:8080"]);
}

#[test]
fn the_local_list_is_never_narrowed_and_has_its_own_fallback() {
    let spec = format!("{SPEC}\ninternalTrafficPolicy: Local");
    assert_eq!(chosen(&spec, &["10.1.0.1@n1 zone=b", "10.1.0.2@n2 zone=a"]), "1");
    assert_eq!(chosen(&spec, &["10.1.0.1@n1 leaving", "10.1.0.2@n2"]), "1");
    assert_eq!(
        chosen(&spec, &["10.1.0.1@", "10.1.0.2@n2"]),
        "",
        "without a node it is local to none"
    );
}

#[test]
fn ports_are_matched_by_name_and_protocol() {
    let spec = "clusterIP: 10.96.0.1\nports: [{name: http, port: 80, targetPort: 1}, {name: dns, port: 53}, {name: dnsu, port: 53, protocol: UDP}]";
    let ports = "[{name: http, port: 8080}, {name: dns, protocol: UDP, port: 5353}, {name: dnsu, protocol: UDP}]";
    let plan = plan(&(service("web", spec) + &slice_with("web", ports, &["10.1.0.1@n1"])));
    let expected = ["10.96.0.1 53/TCP", "10.96.0.1 53/UDP", "10.96.0.1 80/TCP 10.1.0.1:8080"];
    assert_eq!(servers(&plan), expected);
}

#[test]
fn an_endpoint_in_two_slices_counts_once_and_as_the_one_that_stays() {
    let one = slice("web", &["10.1.0.1@n1 gone", "10.1.0.2@n1 leaving"]);
    let two = slice("web", &["10.1.0.1@n1", "10.1.0.2@n1"]).replace("web-ipv4", "web-2");
    let headless = slice("web", &["10.1.0.3@n1"])
        .replace("web-ipv4", "web-3")
        .replace("labels: {", "labels: {service.kubernetes.io/headless: '', ");
    let other = slice("web", &["10.1.0.4@n1"])
        .replace("web-ipv4", "web-4")
        .replace("labels: {", "labels: {service.kubernetes.io/service-proxy-name: x, ");
    let named = slice("web", &["10.1.0.5@n1"])
        .replace("web-ipv4", "web-5")
        .replace("addressType: IPv4", "addressType: FQDN");
    let plan = plan(&[service("web", SPEC), one, two, headless, other, named].concat());
    assert_eq!(servers(&plan), ["10.96.0.1 80/TCP 10.1.0.1:8080 10.1.0.2:8080"]);
}

#[test]
fn families_do_not_mix_and_only_the_first_address_of_an_endpoint_counts() {
    let spec = "clusterIPs: [10.96.0.1, 'fd00:96::1']\nports: [{port: 80}]";
    let four = slice("web", &["10.1.0.1@n1"]).replace("['10.1.0.1']", "[10.1.0.1, 10.1.0.9]");
    let plan = plan(&[service("web", spec), four, slice("web", &["fd00:1::1@n1"])].concat());
    assert_eq!(
        servers(&plan),
        ["10.96.0.1 80/TCP 10.1.0.1:8080", "fd00:96::1 80/TCP fd00:1::1:8080"]
    );
}
