//! Services, pools and configuration, as text and as JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_allocator::{Outcome, Reason as Missing};
use fairway_ground::{AddressFamily, FamilySet, ListenRange, PeerKey, Remote};
use fairway_model::{
    Kind, LabelSelector, Labels, Node, Object, ObjectKey, ObjectName, Pool, ServiceAllocation,
};
use fairway_plan::{AddressAnnouncement, Announcement, PrefixAnnouncement, Reason};
use fairway_resources::{Finding, FindingObject, Severity, StaleObject};
use fairway_seam::SessionState;
use serde_json::json;

use super::super::ShowCommand;
use super::lab::{Lab, address, prefix};
use super::{json as shown, text};

fn name(text: &str) -> ObjectName {
    ObjectName::new("default", text)
}

fn pool(called: &str, ranges: &[&str], auto_assign: bool, avoid_buggy_addresses: bool) -> Object {
    Object::from(Pool {
        name: name(called),
        labels: Labels::new(),
        ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        auto_assign,
        avoid_buggy_addresses,
        reserved: Vec::new(),
        allocation: None,
    })
}

/// Plans a host route of `service` for `peers`.
fn announce(lab: &mut Lab, service: &str, host: &str, peers: &[&str]) {
    let addresses = vec![address(host)];
    let outcome = Outcome { addresses, pool: Some("main".to_owned()), reason: None };
    lab.outcomes.insert(name(service), outcome);
    let peers: BTreeSet<_> = peers.iter().map(|peer| PeerKey::from(address(peer))).collect();
    let prefixes = vec![PrefixAnnouncement {
        prefix: prefix(&format!("{host}/32")),
        advertisements: vec![name("all")].into(),
        peers: Arc::new(peers),
        reason: None,
    }];
    let addresses = vec![AddressAnnouncement { address: address(host), reason: None, prefixes }];
    let announcement =
        Announcement { reason: None, addresses, data_path: Vec::new(), layer2: Vec::new() };
    lab.plan.services.insert(name(service), announcement.into());
}

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.index.apply(pool("main", &["203.0.113.0/24", "2001:db8:aaaa::/64"], true, true));
    lab.index.apply(pool("spare", &["198.51.100.1-198.51.100.9"], false, false));
    announce(&mut lab, "alpha", "203.0.113.10", &["10.1.1.2"]);
    announce(&mut lab, "beta", "203.0.113.11", &["10.1.1.2", "10.1.2.2"]);
    let waiting = Outcome {
        addresses: Vec::new(),
        pool: None,
        reason: Some(Missing::NoFreeAddress {
            family: AddressFamily::Ipv4Unicast,
            pools: vec!["main".to_owned()],
        }),
    };
    let text = waiting.reason.as_ref().unwrap().to_string();
    lab.outcomes.insert(name("gamma"), waiting);
    let reason = Some(Reason::NotAllocated(text));
    let silent =
        Announcement { reason, addresses: Vec::new(), data_path: Vec::new(), layer2: Vec::new() };
    lab.plan.services.insert(name("gamma"), silent.into());
    lab
}

#[test]
fn services_are_aligned_and_say_what_is_missing() {
    let expected = "\
NAMESPACE   NAME    ADDRESSES      POOL     ANNOUNCED TO           REASON
default     alpha   203.0.113.10   main     router one over IPv4
default     beta    203.0.113.11   main     router one over IPv4   peer router-two is Idle
default     gamma   <pending>      <none>   <none>                 no available IPs: no pool has a free IPv4 address (tried main)
";
    assert_eq!(text(&lab(), &ShowCommand::Services).unwrap(), expected);
    let nothing = text(&Lab::without_peers(), &ShowCommand::Services).unwrap();
    assert_eq!(nothing, "No services found.\n");
}

