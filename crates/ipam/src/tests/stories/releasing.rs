//! What a release frees, and what it must not.

use serde_json::json;

use super::{give, run};

#[test]
fn an_address_that_was_given_again_is_not_released_by_its_earlier_owner() {
    let outcome = run(
        json!({"pools": [{"cidr": "10.0.0.0/32", "blockSize": 32}]}),
        json!([
            give("a", 1, "x"),
            {"op": "inspect", "ip": "$0"},
            {"op": "releaseIPs", "ips": "$0"},
            give("a", 1, "y"),
            {"op": "releaseIPs", "ips": [{"ip": "$0[0]", "seq": "$1.seq"}]},
            {"op": "releaseIPs", "ips": [{"ip": "$0[0]", "handle": "x"}]},
            {"op": "inspect", "ip": "$0"},
        ]),
    );
    assert_eq!((outcome.error(4), outcome.error(5)), ("bad-sequence", "bad-handle"));
    assert_eq!(outcome.results[6]["handle"], "y");
}

#[test]
fn the_number_of_an_assignment_is_never_met_again_even_over_a_deleted_block() {
    let outcome = run(
        json!({"pools": [{"cidr": "10.0.0.0/32", "blockSize": 32}]}),
        json!([
            give("a", 1, "x"),
            {"op": "inspect", "ip": "$0"},
            {"op": "releaseByHandle", "handle": "x"},
            {"op": "removeHost", "host": "a"},
            give("a", 1, "y"),
            {"op": "releaseIPs", "ips": [{"ip": "$0[0]", "seq": "$1.seq"}]},
        ]),
    );
    assert_eq!(outcome.error(5), "bad-sequence");
}

#[test]
fn a_wrong_handle_keeps_its_block_and_no_other() {
    let outcome = run(
        json!({}),
        json!([
            give("a", 5, "x"),
            give("b", 1, "y"),
            {"op": "releaseIPs", "ips": ["$0", {"ip": "$1[0]", "handle": "x"}, "$0[0]", "10.9.9.9"]},
        ]),
    );
    assert_eq!(outcome.results[2]["released"].as_array().unwrap().len(), 5);
    assert_eq!(outcome.results[2]["unallocated"], json!(["10.9.9.9"]));
    assert_eq!(outcome.error(2), "bad-handle");
}

#[test]
fn a_handle_is_one_in_upper_and_lower_case_and_ends_with_its_last_address() {
    let outcome = run(
        json!({}),
        json!([
            give("a", 1, "Net.ABC"),
            {"op": "ipsByHandle", "handle": "net.abc"},
            {"op": "releaseByHandle", "handle": "NET.abc"},
            {"op": "releaseByHandle", "handle": "net.abc"},
        ]),
    );
    assert_eq!(outcome.results[1]["ips"].as_array().unwrap().len(), 1);
    assert_eq!(outcome.results[2]["released"], outcome.results[1]["ips"]);
    assert_eq!((outcome.error(3), &outcome.state["handles"]), ("no-such-handle", &json!({})));
}

#[test]
fn an_address_rests_before_it_is_given_again_and_a_block_of_nobody_waits_for_it() {
    let cooling = json!({"ipCooldownSeconds": 30});
    let outcome = run(
        json!({"config": cooling, "pools": [{"cidr": "10.0.0.0/30", "blockSize": 30}]}),
        json!([
            give("a", 4, "x"),
            {"op": "releaseIPs", "ips": "$0"},
            give("a", 1, "y"),
            {"op": "assignIP", "host": "a", "ip": "$0[0]", "handle": "z"},
            {"op": "inspect", "ip": "$0[0]"},
            {"op": "releaseHostAffinities", "host": "a"},
            {"op": "advance", "seconds": 31},
            {"op": "gc"},
        ]),
    );
    assert_eq!(
        (outcome.count(2), outcome.error(3), outcome.error(4)),
        (0, "already-assigned", "cooling")
    );
    assert!(outcome.block("10.0.0.0/30").is_none(), "it is nobody's and empty");
}

#[test]
fn a_block_of_a_pool_for_other_nodes_goes_with_its_last_address() {
    let pool = json!({"cidr": "10.0.0.0/28", "blockSize": 30, "nodeSelector": "rack == 'x'"});
    let outcome = run(
        json!({"nodes": [{"name": "a", "labels": {"rack": "x"}}], "pools": [pool]}),
        json!([
            give("a", 1, "x"),
            {"op": "setNode", "name": "a", "labels": {}},
            {"op": "releaseByHandle", "handle": "x"},
        ]),
    );
    assert_eq!(
        (outcome.affinities().len(), outcome.state["blocks"].as_array().unwrap().len()),
        (0, 0)
    );
}

#[test]
fn a_handle_that_leads_to_an_empty_block_is_cleared_by_its_release() {
    let outcome = run(
        json!({
            "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a"}],
            "handles": {"x": {"10.0.0.0/30": 1, "10.0.0.4/30": 2}},
        }),
        json!([{"op": "releaseByHandle", "handle": "x"}]),
    );
    assert_eq!(
        (&outcome.results[0]["released"], &outcome.state["handles"]),
        (&json!([]), &json!({}))
    );
}
