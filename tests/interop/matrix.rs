//! What is reported about a run of the matrix? One line per case with a mark for each router, and a
//! Markdown table. Used by main.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;

use crate::cases;
use crate::cases::scene::Cell;
use crate::speaker::SpeakerKind;
use lab::routers::RouterKind;
use lab::suite::{Case, Outcome};

/// The result of each cell, by its number.
type Outcomes = BTreeMap<usize, Outcome>;

/// A case, the router that it runs against, and the speaker on the node.
#[derive(Clone, Copy)]
pub(crate) struct Square {
    pub(crate) case: &'static cases::Case,
    pub(crate) router: RouterKind,
    pub(crate) speaker: SpeakerKind,
}

impl Square {
    /// As the suite runs it, in its short form or in all of it.
    pub(crate) fn to_case(self, is_short_form: bool) -> Case {
        let Self { case, router, speaker } = self;
        let run = move |cell: &lab::suite::Cell| {
            let directory = cell.directory.clone();
            (case.run)(&Cell { number: cell.number, router, speaker, directory })
        };
        Case::new(case.sentence(), run)
            .at(&[router.word(), router.name()])
            .not_applicable(case.not_applicable(router, speaker))
            .left_out(is_short_form && !case.is_short(router, speaker))
            .covered_by((!case.is_short(router, speaker)).then(|| case.covered_by(speaker)))
    }
}

/// What runs, with the versions of the routers.
pub(crate) struct Matrix {
    squares: Vec<(usize, Square)>,
    versions: Vec<(RouterKind, String)>,
}

impl Matrix {
    /// Of the squares with these numbers. Fails when a router that is needed is not installed.
    pub(crate) fn of(squares: Vec<Square>, numbers: &[usize]) -> Result<Self> {
        let squares: Vec<(usize, Square)> = squares
            .into_iter()
            .enumerate()
            .filter(|(number, _)| numbers.contains(number))
            .collect();
        let needed = RouterKind::ALL
            .into_iter()
            .filter(|kind| squares.iter().any(|(_, square)| square.router == *kind));
        let versions =
            needed.map(|kind| Ok((kind, kind.version()?))).collect::<Result<Vec<_>>>()?;
        for (kind, version) in &versions {
            println!("{}: {} {version}", kind.word(), kind.name());
        }
        Ok(Self { squares, versions })
    }

    /// One line per case, one mark per router.
    pub(crate) fn print_summary(&self, outcomes: &Outcomes) {
        let names: Vec<_> = self.versions.iter().map(|(kind, _)| kind.word()).collect();
        println!("\n{}", names.join("  "));
        for (sentence, marks) in self.rows(outcomes) {
            let columns = names
                .iter()
                .zip(marks)
                .map(|(name, mark)| format!("{mark:<width$}", width = name.len()));
            println!("{}  {sentence}", columns.collect::<Vec<_>>().join("  "));
        }
    }

    /// The matrix as a table, without times, so that it changes only when a result does.
    pub(crate) fn markdown(&self, outcomes: &Outcomes) -> String {
        let mut text = String::from("| case |");
        for (kind, version) in &self.versions {
            let _ = write!(text, " {} {version} |", kind.name());
        }
        text += "\n|---|";
        text += &"---|".repeat(self.versions.len());
        text += "\n";
        for (sentence, marks) in self.rows(outcomes) {
            let _ = writeln!(text, "| {sentence} | {} |", marks.join(" | "));
        }
        text
    }

    /// Each case that was asked for, with a mark for each router.
    fn rows(&self, outcomes: &Outcomes) -> Vec<(String, Vec<String>)> {
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for (_, square) in &self.squares {
            let sentence = square.case.sentence();
            if rows.last().is_none_or(|(last, _)| *last != sentence) {
                let marks =
                    self.versions.iter().map(|(kind, _)| self.mark(outcomes, &sentence, *kind));
                rows.push((sentence.clone(), marks.collect()));
            }
        }
        rows
    }

    fn mark(&self, outcomes: &Outcomes, sentence: &str, router: RouterKind) -> String {
        let is_it = |(_, square): &&(usize, Square)| {
            square.router == router && square.case.sentence() == sentence
        };
        let Some((number, _)) = self.squares.iter().find(is_it) else {
            return "-".to_owned();
        };
        match outcomes.get(number) {
            None | Some(Outcome::NotRun) => "-".to_owned(),
            Some(Outcome::Passed(_)) => "ok".to_owned(),
            Some(Outcome::NotApplicable(reason)) => format!("n/a: {reason}"),
            Some(Outcome::Failed(_)) => "FAIL".to_owned(),
        }
    }
}
