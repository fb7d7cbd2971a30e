//! Do the tests notice when a state machine is wrong, or when a guard is missing: what bounds what comes from outside?
//! Puts one mistake at a time into a copy of its crate, and runs the simulator, the tables and the tests of that crate,
//! or a story of `tests/attack` against a daemon with the mistake: each must make one of them fail. Run by `make
//! mutants`: `cargo test --test mutants -- [WORD...]`, words filter by name; as root, for the stories.
//!
//! Most of the time is spent in the compiler, which uses one core for the larger part of it: as many copies as
//! there are cores are compiled side by side. What a mistake costs after that is the time to the first test
//! that fails.

mod copy;
mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;

use copy::{Copy, Tests, Verdict};
use lab::suite::{self, Case, Suite};
use variants::{Subject, Variant, subjects};

/// A compiler and a linker need about a gibibyte.
const COPIES_MAX: usize = 4;
/// How much longer than without a mistake, and alone, the tests may take before they count as endless.
const LIMIT_FACTOR: u32 = 6;
/// However fast they are without one.
const LIMIT_LEAST: Duration = Duration::from_secs(60);
/// Without a mistake.
const FIRST_LIMIT: Duration = Duration::from_secs(600);

/// Mistakes in state machines and guards, each of which a test must notice.
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
    let is_root = nix::unistd::geteuid().is_root();
    // Of each case.
    let mut places = Vec::new();
    for (place, subject) in subjects().enumerate() {
        for variant in subject.variants {
            let copies = Arc::clone(&copies);
            let run = move |cell: &suite::Cell| {
                copies.lend(|copy, limits| {
                    let limits = limits.get(&place).context("a limit")?;
                    notice(copy, limits, subject, variant, &cell.directory)
                })
            };
            let lack = (subject.is_story && !is_root).then_some("network namespaces need root");
            suite.add(Case::new(variant.name, run).at(&[subject.package]).not_applicable(lack));
            places.push(place);
        }
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    let numbers = chosen.numbers();
    let wanted: BTreeSet<&usize> = numbers.iter().filter_map(|it| places.get(*it)).collect();
    let wanted: Vec<(usize, &Subject)> = subjects()
        .enumerate()
        .filter(|(place, subject)| wanted.contains(place) && (is_root || !subject.is_story))
        .collect();
    let has_stories = wanted.iter().any(|(_, subject)| subject.is_story);
    let stories = has_stories.then(copy::build_stories).transpose()?;
    let make = |number| Copy::make(number, stories.clone());
    let made = (0..count).map(make).collect::<Result<Vec<_>>>()?;
    // Drift is reported at once, not after minutes; of all mistakes, whichever were chosen.
    for (copy, subject) in made.iter().flat_map(|copy| subjects().map(move |it| (copy, it))) {
        let mut variants = subject.variants.iter();
        variants.try_for_each(|variant| copy.replaced(subject, variant).map(drop))?;
    }
    let limits = |(place, subject)| Ok((place, limits_of(&made, subject)?));
    let limits: AllLimits = wanted.into_iter().map(limits).collect::<Result<_>>()?;
    copies.give(made, &limits)?;
    Ok(chosen.run()?.all_passed())
}

/// Builds all copies. How long the tests may take, from how long they take without a mistake.
fn limits_of(copies: &[Copy], subject: &Subject) -> Result<Limits> {
    let tests = build_all(copies, subject)?;
    let (first, tests) = copies.first().zip(tests.first()).context("there is no copy")?;
    let times = without_mistake(first, subject, tests)?;
    let seconds: Duration = times.iter().sum();
    let what = match subject.is_story {
        true => subject.rounds.concat().join(", "),
        false => subject.package.to_owned(),
    };
    println!("{what}, without a mistake: all tests pass, in {:.0} s", seconds.as_secs_f64());
    let limit = |time: Duration| (time * LIMIT_FACTOR).max(LIMIT_LEAST);
    Ok(times.into_iter().map(limit).collect())
}

/// Builds the tests of all copies, side by side.
fn build_all(copies: &[Copy], subject: &Subject) -> Result<Vec<Tests>> {
    std::thread::scope(|scope| {
        let build = |copy| scope.spawn(move || Copy::build(copy, subject));
        let builds: Vec<_> = copies.iter().map(build).collect();
        let join = |build: ScopedJoinHandle<'_, Result<Tests>>| {
            build.join().map_err(|panic| anyhow!("{}", suite::words_of(&*panic)))?
        };
        builds.into_iter().map(join).collect()
    })
}

/// For each round of the tests, how long it takes or may take.
type Limits = Vec<Duration>;
/// By the place of the subject.
type AllLimits = BTreeMap<usize, Limits>;

/// How long each round of the tests takes; fails where a test does.
fn without_mistake(copy: &Copy, subject: &Subject, tests: &Tests) -> Result<Limits> {
    let scratch = std::env::temp_dir();
    let time = |words: &&[&str]| {
        let begin = lab::wait::now();
        match copy.test(subject, tests, words, FIRST_LIMIT, &scratch)? {
            Verdict::Passed => Ok(begin.elapsed()),
            Verdict::Failed(test) => bail!("without a mistake, {test} fails"),
            Verdict::Endless => bail!("without a mistake, the tests do not end"),
        }
    };
    subject.rounds.iter().map(time).collect()
}

/// Fails where no test notices the mistake.
fn notice(
    copy: &Copy,
    limits: &Limits,
    subject: &Subject,
    variant: &Variant,
    scratch: &Path,
) -> Result<()> {
    let caught_by = copy.with(subject, variant, || {
        let tests = copy.build(subject)?;
        for (words, limit) in subject.rounds.iter().zip(limits) {
            match copy.test(subject, &tests, words, *limit, scratch)? {
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
    give: Sender<(Copy, AllLimits)>,
    take: Mutex<Receiver<(Copy, AllLimits)>>,
}

impl Copies {
    fn none() -> Self {
        let (give, take) = channel();
        Self { give, take: Mutex::new(take) }
    }

    fn give(&self, copies: Vec<Copy>, limits: &AllLimits) -> Result<()> {
        let give = |copy| self.give.send((copy, limits.clone()));
        copies.into_iter().try_for_each(give).map_err(|_| anyhow!("nobody takes a copy"))
    }

    /// Waits for a copy that is free.
    fn lend(&self, act: impl FnOnce(&Copy, &AllLimits) -> Result<()>) -> Result<()> {
        let next = self.take.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let (copy, limits) = next.context("there is no copy")?;
        let outcome = act(&copy, &limits);
        self.give(vec![copy], &limits)?;
        outcome
    }
}
