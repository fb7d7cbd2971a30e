//! Which objects does the API server take? Each case is the spec of an object, and what becomes of
//! it: taken, or refused with words that name the field.

use serde_json::{Value, json};

use Verdict::{Refused, Taken, TakenButFaulty};

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The API server takes it, and so does our parser.
    Taken,
    /// MetalLB's schema lets it pass, so ours does; the parsers say what is wrong.
    TakenButFaulty,
    /// Neither takes it; the API server's answer has these words.
    Refused(&'static str),
}

/// An object that is offered.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) spec: Value,
    pub(crate) verdict: Verdict,
}

/// A spec of a BGPPeer with these fields beside what every peer needs.
fn peer(fields: Value) -> Value {
    with(json!({ "myASN": 64512, "peerASN": 64513, "peerAddress": "192.0.2.1" }), fields)
}

fn pool(fields: Value) -> Value {
    with(json!({ "addresses": ["192.0.2.0/24"] }), fields)
}

/// Both; a field that is null is left out.
fn with(mut spec: Value, fields: Value) -> Value {
    if let (Value::Object(spec), Value::Object(fields)) = (&mut spec, fields) {
        spec.extend(fields);
        spec.retain(|_, value| !value.is_null());
    }
    spec
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let of = |kind: &'static str, cases: Vec<(Value, Verdict)>| {
        cases.into_iter().map(move |(spec, verdict)| Case { kind, spec, verdict })
    };
    of("BGPPeer", peers())
        .chain(of("BGPPeer", our_peers()))
        .chain(of("BGPPeer", unnamed_peers()))
        .chain(of("BFDProfile", profiles()))
        .chain(of("IPAddressPool", pools()))
        .chain(of("BGPAdvertisement", advertisements()))
        .chain(of("L2Advertisement", layer2()))
        .chain(of("Community", communities()))
        .chain(of("BGPConfiguration", configurations()))
        .collect()
}

fn peers() -> Vec<(Value, Verdict)> {
    vec![
        (peer(json!({})), Taken),
        (peer(json!({ "myASN": null })), Refused("spec.myASN: Required")),
        (peer(json!({ "myASN": 0 })), TakenButFaulty),
        (peer(json!({ "myASN": -1 })), Refused("spec.myASN")),
        (peer(json!({ "myASN": 4_294_967_295_u32, "peerASN": 4_200_000_000_u32 })), Taken),
        (peer(json!({ "myASN": 4_294_967_296_u64 })), Refused("spec.myASN")),
        (peer(json!({ "myASN": "64512" })), Refused("spec.myASN")),
        (peer(json!({ "peerASN": null, "dynamicASN": "external" })), Taken),
        (peer(json!({ "peerASN": null, "dynamicASN": "internal" })), Taken),
        (
            peer(json!({ "peerASN": null, "dynamicASN": "any" })),
            Refused("spec.dynamicASN: Unsupported"),
        ),
        (peer(json!({ "peerASN": null })), TakenButFaulty),
        (peer(json!({ "localASN": 0 })), Refused("spec.localASN")),
        (peer(json!({ "localASN": 64514 })), Taken),
        (peer(json!({ "peerPort": 0 })), Refused("spec.peerPort")),
        (peer(json!({ "peerPort": 1 })), Taken),
        (peer(json!({ "peerPort": 16384 })), Taken),
        (peer(json!({ "peerPort": 16385 })), Refused("spec.peerPort")),
        (peer(json!({ "peerAddress": null, "interface": "eth0" })), Taken),
        (peer(json!({ "peerAddress": "nowhere" })), TakenButFaulty),
        (peer(json!({ "connectTime": "1s" })), Taken),
        (peer(json!({ "connectTime": "18h12m15s" })), Taken),
        (peer(json!({ "connectTime": "0s" })), Refused("expected from 1s to 65535s")),
        (peer(json!({ "connectTime": "65536s" })), Refused("expected from 1s to 65535s")),
        (peer(json!({ "connectTime": "1500ms" })), Refused("expected a whole number of seconds")),
        (peer(json!({ "connectTime": "soon" })), Refused("spec.connectTime")),
        (peer(json!({ "holdTime": "90s", "keepaliveTime": "30s" })), Taken),
        (peer(json!({ "holdTime": 90 })), Refused("spec.holdTime")),
        (peer(json!({ "holdTime": "1s" })), TakenButFaulty),
        (peer(json!({ "passwordSecret": { "name": "key", "namespace": "default" } })), Taken),
        (peer(json!({ "passwordSecret": "key" })), Refused("spec.passwordSecret")),
        (peer(json!({ "enableGracefulRestart": true, "dualStackAddressFamily": true })), Taken),
        (peer(json!({ "nodeSelectors": [{ "matchLabels": { "rack": "a" } }] })), Taken),
        (
            peer(json!({ "nodeSelectors": [{ "matchLabels": { "rack": 1 } }] })),
            Refused("matchLabels.rack"),
        ),
        (
            peer(json!({ "nodeSelectors": [{ "matchExpressions": [{ "key": "rack" }] }] })),
            Refused("matchExpressions[0].operator: Required"),
        ),
        (
            peer(json!({ "nodeSelectors": [
                { "matchExpressions": [{ "key": "rack", "operator": "In", "values": ["a", "b"] }] },
                { "matchExpressions": [{ "key": "gone", "operator": "DoesNotExist" }] },
            ] })),
            Taken,
        ),
    ]
}

