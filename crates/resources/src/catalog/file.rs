//! One parsed file: its objects and the findings of each on its own. An object of an API server is
//! treated as a file, too.
//!
//! Knows no other file and no rule between objects.

use std::sync::Arc;

use fairway_model::{Kind, ObjectKey};
use serde_json::Value as Json;

use super::objects::changed_at;
use super::version::Version;
use crate::backend::BackendKind;
use crate::finding::{Finding, Severity};
use crate::object::{self, Outcome, Reading};
use crate::value;
use crate::yaml::node::Node;
use crate::yaml::{self, write};

/// The annotation in which kubectl repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a file holds.
#[derive(Debug, Clone, Default)]
pub(super) struct FileState {
    /// Its objects, in the order of their keys; several of one key in the order written.
    pub(super) entries: Vec<Entry>,
    /// Findings that need no other object.
    pub(super) findings: Vec<Finding>,
    /// Documents of kinds that Fairway ignores.
    pub(super) skipped: usize,
    /// The kinds of documents that are so broken that they have no name; `None` when not even the kind
    /// can be read. Any object of such a kind may be among them.
    nameless: Vec<Option<Kind>>,
}

/// One object of a file.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Arc<ObjectKey>,
    /// The first line of its document.
    pub(super) line: usize,
    /// `None` when it has a fault.
    pub(super) version: Option<Arc<Version>>,
}

impl FileState {
    /// Parses `text`, the content of `file`.
    pub(super) fn parse(file: &Arc<str>, text: &str, backend: BackendKind) -> Self {
        let mut state = Self::default();
        for document in yaml::documents(text) {
            object::read(&document, backend, &mut |root, reading| {
                state.add(file, root, None, reading);
            });
        }
        // Once for each reading, and not whenever another file changes.
        state.entries.sort_by(|a, b| a.key.cmp(&b.key));
        state
    }

    /// The object of an API server under the name `file`.
    pub(super) fn of_object(file: &Arc<str>, value: &Json, backend: BackendKind) -> Self {
        let mut state = Self::default();
        let reading = object::read_object(&value::node(value), &[], 0, backend);
        state.add(file, None, changed_at(value), reading);
        state
    }

    /// Takes unchanged objects from `before`, so that they are not compared again; returns whether
    /// all are unchanged.
    pub(super) fn take_over(&mut self, before: &Self) -> bool {
        let mut is_same = self.entries.len() == before.entries.len()
            && self.findings == before.findings
            && self.nameless == before.nameless;
        for (entry, old) in self.entries.iter_mut().zip(&before.entries) {
            let same = match (&entry.version, &old.version) {
                (Some(new), Some(old)) if new.object == old.object => Some(old),
                (None, None) => continue,
                _ => None,
            };
            is_same &= same.is_some();
            if let (Some(old), Some(new)) = (same, entry.version.as_mut().and_then(Arc::get_mut)) {
                new.object = Arc::clone(&old.object);
            }
        }
        is_same
    }

    /// A file that held objects and is empty now. All of them may still be intended to be in it.
    pub(super) fn emptied(file: &str) -> Self {
        let message = "is empty; if that is intended, delete the file or leave a comment in it";
        Self {
            findings: vec![finding_of_file(Severity::Fault, file, message)],
            nameless: vec![None],
            ..Self::default()
        }
    }

    /// An entry that is not a file, for the reason given.
    pub(super) fn ignored(file: &str, why: &str) -> Self {
        Self { findings: vec![finding_of_file(Severity::Warning, file, why)], ..Self::default() }
    }

    /// Its definitions of this object, in the order written.
    pub(super) fn definitions(&self, key: &ObjectKey) -> &[Entry] {
        let first = self.entries.partition_point(|entry| *entry.key < *key);
        let end = self.entries.partition_point(|entry| *entry.key <= *key);
        self.entries.get(first..end).unwrap_or_default()
    }

    /// Whether an object of `kind` that is missing from the file may be one of its broken documents.
    pub(super) fn may_hide(&self, kind: Kind) -> bool {
        self.nameless.iter().any(|nameless| nameless.is_none_or(|nameless| nameless == kind))
    }

    fn add(
        &mut self,
        file: &Arc<str>,
        root: Option<&Node>,
        changed_at: Option<&str>,
        reading: Reading,
    ) {
        let Reading { line, object, remarks, outcome } = reading;
        self.findings.extend(remarks.into_iter().map(|remark| Finding {
            severity: remark.severity,
            file: file.to_string(),
            line: Some(remark.line),
            object: object.clone(),
            field: (!remark.path.is_empty()).then(|| remark.path.to_string()),
            message: remark.message,
        }));
        match outcome {
            Outcome::Nothing => {}
            Outcome::Skipped => self.skipped += 1,
            Outcome::Broken { key: None, kind } => self.nameless.push(kind),
            Outcome::Broken { key: Some(key), .. } => {
                self.entries.push(Entry { key: key.into(), line, version: None });
            }
            Outcome::Object(object, lines) => {
                let key = Arc::new(object.key());
                let source = root.map(|root| source(root, key.kind)).unwrap_or_default();
                let version = Version {
                    key: Arc::clone(&key),
                    object: object.into(),
                    file: Arc::clone(file),
                    line,
                    lines,
                    source: source.into(),
                    changed_at: changed_at.map(Into::into),
                };
                self.entries.push(Entry { key, line, version: Some(Arc::new(version)) });
            }
        }
    }
}

/// A finding about a file as a whole.
pub(super) fn finding_of_file(severity: Severity, file: &str, message: &str) -> Finding {
    Finding {
        severity,
        file: file.to_owned(),
        line: None,
        object: None,
        field: None,
        message: message.to_owned(),
    }
}

/// The document on one line, without fields that only the API server uses.
fn source(root: &Node, kind: Kind) -> String {
    write::flow(root, &|depth, key| match depth {
        0 => key == "status" && kind != Kind::Node,
        1 => key == "managedFields",
        2 => key == LAST_APPLIED,
        _ => false,
    })
}
