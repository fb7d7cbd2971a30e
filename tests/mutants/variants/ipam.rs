//! Mistakes in which Pod has which address.

use super::{Subject, Variant, variant};

pub(crate) const IPAM: Subject = Subject {
    folder: "crates/ipam",
    package: "fairway-ipam",
    is_story: false,
    rounds: &[&["tests::"]],
    seeds: "0",
    variants: VARIANTS,
};

const BLOCK: &str = "block.rs";
const POOL: &str = "pool.rs";
const SELECTOR: &str = "selector.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "block: an address that is released is given first",
        BLOCK,
        "self.taken.remove(ordinal);\n                self.free.push_back(*ordinal);",
        "self.taken.remove(ordinal);\n                self.free.push_front(*ordinal);",
    ),
    variant(
        "block: an address cools for no time",
        BLOCK,
        "if cooldown == 0 {",
        "if cooldown < Seconds::MAX {",
    ),
    variant(
        "block: an address that cools is released once more",
        BLOCK,
        "found.filter(|(_, it)| it.attributes.released_at.is_none())",
        "found.filter(|_| true)",
    ),
    variant(
        "block: an address remembers the number after its write",
        BLOCK,
        "Taken { attributes, sequence: self.sequence }",
        "Taken { attributes, sequence: self.sequence + 1 }",
    ),
    variant(
        "block: half of a request is released",
        BLOCK,
        "return Err(ReleaseError::Handle(*address));",
        "continue;",
    ),
    variant(
        "block: an address with two owners",
        BLOCK,
        "if self.taken.contains_key(&ordinal) {",
        "if self.free.is_empty() {",
    ),
    variant(
        "pool: those that are disabled serve",
        POOL,
        "pools.into_iter().filter(|it| !it.is_disabled).collect();",
        "pools.into_iter().filter(|_| true).collect();",
    ),
    variant(
        "pool: a pool of another namespace serves",
        POOL,
        "(Some(Ok(_)), None) => Ok(false),",
        "(Some(Ok(_)), None) => Ok(true),",
    ),
    variant(
        "pool: those that have to be named serve any request",
        POOL,
        "if !pool.is_manual && pool.selects_node(node)?",
        "if pool.selects_node(node)?",
    ),
    variant(
        "selector: a missing label is like every value",
        SELECTOR,
        "Self::Unequal(text) => value.is_none_or(|it| it != text),",
        "Self::Unequal(text) => value.is_some_and(|it| it != text),",
    ),
    variant(
        "selector: or binds closer than and",
        SELECTOR,
        "let mut term = self.both(depth)?;\n        while self.takes(\"||\") {\n            term = Term::Either(Box::new(term), Box::new(self.both(depth)?));",
        "let mut term = self.one(depth)?;\n        while self.takes(\"||\") {\n            term = Term::Either(Box::new(term), Box::new(self.one(depth)?));",
    ),
];
