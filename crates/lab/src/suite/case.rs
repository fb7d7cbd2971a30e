//! What is a case? A name, words that choose it, and what it does in a directory of its own. Cases of
//! one line run one after the other. Used by the suites, through `Suite`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::Result;

/// Where a case runs.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its own among all cases of the suite: names of namespaces are made from it.
    pub number: usize,
    /// Removed when the case has passed.
    pub directory: PathBuf,
}

type Run = Box<dyn FnOnce(&Cell) -> Result<()> + Send>;

/// One case of a suite.
pub struct Case {
    pub(super) name: String,
    /// Words that select places (routers, releases) and not names; the first is shown.
    pub(super) places: Vec<String>,
    /// More text to search for words.
    pub(super) source: String,
    pub(super) line: Option<String>,
    pub(super) not_applicable: Option<String>,
    pub(super) left_out: bool,
    pub(super) covered_by: Option<String>,
    pub(super) number: usize,
    pub(super) run: Run,
}

impl Case {
    pub fn new(
        name: impl Into<String>,
        run: impl FnOnce(&Cell) -> Result<()> + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            places: Vec::new(),
            source: String::new(),
            line: None,
            not_applicable: None,
            left_out: false,
            covered_by: None,
            number: 0,
            run: Box::new(run),
        }
    }

    /// Where it takes place: each of these words chooses it; the first one is printed, unless the name
    /// has it.
    pub fn at(mut self, places: &[&str]) -> Self {
        self.places = places.iter().map(|place| place.to_lowercase()).collect();
        self
    }

    /// Words that occur here choose it, too.
    pub fn from_source(mut self, source: &str) -> Self {
        source.clone_into(&mut self.source);
        self
    }

    /// Cases of one line run one after the other, in their order.
    pub fn in_line(mut self, line: &str) -> Self {
        self.line = Some(line.to_owned());
        self
    }

    /// It does not apply here, and is not run.
    pub fn not_applicable(mut self, reason: Option<impl Into<String>>) -> Self {
        self.not_applicable = reason.map(Into::into);
        self
    }

    /// The short form of the suite leaves it out, and this is that form. Such a case needs `covered_by`.
    pub fn left_out(mut self, is_left_out: bool) -> Self {
        self.left_out = is_left_out;
        self
    }

    /// What notices, in `make test`, most of what it would: the name of a case that is not left out (its own,
    /// where that runs at another place), or of a stage there.
    pub fn covered_by(mut self, cover: Option<impl Into<String>>) -> Self {
        self.covered_by = cover.map(Into::into);
        self
    }

    /// What is printed of it.
    pub(super) fn title(&self) -> String {
        match self.places.first() {
            Some(place) if !self.name.to_lowercase().contains(place) => {
                format!("{place}: {}", self.name)
            }
            _ => self.name.clone(),
        }
    }
}

/// The turns of cases that run one after the other.
#[derive(Default)]
pub(super) struct Line {
    places: Mutex<usize>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: usize,
    has_failed: bool,
}

/// It is this case's turn, until this value is dropped.
pub(super) struct Turn<'a>(&'a Line);

impl Line {
    /// The next place, counted from 0.
    pub(super) fn take_place(self: &Arc<Self>) -> usize {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        *places += 1;
        *places - 1
    }

    /// Waits until all places before this one are done.
    pub(super) fn wait_for(&self, place: usize) -> Turn<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.changed.wait_while(state, |state| state.next != place);
        drop(state.unwrap_or_else(PoisonError::into_inner));
        Turn(self)
    }
}

impl Turn<'_> {
    /// Whether a case before this one has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).has_failed
    }

    /// This case has failed.
    pub(super) fn fail(&self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).has_failed = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).next += 1;
        self.0.changed.notify_all();
    }
}

/// Every file below a directory that is named `*.log`, in the order of names.
pub(super) fn logs_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|it| it == "log");
    let logs = paths
        .into_iter()
        .flat_map(|path| if path.is_dir() { logs_below(&path) } else { vec![path] });
    logs.filter(is_log).collect()
}
