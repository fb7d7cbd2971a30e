//! Which addresses are given, and why none.

use serde_json::json;

use super::{give, run};

#[test]
fn own_blocks_are_filled_first_then_new_ones_then_those_of_others() {
    let outcome = run(
        json!({}),
        json!([give("a", 1, "x"), give("b", 13, "y"), give("b", 2, "z"), give("b", 9, "w")]),
    );
    assert_eq!(outcome.count(0), 1);
    // Three blocks are its own, the thirteenth address is in a's.
    assert_eq!(outcome.count(1), 13);
    assert_eq!(outcome.count(2), 2);
    assert_eq!((outcome.count(3), outcome.error(3)), (0, "none"), "no room is no error");
    let of_b = outcome.affinities().into_iter().filter(|it| it.starts_with("b "));
    assert_eq!(of_b.count(), 3);
    let counts: u64 = outcome.state["handles"]["y"]
        .as_object()
        .unwrap()
        .values()
        .map(|it| it.as_u64().unwrap())
        .sum();
    assert_eq!(counts, 13, "what was got, and not what was asked for");
}

#[test]
fn with_strict_affinity_no_node_borrows() {
    let outcome = run(
        json!({"config": {"strictAffinity": true}}),
        json!([give("a", 1, "x"), give("b", 16, "y")]),
    );
    assert_eq!(outcome.count(1), 12);
    let foreign = outcome.results[0]["v4"][0].as_str().unwrap();
    assert!(!outcome.results[1]["v4"].as_array().unwrap().iter().any(|it| it == foreign));
}

#[test]
fn the_limit_stops_claims_and_not_filling_and_counts_blocks_of_all_pools() {
    let outcome = run(
        json!({
            "config": {"strictAffinity": true, "maxBlocksPerHost": 1},
            "pools": [{"cidr": "10.0.0.0/28", "blockSize": 30}, {"cidr": "10.1.0.0/28", "blockSize": 30}],
        }),
        json!([
            {"op": "autoAssign", "host": "a", "n4": 6, "handle": "x", "pools4": ["10.0.0.0/28"]},
            {"op": "releaseByHandle", "handle": "x"},
            give("a", 2, "y"),
            {"op": "autoAssign", "host": "a", "n4": 1, "handle": "z", "pools4": ["10.1.0.0/28"]},
        ]),
    );
    assert_eq!((outcome.count(0), outcome.error(0)), (4, "block-limit"));
    assert_eq!((outcome.count(2), outcome.error(2)), (2, "none"));
    assert_eq!((outcome.count(3), outcome.error(3)), (0, "block-limit"));
}

#[test]
fn an_empty_block_is_taken_from_its_owner_only_if_it_is_old() {
    let blocks = |ago: u64| {
        let block = |index: u64| json!({"cidr": format!("10.0.0.{}/30", 4 * index), "affinity": "host:b", "claimedAgo": ago});
        json!({"blocks": (0..4).map(block).collect::<Vec<_>>(), "config": {"strictAffinity": true}})
    };
    let outcome = run(blocks(60), json!([give("a", 1, "x")]));
    assert_eq!(outcome.count(0), 0, "its owner is about to use it");
    let outcome = run(blocks(61), json!([give("a", 1, "x")]));
    assert_eq!(outcome.count(0), 1);
    assert_eq!(outcome.affinities().iter().filter(|it| it.starts_with("a ")).count(), 1);
    assert_eq!(outcome.affinities().len(), 4);
}

#[test]
fn reserved_addresses_are_given_only_to_those_who_name_them() {
    let outcome = run(
        json!({"reservations": ["10.0.0.0/29", "10.0.0.8/31"], "pools": [{"cidr": "10.0.0.0/28", "blockSize": 30}]}),
        json!([
            give("a", 16, "x"),
            {"op": "assignIP", "host": "a", "ip": "10.0.0.1", "handle": "y"},
            {"op": "utilization"},
        ]),
    );
    assert_eq!(outcome.count(0), 6);
    assert_eq!(outcome.results[1]["ip"], "10.0.0.1");
    let pool = &outcome.results[2]["pools"][0];
    assert_eq!((&pool["capacity"], &pool["inUse"]), (&json!(16), &json!(7)));
    assert_eq!((&pool["reserved"], &pool["available"]), (&json!(9), &json!(0)));
}

