//! Objects that appear, are deleted, break or move, and fields that nothing reads.

use fairway_model::Kind;
use fairway_resources::change::Part;
use serde_json::{Value, json};

use crate::cache::{self, REFUSED_PREFIX};
use crate::scene;
use crate::trial::{Trial, file_of};
use crate::trials::services::selected;

const NAMED: &str = "`communities` of a BGPAdvertisement names it";
pub(crate) const WATCHING: &str = "`bfdProfile` of a BGPPeer names it";

pub(crate) fn all() -> Vec<Trial> {
    let same =
        Kind::ALL.into_iter().flat_map(|kind| [moves(kind), breaks(kind), other_fields(kind)]);
    same.chain(come_and_go()).chain(extras()).chain(configurations()).collect()
}

fn extras() -> [Trial; 5] {
    let field = |path, before, after| {
        let trial = with_extras(Trial::of(Kind::ConfigMap, Part::Field(path)));
        trial.set(file_of(Kind::ConfigMap), path, before, after)
    };
    [
        field("metadata.name", json!("bgpextras"), json!("other")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", json!({"a": "b"}), json!({"a": "c"})),
        field("metadata.annotations", json!({"a": "b"}), json!({"a": "c"})),
        field("data.extras", json!("log syslog"), json!("log stdout")),
    ]
}

/// The node passes on what it learned over `outside`, of which a rule refuses what is in this state: [`REFUSED_PREFIX`] at the
/// end.
fn asked(trial: Trial, refused: &str) -> Trial {
    let rule = json!({"match": {"originValidation": refused}, "action": "reject"});
    trial
        .with("peer", "spec.toAdvertise", json!({"allowed": {"mode": "all"}}))
        .with("outside", "spec.toReceive.rules", json!([rule]))
        .awaits(REFUSED_PREFIX)
}

/// Two neighbours of different ASes announce one prefix, the one with the lower router ID with the higher MED; the third is told
/// the better one.
fn compared(trial: Trial) -> Trial {
    let announced = |name: &str, peer: &str, med: u32| {
        let spec = json!({"prefixes": ["192.0.2.0/24"], "peers": [peer], "med": med});
        Some(scene::object("BGPAdvertisement", name, spec))
    };
    let (first, second) = (announced("first", "outside", 20), announced("second", "trial", 10));
    let all = || json!({"allowed": {"mode": "all"}});
    trial
        .object("their-routes", first.clone(), first)
        .object("their-others", second.clone(), second)
        .with("peer", "spec.toReceive", all())
        .with("inside", "spec.toAdvertise.allowed", json!({"mode": "all"}))
}

fn configurations() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(Kind::BgpConfiguration, path, before, after);
    let host = |name: &str| json!([{"matchLabels": {"kubernetes.io/hostname": name}}]);
    let port = scene::cache_port();
    vec![
        field("metadata.name", json!("old"), json!("new")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", json!({"a": "b"}), json!({"a": "c"})),
        field("metadata.annotations", json!({"a": "b"}), json!({"a": "c"})),
        field("status", Value::Null, json!({})),
        compared(field("spec.alwaysCompareMED", Value::Null, json!(true))),
        asked(field("spec.nodeSelectors", host("node-b"), host("node-a")), "invalid"),
        asked(
            field("spec.rpki.servers[].address", json!("127.0.0.6"), json!(cache::ADDRESS)),
            "invalid",
        ),
        asked(field("spec.rpki.servers[].port", json!(9), json!(port)), "invalid"),
        // Where no station is, nobody is asked for routes.
        field("spec.bmp.stations[].address", json!("127.0.0.6"), json!("127.0.0.7")),
        field("spec.bmp.stations[].port", json!(9), json!(10)),
        field("spec.bmp.stations[].monitor", json!(["adjRIBInPrePolicy"]), json!(["locRIB"])),
        field("spec.bmp.stations[].statsIntervalSeconds", json!(0), json!(5)),
    ]
}

/// A trial of a kind with its object in use.
fn of(kind: Kind, part: Part) -> Trial {
    let trial = Trial::of(kind, part);
    match kind {
        Kind::Secret => with_secret(trial),
        Kind::ConfigMap => with_extras(trial),
        _ => trial,
    }
}

/// With lines for FRR.
pub(crate) fn with_extras(trial: Trial) -> Trial {
    let extras = scene::extras("log syslog");
    trial.object("extras", Some(extras.clone()), Some(extras))
}

/// With a session that takes its key from the Secret.
pub(crate) fn with_secret(trial: Trial) -> Trial {
    let secret = scene::secret("trial", "autumn");
    trial
        .object("secret", Some(secret.clone()), Some(secret))
        .with("peer", "spec.passwordSecret.name", json!("trial"))
        .with("their-trial", "spec.password", json!("autumn"))
}

fn moves(kind: Kind) -> Trial {
    of(kind, Part::Moves).moves()
}

fn breaks(kind: Kind) -> Trial {
    let (path, value) = match kind {
        Kind::BgpPeer => ("spec.holdTime", json!("soon")),
        Kind::BfdProfile => ("spec.receiveInterval", json!(1)),
        Kind::IpAddressPool => ("spec.addresses", json!(["10.9.0.0/99"])),
        Kind::BgpAdvertisement => ("spec.med", json!(-1)),
        Kind::Layer2Advertisement => ("spec.interfaces", json!(5)),
        Kind::Community => ("spec.communities", json!([{"name": "green", "value": "many"}])),
        Kind::BgpConfiguration => ("spec.rpki.servers", json!([{"address": "192.0.2.999"}])),
        Kind::Service => ("spec.ipFamilies", json!(["IPv5"])),
        Kind::EndpointSlice => ("endpoints", json!(5)),
        Kind::Node => ("status.addresses", json!([{"type": "InternalIP", "address": "here"}])),
        Kind::Namespace => ("metadata.labels", json!(5)),
        Kind::Secret => ("stringData", json!({"password": ""})),
        Kind::ConfigMap => ("data", json!({"extras": ["log syslog"]})),
    };
    of(kind, Part::Breaks).change(file_of(kind), path, value)
}

fn other_fields(kind: Kind) -> Trial {
    let path = match kind {
        Kind::EndpointSlice | Kind::Secret | Kind::Namespace | Kind::ConfigMap => "color",
        _ => "spec.color",
    };
    of(kind, Part::OtherFields).change(file_of(kind), path, json!("green"))
}

fn come_and_go() -> Vec<Trial> {
    let appears = |kind| of(kind, Part::Appears).appears();
    let vanishes = |kind| of(kind, Part::Vanishes).vanishes();
    let stable = |trial: Trial| trial.with("peer", "spec.routerID", json!("192.0.2.1"));
    let silent = |trial: Trial| {
        stable(trial.set_where_it_is(
            "node",
            "status.conditions",
            json!([{"type": "NetworkUnavailable", "status": "True"}]),
        ))
    };
    let unready = |trial: Trial| {
        trial.set_where_it_is("slice", "endpoints[].conditions", json!({"ready": false}))
    };
    let second = || Some(scene::pool("second", &["10.10.0.0/24"]));
    let everywhere = |trial: Trial| {
        trial.with("advertisement", "spec.ipAddressPools", json!(["trial", "second"]))
    };
    vec![
        appears(Kind::BgpPeer),
        vanishes(Kind::BgpPeer),
        everywhere(appears(Kind::IpAddressPool)),
        everywhere(vanishes(Kind::IpAddressPool)).object("second", second(), second()),
        vanishes(Kind::IpAddressPool)
            .when("it is the only pool: Services keep their addresses, unannounced")
            .object("steady-pool", None, None)
            .object("steady", None, None),
        appears(Kind::BgpAdvertisement),
        vanishes(Kind::BgpAdvertisement),
        appears(Kind::BfdProfile),
        vanishes(Kind::BfdProfile).when(WATCHING).with("peer", "spec.bfdProfile", json!("trial")),
        vanishes(Kind::BfdProfile),
        appears(Kind::Layer2Advertisement),
        vanishes(Kind::Layer2Advertisement),
        selected(appears(Kind::Namespace))
            .when("`namespaceSelectors` of an IPAddressPool select it"),
        appears(Kind::Namespace),
        selected(vanishes(Kind::Namespace))
            .when("`namespaceSelectors` of an IPAddressPool select it"),
        vanishes(Kind::Namespace),
        appears(Kind::Community).with("advertisement", "spec.communities", Value::Null),
        vanishes(Kind::Community).when(NAMED),
        vanishes(Kind::Community).with("advertisement", "spec.communities", Value::Null),
        asked(appears(Kind::BgpConfiguration), "invalid"),
        asked(vanishes(Kind::BgpConfiguration), "notFound"),
        appears(Kind::Service),
        vanishes(Kind::Service),
        unready(appears(Kind::EndpointSlice))
            .when("it is the first of its Service, and has no ready endpoint"),
        appears(Kind::EndpointSlice),
        vanishes(Kind::EndpointSlice),
        silent(appears(Kind::Node)).when("it excludes this node from announcing"),
        stable(appears(Kind::Node)),
        silent(vanishes(Kind::Node)).when("it excluded this node from announcing"),
        stable(vanishes(Kind::Node)),
        appears(Kind::Secret)
            .when("a peer waits for it")
            // A different one than before, and not one that stays up.
            .with("peer", "metadata.name", json!("new")),
        vanishes(Kind::Secret).when("a running session needs it"),
        appears(Kind::ConfigMap),
        vanishes(Kind::ConfigMap),
    ]
}
