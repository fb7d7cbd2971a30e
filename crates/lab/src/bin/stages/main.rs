//! Runs the stages of a tier of `tests/tiers.toml`: those that wait beside those that compute, each with
//! a log of its own. `cargo run -p fairway-lab --bin stages -- test`. Used by the Makefile.
//!
//! Knows nothing of what a stage does.

extern crate fairway_lab as lab;

mod child;
mod failures;
mod record;
mod schedule;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use child::{Child, Ended};
use failures::failures;
use lab::tiers::{FILE, Kind, Stage, Tiers, test_files};
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};
use record::Record;
use schedule::{Schedule, Step};

/// Lines of the log of a stage that are printed when it has passed, and when it has failed.
const CLOSING_LINES: usize = 4;
const FAILED_LINES: usize = 60;
/// How long a stage may take to clean up after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two checks for signals.
const LOOK: Duration = Duration::from_millis(200);

/// Runs the stages of a tier of the tests.
#[derive(Parser)]
struct Options {
    /// The tier: unit, test or all
    tier: String,
    /// Only stages with one of these names, and what they come after
    stages: Vec<String>,
    /// Print the stages, and run none
    #[arg(long)]
    list: bool,
    /// Leave out what has passed on this state of the checkout
    #[arg(long)]
    resume: bool,
}

/// What became of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    PassedBefore,
    NotRun,
}

fn main() -> ExitCode {
    exit_code("stages", run(&Options::parse()))
}

/// Whether all stages have passed.
fn run(options: &Options) -> Result<bool> {
    let checkout = lab::checkout();
    let tiers = Tiers::read(&checkout)?;
    let faults = tiers.faults(&test_files(&checkout)?);
    ensure!(faults.is_empty(), "{FILE}:\n{}", faults.join("\n"));
    let tier = tiers.tier.get(&options.tier);
    let tier = tier.with_context(|| format!("{FILE} has no tier {}", options.tier))?;
    let stages = schedule::chosen(&tiers.stages_of(&options.tier), &options.stages)?;
    if options.list {
        for stage in &stages {
            println!("{:<20} {:<10} {}", stage.name, format!("{:?}", stage.kind), stage.what);
        }
        return Ok(true);
    }
    end_on_signals()?;
    let folder = checkout.join("target/stages").join(&options.tier);
    std::fs::create_dir_all(&folder).context("the folder of logs")?;
    let record = Record::open(&checkout, &folder, options.resume)?;
    let binary = tier.binary.clone();
    let mut run = Run {
        checkout,
        folder,
        binary,
        record,
        start: now(),
        results: BTreeMap::new(),
        shows_all: stages.len() == 1,
    };
    run.all(&stages)?;
    Ok(run.tell(&stages, tier.minutes))
}

/// A run of stages.
struct Run {
    checkout: PathBuf,
    folder: PathBuf,
    /// The program under test, from the checkout on.
    binary: Option<String>,
    record: Record,
    start: Instant,
    /// By name: when it began, how long it took, how it ended.
    results: BTreeMap<String, (Duration, Duration, Outcome)>,
    /// A single stage prints to the terminal.
    shows_all: bool,
}

impl Run {
    fn all(&mut self, stages: &[&Stage]) -> Result<()> {
        let mut schedule = Schedule::of(stages);
        let mut children: BTreeMap<String, (Child, Instant)> = BTreeMap::new();
        let (sender, ended) = mpsc::channel::<Ended>();
        let mut ends_by: Option<Instant> = None;
        loop {
            while !is_interrupted()
                && let Some(step) = schedule.next()
            {
                match step {
                    Step::Skip(stage) => self.note(stage, Duration::ZERO, Outcome::NotRun),
                    Step::Begin(stage) if self.record.has(stage) => {
                        println!("{} passed   {}, in an earlier run", self.clock(), stage.name);
                        self.note(stage, Duration::ZERO, Outcome::PassedBefore);
                        schedule.end(&stage.name, true);
                    }
                    Step::Begin(stage) => {
                        println!("{} begins   {}: {}", self.clock(), stage.name, stage.what);
                        match self.start(stage, sender.clone()) {
                            Ok(child) => {
                                children.insert(stage.name.clone(), (child, now()));
                            }
                            Err(error) => {
                                println!("{} FAILED   {}: {error:#}", self.clock(), stage.name);
                                self.note(stage, Duration::ZERO, Outcome::Failed);
                                schedule.end(&stage.name, false);
                            }
                        }
                    }
                }
            }
            if children.is_empty() {
                break;
            }
            match (is_interrupted(), ends_by) {
                (false, _) => {}
                (true, None) => {
                    println!("interrupted: ending what runs");
                    children.values().for_each(|(child, _)| child.terminate());
                    ends_by = Some(now() + PATIENCE);
                }
                (true, Some(limit)) if now() >= limit => {
                    children.values().for_each(|(child, _)| child.kill());
                }
                (true, Some(_)) => {}
            }
            let Ok(end) = ended.recv_timeout(LOOK) else { continue };
            let Some((_, begun)) = children.remove(&end.name) else { continue };
            let stage = stages.iter().find(|stage| stage.name == end.name).context("a stage")?;
            self.finish(stage, begun.elapsed(), end.passed)?;
            schedule.end(&end.name, end.passed);
        }
        Ok(())
    }

