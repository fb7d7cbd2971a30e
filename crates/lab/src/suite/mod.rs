//! How does a suite run its cases? With the command line of `cargo test` (`--list`, words,
//! `--test-threads`) and options of its own; each case in a directory of its own, which stays with its
//! logs when the case fails.
//!
//! Knows neither routers nor daemons. Used by `main` of every suite.

mod case;
mod cover;
mod options;
mod selection;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libtest_mimic::{Completion, Failed, Trial};

use crate::make_directory;
use crate::process::tail;
use crate::tiers::{TEST, Tiers};
use crate::wait::{end_on_signals, exit_code, is_interrupted, now};
pub use case::{Case, Cell};
use case::{Line, logs_below};
pub use options::{Options, parse};
pub use selection::Several;

/// How much of each log a failing case shows.
const TAIL_LINES: usize = 60;
/// How many of the slowest cases the summary names.
const SLOWEST_MAX: usize = 3;

/// Runs a suite in the folder of the checkout: plays another role when the command line asks for one, else
/// parses the options and hands them to `run`, which returns whether all cases have passed.
pub fn main<O: clap::Parser>(suite: &'static str, run: impl FnOnce(O) -> Result<bool>) -> ExitCode {
    crate::probe::other_role().unwrap_or_else(|| {
        let options = parse(suite);
        // Paths on the command line and in FAIRWAY_BIN begin there, whichever package cargo starts.
        let outcome = std::env::set_current_dir(crate::checkout()).context("the checkout");
        exit_code(suite, outcome.and_then(|()| run(options)))
    })
}

/// What a suite is made of, before it runs.
pub struct Suite {
    name: &'static str,
    options: Options,
    several: Several,
    threads: usize,
    needs_root: bool,
    is_chain: bool,
    cases: Vec<Case>,
}

/// How a case ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    Passed(Duration),
    /// It does not apply here, for this reason.
    NotApplicable(String),
    Failed(String),
    /// The run was interrupted, or a case before it has failed on which it depends.
    NotRun,
}

/// The cases that were chosen, ready to run.
pub struct Chosen {
    name: &'static str,
    options: Options,
    threads: usize,
    is_chain: bool,
    directory: PathBuf,
    cases: Vec<Case>,
}

/// What has run.
pub struct Report {
    /// By the number of the case.
    pub outcomes: BTreeMap<usize, Outcome>,
    pub time: Duration,
}

impl Suite {
    /// Without cases, for one thread and a user without privileges.
    pub fn new(name: &'static str, options: Options) -> Self {
        Self {
            name,
            options,
            several: Several::All,
            threads: 1,
            needs_root: false,
            is_chain: false,
            cases: Vec::new(),
        }
    }

    /// Network namespaces need root, and tools.
    pub fn as_root(mut self) -> Self {
        self.needs_root = true;
        self
    }

    /// How many cases run at a time, unless `--test-threads` says otherwise.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Which cases several words choose.
    pub fn several_words(mut self, several: Several) -> Self {
        self.several = several;
        self
    }

    /// Each case begins where the one before it ended: choosing one chooses those before it, and after a
    /// failure no other runs.
    pub fn as_chain(mut self) -> Self {
        self.is_chain = true;
        self
    }

    /// Cases run in the order in which they are added, each with the next number.
    pub fn add(&mut self, case: Case) {
        self.cases.push(case);
    }

    /// How many cases there are, chosen or not.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// The cases that the command line chooses; None when it asks for their list alone, which is printed
    /// then. Fails where a case that is left out is not covered, and where the machine lacks what the suite
    /// needs.
    pub fn choose(self) -> Result<Option<Chosen>> {
        let Self { name, options, several, threads, needs_root, is_chain, cases } = self;
        let stages = stages_of_make_test(&cases)?;
        let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
        let faults = cover::faults(&cases, &stages);
        ensure!(faults.is_empty(), "what covers a case:\n{}", faults.join("\n"));
        let cases = selection::select(cases, &options, several, is_chain);
        ensure!(!cases.is_empty(), "no case matches {:?}; see --list", options.words());
        if options.is_list() {
            let trials = cases.into_iter().map(|case| Trial::test(case.title(), || Ok(())));
            let _ = libtest_mimic::run(&options.harness(), trials.collect());
            return Ok(None);
        }
        if needs_root {
            let is_root = nix::unistd::geteuid().is_root();
            ensure!(is_root, "network namespaces need root; run this as root");
            crate::check_tools()?;
            crate::namespace::remove_leftovers()?;
        }
        end_on_signals()?;
        let directory = std::env::temp_dir().join(format!("fairway-{name}-{}", std::process::id()));
        Ok(Some(Chosen { name, options, threads, is_chain, directory, cases }))
    }
}

impl Chosen {
    /// The numbers of the cases.
    pub fn numbers(&self) -> Vec<usize> {
        self.cases.iter().map(|case| case.number).collect()
    }

    /// Where the directories of the cases are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether only a part of the cases was chosen.
    pub fn is_part(&self) -> bool {
        self.options.chooses()
    }

