//! Reads one object and collects all its faults, each with its field and line.
//!
//! serde stops at the first fault. So a faulty value is noted, removed from a copy of the tree, and
//! the rest is read again, until it succeeds. Knows no kinds; their parsers use it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

use super::field_path::{FieldPath, Segment};
use super::finding::Severity;
use super::suggest;
use super::yaml::deserialize::ReadError;
use super::yaml::node::Node;

/// A list as read: a faulty element is `None`.
pub(crate) type List<T> = Vec<Option<T>>;

/// The most faults that one object shows, the most warnings, and the most times it is read.
const FAULTS_MAX: usize = 100;

/// A finding without its file and object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) severity: Severity,
    pub(crate) path: FieldPath,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The findings in one object so far.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    root: &'a Node,
    remarks: Vec<Remark>,
    /// Every field that was read, for tests.
    #[cfg(test)]
    pub(crate) asked_for: Option<BTreeSet<String>>,
}

impl<'a> Report<'a> {
    /// Nothing found yet in the object at `root`.
    pub(crate) fn new(root: &'a Node) -> Self {
        Self {
            root,
            remarks: Vec::new(),
            #[cfg(test)]
            asked_for: None,
        }
    }

    /// The object.
    pub(crate) fn root(&self) -> &'a Node {
        self.root
    }

    /// Notes a fault of the field at `path`.
    pub(crate) fn fault(&mut self, path: &FieldPath, message: impl fmt::Display) {
        self.push(Severity::Fault, path, message);
    }

    /// Notes a fault on a known line.
    pub(crate) fn fault_at(&mut self, path: FieldPath, line: usize, message: String) {
        self.note(Remark { severity: Severity::Fault, path, line, message });
    }

    /// Notes a warning about the field at `path`.
    pub(crate) fn warning(&mut self, path: &FieldPath, message: impl fmt::Display) {
        self.push(Severity::Warning, path, message);
    }

    /// Notes that a required field is absent, unless it is absent only because its value is faulty.
    pub(crate) fn missing(&mut self, path: &FieldPath, expected: &str) {
        if !self.is_faulty(path) {
            self.fault(path, format_args!("is missing; expected {expected}"));
        }
    }

    /// Whether the field at `path`, or one that holds it, has a fault.
    pub(crate) fn is_faulty(&self, path: &FieldPath) -> bool {
        self.remarks
            .iter()
            .any(|remark| remark.severity == Severity::Fault && path.is_inside(&remark.path))
    }

    /// Whether the field at `path` has a value.
    pub(crate) fn is_given(&self, path: &FieldPath) -> bool {
        self.root.at(path).is_some_and(|node| !node.is_null())
    }

    /// Whether there is any fault.
    pub(crate) fn has_faults(&self) -> bool {
        self.remarks.iter().any(|remark| remark.severity == Severity::Fault)
    }

    /// Everything found, in the order of lines.
    pub(crate) fn into_remarks(mut self) -> Vec<Remark> {
        self.remarks.sort_by_key(|remark| remark.line);
        self.remarks
    }

    /// The required field at `path` with its position, if it is there.
    pub(crate) fn required<T>(
        &mut self,
        value: Option<T>,
        path: &FieldPath,
        expected: &str,
    ) -> Option<T> {
        if value.is_none() {
            self.missing(path, expected);
        }
        value
    }

    /// Reads the value at `path` and notes all its faults. `None` when it is absent, or when nothing of
    /// it can be read.
    pub(crate) fn read<T>(&mut self, path: &FieldPath) -> Option<T>
    where
        T: for<'de> Deserialize<'de>,
    {
        #[cfg(test)]
        if let Some(asked_for) = &mut self.asked_for {
            asked_for.extend(super::known_fields::of::<T>(&path.to_string()));
        }
        let node = self.root.at(path).filter(|node| !node.is_null())?;
        // Most objects are valid, and tracking paths costs time.
        if let Ok(value) = T::deserialize(node) {
            return Some(value);
        }
        let mut rest = node.clone();
        for _ in 0..FAULTS_MAX {
            let error = match serde_path_to_error::deserialize::<_, T>(&rest) {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            let inner = relative_path(error.path());
            self.read_fault(&path.join(&inner), error.into_inner());
            if !rest.remove(&inner) {
                return None;
            }
        }
        // This message was added with the first of them.
        self.fault(path, "has further faults");
        None
    }

    fn read_fault(&mut self, path: &FieldPath, error: ReadError) {
        match error {
            ReadError::Value(message) => self.fault(path, message),
            ReadError::UnknownField { name, known } => {
                self.unknown_field(path, &name, known, self.key_line(path));
            }
        }
    }

    /// Notes an unknown field, and the line of its key.
    pub(crate) fn unknown_field(
        &mut self,
        path: &FieldPath,
        name: &str,
        known: &[&str],
        line: usize,
    ) {
        let message = match suggest::nearest(name, known.iter().copied()) {
            Some(meant) => format!("is not a known field; did you mean {meant}?"),
            None if known.is_empty() => "is not a known field; remove it".to_owned(),
            None => format!("is not a known field; expected one of {}", known.join(", ")),
        };
        self.fault_at(path.clone(), line, message);
    }

    /// The line of the key itself, for a field of any value.
    fn key_line(&self, path: &FieldPath) -> usize {
        let Some((Segment::Key(key), parents)) = path.segments().split_last() else {
            return self.root.line_of(path);
        };
        let parent = self.root.at(&FieldPath::from_segments(parents.to_vec()));
        parent
            .and_then(|node| node.entries().iter().find(|entry| *entry.key == **key))
            .map_or_else(|| self.root.line_of(path), |entry| entry.line)
    }

    fn push(&mut self, severity: Severity, path: &FieldPath, message: impl fmt::Display) {
        self.note(Remark {
            severity,
            path: path.clone(),
            line: self.root.line_of(path),
            message: message.to_string(),
        });
    }

    /// The bound on findings: ten thousand are of no use, and each is checked against those after it.
    fn note(&mut self, remark: Remark) {
        let severity = remark.severity;
        let known = self.remarks.iter().filter(|it| it.severity == severity).count();
        match known.cmp(&FAULTS_MAX) {
            Ordering::Less => self.remarks.push(remark),
            Ordering::Equal => self.remarks.push(Remark {
                severity,
                path: FieldPath::default(),
                // Findings are sorted by line, and this one is the last.
                line: self.remarks.iter().fold(remark.line, |line, it| line.max(it.line)),
                message: match severity {
                    Severity::Fault => {
                        format!("has more than {FAULTS_MAX} faults; the rest is not shown")
                    }
                    Severity::Warning => {
                        format!("has more than {FAULTS_MAX} warnings; the rest is not shown")
                    }
                },
            }),
            Ordering::Greater => {}
        }
    }
}