#[test]
fn a_missing_block_and_a_half_claimed_one_are_made_whole_by_the_next_use() {
    for state in ["pending", "confirmed", "pendingDeletion"] {
        let affinities = json!([{"host": "a", "cidr": "10.0.0.4/30", "state": state}]);
        let outcome = run(json!({"affinities": affinities}), json!([give("a", 1, "x")]));
        assert_eq!(outcome.results[0]["v4"], json!(["10.0.0.4/30"]), "{state} without a block");
        assert_eq!(outcome.affinities(), ["a 10.0.0.4/30 confirmed"], "{state} without a block");
        let blocks = json!([{"cidr": "10.0.0.4/30", "affinity": "host:a"}]);
        let outcome =
            run(json!({"affinities": affinities, "blocks": blocks}), json!([give("a", 1, "x")]));
        assert_eq!(outcome.affinities(), ["a 10.0.0.4/30 confirmed"], "{state} with its block");
        let blocks = json!([{"cidr": "10.0.0.4/30", "affinity": "host:b", "allocations": {"10.0.0.4": "y"}}]);
        let affinities = json!([
            {"host": "a", "cidr": "10.0.0.4/30", "state": state},
            {"host": "b", "cidr": "10.0.0.4/30"},
        ]);
        let outcome =
            run(json!({"affinities": affinities, "blocks": blocks}), json!([give("a", 1, "x")]));
        assert!(
            outcome.affinities().contains(&"b 10.0.0.4/30 confirmed".to_owned())
                && !outcome.affinities().contains(&format!("a 10.0.0.4/30 {state}")),
            "{state} of the loser is removed: {:?}",
            outcome.affinities()
        );
    }
}

#[test]
fn requests_are_refused_for_a_reason() {
    let pools = json!([
        {"cidr": "10.0.0.0/28", "blockSize": 30, "nodeSelector": "rack == 'x'"},
        {"cidr": "10.1.0.0/28", "blockSize": 30, "disabled": true},
        {"cidr": "fd00::/120", "nodeSelector": "rack =="},
    ]);
    let outcome = run(
        json!({"pools": pools}),
        json!([
            give("a", 1, "x"),
            give("nobody", 1, "x"),
            {"op": "autoAssign", "host": "a", "n4": 1, "pools4": ["10.1.0.0/28"]},
            {"op": "autoAssign", "host": "a", "n4": 1, "pools4": ["fd00::/120"]},
            {"op": "autoAssign", "host": "a", "n6": 1},
            {"op": "autoAssign", "host": "a", "n4": 1, "use": "LoadBalancer"},
            {"op": "autoAssign", "host": "a", "n4": 1, "use": ""},
            {"op": "autoAssign", "host": "a", "n4": 1, "os": "windows"},
            {"op": "assignIP", "host": "a", "ip": "10.1.0.1"},
            {"op": "assignIP", "host": "a", "ip": "10.0.0.1", "use": "LoadBalancer"},
            {"op": "assignIP", "host": "a", "ip": "10.0.0.1", "handle": "x"},
            {"op": "assignIP", "host": "a", "ip": "10.0.0.1", "handle": "x"},
        ]),
    );
    let expected = [
        "no-pool-for-node",
        "node-unknown",
        "unknown-pool",
        "wrong-family",
        "bad-selector",
        "no-pool-for-node",
        "use-required",
        "strict-required",
        "not-in-pool",
        "use-not-allowed",
        "none",
        "already-assigned",
    ];
    let errors: Vec<&str> = (0..expected.len()).map(|it| outcome.error(it)).collect();
    assert_eq!(errors, expected);
}

#[test]
fn a_handle_with_a_limit_keeps_what_it_has() {
    let ask = json!({"op": "autoAssign", "host": "a", "n4": 1, "handle": "VM", "maxPerHandle": 1});
    let outcome = run(
        json!({}),
        json!([
            ask,
            ask,
            {"op": "assignIP", "host": "b", "ip": "$0[0]", "handle": "vm", "maxPerHandle": 1},
            {"op": "assignIP", "host": "b", "ip": "10.0.0.15", "handle": "vm", "maxPerHandle": 1},
        ]),
    );
    assert_eq!(outcome.results[0], outcome.results[1]);
    assert_eq!(outcome.error(2), "none");
    assert_eq!(outcome.error(3), "handle-limit");
}

