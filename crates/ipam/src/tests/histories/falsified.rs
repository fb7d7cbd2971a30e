//! Each check notices what it is for: answers and states that are falsified are refused.

use fairway_ground::Prefix;
use serde_json::{Value, json};

use super::cluster::{address, addresses};
use super::generate::last_passes;
use super::{check, printed};
use crate::WINDOWS_RESERVED_HANDLE;

/// A case whose answers are falsified.
struct True {
    case: Value,
    printed: Value,
}

impl True {
    fn new(mut state: Value, ops: &Value) -> Self {
        if state["pools"].is_null() {
            state["pools"] = json!([{"cidr": "10.0.0.0/28", "blockSize": 30}]);
        }
        state["nodes"] = json!([{"name": "a"}, {"name": "b"}]);
        let mut ops = ops.as_array().unwrap().clone();
        ops.extend(["a", "b"].map(|host| json!({"op": "routes", "host": host})));
        let case = json!({"state": state, "ops": ops});
        let printed = printed(&case);
        check(&case, &printed).unwrap();
        Self { case, printed }
    }

    /// With a change, the fault is one of this kind.
    fn is_refused(&self, kind: &str, falsify: impl FnOnce(&mut Value)) {
        let mut changed = self.printed.clone();
        falsify(&mut changed);
        assert_ne!(changed, self.printed);
        let fault = check(&self.case, &changed).unwrap_err();
        assert!(fault.starts_with(kind), "expected {kind}: {fault}");
    }
}

fn give(host: &str, count: usize, handle: &str) -> Value {
    json!({"op": "autoAssign", "host": host, "n4": count, "handle": handle})
}

/// Two Pods on node a, one on node b.
fn three_pods() -> True {
    let ops = [give("a", 2, "h0"), give("a", 1, "h1"), give("b", 1, "h2")];
    True::new(json!({}), &json!(ops))
}

/// The block that an answer names first.
fn block<'a>(printed: &'a mut Value, owner: &str) -> &'a mut Value {
    let mut blocks = printed["state"]["blocks"].as_array_mut().unwrap().iter_mut();
    blocks.find(|it| it["affinity"] == owner).unwrap()
}

#[test]
fn an_address_that_is_given_twice_is_noticed() {
    let history = three_pods();
    history.is_refused("twice", |it| it["results"][1]["v4"] = it["results"][0]["v4"].clone());
    // It has become free, or somebody else's, or nobody was told.
    history.is_refused("twice", |it| {
        let block = block(it, "host:a");
        block["allocations"].as_object_mut().unwrap().retain(|_, it| it != "h1");
        block["free"] = json!(2);
    });
    history.is_refused("twice", |it| {
        block(it, "host:b")["allocations"].as_object_mut().unwrap().values_mut().for_each(|it| {
            *it = json!("h1");
        });
    });
    history.is_refused("twice", |it| {
        it["results"][2]["v4"] = json!([]);
        // Else the answer itself would be at fault.
        it["results"][2]["error"] = json!("block-limit");
    });
    history.is_refused("twice", |it| {
        let blocks = it["state"]["blocks"].as_array_mut().unwrap();
        let whole = json!({"cidr": "10.0.0.0/28", "affinity": null, "free": 16,
                           "allocations": {}, "cooling": []});
        blocks.push(whole);
    });
    let resting = True::new(
        json!({"config": {"ipCooldownSeconds": 30}}),
        &json!([give("a", 1, "h0"), {"op": "releaseIPs", "ips": ["$0"]}, give("a", 1, "h1")]),
    );
    resting.is_refused("twice", |it| it["results"][2]["v4"] = it["results"][0]["v4"].clone());
    resting.is_refused("twice", |it| block(it, "host:a")["cooling"] = json!([]));
}

#[test]
fn an_address_that_is_released_by_an_earlier_number_is_noticed() {
    let mut pools = json!({"pools": [{"cidr": "10.0.0.0/32", "blockSize": 32}]});
    pools["config"] = json!({});
    let ops = json!([
        give("a", 1, "h0"), {"op": "inspect", "ip": "10.0.0.0"},
        {"op": "releaseIPs", "ips": ["$0"]},
        give("a", 1, "h1"), {"op": "releaseIPs", "ips": [{"ip": "10.0.0.0", "seq": "$1.seq"}]},
    ]);
    True::new(pools, &ops).is_refused("twice", |it| {
        it["results"][4] = json!({"released": ["10.0.0.0"], "unallocated": []});
    });
}