/// Two rules with all fields of `toReceive`.
fn received(range: &Value) -> Value {
    json!([{
        "name": "customers",
        "match": {
            "prefixes": [range], "asPath": "_65010$", "communities": ["rt:65001:1"], "nextHops": ["192.0.2.0/24"],
            "originValidation": "invalid",
        },
        "set": {
            "localPref": 0, "med": 4_294_967_295_u32, "asPathPrepend": 16,
            "communities": { "add": ["no-export"], "remove": ["large:65001:1:2"] },
        },
        "action": "continue",
    }, { "set": { "communities": { "replace": [] } } }])
}

/// Likewise of `toAdvertise`.
fn advertised(range: &Value) -> Value {
    json!([{
        "match": { "prefixes": [range], "asPath": "_65010$", "communities": ["large:65001:1:2"] },
        "set": { "med": 0, "nextHop": { "ipv4": "192.0.2.9", "ipv6": "2001:db8::9" } },
    }, { "action": "reject" }])
}

fn our_peers() -> Vec<(Value, Verdict)> {
    let route = json!({ "prefix": "198.51.100.0/24", "ge": 24, "le": 32 });
    let allowed = json!({ "mode": "filtered", "prefixes": [route] });
    let (received, advertised) = (received(&route), advertised(&route));
    let key = json!({ "name": "keys", "key": "first" });
    let ao = |algorithm: &str| json!({ "sendID": 0, "recvID": 255, "algorithm": algorithm, "secret": key });
    vec![
        (
            peer(json!({
                "toReceive": { "allowed": allowed, "maxPrefixes": { "limit": 1000, "warnPercent": 80, "attributeBytes": 65_536 }, "rules": received, "keepFiltered": true },
                "toAdvertise": { "allowed": { "mode": "all" }, "nextHop": { "ipv4": "192.0.2.9" }, "rules": advertised },
                "enableGracefulRestart": true,
                "gracefulRestart": { "restartTime": "120s", "longLivedStaleTime": "1h" },
                "addPath": { "send": 16, "receive": true },
                "extendedNexthop": true,
                "ttlSecurityHops": 254,
                "routeServerClient": true,
                "allowASIn": 10,
                "role": "customer",
                "roleStrict": true,
                "shutdown": { "message": "moved" },
                "passive": true,
            })),
            Taken,
        ),
        (peer(json!({ "ttlSecurityHops": 255 })), Refused("spec.ttlSecurityHops")),
        (peer(json!({ "addPath": { "send": 17 } })), Refused("spec.addPath.send")),
        (peer(json!({ "allowASIn": 11 })), Refused("spec.allowASIn")),
        (peer(json!({ "routeReflectorClient": "yes" })), Refused("spec.routeReflectorClient")),
        (peer(json!({ "role": "friend" })), Refused("spec.role: Unsupported")),
        (
            peer(json!({ "toReceive": { "allowed": { "mode": "some" } } })),
            Refused("spec.toReceive.allowed.mode: Unsupported"),
        ),
        (
            peer(json!({ "toReceive": { "allowed": { "prefixes": [{ "ge": 24 }] } } })),
            Refused("spec.toReceive.allowed.prefixes[0].prefix: Required"),
        ),
        (
            peer(json!({ "toReceive": { "allowed": { "mode": "all" }, "maxPrefixes": {} } })),
            Refused("spec.toReceive.maxPrefixes.limit: Required"),
        ),
        (
            peer(json!({ "toReceive": { "rules": [{ "action": "deny" }] } })),
            Refused("spec.toReceive.rules[0].action: Unsupported"),
        ),
        (
            peer(json!({ "toAdvertise": { "rules": [{ "set": { "asPathPrepend": 17 } }] } })),
            Refused("spec.toAdvertise.rules[0].set.asPathPrepend"),
        ),
        (
            peer(json!({ "tcpAO": { "keys": [ao("hmac-sha-1-96"), ao("md5")] } })),
            Refused("algorithm"),
        ),
        (peer(json!({ "tcpAO": { "keys": [ao("aes-128-cmac-96")] } })), Taken),
        (peer(json!({ "tcpAO": {} })), Refused("spec.tcpAO.keys: Required")),
    ]
}

