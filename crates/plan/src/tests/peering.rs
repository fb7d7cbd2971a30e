//! The peers of a node.

use std::num::NonZeroU8;
use std::time::Duration;

use fairway_ground::{
    AoAlgorithm, AoKey, ClientKind, FamilySet, GracefulRestart, InterfaceName, Role,
    ShutdownMessage,
};
use fairway_model::AoKeyReference;
use fairway_seam::PeerConfig;

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

/// The peer that is configured by address, so that each test contains only what it is about.
fn config_of(peer: Peer) -> PeerConfig {
    let mut cluster = Cluster::empty();
    cluster.peer(peer);
    cluster.plan().peers.remove(0)
}

#[test]
fn every_kind_of_neighbour_has_a_key_of_its_own() {
    let eth0 = Remote::Interface("eth0".parse().unwrap());
    let unnumbered = config_of(Peer {
        remote: eth0,
        extended_next_hop: true,
        ..peer("unnumbered", "192.0.2.1")
    });
    assert_eq!(unnumbered.key, PeerKey { remote: eth0, vrf: None });
    assert_eq!(unnumbered.families, FamilySet::BOTH);
    assert!(unnumbered.extended_next_hop && unnumbered.listen_range.is_none());

    let range = Remote::Range(prefix("2001:db8::/64"));
    let vrf = "blue".parse().ok();
    let listening =
        config_of(Peer { remote: range, vrf, listen_limit: 7, ..peer("range", "192.0.2.1") });
    assert_eq!(listening.key, PeerKey { remote: range, vrf });
    assert_eq!(listening.route_key(), listening.key);
    assert_eq!(listening.listen_range.map(|it| it.limit), Some(7));
    assert_eq!(listening.families, FamilySet::only(AddressFamily::Ipv6Unicast));
}

#[test]
fn routes_for_a_range_name_the_range() {
    let mut cluster = Cluster::small();
    let range = Remote::Range(prefix("10.0.0.0/8"));
    cluster.peer(Peer { remote: range, ..peer("racks", "192.0.2.1") }).service(service("web"));
    assert_eq!(routes(&cluster.plan()), ["198.51.100.0/32 > 192.0.2.1 10.0.0.0/8"]);
}

#[test]
fn another_as_towards_a_neighbour_leaves_our_own_known() {
    let config = config_of(Peer { local_asn: Asn::new(64_999), ..peer("tor", "192.0.2.1") });
    assert_eq!((config.local_asn.get(), config.router_asn.get()), (64_999, 65_000));
    let config = config_of(peer("tor", "192.0.2.1"));
    assert_eq!((config.local_asn.get(), config.router_asn.get()), (65_000, 65_000));
}

#[test]
fn what_a_session_is_to_do_reaches_it() {
    let add_path = AddPath { send: NonZeroU8::new(4), receive: true };
    let next_hops = ChosenNextHops { ipv4: "192.0.2.7".parse().ok(), ipv6: None };
    let config = config_of(Peer {
        remote_as: RemoteAs::External,
        passive: true,
        shutdown: ShutdownMessage::new("bye").ok(),
        ttl_security_hops: NonZeroU8::new(2),
        add_path,
        role: Some(Role::Customer),
        client: Some(ClientKind::RouteServer),
        role_strict: true,
        graceful_restart: GracefulRestart::new(300, 3600),
        next_hops,
        ..peer("tor", "192.0.2.1")
    });
    assert_eq!(config.remote_as, RemoteAs::External);
    assert_eq!(config.client, Some(ClientKind::RouteServer));
    assert!(config.passive && config.role_strict && !config.extended_next_hop);
    assert_eq!(config.shutdown, ShutdownMessage::new("bye").ok());
    assert_eq!((config.ttl(), config.ttl_min()), (255, Some(254)));
    assert_eq!((config.add_path, config.next_hops), (add_path, next_hops));
    assert_eq!(config.role, Some(Role::Customer));
    assert_eq!(config.graceful_restart, GracefulRestart::new(300, 3600));
}

