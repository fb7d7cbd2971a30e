//! What a container runtime is answered: the words of the CNI specification.

use serde_json::{Value, json};

use super::run;

fn configuration(version: &str) -> Value {
    json!({"cniVersion": version, "name": "net", "ipam": {"type": "calico-ipam"}})
}

fn call(command: &str, container: &str, stdin: Value) -> Value {
    json!({"op": "cni", "command": command, "containerID": container, "ifname": "eth0", "netns": "/proc/1/ns/net",
           "node": "a", "stdin": stdin})
}

fn add(container: &str) -> Value {
    call("ADD", container, configuration("1.0.0"))
}

fn code(result: &Value) -> u64 {
    assert_eq!(result["exit"], 1, "{result}");
    result["stdout"]["code"].as_u64().unwrap()
}

#[test]
fn an_answer_has_the_form_of_the_version_that_is_asked_in() {
    let outcome = run(
        json!({}),
        json!([
            call("ADD", "c1", configuration("0.3.1")),
            call("ADD", "c2", configuration("1.1.0")),
            call("VERSION", "", configuration("0.4.0")),
            call("ADD", "c3", configuration("0.2.0")),
            call("ADD", "c3", json!({"name": "net"})),
            call("CHECK", "c1", configuration("0.3.1")),
            call("STATUS", "", configuration("1.0.0")),
        ]),
    );
    let old = &outcome.results[0]["stdout"];
    assert_eq!((&old["cniVersion"], &old["ips"][0]["version"]), (&json!("0.3.1"), &json!("4")));
    let new = &outcome.results[1]["stdout"];
    assert!(new["ips"][0].get("version").is_none() && new.get("interfaces").is_none());
    let address = new["ips"][0]["address"].as_str().unwrap();
    assert!(address.ends_with("/30"), "the length of its block: {address}");
    let host = address.replace("/30", "/32");
    assert_eq!((&new["routes"], &new["dns"]), (&json!([{"dst": host}]), &json!({})));
    let versions = &outcome.results[2]["stdout"];
    assert_eq!(versions["cniVersion"], "0.4.0");
    assert_eq!(versions["supportedVersions"], json!(["0.3.1", "0.4.0", "1.0.0", "1.1.0"]));
    for result in &outcome.results[3..] {
        assert_eq!(code(result), 1);
    }
}

#[test]
fn what_is_wrong_with_a_call_has_its_code() {
    let good = configuration("1.1.0");
    let with = |key: &str, value: Value| {
        let mut op = call("ADD", "c1", good.clone());
        op[key] = value;
        op
    };
    let ipam = |ipam: Value| {
        call("ADD", "c1", json!({"cniVersion": "1.1.0", "name": "net", "ipam": ipam}))
    };
    let cases = [
        (with("command", json!("PLAY")), 4),
        (with("command", json!(null)), 4),
        (with("containerID", json!("")), 4),
        (with("containerID", json!("../etc")), 4),
        (with("ifname", json!("sixteen-letters-")), 4),
        (with("ifname", json!("a/b")), 4),
        (with("netns", json!("")), 4),
        (with("args", json!("K8S_POD_NAME")), 4),
        (with("args", json!("COLOUR=red")), 4),
        (with("args", json!("IP=10.0.0.x;IgnoreUnknown=1")), 4),
        (with("stdin", json!("{\"name\": ")), 6),
        (with("stdin", json!("[]")), 6),
        (with("stdin", json!({"cniVersion": "1.1.0", "name": "-net"})), 7),
        (ipam(json!({"assign_ipv4": "perhaps"})), 7),
        (ipam(json!({"assign_ipv4": "false"})), 7),
        (ipam(json!({"ipv4_pools": ["nowhere"]})), 7),
        (ipam(json!({"ipv4_pools": ["10.9.0.0/16"]})), 7),
        (ipam(json!({"ipv4_pools": "10.0.0.0/28"})), 7),
        (call("CHECK", "c1", good.clone()), 7),
        (call("GC", "", good.clone()), 7),
    ];
    let ops: Vec<&Value> = cases.iter().map(|(op, _)| op).collect();
    let outcome = run(json!({}), json!(ops));
    for ((op, expected), result) in cases.iter().zip(&outcome.results) {
        assert_eq!(code(result), *expected, "{op}: {result}");
        assert!(result["stdout"]["msg"].is_string() && result["stdout"]["cniVersion"].is_string());
    }
    assert!(outcome.state["blocks"].as_array().unwrap().is_empty());
}

