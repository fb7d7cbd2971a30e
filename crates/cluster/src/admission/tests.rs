//! The answers of the webhook for objects that users write.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

use super::*;
use crate::{ListedObject, ObjectText, REFERENCE_KINDS};

const SYSTEM: &str = "metallb-system";

fn object(kind: Kind, name: &str, spec: Value) -> Value {
    let version = if kind == Kind::BgpPeer { "v1beta2" } else { "v1beta1" };
    json!({
        "apiVersion": format!("metallb.io/{version}"), "kind": kind.to_string(),
        "metadata": { "name": name, "namespace": SYSTEM }, "spec": spec,
    })
}

fn pool(name: &str, addresses: &[&str]) -> Value {
    object(Kind::IpAddressPool, name, json!({ "addresses": addresses }))
}

fn advertisement(name: &str, spec: Value) -> Value {
    object(Kind::BgpAdvertisement, name, spec)
}

fn believing(objects: &[Value]) -> InForce {
    let mut in_force = InForce::default();
    for object in objects {
        let kind = Kind::ALL.into_iter().find(|it| it.to_string() == object["kind"]).unwrap();
        in_force.read(kind, &ObjectText::from(object));
    }
    in_force.settle();
    in_force
}

/// An object that all rules concern.
fn cluster() -> InForce {
    believing(&[
        pool("public", &["192.0.2.0/24"]),
        advertisement("public", json!({ "ipAddressPools": ["public"], "aggregationLength": 26 })),
        object(
            Kind::Community,
            "names",
            json!({ "communities": [{ "name": "customers", "value": "64500:1" }] }),
        ),
    ])
}

fn review(operation: &str, old: Value, new: Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "request": {
            "uid": "u-1", "operation": operation, "namespace": SYSTEM, "name": "it",
            "object": new, "oldObject": old, "dryRun": false,
        },
    })
}

fn judgement(
    in_force: Option<&InForce>,
    references: Option<&References>,
    review: &Value,
) -> Judgement {
    match judge(Beside { in_force, references, foresight: None }, review, SYSTEM) {
        Judged::Now(judgement) => judgement,
        Judged::Later(_) => panic!("nothing is to be foreseen"),
    }
}

fn response(in_force: Option<&InForce>, review: &Value) -> Value {
    let answer = judgement(in_force, None, review).review;
    assert_eq!(answer["apiVersion"], API_VERSION);
    assert_eq!(answer["kind"], KIND);
    answer["response"].clone()
}

/// The message of a refusal, or `allowed`; and the warnings.
fn answer(in_force: Option<&InForce>, review: &Value) -> (String, Vec<String>) {
    let response = response(in_force, review);
    assert_eq!(response["uid"], "u-1");
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.map(|it| it.as_str().unwrap().to_owned()).collect();
    if response["allowed"] == true {
        assert!(response.get("status").is_none());
        return ("allowed".to_owned(), warnings);
    }
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["code"], 422);
    (response["status"]["message"].as_str().unwrap().to_owned(), warnings)
}

fn created(new: Value) -> (String, Vec<String>) {
    answer(Some(&cluster()), &review("CREATE", Value::Null, new))
}

fn updated(old: Value, new: Value) -> (String, Vec<String>) {
    answer(Some(&cluster()), &review("UPDATE", old, new))
}

#[test]
fn what_is_right_is_taken() {
    let (answer, _) = created(pool("other", &["198.51.100.0/24"]));
    assert_eq!(answer, "allowed");
    let spec = json!({ "ipAddressPools": ["public"], "communities": ["customers"] });
    assert_eq!(created(advertisement("other", spec)), ("allowed".to_owned(), vec![]));
}

#[test]
fn all_faults_of_an_object_are_named() {
    let spec = json!({ "addresses": ["192.0.2.0/33", "nowhere"], "autoAsign": true });
    let (message, _) = created(object(Kind::IpAddressPool, "bad", spec));
    for part in ["spec.addresses[0]: ", "spec.addresses[1]: ", "did you mean autoAssign?"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("IPAddressPool/bad"), "the API server says that itself: {message}");
}

#[test]
fn a_pool_that_overlaps_another_is_refused() {
    let (message, _) = created(pool("other", &["198.51.100.0/24", "192.0.2.128/25"]));
    assert!(message.starts_with("spec.addresses[1]: "), "{message}");
    assert!(message.contains("of IPAddressPool/public"), "{message}");
}

#[test]
fn only_a_refusal_because_of_others_may_change() {
    let may_change = |new: Value| {
        judgement(Some(&cluster()), None, &review("CREATE", Value::Null, new)).may_change
    };
    assert!(may_change(pool("other", &["192.0.2.128/25"])), "the other pool may just have gone");
    assert!(!may_change(pool("other", &["nowhere"])));
    assert!(!may_change(pool("other", &["198.51.100.0/24"])), "it is accepted");
}

