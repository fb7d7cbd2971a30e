//! Is the segment told the truth? Fairway in a network namespace owns addresses; `arping`, `ndisc6`, the
//! neighbour tables of other kernels and captures are the witnesses. `cargo test --test layer2`, as root.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing"
)]

mod asker;
mod cases;
mod failover;
mod flood;
mod frames;
mod hosts;
mod keepalived;
mod members;
mod segment;
mod server;

use std::process::ExitCode;

use anyhow::{Result, ensure};
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
    let other = asker::other_role().or_else(flood::other_role).or_else(frames::other_role);
    let other = other.or_else(server::other_role);
    other.unwrap_or_else(|| suite::main("layer2", run))
}

/// Whether all cases passed. With `--bench` no case runs: it measures how long addresses are not answered for.
fn run(options: Options) -> Result<bool> {
    if options.suite.is_bench() {
        return measure(&options.suite.words());
    }
    let mut suite = Suite::new("layer2", options.suite).as_root().threads(THREADS);
    for (name, act) in cases::all() {
        suite.add(Case::new(name.replace('_', " "), act));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}

fn measure(words: &[String]) -> Result<bool> {
    lab::fairway::existing_program()?;
    ensure!(nix::unistd::Uid::effective().is_root(), "this needs root: network namespaces");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    lab::wait::end_on_signals()?;
    failover::measure(words)
}