/// The present elements of a list with their positions.
pub(crate) fn elements<T>(list: Option<List<T>>) -> impl Iterator<Item = (usize, T)> {
    list.into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(position, element)| element.map(|element| (position, element)))
}

fn relative_path(path: &serde_path_to_error::Path) -> FieldPath {
    let step = |segment: &serde_path_to_error::Segment| match segment {
        serde_path_to_error::Segment::Seq { index } => Some(Segment::Index(*index)),
        serde_path_to_error::Segment::Map { key } => Some(Segment::Key(key.clone())),
        _ => None,
    };
    FieldPath::from_segments(path.iter().map_while(step).collect())
}

/// The values of a list that may hold each value only once.
pub(crate) fn unique<T: Ord>(
    list: Option<List<T>>,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> BTreeSet<T> {
    let mut values = BTreeSet::new();
    for (position, value) in elements(list) {
        if !values.insert(value) {
            report.fault(&path.index(position), "is given twice; remove one");
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::super::yaml::node::Value;
    use super::*;

    #[test]
    fn an_object_has_no_more_findings_than_a_person_reads() {
        let root = Node { line: 1, value: Value::Removed };
        let mut report = Report::new(&root);
        for number in 0..3 * FAULTS_MAX {
            report.fault(&FieldPath::of("spec"), number);
            report.warning(&FieldPath::of("spec"), number);
        }
        let remarks = report.into_remarks();
        for (severity, last) in [(Severity::Fault, "faults"), (Severity::Warning, "warnings")] {
            let of_it: Vec<_> = remarks.iter().filter(|it| it.severity == severity).collect();
            assert_eq!(of_it.len(), FAULTS_MAX + 1);
            let rest = format!("has more than {FAULTS_MAX} {last}; the rest is not shown");
            assert_eq!(of_it.last().map(|it| &it.message), Some(&rest));
        }
    }
}
