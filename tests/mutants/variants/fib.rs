//! Mistakes in which learned routes the kernel has, held against the simulated kernel.

use super::{Subject, Variant, variant};

pub(crate) const FIB: Subject = Subject {
    folder: "crates/fib",
    package: "fairway-fib",
    is_story: false,
    rounds: &[&["fib::", "interned::"]],
    seeds: "3000",
    variants: VARIANTS,
};

const MACHINE: &str = "fib.rs";
const ORDER: &str = "order.rs";
const SURROUNDINGS: &str = "surroundings.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "forwarding: a route is installed beside one of somebody else",
        MACHINE,
        "self.surroundings.foreign(table, place.prefix).cloned();",
        "self.surroundings.foreign(table, place.prefix).cloned().filter(|_| false);",
    ),
    variant(
        "forwarding: a route of an earlier run goes before all is known",
        MACHINE,
        "entry.is_leftover && !self.is_complete",
        "entry.is_leftover && self.is_complete",
    ),
    variant(
        "forwarding: a next hop that is reached otherwise is not looked at",
        MACHINE,
        "            if ways != known {\n                self.sweep = Some(Bound::Unbounded);",
        "            if ways != known {",
    ),
    variant(
        "forwarding: a foreign route that comes or goes changes nothing",
        MACHINE,
        "self.due.extend(place.filter(|it| self.entries.contains_key(it)));",
        "self.due.extend(place.filter(|it| !self.entries.contains_key(it)));",
    ),
    variant(
        "forwarding: what the kernel lost is not noticed",
        MACHINE,
        "            self.ways.release(before);\n            self.due.insert(*place);",
        "            self.ways.release(before);",
    ),
    variant(
        "forwarding: a refused order is never given again",
        MACHINE,
        "            self.refused.insert(place);\n",
        "",
    ),
    variant(
        "forwarding: the default route leads to any next hop",
        SURROUNDINGS,
        "(1..=longest).rev()",
        "(0..=longest).rev()",
    ),
    variant(
        "forwarding: routers of worse paths are used beside the best",
        SURROUNDINGS,
        "one.rank == next.rank",
        "one.rank <= next.rank",
    ),
    variant(
        "forwarding: a blackhole of an earlier run is taken for no route",
        ORDER,
        "if route.kind == RouteKind::Blackhole {",
        "if route.kind == RouteKind::Throw {",
    ),
];
