//! How does the matrix run, and what is said about it? Cells in parallel, one line as each ends, the
//! reasons and logs of those that failed, a summary and a Markdown table. Used by main.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::cases::Case;
use crate::cases::scene::Cell;
use crate::lab::process::tail;
use crate::lab::wait::{is_interrupted, now};
use crate::lab::{fairway, make_directory};
use crate::routers::{self, RouterKind};
use crate::speaker::{self, SpeakerKind};

/// How much of each log a failing cell shows.
const TAIL_LINES: usize = 60;

/// A case and the router that it runs against.
#[derive(Clone, Copy)]
pub(crate) struct Square {
    pub(crate) case: &'static Case,
    pub(crate) router: RouterKind,
}

enum Outcome {
    Passed(Duration),
    NotApplicable(&'static str),
    Failed(String),
}

/// What is about to run, with the versions of the routers.
pub(crate) struct Matrix {
    speaker: SpeakerKind,
    squares: Vec<Square>,
    versions: Vec<(RouterKind, String)>,
    directory: PathBuf,
}

/// What has run.
pub(crate) struct Results {
    squares: Vec<Square>,
    versions: Vec<(RouterKind, String)>,
    outcomes: BTreeMap<usize, Outcome>,
    time: Duration,
}

impl Matrix {
    /// Fails when a router that is needed is not installed.
    pub(crate) fn of(squares: Vec<Square>, speaker: SpeakerKind) -> Result<Self> {
        let needed = RouterKind::ALL
            .into_iter()
            .filter(|kind| squares.iter().any(|square| square.router == *kind));
        let versions =
            needed.map(|kind| Ok((kind, kind.version()?))).collect::<Result<Vec<_>>>()?;
        let directory =
            std::env::temp_dir().join(format!("fairway-interop-{}", std::process::id()));
        Ok(Self { speaker, squares, versions, directory })
    }

    /// Runs all cells, `jobs` at a time.
    pub(crate) fn run(self, jobs: usize) -> Result<Results> {
        make_directory(&self.directory)?;
        let start = now();
        let waiting: Mutex<VecDeque<_>> = Mutex::new(self.squares.iter().enumerate().collect());
        let (sender, receiver) = mpsc::channel();
        let mut outcomes = BTreeMap::new();
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let sender = sender.clone();
                scope.spawn(|| {
                    let sender = sender;
                    while let Some((number, square)) = next(&waiting) {
                        if let Some(outcome) = self.run_cell(number, square) {
                            // The receiver lives as long as this scope.
                            let _ = sender.send((number, outcome));
                        }
                    }
                });
            }
            drop(sender);
            for (number, outcome) in receiver {
                if let Some(square) = self.squares.get(number) {
                    self.print(square, &outcome);
                }
                outcomes.insert(number, outcome);
            }
        });
        // Only empty when no cell has failed; a failed cell keeps its own directory.
        let _ = fs::remove_dir(&self.directory);
        let (squares, versions) = (self.squares, self.versions);
        Ok(Results { squares, versions, outcomes, time: start.elapsed() })
    }

    /// None when the run was interrupted meanwhile: such a cell says nothing.
    fn run_cell(&self, number: usize, square: &Square) -> Option<Outcome> {
        if let Some(reason) = square.case.not_applicable(square.router, self.speaker) {
            return Some(Outcome::NotApplicable(reason));
        }
        let name = format!("{number:02}-{}", square.router.word());
        let directory = self.directory.join(name);
        let cell = Cell { number, router: square.router, speaker: self.speaker, directory };
        let start = now();
        let result = make_directory(&cell.directory).and_then(|()| {
            catch_unwind(AssertUnwindSafe(|| (square.case.run)(&cell)))
                .unwrap_or_else(|panic| Err(anyhow!("the case panicked: {}", words_of(&*panic))))
        });
        let result = result.and_then(|()| {
            fs::remove_dir_all(&cell.directory).context("removing the directory of the cell")
        });
        match result {
            Ok(()) => Some(Outcome::Passed(start.elapsed())),
            Err(_) if is_interrupted() => {
                let _ = fs::remove_dir_all(&cell.directory);
                None
            }
            Err(error) => Some(Outcome::Failed(format!(
                "after {}: {error:#}\n{}",
                seconds(start.elapsed()),
                logs_of(&cell.directory)
            ))),
        }
    }

    fn print(&self, square: &Square, outcome: &Outcome) {
        let version = self.versions.iter().find(|(kind, _)| *kind == square.router);
        let version = version.map_or("", |(_, version)| version);
        let router = format!("{} {version}", square.router.name());
        let sentence = square.case.sentence();
        match outcome {
            Outcome::Passed(time) => {
                println!("ok    {:>7}  {router:<15} {sentence}", seconds(*time))
            }
            Outcome::NotApplicable(reason) => {
                println!("n/a            {router:<15} {sentence}: {reason}");
            }
            Outcome::Failed(reason) => {
                println!("FAIL           {router:<15} {sentence}\n  {reason}");
            }
        }
    }
}

