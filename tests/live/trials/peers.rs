//! Fields of BGPPeers and Secrets.

use fairway_model::Kind::{BgpPeer, Secret};
use serde_json::{Value, json};

use super::objects::with_secret;
use crate::scene;
use crate::trial::Trial;

const KEY_BEGINS: &str = "a key where there was none, or none where there was one";
const ID_AGAIN: &str = "under an ID that is in use already";

pub(crate) fn all() -> Vec<Trial> {
    [identity(), transport(), keys(), agreed(), policies(), later(), secrets()].concat()
}

fn field(path: &'static str, before: Value, after: Value) -> Trial {
    Trial::field(BgpPeer, path, before, after)
}

/// The peer is not named by its address any more.
fn without_address(trial: Trial) -> Trial {
    ["spec.peerAddress", "spec.sourceAddress", "spec.peerPort"]
        .iter()
        .fold(trial, |trial, path| trial.change("peer", path, Value::Null))
}

/// In a VRF that does not exist: the gateway of this machine is never dialled.
fn by_gateway(trial: Trial) -> Trial {
    without_address(trial).change("peer", "spec.autoDiscovery.addressFamily", json!("ipv6")).change(
        "peer",
        "spec.vrf",
        json!("nosuch0"),
    )
}

fn identity() -> Vec<Trial> {
    let named = json!(["inside", "outside", "trial"]);
    vec![
        field("metadata.name", json!("trial"), json!("zebra"))
            .when("`peers` of a BGPAdvertisement names it")
            .with("advertisement", "spec.peers", named),
        field("metadata.name", json!("trial"), json!("zebra")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", Value::Null, json!({"a": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        field("spec.myASN", json!(65001), json!(65009)),
        field("spec.localASN", Value::Null, json!(65009)),
        field("spec.peerASN", json!(65003), json!(65009)),
        field("spec.dynamicASN", Value::Null, json!("external")).change(
            "peer",
            "spec.peerASN",
            Value::Null,
        ),
        field("spec.peerAddress", json!("127.0.0.4"), json!("127.0.0.5")),
        without_address(field("spec.interface", Value::Null, json!("nosuch0"))),
        without_address(field("spec.listenRange", Value::Null, json!("127.0.0.4/32"))),
        by_gateway(field("spec.autoDiscovery.mode", Value::Null, json!("LLDP"))),
        by_gateway(field("spec.autoDiscovery.addressFamily", Value::Null, json!("ipv6"))).change(
            "peer",
            "spec.autoDiscovery.mode",
            json!("DefaultGateway"),
        ),
        field("spec.listenLimit", json!(100), json!(50))
            .with("peer", "spec.listenRange", json!("127.0.0.4/32"))
            .with("peer", "spec.peerAddress", Value::Null)
            .with("peer", "spec.sourceAddress", Value::Null)
            .with("peer", "spec.peerPort", Value::Null)
            .with("their-trial", "spec.passive", json!(false))
            .with("their-trial", "spec.peerPort", json!(scene::node_port())),
        field("spec.vrf", Value::Null, json!("nosuch0")),
        field("spec.nodeSelectors", Value::Null, json!([{"matchLabels": {"rack": "nine"}}])),
        field("status", Value::Null, json!({"a": "b"})),
    ]
}

fn transport() -> Vec<Trial> {
    vec![
        field("spec.passive", json!(false), json!(true)),
        field("spec.shutdown.message", Value::Null, json!("for a while")),
        field("spec.sourceAddress", json!("127.0.0.14"), json!("127.0.0.15")),
        field("spec.peerPort", json!(scene::router_port()), json!(9)),
        field("spec.connectTime", json!("1s"), json!("2s")),
        field("spec.ebgpMultiHop", json!(false), json!(true)),
        field("spec.ttlSecurityHops", Value::Null, json!(1)),
    ]
}

fn keys() -> Vec<Trial> {
    let ao = |path: &'static str, before: Value, after: Value| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "trial", "namespace": "default"},
            "stringData": {"autumn": "one", "winter": "two"},
        });
        let mut other = secret.clone();
        other["metadata"]["name"] = json!("other");
        other["stringData"]["autumn"] = json!("three");
        let key = json!([{
            "sendID": 1, "recvID": 1, "algorithm": "hmac-sha-1-96",
            "secret": {"name": "trial", "key": "autumn"},
        }]);
        Trial::of(BgpPeer, fairway_resources::change::Part::Field(path))
            .object("secret", Some(secret.clone()), Some(secret.clone()))
            .object("other-secret", Some(other.clone()), Some(other))
            .object("their-secret", Some(secret.clone()), Some(secret))
            .with("peer", "spec.tcpAO.keys", key.clone())
            .with("their-trial", "spec.tcpAO.keys", key)
            .set("peer", path, before, after)
            .needs_tcp_ao()
    };
    let id = |path: &'static str, theirs: &str| {
        ao(path, json!(1), json!(2)).set("their-trial", theirs, json!(1), json!(2))
    };
    let other = || Some(scene::secret("other", "winter"));
    let secret_key = "spec.tcpAO.keys[].secret.key";
    vec![
        field("spec.password", Value::Null, json!("autumn")).when(KEY_BEGINS),
        field("spec.password", json!("autumn"), json!("winter")).set(
            "their-trial",
            "spec.password",
            json!("autumn"),
            json!("winter"),
        ),
        with_secret(Trial::of(
            BgpPeer,
            fairway_resources::change::Part::Field("spec.passwordSecret.name"),
        ))
        .when(KEY_BEGINS)
        .change("peer", "spec.passwordSecret", Value::Null),
        with_secret(field("spec.passwordSecret.name", json!("trial"), json!("other")))
            .object("other-secret", other(), other())
            .change("peer", "spec.passwordSecret.name", json!("other"))
            .change("their-trial", "spec.password", json!("winter")),
        with_secret(field("spec.passwordSecret.namespace", Value::Null, json!("other"))),
        id("spec.tcpAO.keys[].sendID", "spec.tcpAO.keys[].recvID"),
        id("spec.tcpAO.keys[].recvID", "spec.tcpAO.keys[].sendID"),
        ao("spec.tcpAO.keys[].algorithm", json!("hmac-sha-1-96"), json!("aes-128-cmac-96"))
            .when(ID_AGAIN),
        ao("spec.tcpAO.keys[].secret.name", json!("trial"), json!("other")).when(ID_AGAIN),
        ao(secret_key, json!("autumn"), json!("winter")).when(ID_AGAIN),
        ao(secret_key, json!("autumn"), json!("autumn")).when(KEY_BEGINS).change(
            "peer",
            "spec.tcpAO",
            Value::Null,
        ),
    ]
}

