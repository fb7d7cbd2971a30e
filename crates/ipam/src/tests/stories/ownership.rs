//! Blocks get and lose owners.

use serde_json::json;

use super::{give, run};

#[test]
fn blocks_of_others_are_not_claimed_and_not_released() {
    let outcome = run(
        json!({}),
        json!([
            {"op": "claimAffinity", "cidr": "10.0.0.0/29", "host": "a"},
            {"op": "claimAffinity", "cidr": "10.0.0.0/28", "host": "b"},
            {"op": "claimAffinity", "cidr": "10.0.0.0/31", "host": "b"},
            {"op": "claimAffinity", "cidr": "10.9.0.0/28", "host": "b"},
            {"op": "releaseAffinity", "cidr": "10.0.0.0/28", "host": "b"},
            {"op": "claimAffinity", "cidr": "10.0.0.8/30", "host": "load-balancer", "type": "virtual"},
        ]),
    );
    assert_eq!(outcome.results[0]["claimed"], json!(["10.0.0.0/30", "10.0.0.4/30"]));
    assert_eq!(outcome.results[1]["claimed"], json!(["10.0.0.8/30", "10.0.0.12/30"]));
    assert_eq!(outcome.results[1]["failed"], json!(["10.0.0.0/30", "10.0.0.4/30"]));
    assert_eq!((outcome.error(2), outcome.error(3)), ("too-small", "not-in-pool"));
    let affinities = outcome.affinities();
    assert_eq!(affinities.iter().filter(|it| it.starts_with("a ")).count(), 2);
    assert_eq!(affinities.iter().filter(|it| it.starts_with("b ")).count(), 0);
    assert_eq!(outcome.block("10.0.0.8/30").unwrap()["affinity"], "virtual:load-balancer");
}

#[test]
fn a_block_in_use_becomes_nobodys_and_goes_with_its_last_address() {
    let outcome = run(
        json!({}),
        json!([
            give("a", 1, "x"),
            {"op": "releaseBlockAffinity", "cidr": "$0.block", "mustBeEmpty": true},
            {"op": "removeHost", "host": "a"},
            {"op": "routes", "host": "a"},
            {"op": "inspect", "ip": "$0"},
            {"op": "releaseIPs", "ips": "$0"},
        ]),
    );
    assert_eq!(outcome.error(1), "not-empty");
    let address = outcome.results[4]["ip"].as_str().unwrap();
    assert_eq!(outcome.results[3]["announce"], json!([format!("{address}/32")]));
    assert_eq!(outcome.results[3]["blackhole"], json!([]));
    assert!(outcome.state["blocks"].as_array().unwrap().is_empty());
}

#[test]
fn an_affinity_without_a_block_is_released() {
    for state in ["pending", "confirmed", "pendingDeletion"] {
        let affinities = json!([{"host": "a", "cidr": "10.0.0.4/30", "state": state}]);
        let ops = json!([{"op": "releaseAffinity", "cidr": "10.0.0.4/30", "host": "a"}]);
        let outcome = run(json!({"affinities": affinities}), ops);
        assert!(outcome.affinities().is_empty(), "{state}");
    }
}

#[test]
fn routes_are_those_of_confirmed_blocks_and_of_addresses_elsewhere() {
    let state = json!({
        "pools": [
            {"cidr": "10.0.0.0/24", "blockSize": 30},
            {"cidr": "10.1.0.0/30", "blockSize": 32},
            {"cidr": "10.2.0.0/30", "blockSize": 30, "disableBGPExport": true},
        ],
        "blocks": [
            {"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.1": "own"}},
            {"cidr": "10.0.0.4/30", "affinity": "host:a"},
            {"cidr": "10.0.0.8/30", "affinity": "host:a"},
            {"cidr": "10.0.0.12/30", "affinity": "host:b", "allocations": {
                "10.0.0.12": {"handle": "borrowed", "attrs": {"node": "a"}}, "10.0.0.13": "theirs"}},
            {"cidr": "10.1.0.0/32", "affinity": "host:a", "allocations": {"10.1.0.0": "single"}},
            {"cidr": "10.1.0.1/32", "affinity": "host:a"},
            {"cidr": "10.2.0.0/30", "affinity": "host:a"},
        ],
        "affinities": [
            {"host": "a", "cidr": "10.0.0.0/30", "state": ""},
            {"host": "a", "cidr": "10.0.0.4/30", "state": "pending"},
            {"host": "a", "cidr": "10.0.0.8/30", "state": "pendingDeletion"},
            {"host": "b", "cidr": "10.0.0.12/30"},
            {"host": "a", "cidr": "10.1.0.0/32"},
            {"host": "a", "cidr": "10.1.0.1/32"},
            {"host": "a", "cidr": "10.2.0.0/30"},
        ],
    });
    let outcome = run(state, json!([{"op": "routes", "host": "a"}]));
    assert_eq!(
        outcome.results[0]["announce"],
        json!(["10.0.0.0/30", "10.0.0.12/32", "10.1.0.0/32"])
    );
    assert_eq!(outcome.results[0]["blackhole"], json!(["10.0.0.0/30", "10.2.0.0/30"]));
}

#[test]
fn a_configuration_that_cannot_be_is_refused_and_leaves_the_one_before() {
    let outcome = run(
        json!({}),
        json!([
            {"op": "setConfig", "autoAllocateBlocks": false},
            {"op": "setConfig", "maxBlocksPerHost": 3},
            {"op": "setConfig", "ipCooldownSeconds": 1201},
            {"op": "setConfig", "strictAffinity": true, "autoAllocateBlocks": false},
            {"op": "getConfig"},
            give("a", 1, "x"),
        ]),
    );
    let errors: Vec<&str> = (0..4).map(|it| outcome.error(it)).collect();
    assert_eq!(errors, ["bad-config", "bad-config", "bad-config", "none"]);
    assert_eq!(outcome.results[4]["config"]["maxBlocksPerHost"], 0);
    assert_eq!(outcome.error(5), "no-claim");
}

#[test]
fn a_release_that_finds_the_block_in_use_leaves_it_confirmed() {
    let state = json!({
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": "x"}}],
        "affinities": [{"host": "a", "cidr": "10.0.0.0/30", "state": "pendingDeletion"}],
    });
    let ops = json!([{"op": "releaseHostAffinities", "host": "a", "mustBeEmpty": true}]);
    let outcome = run(state, ops);
    assert_eq!(outcome.error(0), "not-empty");
    assert_eq!(outcome.affinities(), ["a 10.0.0.0/30 confirmed"]);
}