#[test]
fn windows_takes_its_share_of_a_block_which_is_empty_all_the_same() {
    let reserved = json!({"start": 3, "end": 1, "handle": "windows-reserved-ipam-handle"});
    let outcome = run(
        json!({"config": {"strictAffinity": true}, "pools": [{"cidr": "10.0.0.0/28", "blockSize": 29}]}),
        json!([
            {"op": "ensureBlock", "host": "a", "hostReserved4": reserved, "os": "windows"},
            {"op": "autoAssign", "host": "a", "n4": 5, "hostReserved4": reserved, "os": "windows", "handle": "x"},
            {"op": "releaseByHandle", "handle": "x"},
            {"op": "releaseHostAffinities", "host": "a", "mustBeEmpty": true},
        ]),
    );
    assert!(outcome.results[0]["block4"].is_string() && outcome.results[0].get("block6").is_none());
    assert_eq!(outcome.count(1), 5);
    assert_eq!((outcome.error(3), outcome.affinities().len()), ("none", 0));
}

#[test]
fn a_pool_of_addresses_without_end_has_room_beyond_what_is_reserved() {
    let outcome = run(
        json!({
            "pools": [{"cidr": "fd00::/48"}],
            "reservations": ["fd00::/49", "fd00:0:0:8000::/50", "fd00:0:0:c000::/51"],
        }),
        json!([
            {"op": "autoAssign", "host": "a", "n6": 2, "handle": "x"},
            {"op": "autoAssign", "host": "b", "n6": 2, "handle": "y"},
            {"op": "utilization"},
        ]),
    );
    assert_eq!((outcome.count(0), outcome.count(1)), (2, 2));
    for address in outcome.results[0]["v6"].as_array().unwrap() {
        assert!(
            address.as_str().unwrap().starts_with("fd00:0:0:e")
                || address.as_str().unwrap().starts_with("fd00:0:0:f")
        );
    }
}

#[test]
fn a_pool_with_another_size_of_blocks_than_before_gives_no_address_twice() {
    let pool = |size: u8| json!({"cidr": "10.0.0.0/26", "blockSize": size});
    let outcome = run(
        json!({"pools": [pool(28)]}),
        json!([
            give("a", 1, "x"),
            {"op": "setPool", "pool": pool(26)},
            {"op": "assignIP", "ip": "$0[0]", "host": "b", "handle": "y"},
            {"op": "claimAffinity", "cidr": "10.0.0.0/26", "host": "b"},
            give("b", 1, "z"),
            {"op": "inspect", "ip": "$0"},
            {"op": "releaseIPs", "ips": "$0"},
        ]),
    );
    assert_eq!(outcome.error(2), "already-assigned");
    assert_eq!(outcome.results[3]["failed"], json!(["10.0.0.0/26"]));
    assert_eq!(outcome.results[5]["handle"], "x");
    assert_eq!(outcome.results[6]["released"].as_array().unwrap().len(), 1);
    assert_eq!(outcome.state["blocks"].as_array().unwrap().len(), 1);
    let blocks =
        json!([{"cidr": "10.0.0.0/26", "affinity": "host:b", "allocations": {"10.0.0.0": "x"}}]);
    let affinities = json!([{"host": "a", "cidr": "10.0.0.0/28", "state": "pending"}, {"host": "b", "cidr": "10.0.0.0/26"}]);
    let state = json!({"pools": [pool(28)], "blocks": blocks, "affinities": affinities});
    let outcome = run(state, json!([give("a", 1, "y")]));
    assert_eq!(
        outcome.results[0]["v4"],
        json!(["10.0.0.1/26"]),
        "borrowed, out of the block that is there"
    );
    assert_eq!(outcome.affinities(), ["b 10.0.0.0/26 confirmed"]);
}

#[test]
fn an_explicit_wish_needs_an_own_block_with_strict_affinity_and_confirms_it() {
    let state = json!({
        "config": {"strictAffinity": true},
        "blocks": [
            {"cidr": "10.0.0.0/30", "affinity": "host:b", "allocations": {"10.0.0.0": "x"}},
            {"cidr": "10.0.0.4/30", "allocations": {"10.0.0.4": "x"}},
            {"cidr": "10.0.0.8/30", "affinity": "host:a"},
        ],
        "affinities": [
            {"host": "b", "cidr": "10.0.0.0/30"},
            {"host": "a", "cidr": "10.0.0.8/30", "state": "pending"},
        ],
    });
    let wish = |ip: &str| json!({"op": "assignIP", "ip": ip, "host": "a", "handle": "y"});
    let outcome = run(
        state,
        json!([wish("10.0.0.1"), wish("10.0.0.5"), wish("10.0.0.9"), wish("10.0.0.13"), {"op": "routes", "host": "a"}]),
    );
    let errors: Vec<&str> = (0..4).map(|it| outcome.error(it)).collect();
    assert_eq!(errors, ["affinity-mismatch", "affinity-mismatch", "none", "none"]);
    assert_eq!(outcome.results[4]["announce"], json!(["10.0.0.8/30", "10.0.0.12/30"]));
}