/// The advertisement is right, and it is the pool that changes.
#[test]
fn a_pool_that_gets_too_small_for_an_advertisement_is_refused() {
    let small = pool("public", &["192.0.2.0/28"]);
    let (message, _) = updated(pool("public", &["192.0.2.0/24"]), small);
    assert!(message.contains("is too small for BGPAdvertisement"), "{message}");
    let larger = pool("public", &["192.0.2.0/24", "198.51.100.0/24"]);
    assert_eq!(updated(pool("public", &["192.0.2.0/24"]), larger).0, "allowed");
}

#[test]
fn a_name_of_a_community_is_defined_once() {
    let spec = json!({ "communities": [{ "name": "customers", "value": "64500:2" }] });
    let (message, _) = created(object(Kind::Community, "more", spec));
    assert!(message.contains("customers is defined by Community"), "{message}");
}

/// `kubectl apply` sends one object after another, in any order.
#[test]
fn what_another_object_may_still_bring_is_a_warning() {
    for (spec, start) in [
        (
            json!({ "ipAddressPools": ["public"], "communities": ["later"] }),
            "BGPAdvertisement/early: spec.communities[0]: later is not defined",
        ),
        (
            json!({ "ipAddressPools": ["later"] }),
            "BGPAdvertisement/early: spec.ipAddressPools[0]: no IPAddressPool later",
        ),
    ] {
        let (answer, warnings) = created(advertisement("early", spec));
        assert_eq!(answer, "allowed");
        assert!(warnings.iter().any(|it| it.starts_with(start)), "{warnings:?}");
    }
    let spec = json!({ "ipAddressPools": ["public"], "communities": ["65536:1"] });
    assert_ne!(created(advertisement("never", spec)).0, "allowed");
}

#[test]
fn peers_are_judged_by_themselves() {
    let spec = |port: u32| {
        json!({
            "myASN": 64500, "peerASN": 64501, "peerAddress": "192.0.2.1", "peerPort": port,
            "bfdProfile": "later", "passwordSecret": { "name": "later" },
        })
    };
    assert_eq!(created(object(Kind::BgpPeer, "tor", spec(179))).0, "allowed");
    let (message, _) = created(object(Kind::BgpPeer, "tor", spec(70_000)));
    assert!(message.starts_with("spec.peerPort: "), "{message}");
    let spec = json!({ "ipAddressPools": ["public"], "peers": ["tor"] });
    assert_eq!(created(advertisement("other", spec)), ("allowed".to_owned(), vec![]));
}

#[test]
fn an_object_nobody_reads_is_not_made() {
    let mut object = pool("other", &["198.51.100.0/24"]);
    object["metadata"]["namespace"] = json!("shop");
    let mut review = review("CREATE", Value::Null, object.clone());
    review["request"]["namespace"] = json!("shop");
    let (message, _) = answer(Some(&cluster()), &review);
    assert_eq!(message, "metadata.namespace: shop is not read; expected metallb-system");
    // An existing one may be changed and deleted.
    review["request"]["operation"] = json!("UPDATE");
    review["request"]["object"]["spec"] = json!({ "addresses": ["nowhere"] });
    review["request"]["oldObject"] = object;
    assert_eq!(answer(Some(&cluster()), &review).0, "allowed");
}

#[test]
fn whatever_goes_may_go() {
    let old = pool("public", &["192.0.2.0/24"]);
    let gone = review("DELETE", old, Value::Null);
    assert_eq!(answer(Some(&cluster()), &gone).0, "allowed");
    let broken = pool("other", &["nowhere"]);
    let mut without_finalizer = broken.clone();
    without_finalizer["metadata"]["deletionTimestamp"] = json!("2026-11-22T10:00:00Z");
    assert_eq!(updated(broken, without_finalizer).0, "allowed");
}

/// It was there before the webhook, and a user annotates it.
#[test]
fn an_object_at_fault_may_be_written_as_long_as_it_asks_for_the_same() {
    let old = pool("old", &["192.0.2.128/25"]);
    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({ "seen": "yes" });
    let (answer, warnings) = updated(old.clone(), new.clone());
    assert_eq!(answer, "allowed");
    assert!(
        warnings.iter().any(|it| it.starts_with("IPAddressPool/old: spec.addresses[0]: ")),
        "{warnings:?}"
    );
    new["spec"]["autoAssign"] = json!(false);
    assert_ne!(updated(old, new).0, "allowed");
}

#[test]
fn while_the_cluster_is_not_known_objects_are_judged_alone() {
    let known_to_nobody = pool("other", &["192.0.2.128/25"]);
    let alone = |new| answer(None, &review("CREATE", Value::Null, new)).0;
    assert_eq!(alone(known_to_nobody), "allowed");
    assert!(alone(pool("other", &["nowhere"])).starts_with("spec.addresses[0]: "));
}

#[test]
fn kinds_of_others_are_none_of_our_business() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" }, "spec": { "type": 7 },
    });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
    for object in [service, pod] {
        let mut review = review("CREATE", Value::Null, object);
        review["request"]["namespace"] = json!("shop");
        assert_eq!(answer(Some(&cluster()), &review).0, "allowed");
    }
}

#[test]
fn what_was_judged_is_not_in_force() {
    let in_force = cluster();
    let before = in_force.clone();
    answer(Some(&in_force), &review("CREATE", Value::Null, pool("new", &["198.51.100.0/24"])));
    assert_eq!(in_force.index(), before.index());
    assert_eq!(in_force.findings(), before.findings());
}