impl Results {
    pub(crate) fn all_passed(&self) -> bool {
        self.outcomes.len() == self.squares.len()
            && !self.outcomes.values().any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    /// One line per case, one mark per router, and the count.
    pub(crate) fn print_summary(&self) {
        let names: Vec<_> = self.versions.iter().map(|(kind, _)| kind.word()).collect();
        println!("\n{}", names.join("  "));
        for (sentence, marks) in self.rows() {
            let columns = names
                .iter()
                .zip(marks)
                .map(|(name, mark)| format!("{mark:<width$}", width = name.len()));
            println!("{}  {sentence}", columns.collect::<Vec<_>>().join("  "));
        }
        let (mut passed, mut failed, mut not_applicable) = (0, 0, 0);
        for outcome in self.outcomes.values() {
            match outcome {
                Outcome::Passed(_) => passed += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::NotApplicable(_) => not_applicable += 1,
            }
        }
        let unrun = self.squares.len() - self.outcomes.len();
        println!(
            "\n{passed} passed, {failed} failed, {not_applicable} not applicable, {unrun} not run, \
             in {}",
            seconds(self.time)
        );
    }

    /// The matrix as a table, without times, so that it changes only when a result does.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("| case |");
        for (kind, version) in &self.versions {
            let _ = write!(text, " {} {version} |", kind.name());
        }
        text += "\n|---|";
        text += &"---|".repeat(self.versions.len());
        text += "\n";
        for (sentence, marks) in self.rows() {
            let _ = writeln!(text, "| {sentence} | {} |", marks.join(" | "));
        }
        text
    }

    /// Each case that was asked for, with a mark for each router.
    fn rows(&self) -> Vec<(String, Vec<String>)> {
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for square in &self.squares {
            let sentence = square.case.sentence();
            if rows.last().is_none_or(|(last, _)| *last != sentence) {
                let marks = self.versions.iter().map(|(kind, _)| self.mark(&sentence, *kind));
                rows.push((sentence.clone(), marks.collect()));
            }
        }
        rows
    }

    fn mark(&self, sentence: &str, router: RouterKind) -> String {
        let is_it = |square: &Square| square.router == router && square.case.sentence() == sentence;
        let Some(number) = self.squares.iter().position(is_it) else {
            return "-".to_owned();
        };
        match self.outcomes.get(&number) {
            None => "-".to_owned(),
            Some(Outcome::Passed(_)) => "ok".to_owned(),
            Some(Outcome::NotApplicable(reason)) => format!("n/a: {reason}"),
            Some(Outcome::Failed(_)) => "FAIL".to_owned(),
        }
    }
}

/// The next cell, unless the run has been interrupted.
fn next<T>(waiting: &Mutex<VecDeque<T>>) -> Option<T> {
    if is_interrupted() {
        return None;
    }
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn logs_of(directory: &Path) -> String {
    let mut text = String::new();
    for log in [fairway::log_in(directory), speaker::log_in(directory), routers::log_in(directory)]
    {
        if !log.exists() {
            continue;
        }
        let _ = write!(text, "  the end of {}:\n{}", log.display(), tail(&log, TAIL_LINES));
    }
    text + &format!("  kept: {}", directory.display())
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
