//! Fields of pools, advertisements, communities and profiles.

use fairway_model::Kind::{
    BfdProfile, BgpAdvertisement, Community, IpAddressPool, Layer2Advertisement,
};
use fairway_resources::change::Part;
use serde_json::{Value, json};

use crate::scene;
use crate::trial::Trial;
use crate::trials::objects::WATCHING;

pub(crate) fn all() -> Vec<Trial> {
    [pools(), advertisements(), layer2_advertisements(), communities(), bfd_profiles()].concat()
}

fn pools() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(IpAddressPool, path, before, after);
    let second = || Some(scene::pool("second", &["10.10.0.0/24"]));
    vec![
        field("metadata.name", json!("trial"), json!("zebra"))
            .when("`ipAddressPools` of a BGPAdvertisement names it"),
        field("metadata.name", json!("trial"), json!("zebra")).with(
            "advertisement",
            "spec.ipAddressPools",
            Value::Null,
        ),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", json!({"tier": "a"}), json!({"tier": "b"}))
            .when("`ipAddressPoolSelectors` of a BGPAdvertisement asks for them")
            .with("advertisement", "spec.ipAddressPools", Value::Null)
            .with(
                "advertisement",
                "spec.ipAddressPoolSelectors",
                json!([{"matchLabels": {"tier": "a"}}]),
            ),
        field("metadata.labels", json!({"tier": "a"}), json!({"tier": "b"})),
        field("metadata.annotations", Value::Null, json!({"note": "x"})),
        field("spec.addresses", json!(["10.9.0.0/24"]), json!(["10.11.0.0/24"])),
        field("spec.autoAssign", json!(true), json!(false)).object("second", second(), second()),
        field("spec.avoidBuggyIPs", json!(false), json!(true)),
        field("spec.reserved", Value::Null, json!(["10.9.0.0/30"])),
        field("spec.serviceAllocation.priority", json!(5), json!(6)),
        field("spec.serviceAllocation.namespaces", json!(["default"]), json!(["other"])),
        field(
            "spec.serviceAllocation.namespaceSelectors",
            json!([{"matchLabels": {"team": "a"}}]),
            json!([{"matchLabels": {"team": "b"}}]),
        ),
        field(
            "spec.serviceAllocation.serviceSelectors",
            json!([{"matchLabels": {"app": "a"}}]),
            json!([{"matchLabels": {"app": "b"}}]),
        )
        .with("service", "metadata.labels", json!({"app": "a"})),
        field("status", Value::Null, json!({"assignedIPv4": 7})),
    ]
}

fn advertisements() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(BgpAdvertisement, path, before, after);
    let dual = |trial: Trial| trial.with("service", "spec.ipFamilies", json!(["IPv6"]));
    vec![
        field("metadata.name", json!("trial"), json!("zebra")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", Value::Null, json!({"a": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        field("spec.aggregationLength", json!(32), json!(28)),
        dual(field("spec.aggregationLengthV6", json!(128), json!(124))),
        field("spec.localPref", json!(150), json!(200)),
        field("spec.med", json!(5), json!(6)),
        field("spec.asPathPrepend", json!(1), json!(2)),
        field("spec.linkBandwidth", json!(1_000_000), json!(2_000_000)),
        field("spec.communities", json!(["65001:1"]), json!(["65001:2"])),
        field("spec.ipAddressPools", json!(["trial"]), json!(["none"])),
        field(
            "spec.ipAddressPoolSelectors",
            json!([{"matchLabels": {"tier": "a"}}]),
            json!([{"matchLabels": {"tier": "b"}}]),
        )
        .with("advertisement", "spec.ipAddressPools", Value::Null)
        .with("pool", "metadata.labels", json!({"tier": "a"})),
        field("spec.peers", json!(["inside", "outside"]), json!(["outside"])),
        field("spec.nodeSelectors", Value::Null, json!([{"matchLabels": {"rack": "9"}}])),
        field("spec.serviceSelectors", Value::Null, json!([{"matchLabels": {"app": "x"}}])),
        field("spec.prefixes", json!(["10.20.0.0/24"]), json!(["10.20.0.0/24", "10.21.0.0/24"])),
        field("spec.podCIDRs", json!(false), json!(true)).with(
            "node",
            "spec.podCIDRs",
            json!(["10.244.0.0/24"]),
        ),
        // Blocks are those of the state directory.
        field("spec.podBlocks", json!(false), json!(true)),
        field("spec.podBlockPools", json!(["v4"]), json!(["v6"])).with(
            "advertisement",
            "spec.podBlocks",
            json!(true),
        ),
        // Of single addresses nothing is dropped, so that the kernel of this machine stays as it is.
        field("spec.blackhole", json!(false), json!(true)).with(
            "advertisement",
            "spec.prefixes",
            json!(["10.20.0.1/32"]),
        ),
        field("status", Value::Null, json!({"a": "b"})),
    ]
}

