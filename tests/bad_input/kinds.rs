//! Every kind of neighbour that a BGPPeer can name, and every capability: invalid values are faults,
//! odd ones are warnings, valid ones reach the model.

use std::num::NonZeroU8;

use fairway_ground::{
    AddPath, AoAlgorithm, ChosenNextHops, ClientKind, Remote, RemoteAs, Role, ShutdownMessage,
};
use fairway_model::{Object, PeerPassword};

use super::policies::settings;
use super::{SOUND_PEER, beside_good, check, good, manifest, one_fault, peer};

/// A valid peer and more, from line 9 on.
fn with(more: &str) -> String {
    peer(&format!("{SOUND_PEER}{more}"))
}

/// A peer in AS 2 that is not named yet, from line 8 on.
fn of(more: &str) -> String {
    peer(&format!("myASN: 1\npeerASN: 2\n{more}"))
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_names_of_neighbours_are_told() {
    for (what, text, line, field, says) in [
        ("address and interface", with("interface: eth0"), 9, "spec.interface", "and spec.peerAddress cannot both be set"),
        ("address and range", with("listenRange: 10.0.0.0/8"), 9, "spec.listenRange", "and spec.peerAddress cannot both be set"),
        ("interface and range", of("interface: eth0\nlistenRange: 10.0.0.0/8"), 9, "spec.listenRange", "and spec.interface cannot both be set"),
        ("nobody", of("interface: ''"), 5, "spec.peerAddress", "or interface, listenRange or autoDiscovery in its place"),
        ("long name", of("interface: sixteen-letters-"), 8, "spec.interface", "1 to 15 bytes"),
        ("number", of("interface: 5"), 8, "spec.interface", "in quotes"),
        ("list", of("interface: [eth0]"), 8, "spec.interface", "is a list"),
        ("link-local", of("peerAddress: fe80::1"), 8, "spec.peerAddress", "or interface in place of peerAddress"),
        ("host bits", of("listenRange: 10.0.0.1/8"), 8, "spec.listenRange", "did you mean 10.0.0.0/8?"),
        ("no length", of("listenRange: 10.0.0.1"), 8, "spec.listenRange", "192.0.2.0/24"),
        ("multicast", of("listenRange: 224.0.0.0/4"), 8, "spec.listenRange", "expected a unicast prefix"),
        ("link-local range", of("listenRange: fe80::/10"), 8, "spec.listenRange", "or interface in place of listenRange"),
        ("IPv4 in IPv6 form", of("listenRange: ::ffff:10.0.0.0/104"), 8, "spec.listenRange", "expected an IPv4 prefix"),
        ("dialled range", of("listenRange: 10.0.0.0/8\npeerPort: 1179"), 9, "spec.peerPort", "never dialled"),
        ("source of a range", of("listenRange: 10.0.0.0/8\nsourceAddress: 10.0.0.1"), 9, "spec.sourceAddress", "never dialled"),
        ("source of a link", of("interface: eth0\nsourceAddress: 10.0.0.1"), 9, "spec.sourceAddress", "between link-local addresses"),
        ("gateway and address", with("autoDiscovery: {mode: DefaultGateway, addressFamily: ipv4}"), 9, "spec.autoDiscovery", "and spec.peerAddress cannot both be set"),
        ("unknown way", of("autoDiscovery: {mode: LLDP, addressFamily: ipv4}"), 8, "spec.autoDiscovery.mode", "\"LLDP\" is not allowed; expected DefaultGateway"),
        ("unknown family", of("autoDiscovery: {mode: DefaultGateway, addressFamily: IPv4}"), 8, "spec.autoDiscovery.addressFamily", "expected ipv4 or ipv6"),
        ("no family", of("autoDiscovery: {mode: DefaultGateway}"), 8, "spec.autoDiscovery.addressFamily", "expected ipv4 or ipv6"),
        ("source of a gateway", of("autoDiscovery: {mode: DefaultGateway, addressFamily: ipv6}\nsourceAddress: 10.0.0.1"), 9, "spec.sourceAddress", "IPv6 default gateway"),
        ("no range", with("listenLimit: 5"), 9, "spec.listenLimit", "is for listenRange only"),
        ("limit 0", of("listenRange: 10.0.0.0/8\nlistenLimit: 0"), 9, "spec.listenLimit", "from 1 to 65535"),
        ("limit 65536", of("listenRange: 10.0.0.0/8\nlistenLimit: 65536"), 9, "spec.listenLimit", "from 1 to 65535"),
        ("VRF", with("vrf: a/b"), 9, "spec.vrf", "1 to 15 bytes"),
        ("passive", with("passive: sometimes"), 9, "spec.passive", "true or false"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_autonomous_systems_are_told() {
    let from = |lines: &str| peer(&format!("peerAddress: 192.0.2.9\nmyASN: 64500\n{lines}"));
    for (what, text, line, field, says) in [
        ("neither", from(""), 5, "spec.peerASN", "or dynamicASN in its place"),
        ("both", from("peerASN: 64502\ndynamicASN: external"), 9, "spec.dynamicASN", "and spec.peerASN cannot both be set"),
        ("word", from("dynamicASN: any"), 8, "spec.dynamicASN", "expected internal or external"),
        ("number", from("dynamicASN: 64502"), 8, "spec.dynamicASN", "in quotes"),
        ("zero", from("peerASN: 0"), 8, "spec.peerASN", "0 is not allowed; expected an AS number from 1 to 4294967295"),
        ("asdot", from("peerASN: 1.10"), 8, "spec.peerASN", "1.1 is not allowed; expected an AS number from 0 to 4294967295 (asdot HIGH.LOW is HIGH x 65536 + LOW)"),
        ("asdot text", from("peerASN: '1.10'"), 8, "spec.peerASN", "1.10 is asdot notation; expected the plain number, 65546"),
        ("negative", from("peerASN: -1"), 8, "spec.peerASN", "4294967295"),
        ("local 0", from("peerASN: 64502\nlocalASN: 0"), 9, "spec.localASN", "1 to 4294967295"),
        ("local is ours", from("peerASN: 64502\nlocalASN: 64500"), 9, "spec.localASN", "is myASN already"),
        ("local is theirs", from("peerASN: 64502\nlocalASN: 64502"), 9, "spec.localASN", "64502 is peerASN"),
        ("local within", from("peerASN: 64500\nlocalASN: 64510"), 9, "spec.localASN", "is for eBGP only"),
        ("local and internal", from("dynamicASN: internal\nlocalASN: 64510"), 9, "spec.localASN", "is for eBGP only, and dynamicASN is internal"),
        ("multihop within", from("dynamicASN: internal\nebgpMultiHop: true"), 9, "spec.ebgpMultiHop", "is for eBGP only, and dynamicASN is internal"),
        ("role within", from("dynamicASN: internal\nrole: peer"), 9, "spec.role", "is for eBGP only, and dynamicASN is internal"),
        ("role in our AS", from("peerASN: 64500\nrole: customer"), 9, "spec.role", "is for eBGP only"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_settings_of_a_session_are_told() {
    let long = "x".repeat(256);
    for (what, text, line, field, says) in [
        ("no hops", with("ttlSecurityHops: 0"), 9, "spec.ttlSecurityHops", "from 1 to 254"),
        ("255 hops", with("ttlSecurityHops: 255"), 9, "spec.ttlSecurityHops", "from 1 to 254"),
        ("near and far", with("ebgpMultiHop: true\nttlSecurityHops: 2"), 10, "spec.ttlSecurityHops", "and spec.ebgpMultiHop cannot both be set"),
        ("two hops on a link", of("interface: eth0\nttlSecurityHops: 2"), 9, "spec.ttlSecurityHops", "use 1"),
        ("no paths", with("addPath: {send: 0}"), 9, "spec.addPath.send", "from 1 to 16"),
        ("17 paths", with("addPath: {send: 17}"), 9, "spec.addPath.send", "from 1 to 16"),
        ("paths", with("addPath: true"), 9, "spec.addPath", "a mapping"),
        ("received paths", with("addPath: {receive: 5}"), 9, "spec.addPath.receive", "true or false"),
        ("unknown paths", with("addPath: {sent: 5}"), 9, "spec.addPath.sent", "send?"),
        ("extended", with("extendedNexthop: ipv4"), 9, "spec.extendedNexthop", "true or false"),
        ("reflector", with("routeReflectorClient: true"), 9, "spec.routeReflectorClient", "is for iBGP only"),
        ("cluster", with("clusterID: first"), 9, "spec.clusterID", "a cluster ID, four octets"),
        ("cluster of others", with("clusterID: 192.0.2.1"), 9, "spec.clusterID", "is for iBGP only"),
        ("server", with("routeServerClient: 1"), 9, "spec.routeServerClient", "true or false"),
        ("own AS", with("allowASIn: 0"), 9, "spec.allowASIn", "from 1 to 10"),
        ("role", with("role: upstream"), 9, "spec.role", "one of provider, customer, peer, rs-server, rs-client"),
        ("strict role", with("role: upstream\nroleStrict: true"), 9, "spec.role", "one of provider"),
        ("strict", with("roleStrict: true"), 9, "spec.roleStrict", "needs a role"),
        ("shut", with("shutdown: true"), 9, "spec.shutdown", "a mapping"),
        ("shut long", with(&format!("shutdown: {{message: {long}}}")), 9, "spec.shutdown.message", "256 bytes"),
        ("shut text", with("shutdown: {text: bye}"), 9, "spec.shutdown.text", "message"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

/// A key of TCP-AO as a list element of one line.
fn key(send: u16, recv: u16, rest: &str) -> String {
    format!("  - {{sendID: {send}, recvID: {recv}{rest}}}\n")
}

const SECRET: &str = ", secret: {name: ao, key: first}";
const REST: &str = ", algorithm: hmac-sha-1-96, secret: {name: ao, key: first}";

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_keys_of_tcp_ao_are_told() {
    let keys = |lines: &str| with(&format!("tcpAO:\n  keys:\n{lines}"));
    let one = key(1, 2, REST);
    let path = |rest: &str| format!("spec.tcpAO.keys{rest}");
    let many: String = (0..17).map(|id| key(id, id, REST)).collect();
    for (what, text, line, field, says) in [
        ("beside MD5", with(&format!("password: x\ntcpAO:\n  keys:\n{one}")), 10, "spec.tcpAO".to_owned(), "and spec.password cannot both be set"),
        ("beside a Secret", with(&format!("passwordSecret: {{name: x}}\ntcpAO:\n  keys:\n{one}")), 10, "spec.tcpAO".to_owned(), "and spec.passwordSecret cannot both be set"),
        ("no list", with("tcpAO: {}"), 9, path(""), "is missing; expected a list of keys"),
        ("no keys", with("tcpAO: {keys: []}"), 9, path(""), "0 keys; a peer may have 1 to 16"),
        ("17 keys", keys(&many), 10, path(""), "17 keys; a peer may have 1 to 16"),
        ("send 256", keys(&key(256, 0, REST)), 11, path("[0].sendID"), "from 0 to 255"),
        ("no number", keys("  - {sendID: 1, algorithm: hmac-sha-1-96, secret: {name: ao, key: x}}\n"), 11, path("[0].recvID"), "is missing"),
        ("same send", keys(&format!("{one}{}", key(1, 3, REST))), 10, path(""), "two keys have the send ID 1"),
        ("same receive", keys(&format!("{one}{}", key(3, 2, REST))), 10, path(""), "two keys have the receive ID 2"),
        ("no algorithm", keys(&key(1, 1, SECRET)), 11, path("[0].algorithm"), "hmac-sha-1-96, aes-128-cmac-96 or hmac-sha-256-96"),
        ("algorithm", keys(&key(1, 1, &format!("{SECRET}, algorithm: md5"))), 11, path("[0].algorithm"), "aes-128-cmac-96"),
        ("no secret", keys(&key(1, 1, ", algorithm: hmac-sha-1-96")), 11, path("[0].secret"), "is missing"),
        ("no name", keys(&key(1, 1, ", algorithm: hmac-sha-1-96, secret: {key: x}")), 11, path("[0].secret.name"), "is missing"),
        ("no key", keys(&key(1, 1, ", algorithm: hmac-sha-1-96, secret: {name: x}")), 11, path("[0].secret.key"), "is missing"),
        ("absent", keys(&one), 11, path("[0].secret"), "there is no Secret default/ao with a usable key first"),
        ("unknown", with(&format!("tcpAO:\n  keys:\n{one}  key: x")), 12, "spec.tcpAO.key".to_owned(), "keys?"),
    ] {
        one_fault(what, &text, line, &field, says);
    }
}

#[test]
fn no_fault_repeats_a_key_of_tcp_ao() {
    let canary = "7362514";
    let keys = |lines: &str| with(&format!("tcpAO:\n  keys:\n{lines}"));
    for text in [
        with(&format!("tcpAO: {canary}")),
        with(&format!("tcpAO: {{keys: '{canary}'}}")),
        with(&format!("tcpAO: {{keys: ['{canary}']}}")),
        keys(&key(1, 1, &format!(", algorithm: hmac-sha-1-96, secret: '{canary}'"))),
        keys(&key(1, 1, &format!(", algorithm: hmac-sha-1-96, secret: {canary}"))),
        keys(&key(1, 1, &format!("{REST}, password: '{canary}'"))),
    ] {
        let resolution = beside_good("key", &text);
        assert!(resolution.has_faults(), "{text}");
        assert!(resolution.findings.iter().all(|finding| !finding.to_string().contains(canary)));
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn settings_without_effect_are_warnings() {
    for (what, text, line, field, says) in [
        ("multihop on a link", of("interface: eth0\nebgpMultiHop: true"), 9, "spec.ebgpMultiHop", "directly connected"),
        ("passive port", with("passive: true\npeerPort: 1179"), 10, "spec.peerPort", "never dialled"),
        ("passive dial", with("passive: true\nconnectTime: 7s"), 10, "spec.connectTime", "never dialled"),
        ("dial of a range", of("listenRange: 10.0.0.0/8\nconnectTime: 7s"), 9, "spec.connectTime", "never dialled"),
        ("extended", of("peerAddress: 2001:db8::9\nextendedNexthop: true"), 9, "spec.extendedNexthop", "carries no IPv4"),
        ("next hop", with("toAdvertise:\n  nextHop: {ipv6: '2001:db8::1'}"), 10, "spec.toAdvertise.nextHop.ipv6", "carries IPv4 Unicast only"),
        ("next hop of a range", of("listenRange: 2001:db8::/32\ntoAdvertise:\n  nextHop: {ipv4: 192.0.2.1}"), 10, "spec.toAdvertise.nextHop.ipv4", "carries IPv6 Unicast only"),
    ] {
        let resolution = beside_good(what, &text);
        let [warning] = resolution.findings.as_slice() else {
            panic!("{what}: {:#?}", resolution.findings)
        };
        assert!(!warning.is_fault(), "{warning}");
        check(what, warning, line, field, says);
        assert_eq!(resolution.objects.len(), 7, "{what}");
    }
}

#[test]
fn every_kind_of_neighbour_is_read() {
    let unnumbered = settings("unnumbered", &of("interface: eth0.100\nttlSecurityHops: 1"));
    assert_eq!(unnumbered.remote, Remote::Interface("eth0.100".parse().unwrap()));
    assert!(unnumbered.extended_next_hop, "that is what such sessions are for");
    assert_eq!(unnumbered.ttl_security_hops, NonZeroU8::new(1));
    let plain = settings("plain", &of("interface: eth0\nextendedNexthop: false"));
    assert!(!plain.extended_next_hop);

    let text =
        "myASN: 1\ndynamicASN: external\nlistenRange: 2001:db8::/64\nvrf: blue\npeerPort: 179";
    let range = settings("range", &peer(text));
    assert_eq!(range.remote, Remote::Range("2001:db8::/64".parse().unwrap()));
    assert_eq!(range.listen_limit, 100);
    assert_eq!(range.remote_as, RemoteAs::External);
    assert_eq!(range.key().to_string(), "2001:db8::/64 vrf blue");
    let range = settings("limit", &peer(&format!("{text}\nlistenLimit: 65535")));
    assert_eq!(range.listen_limit, 65_535);

    let text = "myASN: 1\npeerASN: 0\ndynamicASN: internal\npeerAddress: 192.0.2.9\npassive: true";
    let passive = settings("passive", &peer(text));
    assert_eq!(passive.remote_as, RemoteAs::Internal);
    assert!(passive.passive);
    assert_eq!(passive.key().to_string(), "192.0.2.9");
}

#[test]
fn every_setting_of_a_session_is_read() {
    let text = with(
        "localASN: 64510\nttlSecurityHops: 254\naddPath: {send: 16, receive: true}\n\
         routeServerClient: true\nallowASIn: 3\n\
         extendedNexthop: true\nrole: rs-client\nroleStrict: true\nshutdown: {message: Wartung, \
         zurück um 5}\ndualStackAddressFamily: true\n\
         toAdvertise: {nextHop: {ipv4: 192.0.2.7, ipv6: '2001:db8::7'}}",
    )
    .replace("Wartung, zurück um 5", "'Wartung, zurück um 5'");
    let peer = settings("everything", &text);
    assert_eq!(peer.local_asn.map(|asn| asn.get()), Some(64_510));
    assert_eq!(peer.my_asn.get(), 64_500);
    assert_eq!(peer.ttl_security_hops, NonZeroU8::new(254));
    assert_eq!(peer.add_path, AddPath { send: NonZeroU8::new(16), receive: true });
    assert!(peer.extended_next_hop && peer.role_strict);
    assert_eq!((peer.client, peer.import.own_as_max), (Some(ClientKind::RouteServer), 3));
    assert_eq!(peer.role, Some(Role::RouteServerClient));
    assert_eq!(peer.shutdown, ShutdownMessage::new("Wartung, zurück um 5").ok());
    let next_hops =
        ChosenNextHops { ipv4: "192.0.2.7".parse().ok(), ipv6: "2001:db8::7".parse().ok() };
    assert_eq!(peer.next_hops, next_hops);
    assert_eq!(settings("down", &with("shutdown: {}")).shutdown, ShutdownMessage::new("").ok());
    assert_eq!(settings("up", &with("shutdown:")).shutdown, None);
    let silent =
        settings("silent", &with("role: ''\ninterface: ''\nlistenRange: ''\ndynamicASN: ''"));
    assert_eq!(silent.remote, Remote::Address("192.0.2.9".parse().unwrap()));
}

#[test]
fn keys_of_tcp_ao_come_from_secrets_of_any_type() {
    let secret =
        manifest("v1", "Secret", "type: Opaque\ndata: {first: Zm9v}\nstringData: {second: bar}");
    let rest = REST.replace("name: ao", "name: new");
    let second = rest.replace("first", "second").replace("hmac-sha-1", "aes-128-cmac");
    let keys = format!("{}{}", key(0, 255, &rest), key(255, 0, &second));
    let text = format!("{}---\n{secret}", with(&format!("tcpAO:\n  keys:\n{keys}")));
    let resolution = beside_good("keys", &text);
    assert_eq!(resolution.findings, []);
    let peer = settings_of(&resolution.objects);
    assert_eq!(peer.password, PeerPassword::None);
    let read: Vec<_> =
        peer.tcp_ao.iter().map(|it| (it.send_id, it.recv_id, it.algorithm, &*it.key)).collect();
    let expected =
        [(0, 255, AoAlgorithm::HmacSha1, "first"), (255, 0, AoAlgorithm::AesCmac128, "second")];
    assert_eq!(read, expected);
}

fn settings_of(objects: &[Object]) -> fairway_model::Peer {
    let mut peers = objects.iter().filter_map(|object| match object {
        Object::Peer(peer) if peer.name.name == "new" => Some((**peer).clone()),
        _ => None,
    });
    peers.next().unwrap()
}

#[test]
fn two_peers_that_name_one_neighbour_are_told() {
    let named = |name: &str, text: &str| text.replace("name: new", &format!("name: {name}"));
    for (way, field, noun) in [
        ("interface: eth0", "spec.interface", "interface"),
        ("listenRange: 10.0.0.0/8", "spec.listenRange", "range"),
        ("peerAddress: 192.0.2.9\nvrf: blue", "spec.peerAddress", "address"),
    ] {
        let (mut catalog, _) = good();
        catalog.file_read("first.yaml", &named("first", &of(way)));
        assert_eq!(catalog.resolve().findings, [], "{way}");
        catalog.file_read("bad.yaml", &named("second", &of(way)));
        let resolution = catalog.resolve();
        let [fault] = resolution.findings.as_slice() else { panic!("{:#?}", resolution.findings) };
        check(way, fault, 8, field, &format!("is the {noun} of BGPPeer/first too"));
        // In another VRF it is another neighbour, and so is a range inside a range.
        let elsewhere = format!("{}\nvrf: red", way.replace("\nvrf: blue", ""));
        catalog.file_read("bad.yaml", &named("second", &of(&elsewhere)));
        assert_eq!(catalog.resolve().findings, [], "{way}");
        catalog.file_read("bad.yaml", &named("second", &of(&way.replace("/8", "/16"))));
        assert_eq!(catalog.resolve().has_faults(), !way.contains("/8"), "{way}");
    }
}

#[test]
fn a_peer_without_a_key_in_a_range_that_has_one_is_warned_of() {
    let named = |name: &str, more: &str| of(more).replace("name: new", &format!("name: {name}"));
    let (mut catalog, _) = good();
    catalog.file_read("range.yaml", &named("racks", "listenRange: 10.0.0.0/24\npassword: key"));
    for (more, field) in [
        ("peerAddress: 10.0.0.9", Some("spec.peerAddress")),
        ("listenRange: 10.0.0.8/29", Some("spec.listenRange")),
        ("peerAddress: 10.0.0.9\npassword: another", None),
        ("listenRange: 10.0.0.8/29\npassword: another", None),
        ("peerAddress: 10.0.0.9\nvrf: blue", None),
        ("peerAddress: 10.0.1.9", None),
        ("listenRange: 10.0.0.0/8", None),
        ("interface: eth0", None),
    ] {
        catalog.file_read("bad.yaml", &named("bare", more));
        let resolution = catalog.resolve();
        assert!(!resolution.has_faults(), "{more}");
        match (field, resolution.findings.as_slice()) {
            (Some(field), [warning]) => {
                check(more, warning, 8, field, "is in 10.0.0.0/24 of BGPPeer/racks");
            }
            (None, []) => {}
            (_, findings) => panic!("{more}: {findings:#?}"),
        }
    }
}
