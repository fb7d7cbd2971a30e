//! Does fairway keep its promises in real time, among real routers, under real floods? Each case
//! prints what it measured and fails on a broken promise. Run by `make soak`:
//! `cargo test --test soak -- [WORD...] [--list] [--short]`.

#![allow(dead_code)] // Only a part of the lab and of the routers is used here.

mod bench;
mod bfd;
mod cases;
mod gate;
mod healthy;
mod message;
mod redial;
mod scripted;
mod stage;
mod tcp_table;
mod usage;

#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../interop/routers/mod.rs"]
mod routers;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use bench::{Bench, directory_of_run};
use cases::{CASES, Case};
use lab::process::tail;
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};

const USAGE: &str = "\
usage: soak [WORD...] [--list] [--short]
  WORD     run only the cases with one of these words in their name
  --list   print the cases that would run, and run none
  --short  a few seconds of some cases
The program under test is FAIRWAY_BIN, else the one that cargo has built. FAIRWAY_SEED replays the
random choices of a run.";

/// How much of fairway's log a failing case shows.
const TAIL_LINES: usize = 30;

struct Options {
    words: Vec<String>,
    list: bool,
    short: bool,
}

fn main() -> ExitCode {
    exit_code("soak", run())
}

/// Whether every promise was kept.
fn run() -> Result<bool> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(true);
    };
    let cases: Vec<&Case> = CASES.iter().filter(|case| is_wanted(case, &options)).collect();
    ensure!(!cases.is_empty(), "no case matches {:?}; see --list", options.words);
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(true);
    }
    if cases.iter().any(|case| case.needs_root) {
        ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
        lab::check_tools()?;
        lab::namespace::remove_leftovers()?;
    }
    let program = lab::fairway::program();
    ensure!(program.exists(), "the program under test, {}, does not exist", program.display());
    end_on_signals()?;
    let seed = seed()?;
    println!("soak: FAIRWAY_SEED={seed} {}", program.display());
    let mut all_kept = true;
    for case in cases {
        all_kept &= run_case(case, seed, options.short)?;
        if is_interrupted() {
            break;
        }
    }
    // Only empty when no promise was broken; a broken one keeps its own directory.
    let _ = std::fs::remove_dir(directory_of_run());
    Ok(all_kept)
}

fn is_wanted(case: &Case, options: &Options) -> bool {
    let named = |word: &String| case.name.contains(word.as_str());
    (case.has_short_form || !options.short)
        && (options.words.is_empty() || options.words.iter().any(named))
}

fn run_case(case: &Case, seed: u64, short: bool) -> Result<bool> {
    let bench = Bench::set_up(case.name, seed, short)?;
    let start = now();
    let outcome = (case.run)(&bench);
    let seconds = start.elapsed().as_secs_f64();
    match outcome {
        Ok(()) => {
            println!("{}: kept, {seconds:.1} s", case.name);
            std::fs::remove_dir_all(&bench.directory)
                .context("removing the directory of the case")?;
            Ok(true)
        }
        Err(_) if is_interrupted() => {
            let _ = std::fs::remove_dir_all(&bench.directory);
            Ok(false)
        }
        Err(error) => {
            println!("{}: BROKEN after {seconds:.1} s: {error:#}", case.name);
            for log in bench.logs() {
                println!("  the end of {}:\n{}", log.display(), tail(&log, TAIL_LINES));
            }
            Ok(false)
        }
    }
}

/// None when help was asked for.
fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options { words: Vec::new(), list: false, short: false };
    for argument in arguments {
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--list" => options.list = true,
            "--short" => options.short = true,
            other if other.starts_with('-') => bail!("unknown option {other}\n{USAGE}"),
            word => options.words.push(word.to_lowercase()),
        }
    }
    Ok(Some(options))
}

/// What decides the random choices: `FAIRWAY_SEED`, else the process id.
fn seed() -> Result<u64> {
    match std::env::var("FAIRWAY_SEED") {
        Ok(text) => text.parse().with_context(|| format!("FAIRWAY_SEED={text}: not a number")),
        Err(_) => Ok(u64::from(std::process::id())),
    }
}