    /// Runs the cases, prints the result of each, and a summary.
    pub fn run(self) -> Result<Report> {
        make_directory(&self.directory)?;
        let start = now();
        let names: BTreeMap<usize, String> =
            self.cases.iter().map(|case| (case.number, case.title())).collect();
        let mut lines: BTreeMap<String, Arc<Line>> = BTreeMap::new();
        let outcomes = Arc::new(Mutex::new(BTreeMap::new()));
        let mut harness = self.options.harness();
        harness.test_threads.get_or_insert(
            // A thread that waits for its turn in a line keeps no other from running.
            if self.cases.iter().any(|case| case.line.is_some()) || self.is_chain {
                self.cases.len().max(2)
            } else {
                self.threads
            },
        );
        let mut trials = Vec::new();
        for case in self.cases {
            let of_all = self.is_chain.then(String::new);
            let line = case.line.clone().or(of_all).map(|name| lines.entry(name).or_default());
            let turn = line.map(|line| (line.take_place(), Arc::clone(line)));
            let (title, directory) = (case.title(), self.directory.clone());
            let (outcomes, is_chain) = (Arc::clone(&outcomes), self.is_chain);
            trials.push(Trial::ignorable_test(title, move || {
                let turn = turn.as_ref().map(|(place, line)| line.wait_for(*place));
                let stops = is_chain && turn.as_ref().is_some_and(|turn| turn.has_failed());
                let number = case.number;
                let outcome = if stops { Outcome::NotRun } else { run_case(case, &directory) };
                if let (Some(turn), Outcome::Failed(_) | Outcome::NotRun) = (&turn, &outcome) {
                    turn.fail();
                }
                let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                outcomes.insert(number, outcome.clone());
                completion(outcome)
            }));
        }
        let _ = libtest_mimic::run(&harness, trials);
        // Only empty when no case has failed; a failed one keeps its own directory.
        let _ = std::fs::remove_dir(&self.directory);
        let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let report = Report { outcomes, time: start.elapsed() };
        report.print_summary(self.name, &names);
        Ok(report)
    }
}

/// The names of the stages that cover what a suite leaves out; none where nothing names what covers it, so
/// that such a suite runs without the file.
fn stages_of_make_test(cases: &[Case]) -> Result<Vec<String>> {
    if cases.iter().all(|case| case.covered_by.is_none()) {
        return Ok(Vec::new());
    }
    let tiers = Tiers::read(&crate::checkout())?;
    Ok(tiers.stages_of(TEST).into_iter().map(|stage| stage.name.clone()).collect())
}

fn completion(outcome: Outcome) -> Result<Completion, Failed> {
    match outcome {
        Outcome::Passed(_) => Ok(Completion::Completed),
        Outcome::NotApplicable(reason) => Ok(Completion::ignored_with(reason)),
        Outcome::NotRun => Ok(Completion::ignored_with("not run")),
        Outcome::Failed(text) => Err(text.into()),
    }
}

fn run_case(case: Case, directory: &Path) -> Outcome {
    if is_interrupted() {
        return Outcome::NotRun;
    }
    if let Some(reason) = case.not_applicable {
        return Outcome::NotApplicable(reason);
    }
    let cell = Cell { number: case.number, directory: directory.join(case.number.to_string()) };
    let start: Instant = now();
    let result = make_directory(&cell.directory).and_then(|()| {
        catch_unwind(AssertUnwindSafe(|| (case.run)(&cell)))
            .unwrap_or_else(|panic| Err(anyhow!("the case panicked: {}", words_of(&*panic))))
    });
    let result = result.and_then(|()| {
        std::fs::remove_dir_all(&cell.directory).context("removing the directory of the case")
    });
    match result {
        Ok(()) => Outcome::Passed(start.elapsed()),
        Err(_) if is_interrupted() => {
            let _ = std::fs::remove_dir_all(&cell.directory);
            Outcome::NotRun
        }
        Err(error) => Outcome::Failed(format!(
            "after {:.1} s: {error:#}\n{}  kept: {}",
            start.elapsed().as_secs_f64(),
            ends_of_logs(&cell.directory),
            cell.directory.display()
        )),
    }
}

/// The end of each log below a directory.
pub fn ends_of_logs(directory: &Path) -> String {
    let end = |log: PathBuf| format!("  the end of {}:\n{}", log.display(), tail(&log, TAIL_LINES));
    logs_below(directory).into_iter().map(end).collect()
}

/// What a panic said.
pub fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

impl Report {
    /// Whether every case that was chosen has run and passed.
    pub fn all_passed(&self) -> bool {
        let is_good =
            |outcome: &Outcome| matches!(outcome, Outcome::Passed(_) | Outcome::NotApplicable(_));
        self.outcomes.values().all(is_good) && !is_interrupted()
    }

    /// How many passed, failed, did not apply, and were not run.
    pub fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for outcome in self.outcomes.values() {
            counts[match outcome {
                Outcome::Passed(_) => 0,
                Outcome::Failed(_) => 1,
                Outcome::NotApplicable(_) => 2,
                Outcome::NotRun => 3,
            }] += 1;
        }
        counts
    }

    fn print_summary(&self, suite: &str, names: &BTreeMap<usize, String>) {
        let mut times: Vec<(Duration, &str)> = Vec::new();
        for (number, outcome) in &self.outcomes {
            if let (Outcome::Passed(time), Some(name)) = (outcome, names.get(number)) {
                times.push((*time, name));
            }
        }
        times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (time, name) in times.iter().take(SLOWEST_MAX) {
            println!("  {:>6.1} s  {name}", time.as_secs_f64());
        }
        let [passed, failed, not_applicable, not_run] = self.counts();
        println!(
            "{suite}: {passed} passed, {failed} failed, {not_applicable} not applicable, {not_run} \
             not run, in {:.1} s",
            self.time.as_secs_f64()
        );
    }
}
