//! Mistakes in what is known of RPKI caches, held against simulated ones.

use super::{Subject, Variant, variant};

pub(crate) const RPKI: Subject = Subject {
    folder: "crates/rpki",
    package: "fairway-rpki",
    is_story: false,
    rounds: &[&["cache::", "origin_table::", "payloads::"]],
    seeds: "2000",
    variants: VARIANTS,
};

const CACHE: &str = "cache.rs";
const ORIGIN_TABLE: &str = "origin_table.rs";
const PAYLOADS: &str = "payloads.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "rpki: data outlives its expire time",
        CACHE,
        "if self.expires_at().is_some_and(|at| at <= now) {",
        "if self.expires_at().is_some_and(|at| at < Instant::ZERO) {",
    ),
    variant(
        "rpki: data that is of no use is forgotten, and never expires",
        CACHE,
        "                self.needs_all = true;\n                let why = match change {",
        "                self.known = None;\n                let why = match change {",
    ),
    variant(
        "rpki: a session that the cache does not know is continued",
        CACHE,
        "        self.needs_all = true;\n        self.fail(why);",
        "        self.fail(why);",
    ),
    variant(
        "rpki: a part of an answer takes effect",
        CACHE,
        "let mut payloads = if all { BTreeSet::new() } else { self.payloads.clone() };",
        "let mut payloads = if all { BTreeSet::new() } else { BTreeSet::from_iter(self.payloads.first().copied()) };",
    ),
    variant(
        "rpki: what covers a route from further out is not found",
        ORIGIN_TABLE,
        "std::iter::successors(nearest, |place| self.get(Some(*place))?.parent)",
        "std::iter::successors(nearest, |_| None)",
    ),
    variant("rpki: AS 0 originates", ORIGIN_TABLE, "origin.filter(|asn| *asn != 0);", "origin;"),
    variant(
        "rpki: a payload of two caches goes with the first",
        PAYLOADS,
        "let is_last = *count == 0;",
        "let is_last = *count < 2;",
    ),
];
