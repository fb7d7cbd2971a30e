//! The writes and Events of a controller: stories beside the model API server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing
)] // What fails here fails the test.

mod lab;
mod many;
mod own;
mod succession;

use serde_json::json;

use super::*;
use lab::{Answers, EPOCH_SECONDS, Lab, default, system};

#[test]
fn a_service_gets_its_address_by_one_write() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.run(3);
    lab.service("web", json!({}), json!({}));
    lab.run(5);
    let [write] = &lab.written(WrittenKind::Service)[..] else { panic!("{:?}", lab.writes) };
    let WriteHow::MergeStatus(patch) = &write.how else { panic!("{write:?}") };
    assert_eq!(patch["status"], json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.0" }] } }));
    assert_eq!(patch["metadata"]["annotations"], json!({ POOL_ANNOTATION: "first" }));
    assert_ne!(patch["metadata"]["resourceVersion"], json!(null));
    assert_eq!(lab.said(), ["default/web Normal IPAllocated: Assigned IP [\"192.0.2.0\"]"]);
    assert_eq!(lab.condition("web"), None);
}

#[test]
fn what_the_api_server_keeps_does_not_add_up_here() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.run(3);
    lab.service("web", json!({}), json!({}));
    lab.run(5);
    let tenure = lab.core.tenure.as_mut().unwrap();
    assert!(tenure.memory_change().is_empty());
}

#[test]
fn who_gets_none_says_why_until_there_is_one() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    lab.service("a", json!({}), json!({}));
    lab.run(3);
    lab.written(WrittenKind::Service);
    lab.said();
    lab.service("b", json!({}), json!({}));
    let others = json!({ "type": "example.com/Seen", "status": "True" });
    lab.set_status(Kind::Service, &default("b"), json!({ "conditions": [others] }));
    lab.run(60);
    assert_eq!(lab.written(WrittenKind::Service).len(), 1);
    let why = "Failed to allocate IP for \"default/b\": no available IPs: no pool has a free IPv4 \
               address (tried first)";
    assert_eq!(lab.said(), [format!("default/b Warning AllocationFailed: {why}")]);
    let condition = lab.condition("b").unwrap();
    let expected = json!({
        "type": ADDRESS_CONDITION, "status": "False", "reason": "AllocationFailed", "message": why,
        "lastTransitionTime": "2026-01-01T00:00:04Z",
    });
    assert_eq!(condition, expected);

    lab.delete(Kind::Service, &default("a"));
    lab.run(60);
    assert_eq!(lab.addresses("b"), ["192.0.2.1"]);
    assert_eq!(lab.condition("b"), None);
    let service = lab.stored(Kind::Service, &default("b"));
    assert_eq!(service["status"]["conditions"], json!([others]), "it is not ours to remove");
    assert_eq!(lab.written(WrittenKind::Service).len(), 1, "both at once");
    assert_eq!(lab.said(), ["default/b Normal IPAllocated: Assigned IP [\"192.0.2.1\"]"]);
}

#[test]
fn who_leads_next_says_nothing_again() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    lab.service("a", json!({}), json!({}));
    lab.service("b", json!({}), json!({}));
    lab.run(20);
    assert_eq!(lab.said().len(), 2);
    lab.another_leads();
    lab.run(60);
    assert!(lab.core.is_leading());
    assert_eq!(lab.written(WrittenKind::Service), []);
    assert_eq!(lab.said(), [""; 0]);
}

#[test]
fn an_answer_that_is_lost_delays_what_is_said_and_nothing_else() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    lab.run(3);
    lab.answers = Answers::Lost;
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    assert_eq!(lab.said(), ["default/a Normal IPAllocated: Assigned IP [\"192.0.2.1\"]"]);
    assert_eq!(lab.written(WrittenKind::Service).len(), 1);
}

