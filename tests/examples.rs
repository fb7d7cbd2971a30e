//! `examples/metallb`: the comment at the head of each file is what `fairway plan` makes of it.
//!
//! The head of a file lists its effects, written by hand; every line must come out of the plan,
//! and nothing else may.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The node for files without one.
const NODE: &str = "node-1";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/metallb")
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn fairway(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(arguments)
        .env_remove("FAIRWAY_NODE")
        .output()
        .unwrap()
}

/// The effects that the head of a file lists, sorted.
fn promised(text: &str) -> Vec<String> {
    let head = text.lines().map_while(|line| line.strip_prefix('#'));
    let lines = head.skip_while(|line| *line != " Leads to:").skip(1);
    let mut lines: Vec<_> = lines.map(|line| line.trim().to_owned()).collect();
    lines.sort();
    lines
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

/// The plan in the format of those heads, sorted.
fn facts(plan: &Value) -> Vec<String> {
    let mut facts = Vec::new();
    for it in plan["services"].as_array().unwrap() {
        let name =
            format!("{}/{}", it["namespace"].as_str().unwrap(), it["name"].as_str().unwrap());
        let (addresses, reason) = (words(&it["addresses"]), it["reason"].as_str().unwrap());
        facts.push(match addresses.is_empty() {
            true => format!("service {name}: pending: {reason}"),
            false => {
                let pool = it["pool"].as_str().unwrap();
                assert_eq!(reason, "", "{name}");
                format!("service {name}: {} from {pool}", addresses.join(","))
            }
        });
    }
    for node in plan["nodes"].as_array().unwrap() {
        let name = node["name"].as_str().unwrap();
        for peer in node["bgp"].as_array().unwrap() {
            let (routes, peer) =
                (peer["routes"].as_array().unwrap(), peer["peer"].as_str().unwrap());
            facts.extend(routes.iter().map(|it| format!("{name} tells {peer} {}", route(it))));
            if routes.is_empty() {
                facts.push(format!("{name} tells {peer} nothing"));
            }
        }
        for answer in node["layer2"].as_array().unwrap() {
            let interfaces = match &answer["interfaces"] {
                Value::Null => "all interfaces".to_owned(),
                list => words(list).join(" "),
            };
            let address = answer["address"].as_str().unwrap();
            facts.push(format!("{name} answers for {address} on {interfaces}"));
        }
    }
    facts.sort();
    facts
}

fn route(route: &Value) -> String {
    let mut text = route["prefix"].as_str().unwrap().to_owned();
    if let Some(preference) = route["localPref"].as_u64() {
        text.push_str(&format!(" localPref {preference}"));
    }
    for list in ["communities", "largeCommunities"] {
        let values = words(&route[list]);
        if !values.is_empty() {
            text.push_str(&format!(" {list} {}", values.join(" ")));
        }
    }
    text
}

#[test]
fn every_example_passes_the_check_alone_and_together() {
    let all = files();
    assert!(all.len() >= 30, "{} examples", all.len());
    for path in all.iter().chain([&folder()]) {
        let output = fairway(&["check", path.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}:\n{said}", path.display());
    }
}

#[test]
fn every_example_leads_to_what_it_says() {
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        let file = path.to_str().unwrap();
        let mut arguments = vec!["plan", "--json", "--config", file];
        if !text.contains("\nkind: Node\n") {
            arguments.extend(["--node", NODE]);
        }
        let output = fairway(&arguments);
        let faults = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{file}:\n{faults}");
        let facts = facts(&serde_json::from_slice(&output.stdout).unwrap());
        let promised = promised(&text);
        assert!(!promised.is_empty(), "{file} has no head");
        assert_eq!(facts, promised, "{file}");
    }
}
