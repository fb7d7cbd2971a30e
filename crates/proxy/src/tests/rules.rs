//! What the packet filter does: both traffic policies, source ranges, masquerading, health checks.

use serde_json::json;

use super::*;

const LOCAL: &str = "type: LoadBalancer\nexternalTrafficPolicy: Local\nhealthCheckNodePort: 31000\nclusterIP: 10.96.0.1\n\
                     externalIPs: [192.0.2.9]\nports: [{port: 80, nodePort: 30080}]";
const INGRESS: &str = "status: {loadBalancer: {ingress: [{ip: 198.51.100.1}]}}\n";

fn options(lines: &str) -> String {
    format!(
        "---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{lines}\n"
    )
}

#[test]
fn policy_local_keeps_the_source_and_policy_cluster_replaces_it_for_all_that_comes_from_outside() {
    let endpoints = slice("web", &["10.1.0.1@n1", "10.1.0.2@n2"]);
    let local = plan(&(service("web", LOCAL) + INGRESS + &endpoints));
    assert_eq!(
        servers(&local),
        [
            "10.0.0.1 30080/TCP 10.1.0.1:8080",
            "10.96.0.1 80/TCP 10.1.0.1:8080 10.1.0.2:8080",
            "192.0.2.9 80/TCP 10.1.0.1:8080",
            "198.51.100.1 80/TCP 10.1.0.1:8080",
        ]
    );
    let all = ["10.0.0.1 30080/TCP", "10.96.0.1 80/TCP", "192.0.2.9 80/TCP", "198.51.100.1 80/TCP"];
    assert_eq!(rules(&local), all.map(|at| format!("{at} never")));
    let cluster = LOCAL.replace("externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster");
    let cluster = plan(&(service("web", &cluster) + INGRESS + &endpoints));
    let word = |at: &&str| if at.starts_with("10.96") { "never" } else { "always" };
    assert_eq!(rules(&cluster), all.map(|at| format!("{at} {}", word(&at))));
}

#[test]
fn policy_local_without_a_local_endpoint_drops_outsiders_and_serves_pods_from_elsewhere() {
    let plan = plan(&(service("web", LOCAL) + INGRESS + &slice("web", &["10.1.0.2@n2"])));
    let real = "10.1.0.2:8080";
    assert_eq!(
        servers(&plan),
        [
            format!("10.0.0.1 30080/TCP {real}"),
            format!("10.96.0.1 80/TCP {real}"),
            format!("192.0.2.9 80/TCP {real}"),
            format!("198.51.100.1 80/TCP {real}"),
        ]
    );
    assert_eq!(
        rules(&plan),
        [
            "10.0.0.1 30080/TCP never drop",
            "10.96.0.1 80/TCP never",
            "192.0.2.9 80/TCP never drop",
            "198.51.100.1 80/TCP never drop",
        ]
    );
    let planner = planned(&(service("web", LOCAL) + INGRESS + &slice("web", &["10.1.0.2@n2"])));
    let served: Vec<_> = planner.wanted().entries.values().map(|it| it.rule.serves_pods).collect();
    assert_eq!(served, [true, false, true, true], "Pods of this node and the node itself");
}

#[test]
fn without_an_endpoint_anywhere_all_reject() {
    for endpoints in [String::new(), slice("web", &["10.1.0.2@n1 unready"])] {
        let plan = plan(&(service("web", LOCAL) + INGRESS + &endpoints));
        assert!(rules(&plan).iter().all(|it| it.ends_with("never reject")), "{:?}", rules(&plan));
    }
}

#[test]
fn internal_policy_local_drops_where_only_other_nodes_have_endpoints() {
    let spec = "internalTrafficPolicy: Local\nclusterIP: 10.96.0.1\nexternalIPs: [192.0.2.9]\nports: [{port: 80}]";
    let plan = plan(&(service("web", spec) + &slice("web", &["10.1.0.2@n2"])));
    assert_eq!(servers(&plan), ["10.96.0.1 80/TCP", "192.0.2.9 80/TCP 10.1.0.2:8080"]);
    assert_eq!(rules(&plan), ["10.96.0.1 80/TCP never drop", "192.0.2.9 80/TCP always"]);
}

#[test]
fn external_policy_local_of_a_service_that_nobody_outside_reaches_means_nothing() {
    let spec = "externalTrafficPolicy: Local\nclusterIP: 10.96.0.1\nports: [{port: 80}]";
    let plan = plan(&(service("web", spec) + INGRESS + &slice("web", &["10.1.0.2@n2"])));
    assert_eq!(rules(&plan), ["10.96.0.1 80/TCP never", "198.51.100.1 80/TCP always"]);
}

#[test]
fn source_ranges_hold_for_balancer_addresses_of_their_family_alone() {
    let spec = "type: LoadBalancer\nclusterIPs: [10.96.0.1, 'fd00:96::1']\nexternalIPs: [192.0.2.9]\n\
                loadBalancerSourceRanges: [' 203.0.113.7/24 ', 10.0.0.0/8]\nports: [{port: 80, nodePort: 30080}]";
    let status = "status: {loadBalancer: {ingress: [{ip: 198.51.100.1}, {ip: '2001:db8::1'}]}}\n";
    let manifest = [&*service("web", spec), status, &slice("web", &["10.1.0.1@n1"])].concat();
    let with_ranges: Vec<_> =
        rules(&plan(&manifest)).into_iter().filter(|it| it.contains('[')).collect();
    assert_eq!(with_ranges, ["198.51.100.1 80/TCP always [10.0.0.0/8,203.0.113.0/24]"]);
}

