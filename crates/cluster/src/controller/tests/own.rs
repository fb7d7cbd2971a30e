//! What a controller writes about pools and about itself.

use fairway_model_api::{Request as Ask, Timestamp};
use serde_json::{Value, json};

use super::lab::written;
use super::*;

fn state(lab: &mut Lab) -> Value {
    let resource = written(WrittenKind::ConfigurationState);
    let get = Ask::get(&resource, "metallb-system", "controller");
    lab.api.handle(Timestamp::default(), 0, &get).body
}

#[test]
fn a_pool_says_how_full_it_is() {
    let mut lab = Lab::with_pool("192.0.2.0/30");
    lab.run(3);
    let status =
        |lab: &mut Lab| lab.stored(Kind::IpAddressPool, &system("first"))["status"].clone();
    let expected = |assigned: u64, available: u64| {
        json!({
            "assignedIPv4": assigned, "assignedIPv6": 0, "availableIPv4": available, "availableIPv6": 0,
        })
    };
    assert_eq!(status(&mut lab), expected(0, 4));
    lab.service("a", json!({}), json!({}));
    lab.run(5);
    assert_eq!(status(&mut lab), expected(1, 3));
    assert_eq!(lab.written(WrittenKind::IpAddressPool).len(), 2);
    lab.run(3600);
    lab.another_leads();
    lab.run(60);
    assert_eq!(lab.written(WrittenKind::IpAddressPool), [], "nothing is other");
}

#[test]
fn a_pool_is_written_once_a_second_at_most_and_is_right_in_the_end() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.run(3);
    lab.written(WrittenKind::IpAddressPool);
    for number in 0..100 {
        lab.service(&format!("s{number}"), json!({}), json!({}));
        lab.now = lab.now + Duration::from_millis(50);
        lab.run(0);
    }
    lab.run(5);
    let writes = lab.written(WrittenKind::IpAddressPool).len();
    assert!((3..=7).contains(&writes), "{writes} in five seconds");
    let pool = lab.stored(Kind::IpAddressPool, &system("first"));
    assert_eq!(pool["status"]["assignedIPv4"], json!(100));
}

#[test]
fn what_others_write_into_the_status_of_a_pool_is_put_right() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.run(3);
    let wrong = json!({ "assignedIPv4": 7, "note": "mine" });
    lab.set_status(Kind::IpAddressPool, &system("first"), wrong);
    lab.run(60);
    let pool = lab.stored(Kind::IpAddressPool, &system("first"));
    assert_eq!(
        (&pool["status"]["assignedIPv4"], &pool["status"]["note"]),
        (&json!(0), &json!("mine"))
    );
    assert_eq!(lab.written(WrittenKind::IpAddressPool).len(), 2);
}

#[test]
fn the_leader_says_that_all_is_well_and_whose_word_that_is() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.run(300);
    assert_eq!(lab.written(WrittenKind::ConfigurationState).len(), 2, "the object, its status");
    let state = state(&mut lab);
    assert_eq!(state["metadata"]["labels"], json!({ "metallb.io/component-type": "controller" }));
    assert_eq!(state["metadata"]["ownerReferences"][0]["name"], json!("controller-0"));
    assert_eq!(state["status"]["result"], json!("Valid"));
    let condition = &state["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("poolReconcilerValid"), &json!("Reconciled"))
    );
}

#[test]
fn it_comes_back_when_somebody_deletes_it() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.run(10);
    let before = state(&mut lab)["metadata"]["resourceVersion"].clone();
    lab.run(650);
    assert_eq!(state(&mut lab)["metadata"]["resourceVersion"], before, "no change is no write");
    let resource = written(WrittenKind::ConfigurationState);
    lab.api.handle(
        Timestamp::default(),
        0,
        &Ask::delete(&resource, "metallb-system", "controller"),
    );
    lab.run(650);
    assert_eq!(state(&mut lab)["status"]["result"], json!("Valid"));
}

#[test]
fn what_is_at_fault_is_told_and_so_is_its_end() {
    let mut lab = Lab::with_pool("192.0.2.0/24");
    lab.pool("second", json!({ "addresses": ["nonsense"] }));
    lab.run(10);
    let status = state(&mut lab)["status"].clone();
    assert_eq!(status["result"], json!("Invalid"));
    let summary = status["errorSummary"].as_str().unwrap();
    assert!(summary.starts_with("IPAddressPool/second: spec.addresses"), "{summary}");
    assert_eq!(status["conditions"][0]["reason"], json!("ConfigurationError"));
    assert_eq!(status["conditions"][0]["message"], status["errorSummary"]);

    lab.written(WrittenKind::ConfigurationState);
    lab.delete(Kind::IpAddressPool, &system("second"));
    lab.run(10);
    assert_eq!(state(&mut lab)["status"]["result"], json!("Valid"));
    assert_eq!(lab.written(WrittenKind::ConfigurationState).len(), 1, "the status alone");
}
