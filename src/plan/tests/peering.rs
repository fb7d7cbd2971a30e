//! Whom a node peers with.

use std::time::Duration;

use fairway_sessions::types::{FamilySet, PeerConfig};

use super::*;

#[test]
fn a_peer_is_configured_as_written_with_defaults_for_the_rest() {
    let mut cluster = Cluster::empty();
    cluster.peer(peer("tor", "192.0.2.1"));
    let config = cluster.plan().peers.remove(0);
    assert_eq!(config.key, key("192.0.2.1"));
    assert_eq!(config.name, "tor");
    assert_eq!(config.router_id.to_string(), "192.0.2.250");
    assert_eq!(config.families, FamilySet::only(V4));
    assert_eq!(config.connect_retry_interval, PeerConfig::CONNECT_RETRY_INTERVAL_DEFAULT);
    cluster.peer(Peer {
        router_id: Some("1.2.3.4".parse().unwrap()),
        connect_interval: Some(Duration::from_secs(7)),
        dual_stack: true,
        password: PeerPassword::Text(Password::new("secret").unwrap()),
        ..peer("tor", "192.0.2.1")
    });
    let config = cluster.plan().peers.remove(0);
    assert_eq!(config.router_id.to_string(), "1.2.3.4");
    assert_eq!(config.families, FamilySet::BOTH);
    assert_eq!(config.connect_retry_interval, Duration::from_secs(7));
    assert_eq!(config.password, Password::new("secret").ok());
}

#[test]
fn peers_of_other_nodes_are_neither_dialled_nor_told() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let node_selectors = selecting("kubernetes.io/hostname=n2");
    cluster.peer(Peer { node_selectors, ..peer("far", "192.0.2.2") });
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1"]);
    let plan = cluster.plan_for(&node("n2"));
    assert_eq!(routes(&plan), ["198.51.100.0/32 > 192.0.2.1 192.0.2.2"]);
    assert_eq!(plan.peers.len(), 2);
}

#[test]
fn a_peer_without_its_secret_waits_and_the_others_do_not() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let password = PeerPassword::Secret(name("key"));
    cluster.peer(Peer { password, ..peer("locked", "192.0.2.2") });
    let plan = cluster.plan();
    assert_eq!(routes(&plan), ["198.51.100.0/32 > 192.0.2.1"]);
    assert_eq!(
        plan.faults[0].to_string(),
        "BGPPeer default/locked is left out: its Secret default/key is missing or has no password"
    );
    cluster.add(Object::Secret(secret("key", "x")));
    let plan = cluster.plan();
    assert!(plan.faults.is_empty());
    assert_eq!(plan.peers[1].password, Password::new("x").ok());
}

#[test]
fn of_two_peers_with_one_address_the_second_is_left_out() {
    let mut cluster = Cluster::small();
    cluster.peer(Peer { port: 1179, ..peer("zoo", "192.0.2.1") });
    let plan = cluster.plan();
    assert_eq!(plan.peers.len(), 1);
    assert_eq!(plan.peers[0].port, 179);
    assert_eq!(
        plan.faults[0].to_string(),
        "BGPPeer default/zoo is left out: 192.0.2.1 is already the address of BGPPeer default/tor"
    );
    let node_selectors = selecting("kubernetes.io/hostname=n2");
    cluster.peer(Peer { node_selectors, ..peer("zoo", "192.0.2.1") });
    assert!(cluster.plan().faults.is_empty());
}