/// Layer 2 is not supported yet.
fn layer2_advertisements() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(Layer2Advertisement, path, before, after);
    let selectors = |value: &str| json!([{"matchLabels": {"rack": value}}]);
    let preference = |weight: u8, rack: &str| json!([{"weight": weight, "preference": {"matchLabels": {"rack": rack}}}]);
    vec![
        field("metadata.name", json!("trial"), json!("zebra")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", Value::Null, json!({"a": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        field("spec.ipAddressPools", json!(["trial"]), json!(["steady"])),
        field("spec.ipAddressPoolSelectors", selectors("a"), selectors("b")),
        field("spec.nodeSelectors", selectors("a"), selectors("b")),
        field("spec.serviceSelectors", selectors("a"), selectors("b")),
        field("spec.interfaces", json!(["eth0"]), json!(["eth1"])),
        field("spec.preferredNodeSelectors", preference(1, "a"), preference(2, "a"))
            .line_of("spec.preferredNodeSelectors[].weight"),
        field("spec.preferredNodeSelectors", preference(1, "a"), preference(1, "b"))
            .line_of("spec.preferredNodeSelectors[].preference"),
        field("spec.bind", json!(false), json!(true)),
        field("status", Value::Null, json!({"a": "b"})),
    ]
}

/// The router of the trial does not run BFD, which is then never Up: no session ends for it.
fn bfd_profiles() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(BfdProfile, path, before, after);
    let signed = |path: &'static str, before: Value, after: Value| {
        let named = |name: &str, key: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": name, "namespace": "default"},
                "stringData": {"autumn": key, "winter": "another"},
            })
        };
        let (secret, other) = (named("trial", "one"), named("other", "two"));
        let key = json!({"name": "trial", "key": "autumn"});
        let authentication = json!({"type": "sha1", "keyID": 1, "secret": key});
        Trial::of(BfdProfile, Part::Field(path))
            .object("secret", Some(secret.clone()), Some(secret))
            .object("other-secret", Some(other.clone()), Some(other))
            .with("bfd-profile", "spec.authentication", authentication)
            .with("peer", "spec.bfdProfile", json!("trial"))
            .set("bfd-profile", path, before, after)
    };
    vec![
        field("metadata.name", json!("trial"), json!("zebra")).when(WATCHING).with(
            "peer",
            "spec.bfdProfile",
            json!("trial"),
        ),
        field("metadata.name", json!("trial"), json!("zebra")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", Value::Null, json!({"a": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        field("spec.receiveInterval", json!(300), json!(50)),
        field("spec.transmitInterval", json!(300), json!(50)),
        field("spec.echoInterval", json!(50), json!(60)),
        field("spec.detectMultiplier", json!(3), json!(5)),
        field("spec.minimumTtl", json!(253), json!(254)).when("a larger one"),
        field("spec.minimumTtl", json!(254), json!(253)),
        field("spec.echoMode", json!(false), json!(true)),
        field("spec.passiveMode", json!(false), json!(true)),
        signed("spec.authentication.type", json!("sha1"), json!("meticulous-sha1")),
        signed("spec.authentication.keyID", json!(1), json!(2)),
        signed("spec.authentication.secret.name", json!("trial"), json!("other")),
        signed("spec.authentication.secret.key", json!("autumn"), json!("winter")),
        field("status", Value::Null, json!({"a": "b"})),
    ]
}

fn communities() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(Community, path, before, after);
    vec![
        field("metadata.name", json!("trial"), json!("zebra")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", Value::Null, json!({"a": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        field("spec.communities[].name", json!("green"), json!("blue"))
            .when("`communities` of a BGPAdvertisement names it"),
        field("spec.communities[].name", json!("green"), json!("blue")).with(
            "advertisement",
            "spec.communities",
            Value::Null,
        ),
        field("spec.communities[].value", json!("65001:1"), json!("65001:2")),
        field("status", Value::Null, json!({"a": "b"})),
    ]
}
