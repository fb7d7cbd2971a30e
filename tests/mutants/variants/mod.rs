//! Which mistakes could the state machines hold, and what bounds what comes from outside? One text of their source
//! that stands there exactly once, and what a tired engineer might have written instead. Used by main, and by
//! `tests/tidy`, which looks at every run whether the texts are still there.

mod bgp;
mod bmp;
mod catalog;
mod cluster;
mod fib;
mod guards;
mod ipam;
mod layer2;
mod members;
mod plan;
mod proxy;
mod rib;
mod rpki;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

pub(crate) use bgp::BGP;
use bmp::{BMP, WATCHED};
use catalog::CATALOG;
use cluster::{BUDGET, CLUSTER};
use fib::FIB;
use guards::GUARDS;
use ipam::IPAM;
use layer2::LAYER2;
use members::MEMBERS;
use plan::PLAN;
use proxy::PROXY;
use rib::RIB;
use rpki::RPKI;

/// A crate with mistakes, and the tests that must notice them.
pub(crate) struct Subject {
    /// From the folder of the checkout on.
    pub(crate) folder: &'static str,
    pub(crate) package: &'static str,
    /// Whether these are stories of `tests/attack`, which start the daemon with the mistake, and not the crate's own
    /// tests.
    pub(crate) is_story: bool,
    /// What is run against each mistake, by words in the names of tests: first what is quick and notices nearly
    /// all, then the simulator.
    pub(crate) rounds: &'static [&'static [&'static str]],
    /// Schedules of the simulator: a mistake that needs more of them is a hole.
    pub(crate) seeds: &'static str,
    pub(crate) variants: &'static [Variant],
}

/// All that hold mistakes.
pub(crate) fn subjects() -> impl Iterator<Item = &'static Subject> {
    [
        &BGP, &RIB, &CLUSTER, &BUDGET, &MEMBERS, &LAYER2, &FIB, &RPKI, &CATALOG, &PLAN, &PROXY,
        &IPAM, &BMP, &WATCHED,
    ]
    .into_iter()
    .chain(GUARDS)
}

/// One mistake.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// From `src` of its crate on.
    pub(crate) file: &'static str,
    pub(crate) right: &'static str,
    pub(crate) wrong: &'static str,
}

impl Subject {
    /// The file of a mistake, from the folder of a checkout on.
    pub(crate) fn path(&self, variant: &Variant) -> PathBuf {
        Path::new(self.folder).join("src").join(variant.file)
    }
}

impl Variant {
    /// The text of its file with the mistake in place of the right text, which must be there exactly once.
    pub(crate) fn plant(&self, text: &str) -> Result<String> {
        let Self { name, file, right, wrong } = self;
        let count = text.matches(right).count();
        ensure!(
            count == 1,
            "{name}: its text occurs {count} times in {file}, and must once: the source has changed"
        );
        ensure!(right != wrong, "{name}: the text is replaced by itself");
        Ok(text.replace(right, wrong))
    }
}

const fn variant(
    name: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
) -> Variant {
    Variant { name, file, right, wrong }
}
