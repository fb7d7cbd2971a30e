//! Is the segment told the truth? Fairway in a network namespace owns addresses; `arping`, `ndisc6`, the
//! neighbour tables of other kernels and captures are the witnesses. `cargo test --test layer2`, as root.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing"
)]

mod cases;
mod members;
mod segment;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use lab::suite::{self, Case, Suite};

/// Cases at a time.
const THREADS: usize = 4;

/// Who answers on a segment.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("layer2", run)
}

/// Whether all cases passed.
fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("layer2", options.suite).as_root().threads(THREADS);
    for (name, act) in cases::all() {
        suite.add(Case::new(name.replace('_', " "), act));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}