#[test]
fn an_address_that_no_pool_holds_any_more_is_given_up_for_another() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    lab.service("a", json!({}), json!({}));
    lab.run(3);
    lab.said();
    lab.pool("first", json!({ "addresses": ["198.51.100.1/32"] }));
    lab.run(20);
    assert_eq!(lab.addresses("a"), ["198.51.100.1"]);
    let why = "current IP for \"default/a\" not allowed by config, will attempt for new IP \
               assignment: \"192.0.2.1\" is not allowed in config: it is in no IPAddressPool";
    let given = "default/a Normal IPAllocated: Assigned IP [\"198.51.100.1\"]";
    assert_eq!(lab.said(), [&format!("default/a Normal ClearAssignment: {why}"), given]);
    assert_eq!(lab.written(WrittenKind::Service).len(), 2, "one for each address");
}

#[test]
fn half_of_what_a_service_prefers_is_told_as_that() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    let both = json!({
        "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"],
        "clusterIPs": ["10.0.0.1", "fd00::1"],
    });
    lab.service("a", json!({}), both);
    lab.run(20);
    let condition = lab.condition("a").unwrap();
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("True"), &json!("AdditionalAssignFailed"))
    );
    let said = lab.said();
    let expected = "default/a Normal AdditionalAssignFailed: cannot assign additional IP in \
                    PreferDualStack: no available IPs: pool first holds no IPv6 addresses";
    assert_eq!(said, ["default/a Normal IPAllocated: Assigned IP [\"192.0.2.1\"]", expected]);

    lab.pool("first", json!({ "addresses": ["192.0.2.1/32", "2001:db8::/127"] }));
    lab.run(20);
    assert_eq!(lab.condition("a"), None);
    let added = "default/a Normal IPAllocated: Assigned additional IP [\"2001:db8::\"]";
    assert_eq!(lab.said(), [added]);
}

#[test]
fn a_service_that_cannot_be_read_keeps_what_it_has_and_is_told_why() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    lab.said();
    let wish = json!({ "metallb.io/loadBalancerIPs": "192.0.2.300" });
    lab.service("a", wish.clone(), json!({}));
    lab.service("new", wish.clone(), json!({}));
    lab.service("of-another", wish, json!({ "loadBalancerClass": "example.com/other" }));
    lab.run(5);
    assert_eq!(lab.addresses("a"), ["192.0.2.0"]);
    let said = lab.said();
    assert_eq!(said.len(), 2, "{said:?}");
    let first = "default/a Warning LoadBalancerFailed: invalid requested loadbalancer IPs: \
                 metadata.annotations[metallb.io/loadBalancerIPs]: ";
    assert!(said[0].starts_with(first), "{said:?}");
    let second = "default/new Warning AllocationFailed: Failed to allocate IP for \"default/new\": \
                  invalid requested loadbalancer IPs: ";
    assert!(said[1].starts_with(second), "{said:?}");
    assert_eq!(lab.condition("a").unwrap()["status"], json!("True"));
    assert_eq!(lab.condition("new").unwrap()["status"], json!("False"));
    assert_eq!(lab.condition("of-another"), None);

    lab.service("a", json!({}), json!({}));
    lab.run(5);
    assert_eq!(lab.condition("a"), None);
}

#[test]
fn a_service_of_another_type_keeps_nothing_of_ours() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    lab.service("a", json!({}), json!({}));
    lab.service("b", json!({}), json!({}));
    lab.run(5);
    for name in ["a", "b"] {
        lab.service(name, json!({}), json!({ "type": "ClusterIP" }));
    }
    lab.said();
    lab.run(5);
    for name in ["a", "b"] {
        assert_eq!((lab.addresses(name), lab.condition(name)), (vec![], None), "{name}");
        let annotations = &lab.stored(Kind::Service, &default(name))["metadata"]["annotations"];
        assert_eq!(annotations.get(POOL_ANNOTATION), None, "{name}");
    }
    assert_eq!(lab.said(), [""; 0], "the user who did that knows");
}