    fn start(&self, stage: &Stage, ended: mpsc::Sender<Ended>) -> Result<Child> {
        let log = (!self.shows_all).then(|| self.log(stage));
        let mut words = child::words(stage, &self.checkout)?;
        if stage.root && !nix::unistd::geteuid().is_root() {
            words.splice(0..0, ["sudo", "-E"].map(str::to_owned));
        }
        if stage.kind == Kind::Computing {
            // What waits for timers comes first.
            words.splice(0..0, ["nice", "-n", "10"].map(str::to_owned));
        }
        let mut paths = stage.paths.clone();
        if let Some(binary) = &self.binary {
            paths.insert("FAIRWAY_BIN".to_owned(), binary.clone());
        }
        Child::start(&stage.name, &words, &paths, &self.checkout, log.as_deref(), ended)
    }

    fn log(&self, stage: &Stage) -> PathBuf {
        self.folder.join(format!("{}.log", stage.name))
    }

    /// What it has printed; nothing where that went to the terminal.
    fn text_of(&self, stage: &Stage) -> String {
        let bytes = if self.shows_all { Ok(Vec::new()) } else { std::fs::read(self.log(stage)) };
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    fn finish(&mut self, stage: &Stage, time: Duration, passed: bool) -> Result<()> {
        let log = self.log(stage);
        let text = self.text_of(stage);
        let word = if passed { "passed" } else { "FAILED" };
        println!("{} {word}   {} in {:.0} s", self.clock(), stage.name, time.as_secs_f64());
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = if passed { CLOSING_LINES } else { FAILED_LINES };
        for line in lines.iter().skip(lines.len().saturating_sub(shown)) {
            println!("           | {line}");
        }
        if !passed && !self.shows_all {
            println!("           the whole log: {}", log.display());
        }
        if passed {
            self.record.add(stage, time)?;
        }
        self.note(stage, time, if passed { Outcome::Passed } else { Outcome::Failed });
        Ok(())
    }

    fn note(&mut self, stage: &Stage, time: Duration, outcome: Outcome) {
        let begun = self.start.elapsed().saturating_sub(time);
        self.results.insert(stage.name.clone(), (begun, time, outcome));
    }

    /// Since the beginning.
    fn clock(&self) -> String {
        clock(self.start.elapsed())
    }

    /// The table, and whether all is well.
    fn tell(&self, stages: &[&Stage], minutes: u64) -> bool {
        println!("\nstage                from   seconds  result");
        let (mut passed, mut failed, mut not_run) = (0, 0, 0);
        for stage in stages {
            let missing = (Duration::ZERO, Duration::ZERO, Outcome::NotRun);
            let (begun, time, outcome) = self.results.get(&stage.name).copied().unwrap_or(missing);
            let word = match outcome {
                Outcome::Passed => "passed",
                Outcome::PassedBefore => "passed in an earlier run",
                Outcome::Failed => "FAILED",
                Outcome::NotRun => "not run",
            };
            match outcome {
                Outcome::Passed | Outcome::PassedBefore => passed += 1,
                Outcome::Failed => failed += 1,
                Outcome::NotRun => not_run += 1,
            }
            println!("{:<20} {} {:>8.0}  {word}", stage.name, clock(begun), time.as_secs_f64());
        }
        let time = self.start.elapsed();
        if time > Duration::from_secs(60 * minutes) {
            println!("this tier is meant to take at most {minutes} minutes");
        }
        println!("logs: {}", self.folder.display());
        for stage in stages {
            if matches!(self.results.get(&stage.name), Some((_, _, Outcome::Failed))) {
                println!("{}:", stage.name);
                failures(&self.text_of(stage)).iter().for_each(|line| println!("  {line}"));
            }
        }
        let more = if not_run == 0 { String::new() } else { format!(", {not_run} not run") };
        println!("{passed} passed, {failed} failed{more}, in {}", clock(time));
        failed == 0 && not_run == 0
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:>3}:{:02}", seconds / 60, seconds % 60)
}

/// Whether a file is there; the text of an error when not.
fn is_there(path: &Path) -> Result<()> {
    ensure!(path.exists(), "{} is missing", path.display());
    Ok(())
}
