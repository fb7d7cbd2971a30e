//! `explain service`: each link of the chain, as text and as JSON.

use std::sync::Arc;

use fairway_allocator::from_scratch;
use fairway_ground::{AddressFamily, FamilySet, PeerKey};
use fairway_model::ObjectName;
use fairway_node::history::History;
use fairway_plan::{self as plan, PlanOptions};
use fairway_resources::Catalog;
use fairway_seam::SessionState;
use serde_json::json;

use super::super::{Explained, Format, ShowCommand, ShowError};
use super::lab::{Lab, NOW_EPOCH_SECONDS, address};
use super::render;
use super::{json as shown, text};

/// Two pools that refuse, one that gives, and peers by the names of the lab.
pub(super) const FILES: &str = "\
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: main}
spec: {addresses: [203.0.113.10/31]}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: manual}
spec: {addresses: [198.51.100.0/30], autoAssign: false}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: kept}
spec: {addresses: [198.51.100.8/30], serviceAllocation: {priority: 1, namespaces: [bank]}}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: six}
spec: {addresses: ['2001:db8:aaaa::/64']}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: all}
spec: {ipAddressPools: [main], peers: [one, two], communities: ['65001:100']}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: elsewhere}
spec: {ipAddressPools: [six], nodeSelectors: [{matchLabels: {rack: b}}]}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: one}
spec: {myASN: 65001, peerASN: 65010, peerAddress: 10.1.1.2, holdTime: 90s}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: two}
spec: {myASN: 65001, peerASN: 65020, peerAddress: 10.1.2.2}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: spine}
spec: {myASN: 65001, peerASN: 65097, peerAddress: 10.1.1.97}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: far}
spec: {myASN: 65001, peerASN: 65099, peerAddress: 10.1.1.99, nodeSelectors: [{matchLabels: {rack: b}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints:
- {addresses: [10.244.0.5], nodeName: node-a}
- {addresses: [10.244.0.6], nodeName: node-b}
- {addresses: [10.244.0.7], nodeName: node-b, conditions: {ready: false}}
";

/// The lab's sessions, with the configuration from these files.
pub(super) fn lab_of(files: &str) -> Lab {
    let mut lab = Lab::new();
    for (peer, name) in lab.bgp.peers.iter_mut().zip(["one", "spine", "two", "unused", "unused-v6"])
    {
        peer.config.name = name.to_owned();
    }
    let mut catalog = Catalog::new();
    catalog.file_read("lab.yaml", files);
    let resolution = catalog.resolve();
    lab.findings = resolution.findings;
    lab.index.reset(resolution.objects);
    lab.outcomes = from_scratch(&lab.index, None);
    lab.plan = plan::for_node(&lab.index, &lab.outcomes, &lab.node, PlanOptions::default());
    lab
}

fn web() -> ShowCommand {
    ShowCommand::Explain(Explained::Service("shop/web".to_owned()))
}

#[test]
fn one_chain_leads_from_the_wish_to_what_each_router_was_told() {
    let mut lab = lab_of(FILES);
    let mut history = History::default();
    history.note(0, [], &lab.outcomes, &lab.plan);
    let name = ObjectName::new("shop", "web");
    history.note(NOW_EPOCH_SECONDS - 61, [&name], &lab.outcomes, &lab.plan);
    lab.history = history;
    let expected = "\
Service shop/web is announced by node-a to 1 of 2: peer two was shut down by its operator: \"planned work\"
Asks for     one IPv4 address
Pools        kept: refused, serviceAllocation is for namespace bank
             main: gave 203.0.113.10
             six: refused, holds no IPv4 addresses
             manual: refused, autoAssign is false, and the Service does not ask for it
Addresses    203.0.113.10 from main
             since 2026-11-20 16:37:02 UTC, 00:01:01 ago; before that none
Endpoints    2 of 3 ready, 1 of them on node-a; externalTrafficPolicy Cluster: one on any node is enough
Node         node-a may announce it
BGP          203.0.113.10/32, by BGPAdvertisement default/all
               one: advertised: next hop 10.1.1.1, AS path 65001, community 65001:100 no-export, large community 65001:1:10
               two: not advertised: peer two is Idle (notification received: Cease/Administrative Shutdown (6/2): \"planned work\")
               spine: not planned: the advertisements are for peers one, two
             since 2026-11-20 16:37:02 UTC, 00:01:01 ago; before that no peer was planned
             not announced by BGPAdvertisement default/elsewhere: it is for pool six, and its nodeSelectors do not select node-a
             no session with BGPPeer default/far: its nodeSelectors do not select node-a
Missing      peer two is Idle
";
    assert_eq!(text(&lab, &web()).unwrap(), expected);
}

#[test]
fn a_service_that_waits_for_a_minute_is_not_as_old_as_the_daemon() {
    let mut lab = lab_of(FILES);
    let name = ObjectName::new("shop", "web");
    lab.outcomes.get_mut(&name).unwrap().addresses.clear();
    let mut history = History::default();
    history.note(0, [], &lab.outcomes, &lab.plan);
    history.note(NOW_EPOCH_SECONDS - 61, [&name], &lab.outcomes, &lab.plan);
    lab.history = history;
    let section = section(&lab, "Addresses");
    assert!(section.contains("unchanged since the Service appeared, 00:01:01 ago"), "{section}");
}

#[test]
fn programs_get_the_same_chain() {
    let lab = lab_of(FILES);
    let answer = shown(&lab, &web());
    assert_eq!(answer["told"], 1);
    assert_eq!(answer["planned"], 2);
    assert_eq!(answer["addresses"], json!(["203.0.113.10"]));
    assert_eq!(answer["pool"], "main");
    let pools: Vec<_> = answer["pools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["name"], &it["verdict"]))
        .collect();
    assert_eq!(
        json!(pools),
        json!([["kept", "refused"], ["main", "gave"], ["six", "refused"], ["manual", "refused"]])
    );
    let peers = &answer["bgp"][0]["peers"];
    assert_eq!(peers[0]["verdict"], "told");
    assert_eq!(peers[0]["sent"]["nextHop"], "10.1.1.1");
    assert_eq!(peers[1]["verdict"], "waiting");
    assert_eq!(
        peers[2],
        json!({
            "peer": "spine",
            "verdict": "notMeant",
            "reason": "the advertisements are for peers one, two",
        })
    );
    assert_eq!(answer["lastChange"], json!({}));
    assert_eq!(answer["endpoints"]["readyHere"], 1);
    assert_eq!(answer["missing"], json!(["peer two is Idle"]));
    assert_eq!(answer["node"]["announces"], true);
}

/// The text below a title.
fn section(lab: &Lab, title: &str) -> String {
    let text = text(lab, &web()).unwrap();
    let mut lines = text.lines().skip_while(|line| !line.starts_with(title));
    let first = lines.next().unwrap_or_default().to_owned();
    let rest = lines.take_while(|line| line.starts_with(' ')).map(str::trim);
    [first].into_iter().chain(rest.map(str::to_owned)).collect::<Vec<_>>().join("; ")
}

#[rustfmt::skip] // One line for each case.
#[test]
fn each_link_that_breaks_is_named() {
    for (what, from, to, title, says) in [
        ("no pool has the family", "[203.0.113.10/31]", "['2001:db8:bbbb::/64']", "Pools", "main: refused, holds no IPv4 addresses"),
        ("another pool is asked for", "namespace: shop}", "namespace: shop, annotations: {metallb.io/address-pool: manual}}", "Pools", "main: refused, the Service asks for pool manual"),
        ("the pool that is asked for gives", "namespace: shop}", "namespace: shop, annotations: {metallb.io/address-pool: manual}}", "Pools", "manual: gave 198.51.100.0"),
        ("an address is asked for", "type: LoadBalancer,", "type: LoadBalancer, loadBalancerIP: 203.0.113.11,", "Asks for", "one IPv4 address, namely 203.0.113.11"),
        ("nobody has the address", "type: LoadBalancer,", "type: LoadBalancer, loadBalancerIP: 192.0.2.1,", "Pools", "main: refused, holds none of the requested addresses"),
        ("labels of services", "namespaces: [bank]", "serviceSelectors: [{matchLabels: {a: b}}]", "Pools", "kept: refused, serviceAllocation.serviceSelectors do not select the labels of the Service"),
        ("labels of namespaces", "namespaces: [bank]", "namespaceSelectors: [{matchLabels: {a: b}}]", "Pools", "kept: refused, serviceAllocation.namespaceSelectors do not select namespace shop"),
        ("no endpoint is ready", "nodeName: node-a}\n- {addresses: [10.244.0.6], nodeName: node-b}", "conditions: {ready: false}}\n- {addresses: [10.244.0.6], conditions: {ready: false}}", "Node", "noEndpoints"),
        ("none is here", "type: LoadBalancer,", "type: LoadBalancer, externalTrafficPolicy: Local,", "Endpoints", "externalTrafficPolicy Local: one on this node is required"),
        ("nothing here", "nodeName: node-a}", "nodeName: node-c}", "Endpoints", "0 of them on node-a"),
        ("no advertisement", "ipAddressPools: [main]", "ipAddressPools: [six]", "BGP", "not announced by BGPAdvertisement default/all: it is for pool six"),
        ("prefixes alone", "ipAddressPools: [main]", "prefixes: [192.0.2.0/28]", "BGP", "not announced by BGPAdvertisement default/all: it is about its prefixes alone"),
        ("other services", "ipAddressPools: [main]", "serviceSelectors: [{matchLabels: {a: b}}]", "BGP", "its serviceSelectors do not select the labels of the Service"),
        ("nobody is told", "peers: [one, two]", "peers: [nobody]", "BGP", "noPeers"),
        ("no layer 2", "kind: BGPAdvertisement\nmetadata: {name: elsewhere}\nspec: {ipAddressPools: [six]", "kind: L2Advertisement\nmetadata: {name: elsewhere}\nspec: {ipAddressPools: [six]", "Layer 2", "no L2Advertisement selects it"),
        ("layer 2", "kind: BGPAdvertisement\nmetadata: {name: elsewhere}\nspec: {ipAddressPools: [six], nodeSelectors: [{matchLabels: {rack: b}}]}", "kind: L2Advertisement\nmetadata: {name: near}\nspec: {interfaces: [eth0]}", "Layer 2", "node-a is chosen to answer, on eth0; by L2Advertisement default/near"),
    ] {
        let files = FILES.replacen(from, to, 1);
        assert_ne!(files, FILES, "{what}");
        let lab = lab_of(&files);
        let section = section(&lab, title);
        assert!(section.contains(says), "{what}: {section}\n{:#?}", lab.findings);
    }
}

#[test]
fn a_full_pool_says_how_full_it_is() {
    let more =
        FILES.replace("name: web, namespace: shop", "name: web, namespace: shop, labels: {}");
    let others: String = ["a", "b"]
        .map(|name| {
            format!(
                "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: \
                 LoadBalancer, ports: [{{port: 80}}]}}\n"
            )
        })
        .concat();
    let lab = lab_of(&format!("{more}{others}"));
    let pools = section(&lab, "Pools");
    assert!(pools.contains("main: full, 2 of 2 IPv4 addresses are in use"), "{pools}");
    let whole = text(&lab, &web()).unwrap();
    let first =
        "Service shop/web has no address: no available IPs: no pool has a free IPv4 address";
    assert!(whole.starts_with(first), "{whole}");
    let missing = section(&lab, "Missing");
    assert!(missing.contains("no pool has a free IPv4 address"), "{missing}");
    // Without an address it is unknown whether one will announce it.
    let layer2 =
        "---\napiVersion: metallb.io/v1beta1\nkind: L2Advertisement\nmetadata: {name: all}\n";
    assert_eq!(section(&lab_of(&format!("{more}{others}{layer2}")), "Layer 2"), "");
}

/// The verdicts implement the rules a second time, so they are compared with the allocator.
#[test]
fn the_pool_that_gave_is_never_one_that_refuses() {
    let policies = ["SingleStack", "PreferDualStack", "RequireDualStack"];
    let requests = ["", "metallb.io/address-pool: manual", "metallb.io/address-pool: kept"];
    let namespaces = ["shop", "bank"];
    for policy in policies {
        for request in requests {
            for namespace in namespaces {
                let files = FILES
                    .replace(
                        "namespace: shop}",
                        &format!("namespace: {namespace}, annotations: {{{request}}}}}"),
                    )
                    .replace(
                        "type: LoadBalancer,",
                        &format!("type: LoadBalancer, ipFamilyPolicy: {policy},"),
                    );
                let mut lab = lab_of(&files);
                let name = ObjectName::new(namespace, "web");
                let outcome = lab.outcomes[&name].clone();
                let gave: Vec<_> = outcome.pool.iter().flat_map(|it| it.split(',')).collect();
                // As if no address was assigned yet: the pool that gave must be a possible one.
                lab.outcomes.clear();
                let command = ShowCommand::Explain(Explained::Service(format!("{namespace}/web")));
                let answer = shown(&lab, &command);
                for pool in answer["pools"].as_array().unwrap() {
                    let is_possible = pool["verdict"] == "possible";
                    let has_given = gave.iter().any(|it| pool["name"] == *it);
                    assert!(is_possible || !has_given, "{policy} {request} {namespace}: {pool}");
                }
                if outcome.is_pending() && !policy.starts_with("Require") {
                    let mut pools = answer["pools"].as_array().unwrap().iter();
                    assert!(pools.all(|it| it["verdict"] != "possible"), "{answer:#}");
                }
            }
        }
    }
}

#[test]
fn what_a_session_keeps_back_is_said_with_its_reason() {
    let mut lab = lab_of(FILES);
    lab.router_one().advertised.clear();
    let refused = ("203.0.113.10/32".parse().unwrap(), "no next hop".to_owned());
    lab.router_one().unannounced.push(refused);
    assert!(
        section(&lab, "BGP")
            .contains("one: not advertised: peer one is not sent the route: no next hop")
    );
    let two = lab.bgp.peers.iter_mut().find(|peer| peer.config.name == "two").unwrap();
    two.config.families = FamilySet::only(AddressFamily::Ipv6Unicast);
    let says = "two: not advertised: peer two is not sent the route: the session does not carry \
                IPv4 Unicast;";
    assert!(section(&lab, "BGP").contains(says), "{}", section(&lab, "BGP"));
    lab.bgp.peers.retain(|peer| peer.state != SessionState::Idle);
    let section = section(&lab, "BGP");
    assert!(section.contains("two: not advertised: peer two has no session yet"), "{section}");
}

#[test]
fn a_service_is_found_by_its_name_where_that_says_which() {
    let named = |service: &str| ShowCommand::Explain(Explained::Service(service.to_owned()));
    let lab = lab_of(FILES);
    assert_eq!(text(&lab, &named("web")), text(&lab, &web()));
    let nobody = text(&lab, &named("shop/nobody")).unwrap_err();
    assert_eq!(nobody.to_string(), "there is no Service shop/nobody of type LoadBalancer");
    assert!(text(&lab, &named("other/web")).is_err());
    assert!(render(&named("nobody"), Format::Json, &lab.snapshot()).is_err());
    let again = FILES.replace("name: web, namespace: shop", "name: web, namespace: bank");
    let second = again.split("---\n").find(|it| it.contains("kind: Service")).unwrap();
    let lab = lab_of(&format!("{FILES}---\n{second}"));
    assert_eq!(
        text(&lab, &named("web")).unwrap_err(),
        ShowError::SeveralServices {
            wanted: "web".to_owned(),
            names: vec!["bank/web".to_owned(), "shop/web".to_owned()],
        }
    );
}

#[test]
fn a_document_at_fault_is_why_there_is_no_service() {
    let lab = lab_of(&FILES.replace("ports: [{port: 80}]", "ports: [{port: 0}]"));
    let error = text(&lab, &web()).unwrap_err().to_string();
    assert!(error.contains("Service/web: spec.ports[0].port: 0 is not allowed"), "{error}");
}

#[test]
fn a_service_of_another_class_is_left_to_others() {
    let lab =
        lab_of(&FILES.replace(
            "type: LoadBalancer,",
            "type: LoadBalancer, loadBalancerClass: example.com/lb,",
        ));
    let text = text(&lab, &web()).unwrap();
    assert!(
        text.starts_with(
            "Service shop/web is not served by this daemon: its loadBalancerClass, example.com/lb,"
        ),
        "{text}"
    );
    assert!(!text.contains("Missing"), "{text}");
}

#[test]
fn routes_of_a_key_that_nobody_has_are_no_trouble() {
    let mut lab = lab_of(FILES);
    let mut history = History::default();
    let name = ObjectName::new("shop", "web");
    history.note(1, [&name], &lab.outcomes, &lab.plan);
    let gone = [PeerKey::from(address("10.99.0.1"))].into_iter().collect();
    let mut earlier = lab.plan.clone();
    for announcement in earlier.services.values_mut() {
        for it in &mut Arc::make_mut(announcement).addresses {
            it.prefixes[0].peers = Arc::new(std::collections::BTreeSet::clone(&gone));
        }
    }
    history.note(2, [&name], &lab.outcomes, &earlier);
    history.note(3, [&name], &lab.outcomes, &lab.plan);
    lab.history = history;
    let section = section(&lab, "BGP");
    assert!(section.contains("before that 203.0.113.10/32 was planned for 10.99.0.1"), "{section}");
}
