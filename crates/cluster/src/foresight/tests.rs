//! A cluster of two nodes, two routers and three Services, and writes to what configures it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

use super::*;
use crate::admission::{Beside, Judged, judge};

const SYSTEM: &str = "metallb-system";

fn ours(kind: Kind, name: &str, spec: Value) -> Value {
    let version = if kind == Kind::BgpPeer { "v1beta2" } else { "v1beta1" };
    json!({
        "apiVersion": format!("metallb.io/{version}"), "kind": kind.to_string(),
        "metadata": { "name": name, "namespace": SYSTEM }, "spec": spec,
    })
}

fn pool(addresses: &str) -> Value {
    ours(Kind::IpAddressPool, "main", json!({ "addresses": [addresses] }))
}

fn peer(name: &str, address: &str, more: Value) -> Value {
    let mut spec = json!({ "myASN": 64500, "peerASN": 64501, "peerAddress": address });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    ours(Kind::BgpPeer, name, spec)
}

fn node(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } })
}

fn service(name: &str, address: &str) -> [Value; 2] {
    let endpoint = json!({ "addresses": ["10.0.0.1"], "nodeName": "node-1" });
    [
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
            "status": { "loadBalancer": { "ingress": [{ "ip": address }] } },
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": name, "namespace": "default",
                "labels": { "kubernetes.io/service-name": name },
            },
            "addressType": "IPv4", "endpoints": [endpoint],
        }),
    ]
}

fn kind_of(object: &Value) -> Kind {
    Kind::ALL.into_iter().find(|it| it.to_string() == object["kind"]).unwrap()
}

/// Every Service is announced by both nodes to both routers: twelve routes.
fn cluster(budget: &str) -> Foresight {
    let limit = DisruptionLimit { budget: budget.parse().unwrap(), ignore_exclude_label: false };
    let mut foresight = Foresight::new(limit, None);
    let mut objects = vec![
        pool("192.0.2.0/24"),
        ours(Kind::BgpAdvertisement, "all", json!({})),
        peer("one", "10.0.0.251", json!({})),
        peer("two", "10.0.0.252", json!({ "passwordSecret": { "name": "two" } })),
        node("node-1"),
        node("node-2"),
    ];
    for number in 1..=3 {
        objects.extend(service(&format!("web-{number}"), &format!("192.0.2.{number}")));
    }
    for object in &objects {
        foresight.follow(kind_of(object), &[Delta::Applied(ObjectText::from(object))]);
    }
    foresight
}

/// What the user is told, in the end.
fn said(budget: &str, operation: &str, old: &Value, new: &Value) -> String {
    said_in_time(budget, (operation, old, new), || false).unwrap()
}

fn said_in_time(
    budget: &str,
    (operation, old, new): (&str, &Value, &Value),
    is_late: impl Fn() -> bool,
) -> Result<String, Late> {
    let written = if new.is_null() { old } else { new };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": operation, "namespace": SYSTEM,
            "name": written["metadata"]["name"], "kind": { "kind": written["kind"] },
            "object": new, "oldObject": old,
        },
    });
    let mut foresight = cluster(budget);
    let beside = Beside { foresight: Some(&mut foresight), ..Beside::default() };
    let judgement = match judge(beside, &review, SYSTEM) {
        Judged::Now(judgement) => judgement,
        Judged::Later(rest) => rest.judgement(is_late)?,
    };
    let response = &judgement.review["response"];
    let is_refused = response["allowed"] == false;
    assert_eq!(judgement.may_change, is_refused);
    if is_refused {
        assert_eq!(response["status"]["code"], 403);
        return Ok(response["status"]["message"].as_str().unwrap().to_owned());
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.map(|it| format!(", warned: {}", it.as_str().unwrap()));
    Ok(format!("allowed{}", warnings.collect::<String>()))
}

fn updated(budget: &str, old: &Value, new: &Value) -> String {
    said(budget, "UPDATE", old, new)
}

fn deleted(budget: &str, old: &Value) -> String {
    said(budget, "DELETE", old, &Value::Null)
}

const REFUSED: &str = "disrupts more than the webhook permits: ";

#[test]
fn a_pool_that_loses_addresses_in_use_moves_them() {
    // Two of the three Services keep theirs.
    let less = pool("192.0.2.1-192.0.2.2");
    let message = updated("move", &pool("192.0.2.0/24"), &less);
    assert!(message.starts_with(&format!("{REFUSED}1 moved address; permitted: 0.")), "{message}");
    assert_eq!(updated("move,1", &pool("192.0.2.0/24"), &less), "allowed");
    let message = updated("withdraw,3", &pool("192.0.2.0/24"), &less);
    assert!(message.starts_with(&format!("{REFUSED}4 withdrawals; permitted: 3.")), "{message}");
    assert_eq!(updated("reset", &pool("192.0.2.0/24"), &less), "allowed");
}