#[test]
fn a_block_with_two_owners_is_noticed() {
    let history = three_pods();
    history.is_refused("owners", |it| {
        let cidr = block(it, "host:a")["cidr"].clone();
        let second = json!({"host": "b", "cidr": cidr, "state": "confirmed", "type": "host"});
        it["state"]["affinities"].as_array_mut().unwrap().push(second);
    });
    history.is_refused("owners", |it| {
        it["state"]["affinities"].as_array_mut().unwrap().pop();
    });
    history.is_refused("owners", |it| it["state"]["affinities"][0]["state"] = json!("pending"));
    history.is_refused("owners", |it| block(it, "host:a")["affinity"] = json!("host:b"));
    history.is_refused("owners", |it| block(it, "host:a")["affinity"] = Value::Null);
    history.is_refused("owners", |it| {
        let lost =
            json!({"host": "a", "cidr": "10.0.9.0/30", "state": "confirmed", "type": "host"});
        it["state"]["affinities"].as_array_mut().unwrap().push(lost);
    });
    history.is_refused("owners", |it| {
        let empty = json!({"cidr": "10.0.9.0/30", "affinity": null, "free": 4, "allocations": {},
                           "cooling": []});
        it["state"]["blocks"].as_array_mut().unwrap().push(empty);
    });
    // Both announce it; nobody does; it leads to the other; it is not dropped.
    history.is_refused("owners", |it| {
        it["results"][3]["announce"] = it["results"][4]["announce"].clone()
    });
    history.is_refused("owners", |it| it["results"][3]["announce"] = json!([]));
    history.is_refused("owners", |it| {
        let address = it["results"][0]["v4"][0].as_str().unwrap().replace("/30", "/32");
        it["results"][4]["announce"].as_array_mut().unwrap().push(json!(address));
    });
    history.is_refused("owners", |it| it["results"][3]["blackhole"] = json!([]));
    let claim = json!([{"op": "claimAffinity", "cidr": "10.0.0.0/28", "host": "a"}]);
    True::new(json!({}), &claim).is_refused("owners", |it| {
        it["results"][0]["failed"] = json!(["10.0.0.0/30"]);
    });
}

#[test]
fn a_wrong_count_is_noticed() {
    let history = three_pods();
    history.is_refused("counts", |it| {
        it["state"]["handles"]["h0"]
            .as_object_mut()
            .unwrap()
            .values_mut()
            .for_each(|it| *it = json!(1));
    });
    history.is_refused("counts", |it| it["state"]["handles"]["h9"] = json!({"10.0.0.0/30": 1}));
    history.is_refused("counts", |it| {
        it["state"]["handles"].as_object_mut().unwrap().remove("h1");
    });
    history.is_refused("counts", |it| block(it, "host:a")["free"] = json!(2));
    // Something is kept for Windows, which nobody asked for.
    history.is_refused("counts", |it| {
        let block = block(it, "host:a");
        let cidr: Prefix = block["cidr"].as_str().unwrap().parse().unwrap();
        block["allocations"][cidr.last_address().to_string()] = json!(WINDOWS_RESERVED_HANDLE);
        block["free"] = json!(0);
    });
    let ops = json!([
        give("a", 2, "h0"), {"op": "utilization"}, {"op": "ipsByHandle", "handle": "h0"},
        {"op": "releaseByHandle", "handle": "H0"},
    ]);
    let asked = True::new(json!({}), &ops);
    asked.is_refused("counts", |it| it["results"][1]["pools"][0]["inUse"] = json!(1));
    asked.is_refused("counts", |it| {
        it["results"][2]["ips"].as_array_mut().unwrap().pop();
    });
    asked.is_refused("counts", |it| {
        it["results"][3]["released"].as_array_mut().unwrap().pop();
    });
    asked.is_refused("counts", |it| it["results"][3] = json!({"error": "no-such-handle"}));
}