#[test]
fn a_service_is_announced_to_whom_it_was_sent() {
    let mut lab = lab();
    let items = shown(&lab, &ShowCommand::Services);
    let expected = json!({
        "namespace": "default",
        "name": "beta",
        "addresses": ["203.0.113.11"],
        "pool": "main",
        "reason": "peer router-two is Idle",
        "announced": [{
            "address": "203.0.113.11",
            "prefix": "203.0.113.11/32",
            "peers": ["router one over IPv4"],
            "reason": "peer router-two is Idle",
        }],
    });
    assert_eq!(items["items"][1].to_string(), expected.to_string());
    assert_eq!(
        (&items["items"][2]["pool"], &items["items"][2]["announced"]),
        (&json!(""), &json!([]))
    );
    let reason = |lab: &Lab| shown(lab, &ShowCommand::Services)["items"][0]["reason"].clone();
    assert_eq!(reason(&lab), "");
    lab.router_one().advertised.clear();
    assert_eq!(reason(&lab), "peer router one over IPv4 has not been sent the route yet");
    let unannounced = (prefix("203.0.113.10/32"), "no next hop".to_owned());
    lab.router_one().unannounced.push(unannounced);
    assert_eq!(reason(&lab), "peer router one over IPv4 is not sent the route: no next hop");
    lab.router_one().unannounced.clear();
    lab.router_one().state = SessionState::Connect;
    assert_eq!(reason(&lab), "peer router one over IPv4 is Connect");
    lab.router_one().config.families = FamilySet::only(AddressFamily::Ipv6Unicast);
    let expected =
        "peer router one over IPv4 is not sent the route: the session does not carry IPv4 Unicast";
    assert_eq!(reason(&lab), expected);
    lab.bgp.peers.clear();
    assert_eq!(reason(&lab), "peer 10.1.1.2 has no session yet");
}

#[test]
fn a_range_is_told_when_somebody_from_it_is() {
    let mut lab = lab();
    let prefix = prefix("10.1.0.0/16");
    let range = PeerKey { remote: Remote::Range(prefix), vrf: None };
    let peers = Arc::new(BTreeSet::from([range]));
    let alpha = Arc::make_mut(lab.plan.services.get_mut(&name("alpha")).unwrap());
    alpha.addresses[0].prefixes[0].peers = peers;
    let alpha = |lab: &Lab| shown(lab, &ShowCommand::Services)["items"][0].clone();
    let nobody = "peer 10.1.0.0/16 has no neighbor from 10.1.0.0/16 yet";
    assert_eq!(alpha(&lab)["reason"], nobody);

    for peer in &mut lab.bgp.peers {
        peer.config.name = "rack".to_owned();
        peer.config.listen_range = Some(ListenRange { prefix, limit: 9 });
    }
    // One has the route, the others do not.
    let silent: Vec<_> = lab.bgp.peers[1..].iter().map(|it| it.config.key.to_string()).collect();
    let item = alpha(&lab);
    assert_eq!(item["announced"][0]["peers"], json!(["rack"]));
    let reason = item["reason"].as_str().unwrap();
    assert!(!silent.is_empty() && silent.iter().all(|it| reason.contains(&format!("({it})"))));
    assert!(!reason.contains("(10.1.1.2)"), "{reason}");
}

#[test]
fn a_reason_for_the_whole_service_is_given_for_each_address_too() {
    let mut lab = lab();
    let announcement = Arc::make_mut(lab.plan.services.get_mut(&name("alpha")).unwrap());
    announcement.reason = Some(Reason::NoEndpoints);
    announcement.addresses[0].prefixes.clear();
    let item = &shown(&lab, &ShowCommand::Services)["items"][0];
    assert_eq!(item["reason"], "noEndpoints: no endpoint is ready");
    assert_eq!(item["announced"][0]["reason"], "noEndpoints: no endpoint is ready");
    assert_eq!(item["announced"][0]["prefix"], "");
}