#[test]
fn a_block_of_the_node_without_an_affinity_is_used_and_an_empty_one_of_nobody_is_free() {
    let state = json!({
        "config": {"strictAffinity": true},
        "pools": [{"cidr": "10.0.0.0/30", "blockSize": 30}],
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": "x"}}],
        "affinities": [],
    });
    let outcome = run(state, json!([give("a", 1, "y")]));
    assert_eq!(
        (outcome.count(0), outcome.affinities()),
        (1, vec!["a 10.0.0.0/30 confirmed".to_owned()])
    );
    let state = json!({
        "config": {"strictAffinity": true, "ipCooldownSeconds": 5},
        "pools": [{"cidr": "10.0.0.0/30", "blockSize": 30}],
        "blocks": [{"cidr": "10.0.0.0/30", "cooling": {"10.0.0.0": 6}}],
    });
    let outcome = run(state, json!([give("a", 4, "y")]));
    assert_eq!((outcome.count(0), outcome.affinities().len()), (4, 1));
}

#[test]
fn a_reference_that_leads_nowhere_ends_its_operation_and_no_other() {
    let outcome = run(
        json!({"pools": []}),
        json!([give("a", 1, "x"), {"op": "inspect", "ip": "$0[0]"}, {"op": "getConfig"}]),
    );
    assert_eq!((outcome.error(1), outcome.error(2)), ("bad-reference", "none"));
    let together =
        json!([{"op": "parallel", "ops": [{"op": "inspect", "ip": "$0[0]"}, {"op": "getConfig"}]}]);
    let answers = run(json!({"pools": []}), together).results[0]["results"].clone();
    assert_eq!((&answers[0]["error"], answers[1].get("error")), (&json!("bad-reference"), None));
}

#[test]
fn what_is_left_of_another_size_is_never_overlapped() {
    let state = json!({
        "pools": [{"cidr": "10.0.0.0/30", "blockSize": 31}],
        "config": {"ipCooldownSeconds": 60},
        "blocks": [{"cidr": "10.0.0.0/30", "cooling": {"10.0.0.2": 100}}],
    });
    let outcome = run(state, json!([give("a", 3, "x"), give("b", 4, "y")]));
    assert_eq!(outcome.state["blocks"].as_array().unwrap().len(), 1);
    assert_eq!(outcome.count(0) + outcome.count(1), 4);
    let state = json!({
        "pools": [{"cidr": "10.0.0.0/26", "blockSize": 26}],
        "blocks": [{"cidr": "10.0.0.0/28", "affinity": "host:a", "allocations": {"10.0.0.1": "h"}}],
    });
    let outcome =
        run(state, json!([{"op": "assignIP", "ip": "10.0.0.40", "host": "a", "handle": "x"}]));
    assert_eq!(outcome.error(0), "bad-config", "no attempt would ever succeed");
}

#[test]
fn an_affinity_to_what_no_pool_has_stops_no_node() {
    for cidr in ["10.0.0.0/16", "10.0.0.0/24"] {
        let state = json!({
            "pools": [{"cidr": "10.0.0.0/16", "blockSize": 26}],
            "affinities": [{"host": "a", "cidr": cidr}],
        });
        let outcome = run(state, json!([give("a", 1, "x")]));
        assert_eq!((outcome.count(0), outcome.affinities().len()), (1, 1), "{cidr}");
    }
}

#[test]
fn a_node_at_its_limit_finds_its_block_without_an_affinity() {
    for config in [
        json!({"strictAffinity": true, "maxBlocksPerHost": 1}),
        json!({"strictAffinity": true, "autoAllocateBlocks": false}),
    ] {
        let full = json!({"10.0.0.4": "f", "10.0.0.5": "f", "10.0.0.6": "f", "10.0.0.7": "f"});
        let state = json!({
            "config": config,
            "blocks": [
                {"cidr": "10.0.0.0/30", "affinity": "host:a"},
                {"cidr": "10.0.0.4/30", "affinity": "host:a", "allocations": full},
            ],
            "affinities": [{"host": "a", "cidr": "10.0.0.4/30"}],
        });
        assert_eq!(run(state, json!([give("a", 1, "x")])).count(0), 1, "{config}");
    }
}
