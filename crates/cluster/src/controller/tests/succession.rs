//! One leader after another: how soon the next one assigns addresses, and which it withholds.

use super::lab::settings;
use super::*;

/// Of one Pod: `run` counts its containers.
fn of_pod(run: &str) -> ControllerSettings {
    let predecessors = Some("pod_1_".to_owned());
    ControllerSettings { predecessors, ..settings(&format!("pod_1_{run}")) }
}

/// Milliseconds until the Service `name` has an address.
fn time_to_address(lab: &mut Lab, name: &str) -> u64 {
    let began = lab.now;
    for millis in (0..60_000).step_by(100) {
        lab.run_until(began + Duration::from_millis(millis));
        if !lab.addresses(name).is_empty() {
            return millis;
        }
    }
    panic!("no address within a minute");
}

#[test]
fn after_an_orderly_end_the_next_leader_assigns_at_once() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    lab.leader_ends();
    lab.service("new", json!({}), json!({}));
    lab.begin(settings("another"));
    assert_eq!(time_to_address(&mut lab, "new"), 0);
    assert_eq!(lab.addresses("new"), ["192.0.2.1"]);
}

#[test]
fn a_container_that_was_killed_takes_the_lease_of_its_pod_back() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.begin(of_pod("a"));
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    lab.service("new", json!({}), json!({}));
    lab.begin(of_pod("b"));
    assert_eq!(time_to_address(&mut lab, "new"), 0);
    assert_eq!(lab.lease.as_ref().unwrap().holder, "pod_1_b");
    lab.service("newer", json!({}), json!({}));
    lab.begin(settings("elsewhere"));
    assert!(
        time_to_address(&mut lab, "newer") >= 15_000,
        "nobody knows whether that one has ended"
    );
}

#[test]
fn a_leader_that_could_not_renew_leads_again_as_soon_as_the_lease_shows_its_own_name() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    lab.lease_answers = Answers::Lost;
    lab.run(12);
    assert!(!lab.core.is_leading(), "another one could lead by now");
    lab.service("new", json!({}), json!({}));
    lab.lease_answers = Answers::True;
    assert!(time_to_address(&mut lab, "new") < 3_000, "it waits for its own lease to end");
}

#[test]
fn what_was_released_while_nobody_led_is_withheld_and_nothing_else() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.service("b", json!({}), json!({}));
    lab.run(5);
    lab.leader_ends();
    lab.delete(Kind::Service, &default("a"));
    let asking = json!({ "metallb.io/loadBalancerIPs": "192.0.2.0" });
    lab.service("asking", asking, json!({}));
    lab.service("new", json!({}), json!({}));
    lab.begin(settings("another"));
    lab.run(1);
    assert_eq!(lab.addresses("new"), ["192.0.2.2"]);
    assert_eq!(lab.addresses("asking"), [""; 0]);
    lab.run(8);
    assert_eq!(lab.addresses("asking"), [""; 0], "routers may still send its traffic to a");
    lab.run(3);
    assert_eq!(lab.addresses("asking"), ["192.0.2.0"]);
}

#[test]
fn a_status_gets_an_address_only_once_the_lease_names_it() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    let named = |lab: &Lab| lab.lease.as_ref().unwrap().addresses.clone().unwrap();
    assert_eq!(named(&lab), "192.0.2.0");
    lab.lease_answers = Answers::Lost;
    lab.service("b", json!({}), json!({}));
    lab.run(1);
    assert_eq!(lab.addresses("b"), [""; 0]);
    lab.lease_answers = Answers::True;
    lab.run(3);
    assert_eq!(lab.addresses("b"), ["192.0.2.1"]);
    assert_eq!(named(&lab), "192.0.2.0-192.0.2.1");
    lab.delete(Kind::Service, &default("b"));
    lab.run(9);
    assert_eq!(named(&lab), "192.0.2.0,192.0.2.1=default/b", "routers may still send its traffic");
    lab.run(5);
    assert_eq!(named(&lab), "192.0.2.0");
}

#[test]
fn a_leader_without_a_record_of_the_last_one_waits_for_withdrawals() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    lab.leader_ends();
    lab.service("new", json!({}), json!({}));
    for addresses in [None, Some("not one".to_owned())] {
        lab.leader_ends();
        lab.lease.as_mut().unwrap().addresses = addresses;
        lab.begin(settings("another"));
        lab.run(9);
        assert_eq!(lab.addresses("new"), [""; 0]);
    }
    lab.run(2);
    assert_eq!(lab.addresses("new"), ["192.0.2.1"]);
}