#[test]
fn pools_say_how_much_of_them_is_used() {
    let expected = "\
NAME    ADDRESSES                           IPV4 USED/TOTAL   IPV6 USED/TOTAL          AUTO ASSIGN   KEPT FOR
kept    192.0.2.0/28                        0/16              0/0                      true          namespaces bank,shop; services by label; priority -1
main    203.0.113.0/24,2001:db8:aaaa::/64   2/254             0/18446744073709551616   true          <all>
spare   198.51.100.1-198.51.100.9           0/9               0/0                      false         <all>
";
    let mut lab = lab();
    let Object::Pool(mut kept) = pool("kept", &["192.0.2.0/28"], true, false) else { panic!() };
    kept.reserved = vec!["192.0.2.12-192.0.3.1".parse().unwrap()];
    kept.allocation = Some(ServiceAllocation {
        priority: -1,
        namespaces: ["shop", "bank"].map(str::to_owned).into(),
        service_selectors: vec![LabelSelector::default()],
        ..ServiceAllocation::default()
    });
    lab.index.apply(Object::Pool(kept));
    assert_eq!(text(&lab, &ShowCommand::Pools).unwrap(), expected);
    let expected = json!({
        "namespace": "default",
        "name": "main",
        "addresses": ["203.0.113.0/24", "2001:db8:aaaa::/64"],
        "autoAssign": true,
        "assignedIPv4": 2,
        "availableIPv4": 252,
        "assignedIPv6": 0,
        "availableIPv6": i64::MAX,
        "freeIPv4": 252,
        "freeIPv6": i64::MAX,
    });
    let items = shown(&lab, &ShowCommand::Pools);
    assert_eq!(items["items"][1].to_string(), expected.to_string());
    let kept = &items["items"][0];
    assert_eq!(kept["keptFor"], "namespaces bank,shop; services by label");
    assert_eq!((&kept["priority"], &kept["freeIPv4"]), (&json!(-1), &json!(12)));
    let nothing = text(&Lab::without_peers(), &ShowCommand::Pools).unwrap();
    assert_eq!(nothing, "No pools found.\n");
}

#[test]
fn an_address_that_two_services_share_counts_once() {
    let mut lab = lab();
    announce(&mut lab, "delta", "203.0.113.10", &[]);
    let items = shown(&lab, &ShowCommand::Pools);
    assert_eq!(items["items"][0]["assignedIPv4"], 2);
}

#[test]
fn the_configuration_shows_what_is_in_force_and_what_is_wrong() {
    let mut lab = lab();
    lab.index.apply(Object::Node(Node::assumed("node-a", Vec::new())));
    lab.sources.push("/etc/fairway".to_owned());
    lab.findings.push(Finding {
        severity: Severity::Fault,
        file: "pools.yaml".to_owned(),
        line: Some(9),
        object: Some(FindingObject { kind: "IPAddressPool".to_owned(), name: "spare".to_owned() }),
        field: Some("spec.addresses[0]".to_owned()),
        message: "it ends before it begins".to_owned(),
    });
    let key = ObjectKey { kind: Kind::IpAddressPool, name: name("spare") };
    lab.stale.push(StaleObject { key, file: "pools.yaml".to_owned(), line: 3 });
    let expected = "\
Sources:
  /etc/fairway

KIND            ACTIVE   STALE
IPAddressPool   1        1
Node            1        0

Findings:
  pools.yaml:9: IPAddressPool/spare: spec.addresses[0]: it ends before it begins
Stale:
  pools.yaml:3: IPAddressPool/spare: an earlier version is in force
Left out on this node: none
Not in force: none
";
    assert_eq!(text(&lab, &ShowCommand::Config).unwrap(), expected);
    lab.bgp.faults = vec!["bgpd does not answer".to_owned()];
    let words = text(&lab, &ShowCommand::Config).unwrap();
    assert!(words.ends_with("Not in force:\n  bgpd does not answer\n"), "{words}");
    let config = shown(&lab, &ShowCommand::Config);
    assert_eq!(config["notInForce"], json!(["bgpd does not answer"]));
    let stale = json!({
        "kind": "IPAddressPool",
        "namespace": "default",
        "name": "spare",
        "state": "stale",
        "file": "pools.yaml",
        "line": 3,
    });
    assert_eq!(config["items"][1].to_string(), stale.to_string());
    assert_eq!(config["items"][0]["state"], "active");
    assert_eq!(config["findings"][0]["severity"], "fault");
    assert_eq!(
        (&config["findings"][0]["file"], &config["findings"][0]["line"]),
        (&json!("pools.yaml"), &json!(9))
    );
    assert_eq!(config["sources"], json!(["/etc/fairway"]));
}
