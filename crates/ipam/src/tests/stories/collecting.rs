//! What nobody uses any more.

use serde_json::{Value, json};

use super::run;

/// An address of a Pod.
fn of_pod(handle: &str, pod: &str, node: &str) -> Value {
    json!({"handle": handle, "attrs": {"namespace": "d", "pod": pod, "node": node}})
}

fn passes(seconds: u64) -> Value {
    json!([{"op": "gc"}, {"op": "advance", "seconds": seconds}, {"op": "gc"}])
}

#[test]
fn an_address_is_taken_back_once_its_pod_was_gone_for_the_whole_grace() {
    let state = json!({
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {
            "10.0.0.0": of_pod("gone", "gone", "a"),
            "10.0.0.1": of_pod("here", "here", "a"),
            "10.0.0.2": of_pod("new", "new", "a"),
            "10.0.0.3": "unknown"}}],
        "pods": [
            {"namespace": "d", "name": "here", "node": "a", "ips": ["10.0.0.1"]},
            {"namespace": "d", "name": "new", "node": "a"},
        ],
    });
    let outcome = run(state.clone(), passes(899));
    assert_eq!(outcome.results[0]["candidates"], json!(["10.0.0.0"]));
    assert_eq!(outcome.results[2]["released"], json!([]));
    let outcome = run(state, passes(901));
    assert_eq!(outcome.results[2]["released"], json!(["10.0.0.0"]));
    assert_eq!(outcome.block("10.0.0.0/30").unwrap()["free"], 1);
}

#[test]
fn a_pod_that_is_finished_elsewhere_or_has_another_address_has_left_its_address() {
    let state = json!({
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {
            "10.0.0.0": of_pod("1", "finished", "a"),
            "10.0.0.1": of_pod("2", "elsewhere", "a"),
            "10.0.0.2": of_pod("3", "other", "a")}}],
        "pods": [
            {"namespace": "d", "name": "finished", "node": "a", "ips": ["10.0.0.0"], "phase": "Succeeded"},
            {"namespace": "d", "name": "elsewhere", "node": "b", "ips": ["10.0.0.8"]},
            {"namespace": "d", "name": "other", "node": "a", "ips": ["10.0.0.9"]},
        ],
    });
    let outcome = run(state, passes(901));
    assert_eq!(outcome.results[2]["released"].as_array().unwrap().len(), 3);
}

#[test]
fn both_addresses_of_a_pod_go_or_none() {
    let both = json!({
        "pools": [{"cidr": "10.0.0.0/28", "blockSize": 30}, {"cidr": "fd00::/120", "blockSize": 126}],
        "blocks": [
            {"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": of_pod("x", "x", "a")}},
            {"cidr": "fd00::/126", "affinity": "host:a", "allocations": {"fd00::": of_pod("x", "x", "a")}},
        ],
        "pods": [{"namespace": "d", "name": "x", "node": "a", "ips": ["10.0.0.0"]}],
    });
    let outcome = run(both, passes(901));
    assert_eq!(outcome.results[2]["released"], json!([]));
    assert_eq!(outcome.results[2]["candidates"], json!(["fd00::"]));
}

