//! Runs many schedules, and prints the story of the first that breaks a rule.
//!
//! `make test-cluster` runs ten thousand, `make sim-cluster` a million.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fairway_cluster_simulation::{Misbehaviour, Schedule, shrink};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: fairway-cluster-simulation [--schedules N] [--first-seed N] [--threads N]
       fairway-cluster-simulation --seed N [--whole]

Without --schedules: 10000. --seed lives through one schedule again and tells its story, of the
shortest schedule that breaks the same rule unless it is to be the --whole one.";

/// The number of schedules between progress reports, about every two minutes.
const PROGRESS: u64 = 10_000;

struct Options {
    schedules: u64,
    first_seed: u64,
    threads: usize,
    seed: Option<u64>,
    whole: bool,
}

fn options() -> Result<Options, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options =
        Options { schedules: 10_000, first_seed: 1, threads, seed: None, whole: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let text = words.next().ok_or_else(|| format!("{word} needs a number\n{USAGE}"))?;
            text.parse().map_err(|_| format!("{word} {text}: not a number\n{USAGE}"))
        };
        match word.as_str() {
            "--schedules" => options.schedules = number()?,
            "--first-seed" => options.first_seed = number()?,
            "--threads" => options.threads = usize::try_from(number()?).unwrap_or(1).max(1),
            "--seed" => options.seed = Some(number()?),
            "--whole" => options.whole = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

/// Prints the story of a seed; returns whether all rules hold.
fn explain(seed: u64, whole: bool) -> bool {
    let nobody = Misbehaviour::default();
    let schedule = Schedule::of(seed);
    let schedule = if whole { schedule } else { shrink::shrink(&schedule, &nobody) };
    let verdict = shrink::verdict(&schedule, &nobody, true);
    println!("seed {seed}: {} nodes, {} controllers", schedule.nodes, schedule.controllers);
    for line in &verdict.story {
        println!("{line}");
    }
    match &verdict.violation {
        Some((at, violation)) => println!("after {at:?}: {violation}"),
        None => println!("all rules hold"),
    }
    verdict.violation.is_none()
}

/// The clock is only for the reported duration; nothing depends on it.
#[allow(clippy::disallowed_methods)]
fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = options.seed {
        return if explain(seed, options.whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let start = Instant::now();
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let actions = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                let nobody = Misbehaviour::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let seed = options.first_seed.saturating_add(number);
                    // The lowest failing seed is the same for any number of threads.
                    if number >= options.schedules || seed >= failed.load(Ordering::Relaxed) {
                        return;
                    }
                    if number > 0 && number.is_multiple_of(PROGRESS) {
                        println!("{number} schedules, {:.0} s", start.elapsed().as_secs_f64());
                    }
                    let verdict = shrink::verdict(&Schedule::of(seed), &nobody, false);
                    actions.fetch_add(verdict.actions, Ordering::Relaxed);
                    if verdict.violation.is_some() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        u64::MAX => {
            println!(
                "{} schedules from seed {}, {} actions of cores, in {:.1} s: all rules hold",
                options.schedules,
                options.first_seed,
                actions.into_inner(),
                start.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        seed => {
            explain(seed, false);
            println!(
                "again: cargo run -p fairway-cluster-simulation --profile fuzzing -- --seed {seed}"
            );
            ExitCode::FAILURE
        }
    }
}
