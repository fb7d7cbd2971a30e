//! What operations come to, as cases that `fairway ipam replay` runs.

mod assigning;
mod collecting;
mod ownership;
mod releasing;
mod runtime;

use serde_json::{Value, json};

use crate::replay;

/// The results of a case, and the state at its end.
struct Outcome {
    results: Vec<Value>,
    state: Value,
}

/// Runs a case. Nodes `a` and `b` and a pool of four blocks are there where the state names none.
fn run(mut state: Value, ops: Value) -> Outcome {
    let defaults = [
        ("pools", json!([{"cidr": "10.0.0.0/28", "blockSize": 30}])),
        ("nodes", json!([{"name": "a"}, {"name": "b"}])),
    ];
    for (key, value) in defaults {
        if state.get(key).is_none() {
            state[key] = value;
        }
    }
    let case = json!({"state": state, "ops": ops}).to_string();
    let printed: Value = serde_json::from_str(&replay(&case).unwrap()).unwrap();
    let results = printed["results"].as_array().unwrap().clone();
    Outcome { results, state: printed["state"].clone() }
}

impl Outcome {
    fn error(&self, index: usize) -> &str {
        self.results[index]["error"].as_str().unwrap_or("none")
    }

    /// How many addresses an operation gave.
    fn count(&self, index: usize) -> usize {
        let of = |key: &str| self.results[index][key].as_array().map_or(0, Vec::len);
        of("v4") + of("v6")
    }

    fn block(&self, cidr: &str) -> Option<&Value> {
        self.state["blocks"].as_array()?.iter().find(|it| it["cidr"] == cidr)
    }

    fn affinities(&self) -> Vec<String> {
        let line = |it: &Value| {
            let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("host"), text("cidr"), text("state"))
        };
        self.state["affinities"].as_array().unwrap().iter().map(line).collect()
    }
}

/// So many IPv4 addresses for a handle on a node.
fn give(host: &str, count: usize, handle: &str) -> Value {
    json!({"op": "autoAssign", "host": host, "n4": count, "handle": handle})
}