#[test]
fn a_node_that_is_gone_leaves_nothing_unless_a_pod_is_left() {
    let state = json!({
        "nodes": [{"name": "b"}],
        "blocks": [
            {"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {
                "10.0.0.0": of_pod("x", "x", "a"),
                "10.0.0.1": {"handle": "t", "attrs": {"type": "vxlanTunnelAddress"}}}},
        ],
    });
    let outcome = run(state.clone(), json!([{"op": "gc"}]));
    let first = &outcome.results[0];
    assert_eq!((&first["hosts"], &first["blocks"]), (&json!(["a"]), &json!(["10.0.0.0/30"])));
    assert!(outcome.state["blocks"].as_array().unwrap().is_empty());
    let mut with_pod = state;
    with_pod["pods"] = json!([{"namespace": "d", "name": "x", "node": "a", "ips": ["10.0.0.0"]}]);
    let outcome = run(with_pod, json!([{"op": "gc"}]));
    assert_eq!(
        (&outcome.results[0]["hosts"], &outcome.results[0]["released"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn an_empty_block_goes_back_except_a_nodes_last() {
    let state = json!({
        "blocks": [
            {"cidr": "10.0.0.0/30", "affinity": "host:a"},
            {"cidr": "10.0.0.4/30", "affinity": "host:a"},
            {"cidr": "10.0.0.8/30", "affinity": "host:b"},
        ],
    });
    let outcome = run(state.clone(), passes(900));
    assert_eq!(outcome.results[2]["blocks"], json!([]), "not longer than the grace");
    let outcome = run(state, passes(901));
    assert_eq!(outcome.results[2]["blocks"].as_array().unwrap().len(), 1);
    assert_eq!(outcome.affinities().len(), 2);
}

#[test]
fn what_crashes_have_left_is_put_right() {
    let state = json!({
        "blocks": [
            {"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": "x"}},
            {"cidr": "10.0.0.4/30", "affinity": "host:b", "allocations": {"10.0.0.4": "y"}},
        ],
        "affinities": [
            {"host": "a", "cidr": "10.0.0.0/30", "state": "pending"},
            {"host": "b", "cidr": "10.0.0.4/30", "state": "confirmed"},
            {"host": "a", "cidr": "10.0.0.4/30", "state": "pending"},
            {"host": "b", "cidr": "10.0.0.8/30", "state": "confirmed"},
        ],
        "handles": {"orphan": {"10.0.0.0/30": 1}, "x": {"10.0.0.0/30": 3}},
    });
    let outcome = run(state, passes(901));
    assert_eq!(outcome.affinities(), ["a 10.0.0.0/30 confirmed", "b 10.0.0.4/30 confirmed"]);
    assert_eq!(outcome.state["handles"], json!({"x": {"10.0.0.0/30": 1}, "y": {"10.0.0.4/30": 1}}));
}

#[test]
fn an_address_that_names_no_node_or_no_handle_is_not_held_against_its_pod() {
    let pods = json!([{"namespace": "d", "name": "p", "node": "b", "ips": ["10.0.0.1"]}]);
    let attrs = json!({"namespace": "d", "pod": "p"});
    let state = json!({
        "pods": pods,
        "blocks": [{"cidr": "10.0.0.0/30", "allocations": {"10.0.0.1": {"handle": "h", "attrs": attrs}}}],
    });
    let outcome = run(state, passes(901));
    assert_eq!(outcome.results[2]["released"], json!([]));
    let blocks = json!([{"cidr": "10.0.0.0/30", "affinity": "host:gone", "allocations": {"10.0.0.1": null}}]);
    let outcome = run(json!({"blocks": blocks}), passes(901));
    assert_eq!(outcome.results[2]["hosts"], json!([]));
}

#[test]
fn one_handle_with_very_many_addresses_stops_no_pass() {
    let block = |index: u32| {
        let leaked = |it: u32| {
            let address = std::net::Ipv4Addr::from(0x0A00_0000 + index * 4096 + it);
            (address.to_string(), of_pod("aaa", "gone", "a"))
        };
        let allocations: serde_json::Map<String, Value> = (0..4096).map(leaked).collect();
        let cidr = format!("10.0.{}.0/20", index * 16);
        json!({"cidr": cidr, "affinity": "host:a", "allocations": allocations})
    };
    let mut blocks: Vec<Value> = (0..3).map(block).collect();
    let last = json!({"10.0.48.0": of_pod("bbb", "gone", "a")});
    blocks.push(json!({"cidr": "10.0.48.0/20", "affinity": "host:b", "allocations": last}));
    let pools = json!([{"cidr": "10.0.0.0/16", "blockSize": 20}]);
    let ops = json!([{"op": "gc"}, {"op": "advance", "seconds": 901}, {"op": "gc"}, {"op": "gc"}]);
    let outcome = run(json!({"pools": pools, "blocks": blocks}), ops);
    let counts: Vec<usize> = [2, 3]
        .iter()
        .map(|it| outcome.results[*it]["released"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 3 * 4096 + 1, "{counts:?}");
}

#[test]
fn an_empty_block_of_a_pool_for_other_nodes_goes_even_if_it_is_the_last() {
    let state = json!({
        "config": {"ipCooldownSeconds": 5},
        "pools": [{"cidr": "10.0.0.0/28", "blockSize": 30, "nodeSelector": "rack == 'x'"}],
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": "h"}}],
    });
    let ops = json!([
        {"op": "releaseByHandle", "handle": "h"}, {"op": "advance", "seconds": 6}, {"op": "gc"},
    ]);
    let outcome = run(state, ops);
    assert_eq!(outcome.results[2]["blocks"], json!(["10.0.0.0/30"]));
    assert!(outcome.affinities().is_empty());
}

#[test]
fn a_pod_that_lists_its_address_keeps_it_whatever_its_node_is_called() {
    let state = json!({
        "nodes": [{"name": "a.example"}],
        "pods": [{"namespace": "d", "name": "p", "node": "a.example", "ips": ["10.0.0.0"]}],
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": of_pod("h", "p", "a")}}],
    });
    let outcome = run(state, passes(901));
    assert_eq!(
        (&outcome.results[2]["released"], &outcome.results[2]["hosts"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn an_address_of_a_second_network_is_not_one_that_kubernetes_lists() {
    let mut of_second = of_pod("net2.c", "p", "a");
    of_second["attrs"]["interface"] = "net1".into();
    let state = json!({
        "pods": [{"namespace": "d", "name": "p", "node": "a", "ips": ["192.0.2.1"]}],
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a", "allocations": {"10.0.0.0": of_second}}],
    });
    assert_eq!(run(state, passes(901)).results[2]["released"], json!([]));
}

#[test]
fn an_empty_block_of_an_earlier_size_keeps_no_node_from_addresses() {
    let state = json!({
        "config": {"strictAffinity": true},
        "pools": [{"cidr": "10.0.0.0/28", "blockSize": 28}],
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a"}],
    });
    let ops = json!([
        {"op": "gc"}, {"op": "advance", "seconds": 901}, {"op": "gc"}, super::give("b", 1, "x"),
    ]);
    let outcome = run(state, ops);
    assert_eq!(outcome.count(3), 1);
}
