//! Mistakes in what a process knows of the cluster, held against the stories of its copies.

use super::{Subject, Variant, variant};

pub(crate) const CLUSTER: Subject = Subject {
    folder: "crates/cluster",
    package: "fairway-cluster",
    is_story: false,
    rounds: &[&["reflector::", "belief::", "foresight::"]],
    seeds: "300",
    variants: VARIANTS,
};

/// What an edit may disrupt.
pub(crate) const BUDGET: Subject = Subject {
    folder: "crates/plan",
    package: "fairway-plan",
    is_story: false,
    rounds: &[&["budget::"]],
    seeds: "1",
    variants: OF_BUDGET,
};

const OF_BUDGET: &[Variant] = &[
    variant(
        "budget: a withdrawal on one node is the only one",
        "report/budget.rs",
        "self.withdrawn = self.withdrawn.saturating_add(withdrawn);",
        "self.withdrawn = withdrawn;",
    ),
    variant(
        "budget: a reset session counts as kept",
        "report/budget.rs",
        "it.fate == Fate::Reset).count()",
        "it.fate == Fate::Removed).count()",
    ),
    variant(
        "budget: an address that a Service loses is no move",
        "report/budget.rs",
        "self.lost = lost.fold(self.lost, usize::saturating_add);",
        "self.lost = lost.fold(self.lost, usize::saturating_sub);",
    ),
    variant(
        "budget: one more than is permitted is permitted",
        "report/budget.rs",
        "if total <= self.permitted {",
        "if total <= self.permitted.saturating_add(1) {",
    ),
    variant(
        "budget: what does not count is counted",
        "report/budget.rs",
        "self.counted.iter().map(|kind| (*kind, count(*kind)))",
        "[Disruption::Withdrawal, Disruption::Reset, Disruption::Move].iter().map(|kind| (*kind, count(*kind)))",
    ),
];

const REFLECTOR: &str = "reflector.rs";
const BELIEF: &str = "belief.rs";
const FORESIGHT: &str = "foresight.rs";
const ADMISSION: &str = "admission.rs";

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
    variant(
        "foresight: a key of a Secret has another value after every write",
        FORESIGHT,
        "                    self.values_ever\n                });",
        "                    self.values_ever\n                });\n                *value = value.saturating_add(1);",
    ),
    variant(
        "foresight: a peer whose key is in a Secret is not planned",
        FORESIGHT,
        "self.in_force.read(Kind::Secret, &ObjectText::from(&assumed));",
        "drop(ObjectText::from(&assumed));",
    ),
    variant(
        "foresight: what is certain counts before its time",
        FORESIGHT,
        "Ok(budget.excess(&disruptions))",
        "Ok(budget.certain_excess(&disruptions).filter(|_| false))",
    ),
    variant(
        "foresight: the annotation of the earlier version permits the new one",
        ADMISSION,
        "let is_permitted = new.or(old).is_some_and(permits_disruption);",
        "let is_permitted = new.into_iter().chain(old).any(permits_disruption);",
    ),
    variant(
        "foresight: any value of the annotation permits",
        ADMISSION,
        "and_then(Value::as_str) == Some(\"true\")\n}",
        "is_some()\n}",
    ),
    variant(
        "foresight: an object that goes is judged again",
        ADMISSION,
        "old.is_some_and(goes) || ",
        "",
    ),
];
