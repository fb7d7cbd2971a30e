//! Do the tests of the state machines notice when these are wrong? Puts one mistake at a time into a copy of
//! `bgp`, `members` or `layer2`, and runs the simulator and the tables of that crate: each mistake must make
//! one of them fail. Run by `make mutants`: `cargo test --test mutants -- [WORD...]`, words filter by name.
//!
//! Most of the time is spent in the compiler, which uses one core for the larger part of it: as many copies as
//! there are cores are compiled side by side. What a mistake costs after that is the time to the first test
//! that fails.

mod copy;
mod variants;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;

use copy::{Copy, Verdict};
use lab::suite::{self, Case, Suite};
use variants::{SUBJECTS, Subject, Variant};

/// A compiler and a linker need about a gibibyte.
const COPIES_MAX: usize = 4;
/// How much longer than without a mistake, and alone, the tests may take before they count as endless.
const LIMIT_FACTOR: u32 = 6;
/// However fast they are without one.
const LIMIT_LEAST: Duration = Duration::from_secs(60);
/// Without a mistake.
const FIRST_LIMIT: Duration = Duration::from_secs(600);

/// Mistakes in the state machines, each of which their tests must notice.
///
/// Words: the mistakes with all of them in their name.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("mutants", run)
}

/// Whether every mistake was noticed.
fn run(options: Options) -> Result<bool> {
    let count = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(COPIES_MAX));
    let mut suite = Suite::new("mutants", options.suite).threads(count);
    let copies = Arc::new(Copies::none());
    for (place, subject) in SUBJECTS.into_iter().enumerate() {
        for variant in subject.variants {
            let copies = Arc::clone(&copies);
            let run = move |_: &suite::Cell| {
                copies.lend(|copy, limits| {
                    let limits = limits.get(place).context("a limit")?;
                    notice(copy, limits, subject, variant)
                })
            };
            suite.add(Case::new(variant.name, run).at(&[subject.package]));
        }
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    let made = (0..count).map(Copy::make).collect::<Result<Vec<_>>>()?;
    // Drift is reported at once, not after minutes; of all mistakes, whichever were chosen.
    for (copy, subject) in made.iter().flat_map(|copy| SUBJECTS.map(|subject| (copy, subject))) {
        let mut variants = subject.variants.iter();
        variants.try_for_each(|variant| copy.replaced(subject, variant).map(drop))?;
    }
    let mut limits = Vec::new();
    for subject in SUBJECTS {
        let programs = build_all(&made, subject)?;
        let (first, program) = made.first().zip(programs.first()).context("there is no copy")?;
        let times = without_mistake(first, subject, program)?;
        let seconds: Duration = times.iter().sum();
        let package = subject.package;
        println!("{package} without a mistake: all tests pass, in {:.0} s", seconds.as_secs_f64());
        let limit = |time: Duration| (time * LIMIT_FACTOR).max(LIMIT_LEAST);
        limits.push(times.into_iter().map(limit).collect());
    }
    copies.give(made, &limits)?;
    Ok(chosen.run()?.all_passed())
}

/// Builds the tests of all copies, side by side.
fn build_all(copies: &[Copy], subject: &Subject) -> Result<Vec<PathBuf>> {
    std::thread::scope(|scope| {
        let build = |copy| scope.spawn(move || Copy::build(copy, subject));
        let builds: Vec<_> = copies.iter().map(build).collect();
        let join = |build: ScopedJoinHandle<'_, Result<PathBuf>>| {
            build.join().map_err(|panic| anyhow!("{}", suite::words_of(&*panic)))?
        };
        builds.into_iter().map(join).collect()
    })
}

/// For each round of the tests, how long it takes or may take.
type Limits = Vec<Duration>;

/// How long each round of the tests takes; fails where a test does.
fn without_mistake(copy: &Copy, subject: &Subject, program: &Path) -> Result<Limits> {
    let time = |words: &&[&str]| {
        let begin = lab::wait::now();
        match copy.test(subject, program, words, FIRST_LIMIT)? {
            Verdict::Passed => Ok(begin.elapsed()),
            Verdict::Failed(test) => bail!("without a mistake, {test} fails"),
            Verdict::Endless => bail!("without a mistake, the tests do not end"),
        }
    };
    subject.rounds.iter().map(time).collect()
}

/// Fails where no test notices the mistake.
fn notice(copy: &Copy, limits: &Limits, subject: &Subject, variant: &Variant) -> Result<()> {
    let caught_by = copy.with(subject, variant, || {
        let program = copy.build(subject)?;
        for (words, limit) in subject.rounds.iter().zip(limits) {
            match copy.test(subject, &program, words, *limit)? {
                Verdict::Passed => {}
                Verdict::Failed(test) => return Ok(test),
                Verdict::Endless => {
                    return Ok(format!("a test that no longer ends in {} s", limit.as_secs()));
                }
            }
        }
        bail!("no test notices it")
    })?;
    println!("{}: caught by {caught_by}", variant.name);
    Ok(())
}

/// Copies that no case uses at the moment, and the limits of the tests of each subject.
struct Copies {
    give: Sender<(Copy, Vec<Limits>)>,
    take: Mutex<Receiver<(Copy, Vec<Limits>)>>,
}

impl Copies {
    fn none() -> Self {
        let (give, take) = channel();
        Self { give, take: Mutex::new(take) }
    }

    fn give(&self, copies: Vec<Copy>, limits: &[Limits]) -> Result<()> {
        let give = |copy| self.give.send((copy, limits.to_vec()));
        copies.into_iter().try_for_each(give).map_err(|_| anyhow!("nobody takes a copy"))
    }

    /// Waits for a copy that is free.
    fn lend(&self, act: impl FnOnce(&Copy, &[Limits]) -> Result<()>) -> Result<()> {
        let next = self.take.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let (copy, limits) = next.context("there is no copy")?;
        let outcome = act(&copy, &limits);
        self.give(vec![copy], &limits)?;
        outcome
    }
}
