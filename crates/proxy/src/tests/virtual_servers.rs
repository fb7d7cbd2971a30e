//! Which virtual servers exist, and which addresses are on the node.

use fairway_model::{Delivery, Kind, ObjectKey, ObjectName};
use serde_json::json;

use super::*;
use crate::{Delivered, Reconciler};

#[test]
fn each_port_of_each_address_is_a_virtual_server() {
    let manifest = service(
        "web",
        "type: LoadBalancer
clusterIPs: [10.96.0.1, 'fd00:96::1']
externalIPs: [192.0.2.9, '2001:db8::9']
ports: [{name: http, port: 80, nodePort: 30080}, {name: dns, port: 53, protocol: UDP}, {name: x, port: 9, protocol: SCTP}]",
    ) + "status: {loadBalancer: {ingress: [{ip: 198.51.100.1}, {hostname: a.example}, {ip: 198.51.100.2, ipMode: Proxy}, {ip: 198.51.100.3, ipMode: VIP}]}}
";
    let plan = plan(&manifest);
    let ports = ["9/SCTP", "53/UDP", "80/TCP"];
    let of = |address: &str| ports.map(|port| format!("{address} {port}"));
    let node = |address: &str| vec![format!("{address} 30080/TCP")];
    let expected = [
        node("10.0.0.1"),
        of("10.96.0.1").to_vec(),
        of("192.0.2.9").to_vec(),
        of("198.51.100.1").to_vec(),
        of("198.51.100.3").to_vec(),
        of("2001:db8::9").to_vec(),
        node("fd00::1"),
        of("fd00:96::1").to_vec(),
    ];
    assert_eq!(servers(&plan), expected.concat());
    let bound =
        ["10.96.0.1", "192.0.2.9", "198.51.100.1", "198.51.100.3", "2001:db8::9", "fd00:96::1"];
    assert_eq!(plan["boundAddresses"], json!(bound));
}

#[test]
fn services_without_an_address_in_the_cluster_have_none() {
    let ports = "ports: [{port: 80, nodePort: 30080}]\nexternalIPs: [192.0.2.9]";
    let manifest = [
        service("a", &format!("clusterIP: None\n{ports}")),
        service("b", ports),
        service("c", &format!("clusterIP: ''\n{ports}")),
        service("d", &format!("type: ExternalName\nclusterIP: 10.96.0.1\n{ports}")),
        service("e", &format!("clusterIP: 10.96.0.2\n{ports}")).replace(
            "metadata: {name: e}",
            "metadata: {name: e, labels: {service.kubernetes.io/service-proxy-name: other}}",
        ),
    ];
    assert_eq!(servers(&plan(&manifest.concat())), [""; 0]);
}

#[test]
fn addresses_of_a_family_that_the_service_lacks_are_left_out() {
    let manifest = service(
        "web",
        "clusterIP: 10.96.0.1\nexternalIPs: [192.0.2.9, '2001:db8::9']\nports: [{port: 80, nodePort: 30080}]",
    );
    let expected = ["10.0.0.1 30080/TCP", "10.96.0.1 80/TCP", "192.0.2.9 80/TCP"];
    assert_eq!(servers(&plan(&manifest)), expected);
}

#[test]
fn an_address_of_the_node_itself_is_never_bound() {
    let manifest =
        service("web", "clusterIP: 10.96.0.1\nexternalIPs: [10.0.0.1]\nports: [{port: 80}]");
    let plan = plan(&manifest);
    assert_eq!(servers(&plan), ["10.0.0.1 80/TCP", "10.96.0.1 80/TCP"]);
    assert_eq!(plan["boundAddresses"], json!(["10.96.0.1"]));
}

#[test]
fn node_ports_are_on_the_addresses_that_options_name_and_never_on_one_link_alone() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {addresses: [{type: InternalIP, address: 127.0.0.9}, \
                {type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: 10.9.0.1}, \
                {type: InternalIP, address: 'fe80::1'}, {type: InternalIP, address: 'fd00::1'}, \
                {type: ExternalIP, address: 192.0.2.1}]}\n";
    let spec = "type: NodePort\nclusterIPs: [10.96.0.1, 'fd00:96::1']\nports: [{port: 80, nodePort: 30080}]";
    let with = |option: &str| {
        let options = format!(
            "---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{option}\n"
        );
        let plan = plan(&format!("{node}{options}{}", service("web", spec)));
        let of_nodes = servers(&plan)
            .into_iter()
            .filter_map(|it| it.strip_suffix(" 30080/TCP").map(str::to_owned));
        of_nodes.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(with(""), "10.0.0.1 10.9.0.1 fd00::1");
    assert_eq!(with("nodePortAddresses: [primary]"), "10.0.0.1 fd00::1");
    assert_eq!(with("nodePortAddresses: [10.9.0.0/16]"), "10.9.0.1 fd00::1");
    assert_eq!(with("nodePortAddresses: ['fd01::/16', 10.0.0.0/8]"), "10.0.0.1 10.9.0.1");
}