#[test]
fn keys_of_tcp_ao_are_taken_from_secrets_or_the_peer_waits() {
    let reference = |id, key: &str| AoKeyReference {
        send_id: id,
        recv_id: id,
        algorithm: AoAlgorithm::HmacSha1,
        secret: name("ao"),
        key: key.to_owned(),
    };
    let tcp_ao = vec![reference(1, "first"), reference(2, "second")];
    let mut cluster = Cluster::empty();
    cluster.peer(Peer { tcp_ao, ..peer("signed", "192.0.2.1") });
    let values = |keys: &[&str]| {
        let value = |key: &&str| ((*key).to_owned(), Password::new(format!("of-{key}")).unwrap());
        Secret { name: name("ao"), password: None, values: keys.iter().map(value).collect() }
    };
    for (given, missing) in [(&["second"][..], "first"), (&["first"], "second")] {
        cluster.add(Object::Secret(values(given)));
        let plan = cluster.plan();
        assert!(plan.peers.is_empty(), "never without a signature");
        assert_eq!(
            plan.faults[0].to_string(),
            format!(
                "BGPPeer default/signed is left out: its Secret default/ao is missing or has no \
                 {missing}"
            )
        );
    }
    cluster.add(Object::Secret(values(&["first", "second"])));
    let plan = cluster.plan();
    let secrets: Vec<_> = plan.peers[0].tcp_ao.iter().map(AoKey::expose).collect();
    assert_eq!(secrets, [b"of-first".as_slice(), b"of-second"]);
}

#[test]
fn a_default_gateway_is_the_address_that_the_node_knows() {
    let remote = Remote::DefaultGateway(AddressFamily::Ipv6Unicast);
    let vrf = "blue".parse().ok();
    let mut cluster = Cluster::empty();
    cluster.peer(Peer { remote, ..peer("main", "192.0.2.1") });
    cluster.peer(Peer { remote, vrf, ..peer("vrf", "192.0.2.1") });
    // Elsewhere it has no address, and all else holds.
    let elsewhere = cluster.plan();
    assert_eq!(elsewhere.peers.iter().map(|it| it.key.remote).collect::<Vec<_>>(), [remote; 2]);
    assert_eq!(elsewhere.peers[0].families, FamilySet::only(AddressFamily::Ipv6Unicast));
    assert!(elsewhere.faults.is_empty());

    let family = AddressFamily::Ipv6Unicast;
    let known = |gateways: &[(Option<InterfaceName>, &str)]| {
        let gateways = gateways.iter().map(|(vrf, address)| ((*vrf, family), ip(address)));
        let local = Local { gateways: Some(gateways.collect()), ..Local::default() };
        let mut planner = NodePlanner::new(node("n1"), OPTIONS);
        planner.set_local(local);
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        let plan = planner.plan();
        let peers: Vec<_> = plan.peers.iter().map(|it| it.key.to_string()).collect();
        (peers, plan.faults.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let (peers, faults) = known(&[(None, "2001:db8::1"), (vrf, "2001:db8::2")]);
    assert_eq!(
        (peers.as_slice(), faults.len()),
        (&["2001:db8::1".to_owned(), "2001:db8::2 vrf blue".to_owned()][..], 0)
    );
    let (peers, faults) = known(&[(vrf, "fe80::1")]);
    assert!(peers.is_empty());
    assert!(
        faults[0]
            .contains("BGPPeer default/main is left out: this node has no IPv6 default route with")
    );
    assert!(faults[1].contains("the default gateway fe80::1 of this node is link-local"));
}

#[test]
fn two_peers_on_one_link_or_from_one_range_are_one_too_many() {
    for (remote, vrf, text) in [
        (Remote::Interface("eth0".parse().unwrap()), None, "eth0 is already the interface of"),
        (Remote::Range(prefix("10.0.0.0/8")), None, "10.0.0.0/8 is already the range of"),
        (
            Remote::Address(ip("192.0.2.1")),
            Some("red"),
            "192.0.2.1 vrf red is already the address of",
        ),
    ] {
        let vrf = vrf.map(|name| name.parse().unwrap());
        let mut cluster = Cluster::empty();
        for called in ["one", "two"] {
            cluster.peer(Peer { remote, vrf, ..peer(called, "192.0.2.1") });
        }
        // In another VRF it is another neighbour.
        let vrf = "blue".parse().ok();
        cluster.peer(Peer { remote, vrf, ..peer("three", "192.0.2.1") });
        let plan = cluster.plan();
        assert_eq!(plan.peers.len(), 2);
        let expected = format!("BGPPeer default/two is left out: {text} BGPPeer default/one");
        assert_eq!(plan.faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