fn agreed() -> Vec<Trial> {
    vec![
        field("spec.holdTime", json!("90s"), json!("30s")),
        field("spec.keepaliveTime", json!("30s"), json!("10s")).when("beside a `holdTime`").with(
            "peer",
            "spec.holdTime",
            json!("90s"),
        ),
        field("spec.keepaliveTime", json!("30s"), json!("10s")),
        field("spec.routerID", json!("192.0.2.8"), json!("192.0.2.9")),
        field("spec.dualStackAddressFamily", json!(false), json!(true)),
        field("spec.disableMP", json!(false), json!(true)),
        field("spec.extendedNexthop", json!(false), json!(true)),
        field("spec.addPath.send", json!(1), json!(2)),
        field("spec.addPath.receive", json!(false), json!(true)),
        field("spec.enableGracefulRestart", json!(false), json!(true)),
        field("spec.gracefulRestart.restartTime", json!("60s"), json!("90s"))
            .with("peer", "spec.enableGracefulRestart", json!(true))
            .with("their-trial", "spec.enableGracefulRestart", json!(true)),
        field("spec.gracefulRestart.longLivedStaleTime", json!("60s"), json!("90s"))
            .with("peer", "spec.enableGracefulRestart", json!(true))
            .with("their-trial", "spec.enableGracefulRestart", json!(true)),
        internal(field("spec.routeReflectorClient", json!(false), json!(true))),
        internal(field("spec.clusterID", Value::Null, json!("192.0.2.8"))).with(
            "peer",
            "spec.toReceive.allowed.mode",
            json!("all"),
        ),
        field("spec.routeServerClient", json!(false), json!(true)),
        field("spec.allowASIn", Value::Null, json!(1)).with(
            "peer",
            "spec.toReceive.allowed.mode",
            json!("all"),
        ),
        field("spec.role", json!("provider"), json!("peer")),
        field("spec.roleStrict", json!(false), json!(true))
            .with("peer", "spec.role", json!("provider"))
            .with("their-trial", "spec.role", json!("customer")),
    ]
}

/// The peer is in our AS.
pub(super) fn internal(trial: Trial) -> Trial {
    trial
        .with("peer", "spec.peerASN", json!(65001))
        .with("their-trial", "spec.myASN", json!(65001))
        .with("their-trial", "spec.ebgpMultiHop", Value::Null)
}

