//! `rules` of BGPPeers, in both directions.

use fairway_model::Kind::BgpPeer;
use fairway_resources::change::{Change, Part};
use serde_json::{Value, json};

use super::peers::internal;
use crate::trial::Trial;

pub(crate) fn all() -> Vec<Trial> {
    ["toReceive", "toAdvertise"].into_iter().flat_map(of_side).collect()
}

/// A field of the only rule of `side` changes, which sets the MED of 192.0.2.0/24 from another neighbour.
fn of_side(side: &str) -> Vec<Trial> {
    let rule = json!({
        "match": {"prefixes": [{"prefix": "192.0.0.0/8", "ge": 16, "le": 32}]}, "set": {"med": 7},
    });
    let field = |name: &str, before: Value, after: Value| {
        let path = path_of(side, name);
        Trial::of(BgpPeer, Part::Field(path))
            .with("peer", &format!("spec.{side}"), json!({"allowed": {"mode": "all"}}))
            .with("peer", &format!("spec.{side}.rules"), json!([rule]))
            .with("their-routes", "spec.communities", json!(["65002:5"]))
            .set("peer", path, before, after)
    };
    vec![
        field("name", json!("old"), json!("new")),
        field("match.prefixes[].prefix", json!("192.0.0.0/8"), json!("198.0.0.0/8")),
        field("match.prefixes[].ge", json!(16), json!(25)),
        field("match.prefixes[].le", json!(32), json!(20)),
        field("match.asPath", json!("^6500[1-3]"), json!("_65009$")),
        field("match.communities", json!(["65002:5"]), json!(["65002:6"])),
        field("match.nextHops", json!(["127.0.0.0/8"]), json!(["10.0.0.0/8"])),
        field("match.originValidation", Value::Null, json!("valid")),
        internal(field("set.localPref", json!(200), json!(300))),
        field("set.med", json!(7), json!(8)),
        field("set.communities.add", Value::Null, json!(["65001:9"])),
        field("set.communities.remove", Value::Null, json!(["65002:5"])),
        field("set.communities.replace", Value::Null, json!(["65001:9"])),
        field("set.asPathPrepend", json!(0), json!(2)),
        field("set.nextHop.ipv4", Value::Null, json!("127.0.0.77")),
        over_ipv6(side, field("set.nextHop.ipv6", Value::Null, json!("2001:db8::77"))),
        field("action", json!("accept"), json!("reject")),
    ]
}

/// The rule is about an IPv6 route of the other neighbour.
fn over_ipv6(side: &str, trial: Trial) -> Trial {
    let prefixes = json!([{"prefix": "2001:db8:2::/48"}]);
    let next_hop = |address: &str| json!({"ipv6": address});
    trial
        .with("peer", &format!("spec.{side}.rules[].match.prefixes"), prefixes)
        .with("peer", "spec.dualStackAddressFamily", json!(true))
        .with("peer", "spec.toAdvertise.nextHop", next_hop("2001:db8::1"))
        .with("their-routes", "spec.prefixes", json!(["2001:db8:2::/48", "192.0.2.0/24"]))
        .with("their-outside", "spec.toAdvertise.nextHop", next_hop("2001:db8::3"))
        // Next hops are accepted as they are.
        .with("outside", "spec.ebgpMultiHop", json!(true))
}

/// The part of the table that is about this field.
fn path_of(side: &str, name: &str) -> &'static str {
    let wanted = format!("spec.{side}.rules[].{name}");
    let path = |change: &'static Change| match change.part {
        Part::Field(path) if path == wanted => Some(path),
        _ => None,
    };
    Change::all(BgpPeer).iter().find_map(path).unwrap_or_else(|| panic!("no line for {wanted}"))
}
