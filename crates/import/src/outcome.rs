//! What came of a text: objects, the lines that have no equal, and notes.

use std::collections::BTreeSet;
use std::fmt;

use fairway_ground::printable;
use fairway_resources::{Catalog, Resolution, yaml_block};

use crate::object::Translated;

/// A line, or a field, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    file: String,
    /// From 1.
    line: usize,
    subject: String,
    why: String,
}

/// `FILE:LINE: SUBJECT: WHY`.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, subject, why } = self;
        let place = format!("{file}:{line}: {subject}: {why}");
        f.write_str(&printable(&place))
    }
}

/// What came of one file.
#[derive(Debug)]
pub struct Outcome {
    file: String,
    pub(crate) objects: Vec<Translated>,
    untranslated: BTreeSet<Remark>,
    notes: BTreeSet<Remark>,
}

impl Outcome {
    pub(crate) fn new(file: &str) -> Self {
        let file = file.to_owned();
        Self { file, objects: Vec::new(), untranslated: BTreeSet::new(), notes: BTreeSet::new() }
    }

    /// The line, or field, `subject` has no equal. Said once, however many objects it concerns.
    pub(crate) fn untranslated(&mut self, line: usize, subject: &str, why: impl Into<String>) {
        let remark = self.remark(line, subject, why.into());
        self.untranslated.insert(remark);
    }

    /// The line is translated, and something about it is different or was left to Fairway's default.
    pub(crate) fn note(&mut self, line: usize, subject: &str, why: impl Into<String>) {
        let remark = self.remark(line, subject, why.into());
        self.notes.insert(remark);
    }

    fn remark(&self, line: usize, subject: &str, why: String) -> Remark {
        Remark { file: self.file.clone(), line, subject: subject.to_owned(), why }
    }

    /// The lines that have no equal, in their order.
    pub fn untranslated_lines(&self) -> Vec<&Remark> {
        self.untranslated.iter().collect()
    }

    /// What differs, in the order of the lines.
    pub fn notes(&self) -> Vec<&Remark> {
        self.notes.iter().collect()
    }

    /// Whether there is any object.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects as YAML documents.
    pub fn yaml(&self) -> String {
        let mut text = String::new();
        for object in &self.objects {
            text.push_str("---\n");
            for line in &object.comments {
                text.push_str(&format!("# {}\n", printable(line)));
            }
            text.push_str(&yaml_block(&object.value()));
        }
        text
    }
}

/// What is wrong with objects that were written, by Fairway's own rules: two files with objects of one name, or a value that
/// the other program takes and Fairway does not. Lines are those of `yaml`.
pub fn faults(yaml: &str) -> Vec<String> {
    let mut catalog = Catalog::new();
    catalog.file_read("result", yaml);
    let Resolution { findings, .. } = catalog.resolve();
    findings.iter().filter(|it| it.is_fault()).map(ToString::to_string).collect()
}