/// A Pod, and what the collector and time do, of which the last passes are the end.
fn pods_that_leave() -> Value {
    let attributes = |number: usize| json!({"namespace": "ns0", "pod": format!("p{number}")});
    let give = |number: usize| {
        json!({"op": "autoAssign", "host": "a", "n4": 2, "handle": format!("h{number}"),
               "attrs": attributes(number)})
    };
    let pod = |number: usize| {
        json!({"op": "setPod", "pod": {"namespace": "ns0", "name": format!("p{number}"),
               "node": "a", "ips": [format!("${number}")]}})
    };
    let leave = json!({"op": "deletePod", "namespace": "ns0", "name": "p1"});
    let mut ops = vec![give(0), give(1), pod(0), pod(1), leave];
    ops.extend(last_passes());
    json!(ops)
}

#[test]
fn a_collector_that_takes_too_much_or_too_little_is_noticed() {
    let history = True::new(json!({}), &pods_that_leave());
    let passes = || {
        let ops = history.case["ops"].as_array().unwrap().iter();
        ops.zip(0..).filter(|(it, _)| it["op"] == "gc").map(|(_, index)| index)
    };
    let (first, second) = (passes().next().unwrap(), passes().nth(1).unwrap());
    assert_eq!(history.printed["results"][second]["released"].as_array().unwrap().len(), 2);
    // Before its time; of a Pod that is there; half of a handle.
    history.is_refused("leak", |it| {
        it["results"][first]["released"] = it["results"][second]["released"].clone()
    });
    history.is_refused("leak", |it| {
        let of_other = it["results"][0]["v4"][0].as_str().unwrap().replace("/30", "");
        it["results"][second]["released"].as_array_mut().unwrap().push(json!(of_other));
    });
    history.is_refused("leak", |it| {
        it["results"][second]["released"].as_array_mut().unwrap().pop();
    });
    history.is_refused("leak", |it| it["results"][second]["hosts"] = json!(["a"]));
    history.is_refused("leak", |it| it["results"][second]["error"] = json!("contended"));
    // Never: blocks and handles then have it, too.
    history.is_refused("leak", |it| {
        it["results"][second]["released"] = json!([]);
        let block = block(it, "host:a");
        let cidr: Prefix = block["cidr"].as_str().unwrap().parse().unwrap();
        let (handle, free) = (json!("h1"), block["free"].as_u64().unwrap());
        assert_eq!(free, 2);
        for number in 0..4 {
            let address = address(cidr, number).to_string();
            if block["allocations"][&address].is_null() {
                block["allocations"][&address] = handle.clone();
            }
        }
        block["free"] = json!(0);
        it["state"]["handles"]["h1"] = json!({cidr.to_string(): 2});
    });
}

#[test]
fn a_block_that_nobody_needs_is_noticed() {
    let mut ops = vec![json!({"op": "claimAffinity", "cidr": "10.0.0.0/29", "host": "a"})];
    ops.extend(last_passes());
    let history = True::new(json!({}), &json!(ops));
    let affinity = |host: &str, state: &str| {
        let cidr = "10.0.0.8/30";
        json!({"host": host, "cidr": cidr, "state": state, "type": "host"})
    };
    let add = |it: &mut Value, host: &str| {
        let owner = format!("host:{host}");
        let kept = json!({"cidr": "10.0.0.8/30", "affinity": owner, "free": 4, "allocations": {},
                          "cooling": []});
        it["state"]["blocks"].as_array_mut().unwrap().push(kept);
        it["state"]["affinities"].as_array_mut().unwrap().push(affinity(host, "confirmed"));
    };
    history.is_refused("leak", |it| {
        add(it, "a");
        let routes = it["results"].as_array_mut().unwrap().iter_mut().rev().nth(1).unwrap();
        routes["announce"].as_array_mut().unwrap().push(json!("10.0.0.8/30"));
        routes["blackhole"].as_array_mut().unwrap().push(json!("10.0.0.8/30"));
    });
    history.is_refused("leak", |it| add(it, "gone"));
    history.is_refused("leak", |it| {
        it["state"]["affinities"].as_array_mut().unwrap().push(affinity("b", "pending"));
    });
}

/// A pool for some nodes, one for all, one that has to be named.
fn choosy(strict: bool, reservations: Value) -> Value {
    json!({
        "pools": [
            {"cidr": "10.0.0.0/28", "blockSize": 30, "nodeSelector": "has(gpu)"},
            {"cidr": "10.0.1.0/29", "blockSize": 30},
            {"cidr": "10.0.2.0/27", "blockSize": 30, "assignmentMode": "Manual"},
        ],
        "config": {"strictAffinity": strict},
        "reservations": reservations,
    })
}