#[test]
fn a_balancer_address_that_is_also_external_keeps_its_source_ranges() {
    let spec = "type: LoadBalancer\nclusterIP: 10.96.0.1\nexternalIPs: [198.51.100.1]\n\
                loadBalancerSourceRanges: [10.0.0.0/8]\nports: [{port: 80}]";
    let manifest = [&*service("web", spec), INGRESS, &slice("web", &["10.1.0.1@n1"])].concat();
    assert_eq!(rules(&plan(&manifest))[1], "198.51.100.1 80/TCP always [10.0.0.0/8]");
}

#[test]
fn addresses_in_the_cluster_are_masqueraded_as_options_say() {
    let manifest = service("web", "clusterIPs: [10.96.0.1, 'fd00:96::1']\nports: [{port: 80}]")
        + &slice("web", &["10.1.0.1@n1"]);
    let of = |lines: &str, node: &str| {
        let plan = plan(&(node.to_owned() + &options(lines) + &manifest));
        let words = plan["filter"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["masquerade"].as_str().unwrap().to_owned());
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("", NODE), "never never");
    assert_eq!(
        of("iptables: {masqueradeAll: true}\nclusterCIDR: 10.1.0.0/16", NODE),
        "always always"
    );
    assert_eq!(of("clusterCIDR: 10.1.0.0/16", NODE), "offCluster never");
    assert_eq!(of("clusterCIDR: '10.1.0.0/16,fd00:1::/64'", NODE), "offCluster offCluster");
    let with_pods = format!("{NODE}spec: {{podCIDRs: [10.1.7.0/24]}}\n");
    assert_eq!(of("detectLocalMode: NodeCIDR", NODE), "never never");
    assert_eq!(of("detectLocalMode: NodeCIDR", &with_pods), "offCluster never");
    let bridge = "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}";
    assert_eq!(of(bridge, NODE), "offCluster offCluster");
}

#[test]
fn a_pod_of_this_node_may_meet_itself_ready_or_not() {
    let endpoints = ["10.1.0.1@n1", "10.1.0.2@n1 unready", "10.1.0.3@n2"];
    let one = service("web", "clusterIP: 10.96.0.1\nports: [{port: 80}]");
    let two = service("www", "clusterIP: 10.96.0.2\nports: [{port: 80}]");
    let planner = planned(&[one, two, slice("web", &endpoints), slice("www", &endpoints)].concat());
    let hairpins = planner.wanted().hairpins.iter();
    let hairpins: Vec<_> =
        hairpins.map(|it| format!("{} {}", it.real_server, it.protocol)).collect();
    assert_eq!(hairpins, ["10.1.0.1:8080 TCP", "10.1.0.2:8080 TCP"]);
}

#[test]
fn a_health_check_counts_addresses_here_that_are_ready_and_no_others() {
    let spec = LOCAL
        .replace("[{port: 80, nodePort: 30080}]", "[{name: a, port: 80}, {name: b, port: 81}]");
    let ports = "[{name: a, port: 8080}, {name: b, port: 8081}]";
    let endpoints =
        ["10.1.0.1@n1", "10.1.0.2@n1 leaving", "10.1.0.3@n1 unready", "10.1.0.4@n2", "10.1.0.5@n1"];
    let plan_of = |spec: &str| {
        plan(&(service("web", spec) + &slice_with("web", ports, &endpoints)))["healthChecks"]
            .clone()
    };
    assert_eq!(
        plan_of(&spec),
        json!([{ "port": 31000, "service": "default/web", "localEndpoints": 2 }])
    );
    let cluster = spec.replace("externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster");
    assert_eq!(plan_of(&cluster), json!([]));
    assert_eq!(plan_of(&spec.replace("LoadBalancer", "NodePort")), json!([]));
}

#[test]
fn ranges_within_others_are_one_and_the_node_may_use_what_its_addresses_may() {
    let of = |ranges: &str| {
        let spec = format!(
            "type: LoadBalancer\nclusterIP: 10.96.0.1\nports: [{{port: 80}}]\nloadBalancerSourceRanges: [{ranges}]"
        );
        let planner = planned(&(service("web", &spec) + INGRESS));
        let rules = planner.wanted().entries.values().map(|it| &it.rule);
        let rule = rules.into_iter().find(|it| it.allowed_sources.is_some()).unwrap();
        let sources: Vec<_> =
            rule.allowed_sources.iter().flatten().map(ToString::to_string).collect();
        (sources.join(" "), rule.allows_node)
    };
    assert_eq!(of("10.0.0.0/8, 10.1.0.0/16"), ("10.0.0.0/8".to_owned(), true));
    assert_eq!(of("0.0.0.0/0, 10.0.0.0/8"), ("0.0.0.0/0".to_owned(), false), "it is in there");
    assert_eq!(of("203.0.113.0/24"), ("203.0.113.0/24".to_owned(), false));
    assert_eq!(of("203.0.113.0/24, 198.51.100.1/32"), ("203.0.113.0/24".to_owned(), true));
}
