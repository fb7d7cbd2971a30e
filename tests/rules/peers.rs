//! Rules for BGPPeers.

use super::row::{
    METALLB, OURS, PEER, Row, advertisement, all, labelled, manifest, peer, profile, row,
};

fn with(fields: &str) -> String {
    peer("new", &format!("{PEER}, {fields}"))
}

fn without(field: &str) -> String {
    let fields = PEER.split(", ").filter(|it| !it.starts_with(field));
    peer("new", &fields.collect::<Vec<_>>().join(", "))
}

fn secret(rest: &str) -> String {
    manifest("v1", "Secret", "key", rest)
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn rows() -> Vec<Row> {
    let old = |fields: &str| {
        manifest("metallb.io/v1beta1", "BGPPeer", "new", &format!("spec: {{{PEER}, {fields}}}"))
    };
    let ao = |fields: &str| with(&format!("tcpAO: {{keys: [{{sendID: 1, recvID: 1, {fields}}}]}}"));
    vec![
        row("peer-my-asn", METALLB, "myASN is given", without("myASN")).refused("myASN: is missing"),
        row("peer-my-asn-zero", METALLB, "myASN is not 0", peer("new", "myASN: 0, peerASN: 1, peerAddress: 192.0.2.9")).refused("1 to 4294967295"),
        row("peer-asn-missing", METALLB, "peerASN or dynamicASN is given", without("peerASN")).refused("peerASN"),
        row("peer-asn-both", METALLB, "Of peerASN and dynamicASN only one is given", with("dynamicASN: external")).refused("cannot both be set"),
        row("peer-asn-asdot", METALLB, "peerASN is a plain number", peer("new", "myASN: 1, peerASN: '1.10', peerAddress: 192.0.2.9")).refused("65546"),
        row("peer-asn-dynamic", METALLB, "dynamicASN is internal or external", peer("new", "myASN: 1, dynamicASN: any, peerAddress: 192.0.2.9")).refused("internal"),
        row("peer-address-missing", METALLB, "peerAddress, interface or listenRange is given", without("peerAddress")).refused("is missing"),
        row("peer-address-both", METALLB, "Of peerAddress and interface only one is given", with("interface: eth0")).refused("remove one"),
        row("peer-address-range", OURS, "Of peerAddress and listenRange only one is given", with("listenRange: 10.0.0.0/8")).refused("remove one"),
        row("peer-address-gateway", OURS, "Of peerAddress and autoDiscovery only one is given", with("autoDiscovery: {mode: DefaultGateway, addressFamily: ipv4}")).refused("remove one"),
        row("peer-gateway-mode", OURS, "autoDiscovery.mode is DefaultGateway", peer("new", "myASN: 1, peerASN: 2, autoDiscovery: {mode: LLDP, addressFamily: ipv4}")).refused("expected DefaultGateway"),
        row("peer-gateway-family", OURS, "autoDiscovery.addressFamily is ipv4 or ipv6", peer("new", "myASN: 1, peerASN: 2, autoDiscovery: {mode: DefaultGateway, addressFamily: IPv4}")).refused("expected ipv4 or ipv6"),
        row("peer-gateway-twice", OURS, "No node has two peers that are its default gateway of one family", all(&[&peer("new", "myASN: 1, peerASN: 2, autoDiscovery: {mode: DefaultGateway, addressFamily: ipv4}"), &peer("second", "myASN: 1, peerASN: 3, autoDiscovery: {mode: DefaultGateway, addressFamily: ipv4}")])).refused("IPv4 default gateway is the peer of BGPPeer/new too"),
        row("peer-address", METALLB, "peerAddress is an address", peer("new", "myASN: 1, peerASN: 2, peerAddress: tor.example")).refused("192.0.2.1"),
        row("peer-address-multicast", OURS, "peerAddress is a unicast address", peer("new", "myASN: 1, peerASN: 2, peerAddress: 224.0.0.1")).refused("unicast"),
        row("peer-address-link-local", OURS, "A neighbor of a link is named by its interface", peer("new", "myASN: 1, peerASN: 2, peerAddress: 'fe80::1'")).refused("interface"),
        row("peer-port", METALLB, "peerPort is 1 to 16384", with("peerPort: 16385")).refused("1 to 16384"),
        row("peer-port-zero", METALLB, "peerPort is not 0 in v1beta2", with("peerPort: 0")).refused("0 is not allowed; expected a port from 1 to 16384"),
        row("peer-hold-time", "RFC 4271", "A hold time is 0, or 3 s and more", with("holdTime: 1s")).refused("3 to 65535"),
        row("peer-hold-time-zero", OURS, "With a hold time of 0 a dead neighbor is never detected", with("holdTime: 0s")).warned("never detected"),
        row("peer-hold-time-fraction", METALLB, "A hold time is rounded down to whole seconds", with("holdTime: 9500ms")).warned("whole seconds"),
        row("peer-keepalive", METALLB, "keepaliveTime is not more than holdTime", with("holdTime: 9s, keepaliveTime: 10s")).refused("more than the hold time"),
        row("peer-connect-time", METALLB, "connectTime is whole seconds, 1 to 65535", with("connectTime: 500ms")).refused("whole seconds"),
        row("peer-router-id", "RFC 6286", "A router ID looks like an IPv4 address", with("routerID: '2001:db8::1'")).refused("router ID"),
        row("peer-source-family", METALLB, "sourceAddress has the family of peerAddress", with("sourceAddress: '2001:db8::1'")).refused("family"),
        row("peer-multihop-internal", METALLB, "ebgpMultiHop is for eBGP", peer("new", "myASN: 1, peerASN: 1, peerAddress: 192.0.2.9, ebgpMultiHop: true")).refused("eBGP only"),
        row("peer-disable-mp", METALLB, "disableMP has no effect", with("disableMP: true")).warned("has no effect"),
        row("peer-password-both", METALLB, "Of password and passwordSecret only one is given", with("password: a, passwordSecret: {name: key}")).refused("cannot both"),
        row("peer-password-long", "RFC 2385", "A password is 80 bytes at most", with(&format!("password: {}", "x".repeat(81)))).refused("81 bytes"),
        row("peer-secret-empty", METALLB, "An empty name of a Secret means none", with("password: a, passwordSecret: {name: ''}")),
        row("peer-secret-missing", METALLB, "The Secret that it names exists", with("passwordSecret: {name: nobody}")).refused("no usable Secret default/nobody"),
        row("peer-secret-type", METALLB, "That Secret is of type kubernetes.io/basic-auth", all(&[&with("passwordSecret: {name: key}"), &secret("stringData: {password: a}")])).refused("kubernetes.io/basic-auth"),
        row("peer-secret-vanishes", OURS, "A session outlives its Secret", with("passwordSecret: {name: key}")).after(all(&[&with("passwordSecret: {name: key}"), &secret("type: kubernetes.io/basic-auth\nstringData: {password: a}")])).refused("no usable Secret"),
        row("peer-profile-missing", METALLB, "The BFDProfile that it names exists", with("bfdProfile: nobody")).refused("there is no BFDProfile nobody"),
        row("peer-profile-vanishes", OURS, "A session outlives its BFDProfile", with("bfdProfile: fast")).after(all(&[&with("bfdProfile: fast"), &profile("fast", "")])).refused("there is no BFDProfile fast"),
        row("peer-profile", METALLB, "BFD watches the session", all(&[&with("bfdProfile: fast"), &profile("fast", "")])),
        row("peer-bfd-strict", OURS, "A session waits for BFD", all(&[&with("bfdProfile: fast, bfdStrict: true"), &profile("fast", "")])),
        row("peer-bfd-strict-alone", OURS, "bfdStrict needs a bfdProfile", with("bfdStrict: true")).refused("needs BFD"),
        row("peer-local-asn-internal", METALLB, "localASN is for eBGP", peer("new", "myASN: 1, peerASN: 1, localASN: 2, peerAddress: 192.0.2.9")).refused("eBGP only"),
        row("peer-local-asn-same", OURS, "localASN differs from myASN", with("localASN: 64500")).refused("myASN already"),
        row("peer-hops-both", "RFC 5082", "ttlSecurityHops and ebgpMultiHop exclude each other", with("ebgpMultiHop: true, ttlSecurityHops: 2")).refused("cannot both be set"),
        row("peer-hops-interface", "RFC 5082", "The neighbor of an interface is one hop away", peer("new", "myASN: 1, peerASN: 2, interface: eth0, ttlSecurityHops: 2")).refused("use 1"),
        row("peer-role-internal", "RFC 9234", "A role is for eBGP", peer("new", "myASN: 1, peerASN: 1, peerAddress: 192.0.2.9, role: peer")).refused("eBGP only"),
        row("peer-role-strict", "RFC 9234", "roleStrict needs a role", with("roleStrict: true")).refused("needs a role"),
        row("peer-role-word", "RFC 9234", "A role is one of five", with("role: upstream")).refused("provider"),
        row("peer-reflector-external", "RFC 4456", "A route reflector's client is an iBGP peer", with("routeReflectorClient: true")).refused("iBGP only"),
        row("peer-cluster-external", "RFC 4456", "A cluster ID is for iBGP", with("clusterID: 192.0.2.1")).refused("iBGP only"),
        row("peer-cluster-zero", "RFC 4456", "A cluster ID is not zero", peer("new", "myASN: 1, peerASN: 1, peerAddress: 192.0.2.9, clusterID: 0.0.0.0")).refused("not 0.0.0.0"),
        row("peer-server-internal", "RFC 7947", "A route server's client is an eBGP peer", peer("new", "myASN: 1, peerASN: 1, peerAddress: 192.0.2.9, routeServerClient: true")).refused("eBGP only"),
        row("peer-own-as", OURS, "allowASIn is 1 to 10", with("allowASIn: 11")).refused("from 1 to 10"),
        row("peer-add-path", OURS, "addPath sends 1 to 16 paths", with("addPath: {send: 17}")).refused("1 to 16"),
        row("peer-restart-time", "RFC 4724", "restartTime is 4095 s at most", with("enableGracefulRestart: true, gracefulRestart: {restartTime: 4096s}")).refused("4095s"),
        row("peer-stale-time", "RFC 9494", "longLivedStaleTime has 24 bits", with("enableGracefulRestart: true, gracefulRestart: {longLivedStaleTime: 16777216s}")).refused("16777215s"),
        row("peer-restart-off", OURS, "gracefulRestart needs enableGracefulRestart", with("gracefulRestart: {restartTime: 5m}")).warned("no effect without"),
        row("peer-restart-unset", OURS, "Without enableGracefulRestart a restart loses the routes", with("holdTime: 9s")).warned("is not set").by_check(),
        row("peer-vrf", OURS, "The VRF exists on the node", with("vrf: blue")).warned("CONFIG_NET_VRF").by_check(),
        row("peer-shutdown", "RFC 9003", "A shutdown message has 255 bytes at most", with(&format!("shutdown: {{message: {}}}", "x".repeat(256)))).refused("255"),
        row("peer-ao-algorithm", "RFC 5926", "An algorithm of TCP-AO exists", ao("algorithm: md5, secret: {name: a, key: b}")).refused("hmac-sha-1-96"),
        row("peer-ao-secret", OURS, "The key of TCP-AO is in its Secret", ao("algorithm: hmac-sha-1-96, secret: {name: nobody, key: b}")).refused("no Secret default/nobody with a usable key b"),
        row("peer-ao-and-md5", "RFC 5925", "TCP-AO and TCP-MD5 exclude each other", ao("algorithm: hmac-sha-1-96, secret: {name: a, key: b}").replace(", tcpAO", ", password: x, tcpAO")).refused("remove one"),
        row("peer-v1beta1", METALLB, "v1beta1 without timers means timers of 0", old("peerPort: 179")).warned("holdTime"),
        row("peer-v1beta1-port-zero", METALLB, "In v1beta1 peerPort 0 is 179", old("peerPort: 0")).warned("holdTime"),
        row("peer-v1beta1-field", METALLB, "v1beta1 knows its own fields only", old("vrf: blue")).refused("is not a known field"),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn routes() -> Vec<Row> {
    vec![
        row("peer-receive-bounds", OURS, "ge is not less than the prefix is long", with("toReceive: {allowed: {prefixes: [{prefix: 10.0.0.0/8, ge: 4}]}}")).refused("ge"),
        row("peer-attribute-bytes", OURS, "maxPrefixes.attributeBytes is enough for one UPDATE", with("toReceive: {allowed: {mode: all}, maxPrefixes: {limit: 5, attributeBytes: 65535}}")).refused("attributeBytes"),
        row("peer-receive-limit", OURS, "maxPrefixes.limit is not 0", with("toReceive: {allowed: {mode: all}, maxPrefixes: {limit: 0}}")).refused("limit"),
        row("peer-rule-replace", OURS, "communities.replace of a rule excludes add and remove", with("toReceive: {allowed: {mode: all}, rules: [{set: {communities: {replace: [], add: [no-export]}}}]}")).refused("cannot both be given"),
        row("peer-rule-expression", OURS, "asPath of a rule is a regular expression", with("toReceive: {allowed: {mode: all}, rules: [{match: {asPath: '(65010'}}]}")).refused("unclosed group"),
        row("peer-rule-origin", OURS, "originValidation of a rule is a state of RFC 6811", with("toReceive: {allowed: {mode: all}, rules: [{match: {originValidation: unknown}, action: reject}]}")).refused("valid, invalid or notFound"),
        row("peer-rule-next-hop", OURS, "nextHop is for rules of toAdvertise", with("toReceive: {allowed: {mode: all}, rules: [{set: {nextHop: {ipv4: 192.0.2.9}}}]}")).refused("is for toAdvertise"),
        row("peer-rule-unreached", OURS, "A rule is not behind one for every route", with("toAdvertise: {allowed: {mode: all}, rules: [{action: reject}, {set: {med: 1}}]}")).warned("move it up"),
        row("peer-next-hop-family", OURS, "A next hop is of a family that the session carries", with("toAdvertise: {nextHop: {ipv6: '2001:db8::1'}}")).warned("carries IPv4"),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn together() -> Vec<Row> {
    let second = |fields: &str| peer("second", &format!("myASN: 64500, peerASN: 64502, peerAddress: 192.0.2.9, {fields}"));
    let in_rack = |rack: &str| format!("nodeSelectors: [{{matchLabels: {{rack: {rack}}}}}]");
    let node = |name: &str, rack: &str| labelled("Node", name, &format!("rack: {rack}"));
    let racks = all(&[&with(&in_rack("a")), &second(&in_rack("b"))]);
    vec![
        row("peer-address-twice", METALLB, "No node has two peers with one address", peer("new", "myASN: 64500, peerASN: 64502, peerAddress: 192.0.2.1")).refused("BGPPeer/tor too"),
        row("peer-address-twice-edit", METALLB, "Nor by an edit", peer("new", "myASN: 64500, peerASN: 64502, peerAddress: 192.0.2.1")).after(with("passive: false")).refused("BGPPeer/tor too"),
        row("peer-interface-twice", METALLB, "No node has two peers on one interface", all(&[&peer("new", "myASN: 1, peerASN: 2, interface: eth0"), &peer("second", "myASN: 1, peerASN: 2, interface: eth0")])).refused("eth0 is the interface of BGPPeer/new too"),
        row("peer-range-twice", OURS, "No node has two peers of one range", all(&[&peer("new", "myASN: 1, peerASN: 2, listenRange: 10.0.0.0/8"), &peer("second", "myASN: 1, peerASN: 3, listenRange: 10.0.0.0/8")])).refused("10.0.0.0/8 is the range of BGPPeer/new too"),
        row("peer-address-vrf", METALLB, "One address in two VRFs is two neighbors", all(&[&with("vrf: blue"), &second("vrf: red")])),
        row("peer-address-nodes", METALLB, "Nodes that differ may have peers with one address", all(&[&racks, &node("one", "a"), &node("two", "b")])),
        row("peer-address-nodes-unknown", METALLB, "Without Node objects selectors may meet", racks.clone()).refused("one node may have both"),
        row("peer-address-nodes-meet", OURS, "Peers that meet because a node changed both stay", all(&[&racks.replace("rack: b", "row: b"), &labelled("Node", "one", "rack: a, row: b")])).after(all(&[&racks.replace("rack: b", "row: b"), &labelled("Node", "one", "rack: a, row: c")])).refused("one node may have both"),
        row("peer-name", OURS, "Names of BGPPeers are unique, whatever their namespaces are", with("passive: false").replace("name: new", "name: tor")).refused("expected another name"),
        row("peer-nodes", OURS, "A node has it, where nodes are given", all(&[&with(&in_rack("z")), &node("one", "a")])).warned("selects none of the nodes given"),
        row("peer-in-signed-range", OURS, "The kernel requires the key of a range from every peer in it", all(&[&with("passive: false"), &peer("range", "myASN: 64500, peerASN: 64503, listenRange: 192.0.2.0/25, password: x"), &advertisement("more", "peers: [range], ipAddressPools: [public]")])).warned("is accepted only with that key"),
    ]
}
