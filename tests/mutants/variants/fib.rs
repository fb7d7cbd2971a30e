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
    variant(
        "forwarding: a next hop that cannot be reached is forgotten with its last route",
        "fib.rs",
        "self.is_complete && self.is_empty() && self.unreachable.is_empty()",
        "self.is_complete && self.is_empty()",
    ),
    variant(
        "forwarding: a next hop that can be reached again is not told",
        "fib.rs",
        "let next_hops: BTreeSet<TrackedNextHop> = self.next_hops().chain(known).collect();",
        "let next_hops: BTreeSet<TrackedNextHop> = self.next_hops().chain(known.take(0)).collect();",
    ),
    variant(
        "forwarding: a next hop that is wanted still is let go",
        "fib.rs",
        "used.into_iter().for_each(|it| self.look_at(it));",
        "used.into_iter().take(0).for_each(|it| self.look_at(it));",
    ),
    variant(
        "forwarding: a route is ordered twice where it is due and swept",
        "fib.rs",
        "self.sweep.filter(|_| sweeps)?;",
        "self.sweep.filter(|_| sweeps || !sweeps)?;",
    ),
];