#[test]
fn a_long_refusal_is_cut() {
    let addresses = vec!["nowhere"; 10_000];
    let (message, _) = created(pool("long", &addresses));
    assert!(message.len() <= MESSAGE_BYTES_MAX + '…'.len_utf8(), "{}", message.len());
}

#[test]
fn whatever_comes_gets_an_answer() {
    let mut reviews = vec![json!(null), json!([]), json!({}), json!({ "request": {} })];
    let whole = review("CREATE", json!({}), pool("other", &["192.0.2.0/24"]));
    // Each of its values in turn is replaced.
    let odd = [json!(null), json!(-1), json!("x"), json!([[]]), json!({ "": {} })];
    let paths = [
        "/apiVersion",
        "/kind",
        "/request",
        "/request/uid",
        "/request/operation",
        "/request/namespace",
        "/request/object",
        "/request/object/kind",
        "/request/object/apiVersion",
        "/request/object/metadata",
        "/request/object/spec",
        "/request/object/metadata/name",
        "/request/object/spec/addresses",
        "/request/oldObject",
    ];
    for path in paths {
        for value in &odd {
            let mut review = whole.clone();
            *review.pointer_mut(path).unwrap() = value.clone();
            reviews.push(review);
        }
    }
    let cluster = cluster();
    for review in reviews {
        for in_force in [None, Some(&cluster)] {
            let response = response(in_force, &review);
            assert!(response["uid"].is_string() && response["allowed"].is_boolean(), "{review}");
        }
    }
    assert_eq!(response(None, &json!({}))["status"]["code"], 400);
}

/// The peers and the profiles, listed.
fn references(peers: &[Value], profiles: &[&str]) -> References {
    use crate::reflector::{Reply, Request};
    let mut references = References::new(&REFERENCE_KINDS, 1);
    let now = fairway_ground::Instant::from_micros(1);
    let listed = |items: Vec<Value>| Reply::Listed {
        items: items.iter().map(ListedObject::from).collect(),
        resource_version: "9".to_owned(),
        continue_token: None,
    };
    while let Some((kind, request)) = references.next_request(now) {
        if matches!(request, Request::Watch { .. }) {
            continue;
        }
        let profile = |name: &&str| object(Kind::BfdProfile, name, json!({}));
        let items = match kind {
            Kind::BgpPeer => peers.to_vec(),
            _ => profiles.iter().map(profile).collect(),
        };
        references.handle(now, kind, listed(items));
    }
    references
}

fn peer_with(name: &str, profile: &str) -> Value {
    let spec = json!({
        "myASN": 64500, "peerASN": 64501, "peerAddress": "192.0.2.1", "bfdProfile": profile,
    });
    object(Kind::BgpPeer, name, spec)
}

#[test]
fn a_peer_with_a_profile_that_does_not_exist_yet_is_accepted_with_a_warning() {
    let answer = |references: &References, old: Value, new: Value| {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let review = review(operation, old, new);
        let response = judgement(None, Some(references), &review).review["response"].clone();
        assert_eq!(response["allowed"], true);
        response["warnings"].clone()
    };
    let known = references(&[], &["fast"]);
    assert_eq!(answer(&known, Value::Null, peer_with("tor", "fast")), Value::Null);
    let expected = "BGPPeer/tor: spec.bfdProfile: there is no BFDProfile \"slow\"; the peer is not \
                    configured until it exists";
    assert_eq!(answer(&known, Value::Null, peer_with("tor", "slow")), json!([expected]));
    let same = peer_with("tor", "slow");
    assert_eq!(answer(&known, same.clone(), same), Value::Null, "it was said before");
    let unknown = References::new(&REFERENCE_KINDS, 1);
    assert_eq!(answer(&unknown, Value::Null, peer_with("tor", "slow")), Value::Null);
}

#[test]
fn a_profile_goes_only_when_no_peer_names_it() {
    let known = references(&[peer_with("tor-2", "fast"), peer_with("tor-1", "fast")], &["fast"]);
    let answer = |references: &References, name: &str, namespace: &str| {
        let mut review = review("DELETE", object(Kind::BfdProfile, name, json!({})), Value::Null);
        review["request"]["name"] = json!(name);
        review["request"]["namespace"] = json!(namespace);
        review["request"]["kind"] = json!({ "group": "metallb.io", "kind": "BFDProfile" });
        let response = judgement(None, Some(references), &review).review["response"].clone();
        response["status"]["message"].as_str().map(str::to_owned)
    };
    let refused = "is the bfdProfile of BGPPeer/tor-1, BGPPeer/tor-2; delete or change these first";
    assert_eq!(answer(&known, "fast", SYSTEM).as_deref(), Some(refused));
    assert_eq!(answer(&known, "slow", SYSTEM), None);
    assert_eq!(answer(&known, "fast", "shop"), None, "that one is nobody's");
    assert_eq!(answer(&References::new(&REFERENCE_KINDS, 1), "fast", SYSTEM), None);
}
