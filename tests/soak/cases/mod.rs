//! Which promises are tested? The list that main runs; each case is a file.

mod all_floods;
mod bfd_cost;
mod bfd_detection;
mod bfd_stability;
mod collisions;
mod flapping;
mod flood;
mod md5_keys;
mod stalled_reader;
mod strangers;

use anyhow::Result;

use crate::bench::Bench;

/// A promise and its test.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs_root: bool,
    /// The case of the short form, or the stage of `make test`, that covers it where it has no short form.
    pub(crate) covered_by: Option<&'static str>,
    pub(crate) run: fn(&Bench) -> Result<()>,
}

pub(crate) const CASES: &[Case] = &[
    Case { name: "flapping", needs_root: false, covered_by: None, run: flapping::run },
    Case { name: "strangers", needs_root: false, covered_by: None, run: strangers::unknown },
    // A connection that says nothing runs into the timer of a state, on virtual time.
    Case {
        name: "half open",
        needs_root: false,
        covered_by: Some("unit"),
        run: strangers::half_open,
    },
    // The limits of prefixes, with each router.
    Case { name: "flood", needs_root: false, covered_by: Some("interop-short"), run: flood::run },
    // What waits for a socket without room is one table, not a queue.
    Case {
        name: "stalled reader",
        needs_root: false,
        covered_by: Some("unit"),
        run: stalled_reader::run,
    },
    // Passwords, with each router; keys that the kernel refuses are in `unit`.
    Case {
        name: "md5 keys",
        needs_root: true,
        covered_by: Some("interop-short"),
        run: md5_keys::run,
    },
    // Both sides dial, once with each router; every order of events is in `unit`.
    Case {
        name: "collisions",
        needs_root: true,
        covered_by: Some("interop-short"),
        run: collisions::run,
    },
    // Each of the floods by itself.
    Case {
        name: "all floods",
        needs_root: false,
        covered_by: Some("attack"),
        run: all_floods::run,
    },
    Case { name: "bfd detection", needs_root: true, covered_by: None, run: bfd_detection::run },
    Case { name: "bfd stability", needs_root: true, covered_by: None, run: bfd_stability::run },
    // It compares figures; that sessions live beside busy loops is what must not break.
    Case {
        name: "bfd cost",
        needs_root: true,
        covered_by: Some("bfd stability"),
        run: bfd_cost::run,
    },
];
