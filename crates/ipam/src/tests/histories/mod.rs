//! Random cases run as `fairway ipam replay` runs them, and what must hold is checked by a model that knows the operations
//! and their answers alone: a map of who was given which address.
//!
//! 1. `twice`: no address is given while somebody has it or it rests; in the end blocks have what was given, and no more.
//! 2. `owners`: each block has at most one confirmed owner, and routers find the node of each address.
//! 3. `counts`: blocks and handles count exactly what was given.
//! 4. `leak`: the collector takes back what no Pod has, nothing else, and leaves nothing.
//!
//! Besides, `rule`: who may have which address; and `answer`: answers do not contradict each other.
//!
//! `FAIRWAY_SEED` begins with another history, `FAIRWAY_SEEDS` says how many there are.

mod answers;
mod at_rest;
mod book;
mod cluster;
mod collected;
mod falsified;
mod generate;
mod operations;
mod runtime;

use answers::{Counts, Model};
use serde_json::{Value, json};

use crate::replay;

/// How many are enough to notice a mistake.
const SEEDS: u64 = 400;

/// Histories that once found a mistake.
const FOUND: &[u64] = &[];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a case as the command does.
fn printed(case: &Value) -> Value {
    serde_json::from_str(&replay(&case.to_string()).unwrap()).unwrap()
}

/// Whether what is printed of a case is as it must be.
fn check(case: &Value, printed: &Value) -> Result<Counts, String> {
    let mut model = Model::new(case);
    model.hear(&case["ops"], &printed["results"])?;
    model.check_state(&printed["state"])?;
    if generate::is_collected(case) {
        model.nothing_is_left(&printed["state"])?;
    }
    Ok(model.counts)
}

/// A case with the same kind of fault that has fewer operations; others are in their place that do nothing.
fn reduced(mut case: Value, fault: &str) -> Value {
    let kind = fault.split(':').next().unwrap().to_owned();
    for index in (0..case["ops"].as_array().unwrap().len()).rev() {
        let mut shorter = case.clone();
        shorter["ops"][index] = json!({"op": "getConfig"});
        if check(&shorter, &printed(&shorter)).is_err_and(|it| it.starts_with(&kind)) {
            case = shorter;
        }
    }
    case
}

#[test]
fn answers_and_the_state_agree_with_what_was_given_in_any_history() {
    let first = number("FAIRWAY_SEED").unwrap_or(0);
    let count = number("FAIRWAY_SEEDS").unwrap_or(SEEDS);
    let mut all = Counts::default();
    for seed in FOUND.iter().copied().chain(first..first + count) {
        let case = generate::case(seed);
        match check(&case, &printed(&case)) {
            Ok(counts) => all.add(&counts),
            Err(fault) => {
                let case = reduced(case, &fault);
                let of_reduced = check(&case, &printed(&case)).err();
                panic!("seed {seed}: {fault}\nreduced: {}\n{case}", of_reduced.unwrap_or_default());
            }
        }
    }
    // Histories in which nothing happens prove nothing.
    if count >= SEEDS {
        assert!(all.are_lively(), "{all:?}");
    }
}
