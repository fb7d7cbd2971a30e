//! The lines of an object's fields, kept after its tree is dropped.
//!
//! Kept beside objects in which other objects may cause faults, so that such a finding still names
//! the field and its line. Knows no rules.

use std::collections::BTreeMap;

use super::field_path::FieldPath;
use super::yaml::node::{Node, Value};

/// The lines of an object's fields, and the text of those that are scalars.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldLines(BTreeMap<FieldPath, (usize, Box<str>)>);

impl FieldLines {
    /// Those of every field below `path`.
    pub(crate) fn below(root: &Node, path: &FieldPath) -> Self {
        let mut lines = BTreeMap::new();
        if let Some(node) = root.at(path) {
            collect(root.line_of(path), node, path, &mut lines);
        }
        Self(lines)
    }

    /// The line of the field at `path`, or of the innermost part of it that exists.
    pub(crate) fn line(&self, path: &FieldPath) -> Option<usize> {
        (1..=path.segments().len()).rev().find_map(|length| {
            let outer = path.segments().get(..length)?;
            self.0.get(&FieldPath::from_segments(outer.to_vec())).map(|(line, _)| *line)
        })
    }

    /// Whether there is a field at `path`.
    pub(crate) fn has(&self, path: &FieldPath) -> bool {
        self.0.contains_key(path)
    }

    /// The scalars inside the field at `path`, each with its text.
    pub(crate) fn scalars(&self, path: &FieldPath) -> impl Iterator<Item = (&FieldPath, &str)> {
        let inside = self.0.range(path..).take_while(move |(inner, _)| inner.is_inside(path));
        inside.map(|(inner, (_, scalar))| (inner, &**scalar))
    }

    /// The scalar with this text inside the field at `path`, or that field itself.
    pub(crate) fn find(&self, path: &FieldPath, text: &str) -> FieldPath {
        self.0
            .range(path.clone()..)
            .take_while(|(inner, _)| inner.is_inside(path))
            .find(|(_, (_, scalar))| **scalar == *text)
            .map_or_else(|| path.clone(), |(inner, _)| inner.clone())
    }
}

fn collect(
    line: usize,
    node: &Node,
    path: &FieldPath,
    lines: &mut BTreeMap<FieldPath, (usize, Box<str>)>,
) {
    let text = match &node.value {
        Value::Scalar(text, _) => text.clone(),
        _ => Box::default(),
    };
    lines.insert(path.clone(), (line, text));
    for entry in node.entries() {
        collect(entry.shown_line(), &entry.value, &path.key(&entry.key), lines);
    }
    for (position, element) in node.elements().iter().enumerate() {
        collect(element.line, element, &path.index(position), lines);
    }
}