#[test]
fn a_call_that_is_repeated_gives_no_second_address_and_a_second_interface_has_its_own() {
    let mut second = add("C1");
    second["ifname"] = "eth1".into();
    let mut gone = call("DEL", "c1", configuration("1.0.0"));
    gone["ifname"] = "eth1".into();
    gone["netns"] = Value::Null;
    let outcome = run(
        json!({}),
        json!([
            add("c1"), add("c1"), second, gone, gone,
            {"op": "ipsByHandle", "handle": "net.c1"},
            call("DEL", "c1", configuration("1.0.0")),
            call("DEL", "never-seen", configuration("1.0.0")),
        ]),
    );
    assert_eq!(outcome.results[0], outcome.results[1]);
    assert_ne!(outcome.results[0], outcome.results[2]);
    for index in [3, 4, 6, 7] {
        assert_eq!(outcome.results[index], json!({"exit": 0, "stdout": {}}));
    }
    assert_eq!(outcome.results[5]["ips"].as_array().unwrap().len(), 1);
    assert_eq!(outcome.state["handles"], json!({}));
}

#[test]
fn both_families_are_given_or_none() {
    let both = json!({"cniVersion": "1.0.0", "name": "net", "ipam": {"assign_ipv6": "true"}});
    let outcome = run(json!({}), json!([call("ADD", "c1", both.clone())]));
    assert_eq!(code(&outcome.results[0]), 7, "no pool has the family");
    assert_eq!(outcome.state["handles"], json!({}));
    let pools = json!([
        {"cidr": "10.0.0.0/28", "blockSize": 30}, {"cidr": "fd00::/127", "blockSize": 128},
    ]);
    let adds: Vec<Value> = (0..3).map(|it| call("ADD", &format!("c{it}"), both.clone())).collect();
    let outcome = run(json!({"pools": pools}), json!(adds));
    assert_eq!(outcome.results[1]["stdout"]["ips"].as_array().unwrap().len(), 2);
    assert_eq!(code(&outcome.results[2]), 11, "to be tried again");
    assert_eq!(outcome.state["handles"].as_object().unwrap().len(), 2);
}

#[test]
fn addresses_and_pools_that_are_asked_for_come_from_the_pod_before_its_namespace() {
    let pools = json!([
        {"name": "one", "cidr": "10.1.0.0/28", "blockSize": 30},
        {"name": "two", "cidr": "10.2.0.0/28", "blockSize": 30},
        {"name": "three", "cidr": "10.3.0.0/28", "blockSize": 30, "assignmentMode": "Manual"},
    ]);
    let pod = |name: &str, annotations: Value| json!({"namespace": "d", "name": name, "annotations": annotations});
    let state = json!({
        "pools": pools,
        "namespaces": {"d": {"annotations": {"cni.projectcalico.org/ipv4pools": "[\"two\"]"}}},
        "pods": [
            pod("plain", json!({})),
            pod("pools", json!({"cni.projectcalico.org/ipv4pools": "[\"10.3.0.0/28\"]"})),
            pod("address", json!({"cni.projectcalico.org/ipAddrs": "[\"10.1.0.9\"]"})),
            pod("wrong", json!({"cni.projectcalico.org/ipAddrs": "10.1.0.9"})),
        ],
    });
    let of = |container: &str, pod: &str| {
        let mut op = add(container);
        op["args"] = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=d;K8S_POD_NAME={pod};X=y").into();
        op
    };
    let ops = [
        of("c1", "plain"),
        of("c2", "pools"),
        of("c3", "address"),
        of("c4", "wrong"),
        of("c5", "address"),
    ];
    let outcome = run(state, json!(ops));
    let address =
        |index: usize| outcome.results[index]["stdout"]["ips"][0]["address"].as_str().unwrap();
    assert!(address(0).starts_with("10.2."), "{}", address(0));
    assert!(address(1).starts_with("10.3."), "{}", address(1));
    assert_eq!(address(2), "10.1.0.9/32");
    assert_eq!(code(&outcome.results[3]), 7);
    assert_eq!(code(&outcome.results[4]), 11, "its owner may still be going");
}

#[test]
fn check_holds_addresses_against_the_containers() {
    let check = |container: &str, address: &str| {
        let mut stdin = configuration("1.0.0");
        stdin["prevResult"] = json!({"ips": [{"address": address}]});
        call("CHECK", container, stdin)
    };
    let ops =
        json!([add("c1"), check("c1", "$0[0]"), check("c1", "10.9.9.9/32"), check("c2", "$0[0]")]);
    let outcome = run(json!({}), ops);
    assert_eq!(outcome.results[1]["exit"], 0);
    assert_eq!((code(&outcome.results[2]), code(&outcome.results[3])), (100, 3));
}