/// Peers without an address.
fn unnamed_peers() -> Vec<(Value, Verdict)> {
    let found = |mode| json!({ "peerAddress": null, "autoDiscovery": { "mode": mode, "addressFamily": "ipv6" } });
    let range =
        |limit| json!({ "peerAddress": null, "listenRange": "192.0.2.0/24", "listenLimit": limit });
    vec![
        (peer(range(65535)), Taken),
        (peer(range(0)), Refused("spec.listenLimit")),
        (peer(found("DefaultGateway")), Taken),
        (peer(found("LLDP")), Refused("spec.autoDiscovery.mode")),
    ]
}

fn profiles() -> Vec<(Value, Verdict)> {
    let key = json!({ "name": "keys", "key": "bfd" });
    vec![
        (json!({}), Taken),
        (
            json!({
                "receiveInterval": 10, "transmitInterval": 60000, "echoInterval": 10,
                "detectMultiplier": 255, "minimumTtl": 254, "echoMode": false, "passiveMode": true,
            }),
            Taken,
        ),
        (json!({ "receiveInterval": 9 }), Refused("spec.receiveInterval")),
        (json!({ "transmitInterval": 60001 }), Refused("spec.transmitInterval")),
        (json!({ "echoInterval": 9 }), Refused("spec.echoInterval")),
        (json!({ "detectMultiplier": 1 }), Refused("spec.detectMultiplier")),
        (json!({ "detectMultiplier": 256 }), Refused("spec.detectMultiplier")),
        (json!({ "minimumTtl": 0 }), Refused("spec.minimumTtl")),
        (json!({ "minimumTtl": 255 }), Refused("spec.minimumTtl")),
        // Whether the Secret is there is a question between objects.
        (json!({ "authentication": { "type": "sha1", "keyID": 1, "secret": key } }), Taken),
        (
            json!({ "authentication": { "type": "md5", "keyID": 1, "secret": key } }),
            Refused("spec.authentication.type: Unsupported"),
        ),
    ]
}

fn pools() -> Vec<(Value, Verdict)> {
    vec![
        (pool(json!({})), Taken),
        (json!({}), Refused("spec.addresses: Required")),
        (Value::Null, Refused("spec: Required")),
        (pool(json!({ "addresses": ["nonsense"] })), TakenButFaulty),
        (pool(json!({ "addresses": "192.0.2.0/24" })), Refused("spec.addresses")),
        (pool(json!({ "autoAssign": "no" })), Refused("spec.autoAssign")),
        (
            pool(json!({
                "autoAssign": false, "avoidBuggyIPs": true, "reserved": ["192.0.2.1-192.0.2.9"],
                "serviceAllocation": {
                    "priority": 50, "namespaces": ["shop"],
                    "namespaceSelectors": [{ "matchLabels": { "team": "shop" } }],
                    "serviceSelectors": [{ "matchLabels": { "app": "web" } }],
                },
            })),
            Taken,
        ),
        (pool(json!({ "serviceAllocation": {} })), Taken),
        (pool(json!({ "serviceAllocation": { "priority": "high" } })), Refused("priority")),
    ]
}

fn advertisements() -> Vec<(Value, Verdict)> {
    let selectors = json!([{ "matchLabels": { "app": "web" } }]);
    let not_aggregated = "serviceSelectors is allowed only with aggregationLength 32";
    vec![
        (Value::Null, Taken),
        (json!({}), Taken),
        (
            json!({
                "aggregationLength": 24, "aggregationLengthV6": 64, "localPref": 4_294_967_295_u32,
                "communities": ["65001:1", "large:65001:1:2", "vpn"], "ipAddressPools": ["a"],
                "ipAddressPoolSelectors": selectors, "nodeSelectors": selectors, "peers": ["one"],
            }),
            Taken,
        ),
        (json!({ "aggregationLength": 0 }), Refused("spec.aggregationLength")),
        (json!({ "aggregationLength": 33 }), TakenButFaulty),
        (json!({ "aggregationLengthV6": 129 }), TakenButFaulty),
        (json!({ "localPref": -1 }), Refused("spec.localPref")),
        (json!({ "serviceSelectors": selectors }), Taken),
        (json!({ "serviceSelectors": selectors, "aggregationLength": 32 }), Taken),
        (json!({ "serviceSelectors": [], "aggregationLength": 24 }), Taken),
        (
            json!({ "serviceSelectors": selectors, "aggregationLength": 31 }),
            Refused(not_aggregated),
        ),
        (
            json!({ "serviceSelectors": selectors, "aggregationLengthV6": 64 }),
            Refused(not_aggregated),
        ),
        (
            json!({
                "prefixes": ["198.51.100.0/24"], "asPathPrepend": 16, "med": 10, "linkBandwidth": "auto",
            }),
            Taken,
        ),
        (json!({ "podCIDRs": true }), Taken),
        (json!({ "podCIDRs": "yes" }), Refused("spec.podCIDRs")),
        (json!({ "podBlocks": true }), Taken),
        (json!({ "podBlocks": "yes" }), Refused("spec.podBlocks")),
        (json!({ "podBlocks": true, "podBlockPools": ["v4"] }), Taken),
        (json!({ "podBlocks": true, "podBlockPools": "v4" }), Refused("spec.podBlockPools")),
        (json!({ "blackhole": true }), Taken),
        (json!({ "blackhole": "yes" }), Refused("spec.blackhole")),
        (json!({ "linkBandwidth": 10_000_000_000_u64 }), Taken),
        (json!({ "linkBandwidth": "fast" }), Refused("spec.linkBandwidth")),
        (json!({ "linkBandwidth": 0 }), Refused("spec.linkBandwidth")),
        (json!({ "linkBandwidth": true }), Refused("spec.linkBandwidth")),
        (json!({ "asPathPrepend": 17 }), Refused("spec.asPathPrepend")),
    ]
}

