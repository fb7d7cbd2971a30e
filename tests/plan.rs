//! `fairway plan` as users call it: its inputs, its reports of faults, its exit codes.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const POOL: &str = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: a}\nspec: \
                    {addresses: [198.51.100.10-198.51.100.19]}\n";
const WEB: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: \
                   LoadBalancer, ports: [{port: 80}]}\n";

fn plan(input: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .arg("plan")
        .args(arguments)
        .env_remove("FAIRWAY_NODE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The child may end before it reads anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn lists_of_kubectl_come_in_by_standard_input() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: metallb.io/v1beta1\n  kind: \
                IPAddressPool\n  metadata: {name: a, resourceVersion: \"7\", uid: x}\n  spec: \
                {addresses: [198.51.100.10-198.51.100.19]}\n- apiVersion: v1\n  kind: Service\n  \
                metadata: {name: web, namespace: shop}\n  spec: {type: LoadBalancer, ports: \
                [{port: 80}]}\n  status: {loadBalancer: {ingress: [{ip: 198.51.100.14}]}}\n- \
                apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\n- apiVersion: v1\n  kind: \
                Node\n  metadata: {name: n2}\n";
    let output = plan(list, &["--json", "--config", "-"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let plan = json(&output);
    let service = serde_json::json!({ "namespace": "shop", "name": "web",
        "addresses": ["198.51.100.14"], "pool": "a", "reason": "" });
    assert_eq!(plan["services"], serde_json::json!([service]), "the address in the status is kept");
    let nodes: Vec<_> =
        plan["nodes"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["n1", "n2"]);
}

#[test]
fn standard_input_is_read_once() {
    let output = plan("", &["--config", "-", "--against", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("only once"));
}

#[test]
fn a_fault_is_said_and_the_rest_is_planned() {
    let broken = format!("{POOL}---\n{WEB}---\n{}", WEB.replace("web", "bad").replace("80", "x"));
    let output = plan(&broken, &["--json", "--node", "n1", "--config", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("stdin:14: Service/bad: spec.ports[0].port: "), "{said}");
    let names: Vec<_> = json(&output)["services"].as_array().unwrap().clone();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0]["addresses"][0], "198.51.100.10");
}

#[test]
fn a_path_that_is_not_there_is_no_plan() {
    let output = plan("", &["--config", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("fairway: /nowhere/at/all: "));
}

#[test]
fn an_object_that_breaks_stays_as_it_was() {
    let folder = TempDir::new().unwrap();
    let old = write(folder.path(), "old.yaml", &format!("{POOL}---\n{WEB}"));
    let broken = POOL.replace("198.51.100.10-", "198.51.100.300-");
    let new = write(folder.path(), "new.yaml", &format!("{broken}---\n{WEB}"));
    let output = plan("", &["--node", "n1", "--config", &new, "--against", &old]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Nothing changes.\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("new.yaml:4: IPAddressPool/a: spec.addresses[0]: "), "{said}");
}

#[test]
fn who_had_an_address_keeps_it_whoever_comes_before_by_name() {
    let folder = TempDir::new().unwrap();
    let old = write(folder.path(), "old.yaml", &format!("{POOL}---\n{WEB}"));
    let earlier = WEB.replace("web", "apple");
    let new = write(folder.path(), "new.yaml", &format!("{POOL}---\n{WEB}---\n{earlier}"));
    let output = plan("", &["--json", "--node", "n1", "--config", &new, "--against", &old]);
    let services = json(&output)["services"].clone();
    assert_eq!(services.as_array().unwrap().len(), 1, "{services}");
    assert_eq!(services[0]["name"], "apple");
    assert_eq!(services[0]["addresses"][0], "198.51.100.11");
    assert_eq!(services[0]["before"], Value::Null);
}

#[test]
fn an_address_that_one_gives_up_goes_to_who_asks_for_it() {
    let folder = TempDir::new().unwrap();
    let asking = |name: &str| {
        let annotation = "annotations: {metallb.io/loadBalancerIPs: 198.51.100.10}";
        WEB.replace("name: web", &format!("name: {name}, {annotation}"))
    };
    let old = write(folder.path(), "old.yaml", &format!("{POOL}---\n{}", asking("web")));
    let new = write(folder.path(), "new.yaml", &format!("{POOL}---\n{}", asking("heir")));
    let output = plan("", &["--json", "--node", "n1", "--config", &new, "--against", &old]);
    let services = json(&output)["services"].clone();
    let heir = services.as_array().unwrap().iter().find(|it| it["name"] == "heir").unwrap();
    assert_eq!(heir["addresses"][0], "198.51.100.10", "{services}");
}

/// `--fail-on` for the edit of `examples/plan/CASE`.
fn gate(case: &str, fail_on: &str) -> Output {
    let folder = |side: &str| format!("examples/plan/{case}/{side}");
    plan("", &["--config", &folder("after"), "--against", &folder("before"), "--fail-on", fail_on])
}

#[test]
fn an_edit_that_disrupts_more_than_is_permitted_exits_with_3() {
    for (case, fail_on, excess) in [
        ("pool", "withdraw", Some("2 withdrawals; permitted: 0")),
        ("pool", "withdraw,move", Some("2 withdrawals, 1 moved address; permitted: 0")),
        ("pool", "withdraw,move,2", Some("2 withdrawals, 1 moved address; permitted: 2")),
        ("pool", "withdraw,move,3", None),
        ("pool", "reset", None),
        ("asn", "withdraw,reset,move", Some("4 session resets; permitted: 0")),
        ("asn", "reset,4", None),
        ("asn", "withdraw,move", None),
        // The node loses a route; another node answers for an address on layer 2.
        ("label", "withdraw", Some("1 withdrawal; permitted: 0")),
        ("label", "move", Some("1 moved address; permitted: 0")),
        ("label", "reset", None),
    ] {
        let output = gate(case, fail_on);
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = excess.map_or_else(String::new, |excess| {
            format!("error: the edit disrupts more than --fail-on permits: {excess}\n")
        });
        assert_eq!(said, expected, "{case} {fail_on}");
        assert_eq!(output.status.code(), Some(if excess.is_some() { 3 } else { 0 }), "{case}");
    }
}

#[test]
fn the_gate_changes_nothing_of_what_is_printed() {
    for json in [&[][..], &["--json"][..]] {
        let edit =
            ["--config", "examples/plan/pool/after", "--against", "examples/plan/pool/before"];
        let free = plan("", &[&edit[..], json].concat());
        let gated = plan("", &[&edit[..], json, &["--fail-on", "withdraw"]].concat());
        assert_eq!(free.stdout, gated.stdout);
        assert_eq!((free.status.code(), gated.status.code()), (Some(0), Some(3)));
    }
}

#[test]
fn a_disruption_outweighs_faults() {
    let folder = TempDir::new().unwrap();
    let before = write(folder.path(), "before.yaml", &format!("{POOL}---\n{WEB}"));
    let moved = POOL.replace("198.51.100.1", "198.51.100.2");
    let after = write(folder.path(), "after.yaml", &format!("{moved}---\n{WEB}---\n{WEB}"));
    let edit = ["--node", "n1", "--config", &after, "--against", &before];
    for (fail_on, code) in [("move", 3), ("move,1", 1)] {
        let output = plan("", &[&edit[..], &["--fail-on", fail_on]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("defined already"), "{said}");
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
}

#[test]
fn the_gate_compares_two_states_and_knows_its_words() {
    let config = ["--config", "examples/plan/pool/after"];
    let alone = plan("", &[&config[..], &["--fail-on", "move"]].concat());
    let unknown = gate("pool", "moves");
    for (output, says) in
        [(alone, "--against"), (unknown, "\"moves\" is unknown; allowed: one or more of withdraw")]
    {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