#[test]
fn status_says_whether_an_address_could_be_given_and_gives_none() {
    let status = call("STATUS", "", configuration("1.1.0"));
    let outcome = run(
        json!({"pools": [{"cidr": "10.0.0.0/31", "blockSize": 31}]}),
        json!([status, {"op": "autoAssign", "host": "b", "n4": 2, "handle": "x"}, status]),
    );
    assert_eq!((&outcome.results[0]["exit"], code(&outcome.results[2])), (&json!(0), 50));
    assert_eq!(outcome.affinities().len(), 1, "STATUS claims nothing");
}

#[test]
fn gc_releases_what_is_not_valid_of_this_network_on_this_node() {
    let other_network = json!({"cniVersion": "1.1.0", "name": "net2"});
    let mut on_b = add("c3");
    on_b["node"] = "b".into();
    let mut second = add("c1");
    second["ifname"] = "eth1".into();
    let mut stdin = configuration("1.1.0");
    stdin["cni.dev/valid-attachments"] = json!([{"containerID": "C1", "ifname": "eth0"}]);
    let ops = json!([
        add("c1"),
        second,
        add("c2"),
        on_b,
        call("ADD", "c4", other_network),
        call("GC", "", stdin),
    ]);
    let outcome = run(json!({}), ops);
    assert_eq!(outcome.results[5], json!({"exit": 0, "stdout": {}}));
    let left: Vec<&String> = outcome.state["handles"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["net.c1", "net.c3", "net2.c4"]);
    let of_c1 = &outcome.state["handles"]["net.c1"];
    assert_eq!(of_c1.as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum::<u64>(), 1);
}

#[test]
fn gateways_and_routes_of_the_configuration_are_in_the_answer() {
    let mut stdin = configuration("1.0.0");
    stdin["ipam"]["gateway"] = json!(["169.254.1.1", "fe80::1"]);
    stdin["ipam"]["routes"] = json!([{"dst": "0.0.0.0/0"}]);
    let outcome = run(json!({}), json!([call("ADD", "c1", stdin)]));
    let printed = &outcome.results[0]["stdout"];
    assert_eq!(printed["ips"][0]["gateway"], "169.254.1.1");
    assert_eq!(printed["routes"], json!([{"dst": "0.0.0.0/0"}]));
}

#[test]
fn a_configuration_that_gives_no_address_keeps_none_from_being_released() {
    let delete = |ipam: Value, args: &str| {
        let mut op = call("DEL", "c1", json!({"cniVersion": "1.0.0", "name": "net", "ipam": ipam}));
        op["args"] = args.into();
        op
    };
    let ops = json!([
        add("c1"),
        delete(json!({"assign_ipv4": "false"}), ""),
        delete(json!({"assign_ipv4": "x", "ipv4_pools": "x", "gateway": "x"}), "IP=bad"),
        delete(json!(null), "COLOUR=red"),
    ]);
    let outcome = run(json!({}), ops);
    for index in 1..4 {
        assert_eq!(outcome.results[index], json!({"exit": 0, "stdout": {}}));
    }
    assert_eq!(outcome.state["handles"], json!({}));
}

#[test]
fn status_has_room_wherever_some_pod_would_get_an_address() {
    let status = call("STATUS", "", configuration("1.1.0"));
    let mut of_namespace =
        json!({"cidr": "10.0.0.0/28", "blockSize": 30, "namespaceSelector": "team == 'x'"});
    let outcome = run(json!({"pools": [of_namespace]}), json!([status]));
    assert_eq!(outcome.results[0]["exit"], 0, "Pods of such namespaces get one");
    of_namespace["nodeSelector"] = "rack == 'y'".into();
    let outcome = run(json!({"pools": [of_namespace]}), json!([status]));
    assert_eq!(code(&outcome.results[0]), 50);
    let state = json!({
        "config": {"strictAffinity": true, "maxBlocksPerHost": 1},
        "pools": [
            {"cidr": "10.0.0.0/28", "blockSize": 30, "nodeSelector": "rack == 'y'"},
            {"cidr": "10.1.0.0/28", "blockSize": 30},
        ],
        "blocks": [{"cidr": "10.0.0.0/30", "affinity": "host:a"}],
    });
    let outcome = run(state.clone(), json!([status]));
    assert_eq!(outcome.affinities(), ["a 10.0.0.0/30 confirmed"]);
    let outcome = run(state, json!([status, add("c1"), status]));
    for result in &outcome.results {
        assert_eq!(
            result["exit"], 0,
            "the empty block is given up by ADD, not by STATUS: {result}"
        );
    }
    let mut twice = add("c1");
    twice["args"] = "IP=10.0.0.5,10.0.0.5".into();
    let mut elsewhere = twice.clone();
    elsewhere["node"] = "ghost".into();
    let outcome = run(json!({}), json!([twice, elsewhere]));
    assert_eq!(outcome.results[0]["stdout"]["ips"].as_array().unwrap().len(), 1);
    assert_eq!(code(&outcome.results[1]), 11);
    assert_eq!(outcome.affinities().len(), 1);
}

