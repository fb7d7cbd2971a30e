//! Mistakes in what a process knows of the cluster, held against the stories of its copies.

use super::{Subject, Variant, variant};

pub(crate) const CLUSTER: Subject = Subject {
    folder: "crates/cluster",
    package: "fairway-cluster",
    is_story: false,
    rounds: &[&["reflector::", "belief::"]],
    seeds: "300",
    variants: VARIANTS,
};

const REFLECTOR: &str = "reflector.rs";
const BELIEF: &str = "belief.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "a list of nothing is believed at once",
        REFLECTOR,
        "(!names.is_empty()).then_some(Hold { since: now, names })",
        "(!names.is_empty() && false).then_some(Hold { since: now, names })",
    ),
    variant(
        "a hold never ends",
        REFLECTOR,
        "now.since(hold.since) >= self.hold_max",
        "now.since(hold.since) == Duration::MAX",
    ),
    variant(
        "the first object that is back takes all others away",
        REFLECTOR,
        "partition(|(name, _)| self.is_kept(name))",
        "partition(|_| false)",
    ),
    variant(
        "a definition that is removed takes its objects along",
        REFLECTOR,
        "let is_over = !self.holds(now);",
        "let is_over = true;",
    ),
    variant(
        "what an earlier run had goes with the first list of nothing",
        BELIEF,
        "it.is_kept(&key.name) || it.items()",
        "it.items()",
    ),
    variant(
        "what an earlier run had outlives its hold",
        BELIEF,
        "if is_released && self.is_complete {",
        "if is_released && !self.is_complete {",
    ),
];