fn policies() -> Vec<Trial> {
    let (receive, advertise) = ("spec.toReceive.allowed", "spec.toAdvertise.allowed");
    // The router originates 192.0.2.0/24 and 198.51.100.0/24.
    let range = json!([{"prefix": "192.0.0.0/8", "ge": 16, "le": 24}]);
    let received = |path: &'static str, before: Value, after: Value| {
        Trial::of(BgpPeer, fairway_resources::change::Part::Field(path))
            .with("peer", &format!("{receive}.prefixes"), range.clone())
            .set("peer", path, before, after)
    };
    let advertised = |path: &'static str, before: Value, after: Value| {
        Trial::of(BgpPeer, fairway_resources::change::Part::Field(path))
            .with("peer", &format!("{advertise}.prefixes"), range.clone())
            .set("peer", path, before, after)
    };
    let limit = "spec.toReceive.maxPrefixes.limit";
    let all = json!({"mode": "all"});
    vec![
        field("spec.toReceive.allowed.mode", Value::Null, json!("all")),
        received(
            "spec.toReceive.allowed.prefixes[].prefix",
            json!("192.0.0.0/8"),
            json!("198.0.0.0/8"),
        ),
        received("spec.toReceive.allowed.prefixes[].ge", json!(16), json!(20)),
        received("spec.toReceive.allowed.prefixes[].le", json!(24), json!(28)),
        field(limit, json!(10), json!(1)).when("below what was accepted already").with(
            "peer",
            receive,
            all.clone(),
        ),
        field(limit, json!(10), json!(20)).with("peer", receive, all.clone()),
        field("spec.toReceive.maxPrefixes.warnPercent", json!(75), json!(80))
            .with("peer", receive, all.clone())
            .with("peer", limit, json!(10)),
        field("spec.toReceive.maxPrefixes.attributeBytes", json!(65_536), json!(131_072))
            .with("peer", receive, all)
            .with("peer", limit, json!(10)),
        field("spec.toReceive.keepFiltered", Value::Null, json!(true)).with(
            "peer",
            "spec.toReceive.allowed.mode",
            json!("all"),
        ),
        field("spec.toAdvertise.allowed.mode", Value::Null, json!("all")),
        advertised(
            "spec.toAdvertise.allowed.prefixes[].prefix",
            json!("192.0.0.0/8"),
            json!("198.0.0.0/8"),
        ),
        advertised("spec.toAdvertise.allowed.prefixes[].ge", json!(24), json!(25)).with(
            "peer",
            "spec.toAdvertise.allowed.prefixes[].le",
            json!(32),
        ),
        advertised("spec.toAdvertise.allowed.prefixes[].le", json!(24), json!(23)),
        field("spec.toAdvertise.nextHop.ipv4", json!("127.0.0.77"), json!("127.0.0.78")),
        field("spec.toAdvertise.nextHop.ipv6", json!("2001:db8::1"), json!("2001:db8::2"))
            .with("peer", "spec.dualStackAddressFamily", json!(true))
            .with("service", "spec.ipFamilies", json!(["IPv6"])),
    ]
}

/// BFD, which the router of the trial does not run, and fields of later versions.
fn later() -> Vec<Trial> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "bfd", "namespace": "default"},
        "stringData": {"key": "autumn"},
    });
    let authentication =
        json!({"type": "sha1", "keyID": 1, "secret": {"name": "bfd", "key": "key"}});
    let signed = json!({
        "apiVersion": "metallb.io/v1beta1", "kind": "BFDProfile",
        "metadata": {"name": "signed", "namespace": "default"},
        "spec": {"authentication": authentication},
    });
    vec![
        field("spec.bfdProfile", json!("trial"), json!("signed"))
            .when("that has another key")
            .object("bfd-secret", Some(secret.clone()), Some(secret))
            .object("signed-profile", Some(signed.clone()), Some(signed)),
        field("spec.bfdProfile", Value::Null, json!("fast")).when("no BFDProfile has that name"),
        field("spec.bfdProfile", Value::Null, json!("trial")),
        field("spec.bfdStrict", Value::Null, json!(true)).with(
            "peer",
            "spec.bfdProfile",
            json!("trial"),
        ),
        field("spec.installRoutes", Value::Null, json!(true)),
    ]
}

fn secrets() -> Vec<Trial> {
    let field = |path, before: Value, after: Value| {
        let trial = with_secret(Trial::of(Secret, fairway_resources::change::Part::Field(path)));
        trial.set("secret", path, before, after)
    };
    let needed = "a running session needs it";
    vec![
        field("metadata.name", json!("trial"), json!("zebra")).when(needed),
        field("metadata.namespace", json!("default"), json!("other")).when(needed),
        field("metadata.labels", Value::Null, json!({"a": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        field("type", json!("kubernetes.io/basic-auth"), json!("Opaque"))
            .when("`passwordSecret` of a running session names it"),
        field("data", json!({"password": "YXV0dW1u"}), json!({"password": "d2ludGVy"}))
            .with("secret", "stringData", Value::Null)
            .change("their-trial", "spec.password", json!("winter")),
        field("stringData", json!({"password": "autumn"}), json!({"password": "winter"})).change(
            "their-trial",
            "spec.password",
            json!("winter"),
        ),
    ]
}
