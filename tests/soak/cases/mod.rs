//! Which promises are tested? The list that main runs; each case is a file.

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
    pub(crate) has_short_form: bool,
    pub(crate) run: fn(&Bench) -> Result<()>,
}

pub(crate) const CASES: &[Case] = &[
    Case { name: "flapping", needs_root: false, has_short_form: true, run: flapping::run },
    Case { name: "strangers", needs_root: false, has_short_form: true, run: strangers::unknown },
    Case { name: "half open", needs_root: false, has_short_form: false, run: strangers::half_open },
    Case { name: "flood", needs_root: false, has_short_form: false, run: flood::run },
    Case {
        name: "stalled reader",
        needs_root: false,
        has_short_form: false,
        run: stalled_reader::run,
    },
    Case { name: "md5 keys", needs_root: true, has_short_form: false, run: md5_keys::run },
    Case { name: "collisions", needs_root: true, has_short_form: false, run: collisions::run },
    Case { name: "bfd detection", needs_root: true, has_short_form: true, run: bfd_detection::run },
    Case { name: "bfd stability", needs_root: true, has_short_form: true, run: bfd_stability::run },
    Case { name: "bfd cost", needs_root: true, has_short_form: false, run: bfd_cost::run },
];