#[test]
fn annotations_with_old_names_are_told_once_and_the_one_of_metallb_goes() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    let old = json!({
        "metallb.universe.tf/address-pool": "first",
        "metallb.universe.tf/ip-allocated-from-pool": "first",
    });
    lab.service("a", old.clone(), json!({}));
    lab.run(5);
    let warning = "default/a Warning deprecatedAnnotation: Service uses deprecated annotation \
                   metallb.universe.tf/address-pool";
    assert_eq!(lab.said()[0], warning);
    let annotations = &lab.stored(Kind::Service, &default("a"))["metadata"]["annotations"];
    let expected = json!({ "metallb.universe.tf/address-pool": "first", POOL_ANNOTATION: "first" });
    assert_eq!(*annotations, expected);
    lab.service("a", old, json!({ "ports": [{ "port": 81 }] }));
    lab.run(5);
    assert_eq!(lab.said(), [""; 0]);
}

#[test]
fn without_any_pool_nobody_loses_anything_and_who_waits_says_so() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    lab.said();
    lab.delete(Kind::IpAddressPool, &system("first"));
    lab.service("b", json!({}), json!({}));
    lab.run(60);
    assert_eq!(lab.addresses("a"), ["192.0.2.0"]);
    let why = "Failed to allocate IP for \"default/b\": there is no valid IPAddressPool";
    assert_eq!(lab.said(), [format!("default/b Warning AllocationFailed: {why}")]);
    assert_eq!(lab.condition("b").unwrap()["message"], json!(why));
}

/// MetalLB's controller starts without pools as well, and then takes away every address of such a pool.
#[test]
fn addresses_of_a_pool_that_nobody_can_read_stay_where_they_are() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.pool("second", json!({ "addresses": ["198.51.100.0/24"] }));
    lab.service("a", json!({ "metallb.io/address-pool": "second" }), json!({}));
    lab.run(5);
    assert_eq!(lab.addresses("a"), ["198.51.100.0"]);
    lab.pool("second", json!({ "addresses": ["198.51.100.0/24", "nonsense"] }));
    lab.another_leads();
    lab.service("b", json!({}), json!({}));
    lab.run(60);
    assert_eq!(
        (lab.addresses("a"), lab.addresses("b")),
        (vec!["198.51.100.0".to_owned()], vec!["192.0.2.0".to_owned()])
    );

    lab.written(WrittenKind::Service);
    lab.pool("second", json!({ "addresses": ["198.51.100.0/24"] }));
    lab.run(60);
    assert_eq!(lab.written(WrittenKind::Service), [], "it is as it was");

    lab.pool("second", json!({ "addresses": ["nonsense"] }));
    lab.another_leads();
    lab.run(20);
    assert_eq!(lab.addresses("a"), ["198.51.100.0"]);
    lab.delete(Kind::IpAddressPool, &system("second"));
    lab.run(20);
    assert_eq!(lab.addresses("a"), [""; 0], "it is gone, and so is what it gave");
    assert_eq!(lab.condition("a").unwrap()["reason"], json!("AllocationFailed"));
}

#[test]
fn a_condition_keeps_its_time_while_its_status_is_the_same() {
    let mut lab = Lab::with_pool("192.0.2.1/32");
    lab.service("a", json!({}), json!({}));
    lab.run(3);
    lab.service("b", json!({}), json!({}));
    lab.run(100);
    let since = lab.condition("b").unwrap()["lastTransitionTime"].clone();
    assert_eq!(since, json!("2026-01-01T00:00:04Z"), "{EPOCH_SECONDS} is 2026");
    lab.service("b", json!({ "metallb.io/loadBalancerIPs": "192.0.2.9" }), json!({}));
    lab.run(10);
    let condition = lab.condition("b").unwrap();
    assert_eq!(condition["lastTransitionTime"], since);
    assert!(
        condition["message"].as_str().unwrap().ends_with("it is in no IPAddressPool"),
        "{condition}"
    );
}
