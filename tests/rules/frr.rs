//! What FRR cannot do, alone or for several peers at once; our own sessions can.

use super::row::{
    METALLB, OURS, Row, advertisement, all, labelled, manifest, peer, pool, profile, row,
};

const MANUAL: &str = "FRR's manual";

const NEWEST: Option<(u8, u8)> = Some((10, 5));

fn new(fields: &str) -> String {
    peer("new", &format!("peerASN: 64502, peerAddress: 192.0.2.9, {fields}"))
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn rows() -> Vec<Row> {
    let ao = all(&[
        &new("myASN: 64500, tcpAO: {keys: [{sendID: 1, recvID: 1, algorithm: hmac-sha-1-96, secret: {name: ao, key: a}}]}"),
        &manifest("v1", "Secret", "ao", "stringData: {a: one}"),
    ]);
    let restarting = "enableGracefulRestart: true, gracefulRestart: {restartTime: 60s}";
    let range = |name: &str, second: u8, limit: u32| {
        peer(name, &format!("myASN: 64500, peerASN: 64502, listenRange: 10.{second}.0.0/16, listenLimit: {limit}"))
    };
    let racks = all(&[
        &new("myASN: 64999, nodeSelectors: [{matchLabels: {rack: a}}]"),
        &peer("tor", "myASN: 64500, peerASN: 64501, peerAddress: 192.0.2.1, nodeSelectors: [{matchLabels: {rack: b}}]"),
        &labelled("Node", "one", "rack: a"),
        &labelled("Node", "two", "rack: b"),
    ]);
    let echo = |mode: &str, addresses: &str| {
        all(&[
            &new("myASN: 64500, bfdProfile: fast"),
            &profile("fast", &format!("echoMode: {mode}")),
            &pool("six", &format!("addresses: ['{addresses}']")),
            &advertisement("six", "ipAddressPools: [six]"),
        ])
    };
    let (ipv4, ipv6) = ("203.0.113.0/24", "2001:db8::/64");
    vec![
        row("frr-my-asn", METALLB, "Peers of a VRF that share a node have one myASN", new("myASN: 64999")).frr(NEWEST).refused("is 64999, but 64500 in BGPPeer/tor"),
        row("frr-my-asn-native", OURS, "The native backend may have several", new("myASN: 64999")),
        row("frr-my-asn-vrf", METALLB, "Another VRF may have another", new("myASN: 64999, vrf: blue")).frr(NEWEST),
        row("frr-my-asn-nodes", METALLB, "Peers on other nodes may have another", racks).frr(NEWEST).alone(),
        row("frr-my-asn-edit", METALLB, "An edit of myASN must include all peers at once", new("myASN: 64999")).after(new("myASN: 64500")).frr(NEWEST).refused("is 64999, but 64500 in BGPPeer/tor"),
        row("frr-router-id", METALLB, "Peers of a VRF that share a node have one routerID", new("myASN: 64500, routerID: 192.0.2.77")).frr(NEWEST).refused("is 192.0.2.77, but unset in BGPPeer/tor"),
        row("frr-restart-time", MANUAL, "Peers of a VRF that share a node have one restartTime", new(&format!("myASN: 64500, {restarting}"))).frr(NEWEST).refused("is 60s and 0s, but 120s and 0s in BGPPeer/tor"),
        row("frr-attribute-bytes", MANUAL, "FRR counts prefixes, and no bytes", new("myASN: 64500, toReceive: {allowed: {mode: all}, maxPrefixes: {limit: 5, attributeBytes: 65536}}")).frr(NEWEST).refused("counts prefixes only"),
        row("frr-listen-limit", MANUAL, "Ranges of a VRF that share a node have one listenLimit", all(&[&range("new", 1, 10), &range("second", 2, 20)])).frr(NEWEST).refused("is 20, but 10 in BGPPeer/new"),
        row("frr-tcp-ao", MANUAL, "FRR has no TCP-AO", ao).frr(NEWEST).refused("has no TCP-AO"),
        row("frr-profile-authentication", MANUAL, "FRR has no BFD authentication", profile("new", "authentication: {type: sha1, keyID: 1, secret: {name: a, key: b}}")).frr(NEWEST).refused("no BFD authentication"),
        row("frr-role", MANUAL, "Roles came with FRR 8.4", new("myASN: 64500, role: customer")).frr(Some((8, 3))).refused("needs FRR 8.4 or newer, and this is 8.3"),
        row("frr-role-since", MANUAL, "FRR 8.4 knows roles", new("myASN: 64500, role: customer")).frr(Some((8, 4))),
        row("frr-role-unknown", MANUAL, "Whether an unknown version has roles is not known", new("myASN: 64500, role: customer")).frr(None).warned("needs FRR 8.4 or newer; check with --frr-version"),
        row("frr-bfd-strict", MANUAL, "Strict BFD came with FRR 10.4", all(&[&new("myASN: 64500, bfdProfile: fast, bfdStrict: true"), &profile("fast", "")])).frr(Some((10, 3))).refused("needs FRR 10.4 or newer"),
        row("frr-bfd-strict-since", MANUAL, "FRR 10.4 has strict BFD", all(&[&new("myASN: 64500, bfdProfile: fast, bfdStrict: true"), &profile("fast", "")])).frr(Some((10, 4))),
        row("frr-add-path", MANUAL, "FRR sends 6 paths at most", new("myASN: 64500, addPath: {send: 7}")).frr(NEWEST).refused("more than FRR can do; expected 1 to 6"),
        row("frr-add-path-version", MANUAL, "FRR selects paths to send since 9.1", new("myASN: 64500, addPath: {send: 2}")).frr(Some((8, 5))).refused("needs FRR 9.1 or newer"),
        row("frr-install-range", OURS, "FRR installs the routes of neighbors that it knows by address or interface", peer("new", "myASN: 64500, peerASN: 64502, listenRange: 10.1.0.0/16, installRoutes: true")).frr(NEWEST).refused("for a listenRange"),
        row("frr-rules", MANUAL, "FRR has rules as entries of route maps", new("myASN: 64500, toReceive: {allowed: {mode: all}, rules: [{match: {asPath: '^65010_', communities: ['rt:65001:1']}, set: {asPathPrepend: 10, communities: {add: ['soo:192.0.2.1:1']}}}]}")).frr(NEWEST),
        row("frr-rules-origin-validation", OURS, "Fairway sets up no RPKI in FRR", new("myASN: 64500, toReceive: {allowed: {mode: all}, rules: [{match: {originValidation: invalid}, action: reject}]}")).frr(NEWEST).refused("rules[0].match.originValidation: is not supported with FRR"),
        row("frr-rules-as-path", MANUAL, "FRR knows no classes of characters in expressions of AS paths", new("myASN: 64500, toReceive: {allowed: {mode: all}, rules: [{match: {asPath: '^[[:digit:]]+$'}, action: reject}]}")).frr(NEWEST).refused("rules[0].match.asPath: is no expression of FRR's"),
        row("frr-rules-next-hop", OURS, "FRR sets a next hop before rules look at it", new("myASN: 64500, toAdvertise: {allowed: {mode: all}, nextHop: {ipv4: 192.0.2.9}, rules: [{match: {nextHops: [10.0.0.0/8]}, action: reject}]}")).frr(NEWEST).refused("rules[0].match.nextHops: beside toAdvertise.nextHop is not supported with FRR"),
        row("frr-rules-prepend", MANUAL, "FRR prepends the first AS of a path 10 times at most", new("myASN: 64500, toReceive: {allowed: {mode: all}, rules: [{set: {asPathPrepend: 11}}]}")).frr(NEWEST).refused("expected 0 to 10"),
        row("frr-rules-remove-extended", MANUAL, "FRR removes no single extended community before 10.0", new("myASN: 64500, toAdvertise: {allowed: {mode: all}, rules: [{set: {communities: {remove: ['rt:65001:1']}}}]}")).frr(NEWEST).refused("which removes none of them alone"),
        row("frr-rules-replace-extended", MANUAL, "FRR sets either none or some extended communities", new("myASN: 64500, toAdvertise: {allowed: {mode: all}, rules: [{set: {communities: {replace: ['rt:65001:1']}}}]}")).frr(NEWEST).refused("which sets none or adds some"),
        row("frr-bandwidth-unit", MANUAL, "FRR uses Mbit/s for link bandwidth", advertisement("new", "ipAddressPools: [public], peers: [second], linkBandwidth: 1500000")).frr(NEWEST).refused("expected a multiple of 1000000"),
        row("frr-bandwidth-version", MANUAL, "Older FRR has 25.6 Gbit/s at most", advertisement("new", "ipAddressPools: [public], peers: [second], linkBandwidth: 100000000000")).frr(Some((8, 4))).refused("needs FRR 10.3 or newer"),
        row("frr-echo", METALLB, "A peer that receives IPv6 addresses has no echoMode", echo("true", ipv6)).frr(NEWEST).refused("BFDProfile/fast has echoMode"),
        row("frr-echo-ipv4", METALLB, "With IPv4 echoMode is fine", echo("true", ipv4)).frr(NEWEST),
        row("frr-echo-profile", OURS, "An edit of a profile is checked against its peers", echo("true", ipv6)).after(echo("false", ipv6)).frr(NEWEST).refused("BFDProfile/fast: spec.echoMode: is not supported for BGPPeer/new"),
        row("frr-echo-pool", OURS, "An edit of a pool is checked against echoMode", echo("true", ipv6)).after(echo("true", ipv4)).frr(NEWEST).refused("IPAddressPool/six: spec.addresses: has IPv6 addresses"),
    ]
}