#[test]
fn an_address_that_is_not_for_who_gets_it_is_noticed() {
    let ops = json!([
        give("a", 1, "h0"), {"op": "assignIP", "host": "b", "handle": "h1", "ip": "10.0.2.9"},
    ]);
    let history = True::new(choosy(true, json!(["10.0.2.1/32", "10.0.1.7/32"])), &ops);
    for address in ["10.0.0.1/30", "10.0.2.5/30", "10.9.0.1/30", "10.0.1.7/30"] {
        history.is_refused("rule", |it| it["results"][0]["v4"] = json!([address]));
    }
    history.is_refused("rule", |it| it["results"][0]["v4"] = json!(["10.0.1.1/30", "10.0.1.2/30"]));
    history.is_refused("answer", |it| it["results"][1]["ip"] = json!("10.0.2.10"));
    history.is_refused("answer", |it| it["results"][1] = json!({"error": "already-assigned"}));
    // Strict: what the other node's block has.
    let two = True::new(choosy(true, json!([])), &json!([give("a", 1, "h0"), give("b", 1, "h1")]));
    two.is_refused("rule", |it| {
        let given = it["results"][0]["v4"][0].as_str().unwrap();
        let block: Prefix = given.parse().unwrap();
        let free = addresses(block).into_iter().map(|it| format!("{it}/30"));
        it["results"][1]["v4"] = json!([free.rev().find(|it| it != given).unwrap()]);
    });
    // There were more.
    True::new(choosy(false, json!([])), &json!([give("a", 2, "h0")])).is_refused("rule", |it| {
        it["results"][0]["v4"].as_array_mut().unwrap().pop();
    });
}

fn call(command: &str, stdin: &Value) -> Value {
    let mut stdin = stdin.clone();
    (stdin["cniVersion"], stdin["name"]) = (json!("1.1.0"), json!("k8s"));
    json!({"op": "cni", "command": command, "containerID": "c1", "ifname": "eth0", "netns": "/n",
           "node": "a", "stdin": stdin})
}

#[test]
fn a_wrong_answer_to_a_runtime_is_noticed() {
    let add = call("ADD", &json!({"ipam": {"gateway": "169.254.1.1"}}));
    let earlier = json!({"prevResult": {"ips": [{"address": "$0[0]"}]}});
    let ops = json!([add, add, call("CHECK", &earlier), call("DEL", &json!({}))]);
    let history = True::new(json!({}), &ops);
    let with = |address: &str| json!([{"address": address}]);
    history.is_refused("rule", |it| it["results"][1]["stdout"]["ips"] = with("10.0.0.14/30"));
    history.is_refused("rule", |it| it["results"][0]["stdout"]["ips"] = with("10.0.0.4/30"));
    history.is_refused("answer", |it| it["results"][0]["stdout"]["ips"] = with("fd00::1/126"));
    history.is_refused("answer", |it| it["results"][2]["exit"] = json!(1));
    history.is_refused("answer", |it| it["results"][3]["exit"] = json!(1));
}

#[test]
fn a_release_of_what_was_not_asked_for_is_noticed() {
    let ops = json!([
        give("a", 2, "h0"), {"op": "inspect", "ip": "$0[0]"},
        {"op": "releaseIPs", "ips": ["$0[0]", "10.0.0.200", {"ip": "$0[1]", "handle": "h1"}]},
        {"op": "releaseIPs", "ips": ["$0[0]"]},
    ]);
    let history = True::new(json!({}), &ops);
    let plain = |it: &Value, index: usize| {
        json!(it["results"][0]["v4"][index].as_str().unwrap().replace("/30", ""))
    };
    history.is_refused("answer", |it| it["results"][1]["handle"] = json!("h1"));
    history.is_refused("answer", |it| it["results"][1] = json!({"error": "not-assigned"}));
    history.is_refused("answer", |it| it["results"][2]["unallocated"] = json!([plain(it, 0)]));
    history.is_refused("answer", |it| it["results"][2]["released"] = json!([plain(it, 1)]));
    history.is_refused("answer", |it| it["results"][3]["released"] = json!(["10.0.0.201"]));
    history
        .is_refused("answer", |it| it["results"][3] = json!({"released": [], "unallocated": []}));
    history.is_refused("answer", |it| {
        it["results"].as_array_mut().unwrap().pop();
    });
}