fn layer2() -> Vec<(Value, Verdict)> {
    let preferred = |weight: Value| json!({ "preferredNodeSelectors": [{ "weight": weight, "preference": { "matchLabels": { "a": "b" } } }] });
    vec![
        (Value::Null, Taken),
        (json!({ "interfaces": ["eth0"], "ipAddressPools": ["a"] }), Taken),
        (json!({ "bind": true }), Taken),
        (json!({ "bind": "yes" }), Refused("spec.bind")),
        (preferred(json!(1)), Taken),
        (preferred(json!(100)), Taken),
        (preferred(json!(0)), Refused("weight")),
        (preferred(json!(101)), Refused("weight")),
        (
            json!({ "preferredNodeSelectors": [{ "weight": 5 }] }),
            Refused("spec.preferredNodeSelectors[0].preference: Required"),
        ),
    ]
}

fn configurations() -> Vec<(Value, Verdict)> {
    let servers = |servers: Value| json!({ "rpki": { "servers": servers } });
    let stations = |stations: Value| json!({ "bmp": { "stations": stations } });
    let selector = json!({ "matchLabels": { "rack": "a" } });
    let all = json!(["adjRIBInPrePolicy", "adjRIBInPostPolicy", "adjRIBOutPostPolicy", "locRIB"]);
    vec![
        (stations(json!([{ "address": "192.0.2.1" }])), Taken),
        (
            stations(
                json!([{ "address": "bmp.example", "port": 1790, "monitor": all, "statsIntervalSeconds": 60 }]),
            ),
            Taken,
        ),
        (stations(json!([{ "address": "bmp.example", "monitor": ["ribIn"] }])), TakenButFaulty),
        (stations(json!([{ "address": "bmp.example", "monitor": "locRIB" }])), Refused("monitor")),
        (
            stations(json!([{ "address": "bmp.example", "statsIntervalSeconds": 70_000 }])),
            Refused("statsIntervalSeconds"),
        ),
        (stations(json!([{ "port": 1790 }])), Refused("spec.bmp.stations[0].address: Required")),
        (json!({}), Taken),
        (json!({ "alwaysCompareMED": true }), Taken),
        (json!({ "alwaysCompareMED": "yes" }), Refused("spec.alwaysCompareMED")),
        (json!({ "nodeSelectors": [selector], "rpki": {} }), Taken),
        (servers(json!([{ "address": "192.0.2.1" }])), Taken),
        (servers(json!([{ "address": "rpki.example", "port": 3323 }])), Taken),
        (servers(json!([{ "address": "192.0.2.999" }])), TakenButFaulty),
        (servers(json!([{ "port": 3323 }])), Refused("spec.rpki.servers[0].address: Required")),
        (servers(json!([{ "address": "192.0.2.1", "port": 0 }])), Refused("port")),
        (servers(json!([{ "address": "192.0.2.1", "port": 65_536 }])), Refused("port")),
        (servers(json!(["192.0.2.1"])), Refused("spec.rpki.servers[0]")),
    ]
}

fn communities() -> Vec<(Value, Verdict)> {
    vec![
        (json!({ "communities": [{ "name": "vpn", "value": "65001:100" }] }), Taken),
        (json!({ "communities": [{ "name": "vpn" }] }), TakenButFaulty),
        (json!({ "communities": ["65001:100"] }), Refused("spec.communities[0]")),
    ]
}
