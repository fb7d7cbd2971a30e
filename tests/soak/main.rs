//! Does fairway keep its promises in real time, among real routers, under real floods? Each case
//! prints what it measured and fails on a broken promise. Run by `make soak`:
//! `cargo test --test soak -- [WORD...] [--short]`.

mod bench;
mod bfd;
mod birds;
mod cases;
mod floods;
mod gate;
mod healthy;
mod message;
mod metrics;
mod redial;
mod scripted;
mod stage;
mod tcp_table;
mod webhook;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use bench::Bench;
use cases::CASES;
use lab::suite::{self, Case, Several, Suite};

/// Promises of Fairway that need real time.
///
/// Words: the cases with one of them in their name. FAIRWAY_SEED replays the random choices of a run.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// A few seconds of some cases
    #[arg(long)]
    short: bool,
}

fn main() -> ExitCode {
    suite::main("soak", run)
}

/// Whether every promise was kept. What one case measures, another would disturb: they run one by one.
fn run(options: Options) -> Result<bool> {
    let (seed, short) = (seed()?, options.short);
    let words = options.suite.words();
    let is_root = nix::unistd::geteuid().is_root();
    let mut suite = Suite::new("soak", options.suite).several_words(Several::Any);
    let mut needs_root = false;
    for case in CASES {
        let is_left_out = short && case.covered_by.is_some();
        let is_chosen = words.is_empty() || words.iter().any(|word| case.name.contains(word));
        needs_root |= case.needs_root && is_chosen && !is_left_out;
        let run =
            move |cell: &suite::Cell| (case.run)(&Bench::set_up(case.name, seed, short, cell)?);
        let case = Case::new(case.name, run).covered_by(case.covered_by).left_out(is_left_out);
        suite.add(case.in_line("one by one"));
    }
    let suite = if needs_root || is_root { suite.as_root() } else { suite };
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    println!("soak: FAIRWAY_SEED={seed} {}", lab::fairway::existing_program()?.display());
    Ok(chosen.run()?.all_passed())
}

/// What decides the random choices: `FAIRWAY_SEED`, else the process id.
fn seed() -> Result<u64> {
    match std::env::var("FAIRWAY_SEED") {
        Ok(text) => text.parse().with_context(|| format!("FAIRWAY_SEED={text}: not a number")),
        Err(_) => Ok(u64::from(std::process::id())),
    }
}