#[test]
fn scheduler_and_affinity_are_those_of_the_service_else_of_the_options() {
    let options = "---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nipvs: {scheduler: lc}\n";
    let spec = |more: &str| format!("clusterIP: 10.96.0.1\nports: [{{port: 80}}]\n{more}");
    let of = |annotations: &str, more: &str, options: &str| {
        let text = service("web", &spec(more));
        let text = text.replace(
            "metadata: {name: web}",
            &format!("metadata: {{name: web, annotations: {{{annotations}}}}}"),
        );
        let plan = plan(&(text + options));
        let server = &plan["virtualServers"][0];
        format!("{} {}", server["scheduler"].as_str().unwrap(), server["persistentTimeoutSeconds"])
    };
    assert_eq!(of("", "", ""), "rr null");
    assert_eq!(of("", "sessionAffinity: ClientIP", options), "lc 10800");
    let seconds =
        "sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 7}}";
    assert_eq!(of("fairway.dev/ipvs-scheduler: mh", seconds, options), "mh 7");
    assert_eq!(
        of("kube-router.io/service.scheduler: sh", "sessionAffinity: None", options),
        "sh null"
    );
}

#[test]
fn of_two_services_with_one_virtual_address_the_better_claim_has_it_and_the_other_is_named() {
    let victim = service("b", "clusterIP: 10.96.0.1\nports: [{port: 80}]");
    let thief = service("a", "clusterIP: 10.96.0.2\nexternalIPs: [10.96.0.1]\nports: [{port: 80}]");
    let manifest = [victim, thief, slice("b", &["10.1.0.1@n1"]), slice("a", &["10.1.0.9@n1"])];
    let planner = planned(&manifest.concat());
    let expected = ["10.96.0.1 80/TCP 10.1.0.1:8080", "10.96.0.2 80/TCP 10.1.0.9:8080"];
    assert_eq!(servers(&report::json(planner.wanted())), expected);
    let conflicts: Vec<_> = planner
        .conflicts()
        .map(|it| format!("{} {} {}", it.virtual_address, it.holder, it.waiting))
        .collect();
    assert_eq!(conflicts, ["10.96.0.1:80/TCP default/b default/a"]);
}

#[test]
fn the_options_that_kubeadm_writes_have_no_fault() {
    let options = "apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection: {acceptContentTypes: '', burst: 0, contentType: '', kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0}
clusterCIDR: ''
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: null, tcpBeLiberal: false, tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null, udpStreamTimeout: 0s, udpTimeout: 0s}
detectLocal: {bridgeInterface: '', interfaceNamePrefix: ''}
detectLocalMode: ''
enableProfiling: false
healthzBindAddress: ''
hostnameOverride: ''
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: '', strictARP: false, syncPeriod: 0s, tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
kind: KubeProxyConfiguration
logging: {flushFrequency: 0, options: {json: {infoBufferSize: '0'}, text: {infoBufferSize: '0'}}, verbosity: 0}
metricsBindAddress: ''
mode: ''
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: ''
showHiddenMetricsForVersion: ''
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: '', rootHnsEndpointName: '', sourceVip: ''}
";
    let [Object::ProxyConfiguration(it)] = &*objects(options) else { panic!("not alone") };
    let default = fairway_model::ProxyConfiguration::default();
    assert_eq!(**it, fairway_model::ProxyConfiguration { strict_arp: Some(false), ..default });
}

#[test]
fn a_service_that_does_without_its_address_is_told_who_has_it() {
    let spec = "type: LoadBalancer\nclusterIP: 10.96.0.X\nports: [{port: 80}]";
    let ingress = "status: {loadBalancer: {ingress: [{ip: 198.51.100.1}]}}\n";
    let of = |name: &str, last: &str| {
        service(name, &spec.replace('X', last)) + ingress + &slice(name, &["10.1.0.1@n1"])
    };
    let mut planner = planned(&of("a", "1"));
    let reconciler = Reconciler::default();
    let mut delivered = Delivered::default();
    delivered.doubt_all(planner.wanted());
    assert!(delivered.judge(&planner, &reconciler).is_empty(), "it is on its way");
    let other = objects(&of("b", "2")).into_iter().map(present);
    delivered.touch(&planner.follow(other));
    let changed = delivered.judge(&planner, &reconciler);
    let said: Vec<_> = changed.values().flatten().collect();
    let why = "Service default/a has virtual server 198.51.100.1:80/TCP".to_owned();
    let expected = (ObjectName::new("default", "b"), Delivery::Obstructed(why));
    assert_eq!(said, [(&expected.0, &expected.1)]);

    let name = ObjectName::new("default", "a");
    let key = ObjectKey { kind: Kind::Service, name };
    delivered.touch(&planner.follow([(Arc::new(key), None)]));
    let changed = delivered.judge(&planner, &reconciler);
    assert!(changed.values().all(|it| it.is_empty()), "it has the address now: {changed:?}");
    assert_eq!(changed.len(), 1);
}