#[test]
fn pods_on_a_link_with_the_prefix_of_their_block_get_no_address_that_means_something_there() {
    let mut stdin = configuration("1.0.0");
    stdin["ipam"]["gateway"] = json!("block");
    let with = |command: &str, container: &str| call(command, container, stdin.clone());
    let pools = json!([{"cidr": "10.0.0.0/29", "blockSize": 29}]);
    let adds: Vec<Value> = (0..6).map(|it| with("ADD", &format!("c{it}"))).collect();
    let outcome = run(json!({"pools": pools}), json!(adds));
    let ips = |index: usize| &outcome.results[index]["stdout"]["ips"][0];
    for (index, address) in ["10.0.0.2/29", "10.0.0.3/29", "10.0.0.4/29"].into_iter().enumerate() {
        assert_eq!(
            (&ips(index)["address"], &ips(index)["gateway"]),
            (&json!(address), &json!("10.0.0.1"))
        );
    }
    assert_eq!(code(&outcome.results[5]), 11, "five Pods, and three addresses that are for none");
    let block = outcome.block("10.0.0.0/29").unwrap();
    assert_eq!(block["allocations"]["10.0.0.1"], "fairway-gateway");
    // The gateway keeps no block, and has no handle to be counted.
    let mut ops: Vec<Value> = vec![with("ADD", "c0"), with("DEL", "c0")];
    ops.push(json!({"op": "releaseHostAffinities", "host": "a", "mustBeEmpty": true}));
    let outcome = run(json!({"pools": pools}), json!(ops));
    assert_eq!((outcome.block("10.0.0.0/29"), &outcome.state["handles"]), (None, &json!({})));
}

#[test]
fn a_gateway_that_a_pod_has_is_named() {
    let mut stdin = configuration("1.0.0");
    stdin["ipam"]["gateway"] = json!("block");
    let ops = json!([
        {"op": "assignIP", "ip": "10.0.0.1", "host": "a", "handle": "x"},
        call("ADD", "c0", stdin),
        {"op": "ipsByHandle", "handle": "net.c0"},
    ]);
    let outcome = run(json!({}), ops);
    assert_eq!(code(&outcome.results[1]), 7);
    let details = outcome.results[1]["stdout"]["details"].as_str().unwrap();
    assert!(details.contains("10.0.0.1") && details.contains("10.0.0.0/30"), "{details}");
    assert_eq!(outcome.error(2), "no-such-handle", "what was given is taken back");
}

#[test]
fn blocks_of_one_and_two_addresses_have_their_gateway_as_well() {
    let mut stdin = configuration("1.0.0");
    stdin["ipam"]["gateway"] = json!("block");
    let add = |container: &str| call("ADD", container, stdin.clone());
    let pools = json!([{"cidr": "10.0.0.0/30", "blockSize": 31}]);
    let outcome = run(json!({"pools": pools}), json!([add("c1"), add("c2"), add("c3")]));
    for (index, given) in [(0, "10.0.0"), (1, "10.0.0")] {
        let ip = &outcome.results[index]["stdout"]["ips"][0];
        assert!(ip["address"].as_str().unwrap().starts_with(given), "{ip}");
        assert_ne!(ip["address"], format!("{}/31", ip["gateway"].as_str().unwrap()));
    }
    assert_eq!(code(&outcome.results[2]), 11);
    let pools = json!([{"cidr": "10.0.0.0/30", "blockSize": 32}]);
    let mut status = call("STATUS", "", stdin.clone());
    status["stdin"]["cniVersion"] = "1.1.0".into();
    let outcome = run(json!({"pools": pools}), json!([add("c1"), status]));
    assert_eq!((code(&outcome.results[0]), code(&outcome.results[1])), (11, 50));
}

#[test]
fn a_container_that_is_called_like_the_handle_of_another_releases_nothing_of_it() {
    let outcome = run(
        json!({}),
        json!([
            add("c1"), call("DEL", "net.c1", configuration("1.0.0")),
            {"op": "ipsByHandle", "handle": "net.c1"},
        ]),
    );
    assert_eq!(outcome.results[2]["ips"].as_array().unwrap().len(), 1);
}