#[test]
fn a_deletion_withdraws_what_the_object_announces() {
    for (object, withdrawn) in [
        (pool("192.0.2.0/24"), 12),
        (ours(Kind::BgpAdvertisement, "all", json!({})), 12),
        (peer("one", "10.0.0.251", json!({})), 6),
    ] {
        let message = deleted("withdraw", &object);
        let expected = format!("{REFUSED}{withdrawn} withdrawals; permitted: 0.");
        assert!(message.starts_with(&expected), "{}: {message}", object["kind"]);
        assert_eq!(deleted(&format!("withdraw,{withdrawn}"), &object), "allowed");
    }
}

#[test]
fn another_as_or_a_first_key_resets_the_session_on_each_node() {
    let one = |more: Value| peer("one", "10.0.0.251", more);
    for new in
        [one(json!({ "peerASN": 64502 })), one(json!({ "passwordSecret": { "name": "one" } }))]
    {
        let message = updated("reset", &one(json!({})), &new);
        let expected = format!("{REFUSED}2 session resets; permitted: 0.");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn what_disrupts_nothing_is_allowed() {
    let budget = "withdraw,reset,move";
    let main = pool("192.0.2.0/24");
    assert_eq!(updated(budget, &main, &pool("192.0.0.0/22")), "allowed");
    let other = ours(Kind::IpAddressPool, "other", json!({ "addresses": ["198.51.100.0/24"] }));
    assert_eq!(said(budget, "CREATE", &Value::Null, &other), "allowed");
    let third = peer("three", "10.0.0.253", json!({ "passwordSecret": { "name": "three" } }));
    assert_eq!(said(budget, "CREATE", &Value::Null, &third), "allowed");
    // The session stays up if the router changes its key as well.
    let two =
        |secret: &str| peer("two", "10.0.0.252", json!({ "passwordSecret": { "name": secret } }));
    assert_eq!(updated(budget, &two("two"), &two("other")), "allowed");
    let mut labelled = main.clone();
    labelled["metadata"]["labels"] = json!({ "team": "web" });
    assert_eq!(updated(budget, &main, &labelled), "allowed");
    // Nothing is announced from it, or by it.
    assert_eq!(deleted(budget, &other), "allowed");
}

#[test]
fn an_annotation_permits_the_write_and_says_what_it_disrupts() {
    let annotated = |mut object: Value, value: &str| {
        object["metadata"]["annotations"] = json!({ "fairway.dev/permit-disruption": value });
        object
    };
    let main = pool("192.0.2.0/24");
    let warned = "allowed, warned: disrupts 12 withdrawals; permitted: 0; fairway.dev/permit-disruption is \
                  \"true\"";
    assert_eq!(deleted("withdraw", &annotated(main.clone(), "true")), warned);
    assert!(deleted("withdraw", &annotated(main.clone(), "no")).starts_with(REFUSED));
    // The annotation of the old version does not count for a new one without it.
    let less = pool("198.51.100.0/24");
    let old = annotated(main, "true");
    assert!(updated("withdraw", &old, &less).starts_with(REFUSED));
    assert!(updated("withdraw", &old, &annotated(less, "true")).starts_with("allowed, warned"));
}

#[test]
fn a_deletion_that_has_begun_is_not_judged_again() {
    let mut going = pool("192.0.2.0/24");
    going["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/x"]);
    let mut last = going.clone();
    last["metadata"]["finalizers"] = json!([]);
    last["spec"]["addresses"] = json!(["198.51.100.0/24"]);
    assert_eq!(updated("withdraw", &going, &last), "allowed");
}

#[test]
fn without_time_for_all_nodes_only_what_is_certain_is_said() {
    let late_after = |nodes: usize, object: &Value| {
        let asked = std::cell::Cell::new(0);
        let is_late = || asked.replace(asked.get() + 1) == nodes;
        said_in_time("withdraw", ("DELETE", object, &Value::Null), is_late)
    };
    let peer = peer("one", "10.0.0.251", json!({}));
    let message = late_after(1, &peer).unwrap();
    assert!(message.starts_with(&format!("{REFUSED}at least 3 withdrawals; ")), "{message}");
    assert_eq!(late_after(0, &peer), Err(Late));
    assert_eq!(
        late_after(1, &ours(Kind::Layer2Advertisement, "none", json!({}))).unwrap(),
        "allowed"
    );
}
