//! The tree of one YAML document: values, each with its line.
//!
//! Knows no kinds and no rules; `report` reads typed values from it, and removes faulty ones to find
//! the remaining faults.

use super::scalar::ScalarKind;
use crate::field_path::{FieldPath, Segment};

/// A value and the line it begins on, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// The text as written (quotes resolved) and its meaning.
    Scalar(Box<str>, ScalarKind),
    Sequence(Vec<Node>),
    /// In the order written; no key twice.
    Mapping(Vec<Entry>),
    /// A faulty list element that is read as absent, so that those after it keep their
    /// positions.
    Removed,
}

/// A field of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    /// The line of the key.
    pub(crate) line: usize,
    pub(crate) value: Node,
}

impl Node {
    /// Whether it is absent or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Scalar(_, ScalarKind::Null))
    }

    /// The fields, if it is a mapping.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The elements, if it is a list.
    pub(crate) fn elements(&self) -> &[Self] {
        match &self.value {
            Value::Sequence(elements) => elements,
            _ => &[],
        }
    }

    /// The field `key`, if it is a mapping that has one.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| *entry.key == *key).map(|entry| &entry.value)
    }

    /// The text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text, ScalarKind::Text | ScalarKind::SwitchWord) => Some(text),
            _ => None,
        }
    }

    /// The value at `path`.
    pub(crate) fn at(&self, path: &FieldPath) -> Option<&Self> {
        path.segments().iter().try_fold(self, |node, segment| match segment {
            Segment::Key(key) => node.get(key),
            Segment::Index(index) => node.elements().get(*index),
        })
    }

    /// The line of `path`, or of the innermost part of it that exists. A field that holds a
    /// mapping or a list is on the line of its key.
    pub(crate) fn line_of(&self, path: &FieldPath) -> usize {
        let mut node = self;
        let mut line = self.line;
        for segment in path.segments() {
            let found = match segment {
                Segment::Key(key) => node
                    .entries()
                    .iter()
                    .find(|entry| *entry.key == **key)
                    .map(|entry| (entry.shown_line(), &entry.value)),
                Segment::Index(index) => {
                    node.elements().get(*index).map(|element| (element.line, element))
                }
            };
            let Some((found_line, found_node)) = found else { break };
            line = found_line;
            node = found_node;
        }
        line
    }

    /// Removes the field at `path`, or marks the list element there as removed. Returns whether
    /// there was one.
    pub(crate) fn remove(&mut self, path: &FieldPath) -> bool {
        let Some((last, parents)) = path.segments().split_last() else { return false };
        let mut node = self;
        for segment in parents {
            let inner = match (segment, &mut node.value) {
                (Segment::Key(key), Value::Mapping(entries)) => entries
                    .iter_mut()
                    .find(|entry| *entry.key == **key)
                    .map(|entry| &mut entry.value),
                (Segment::Index(index), Value::Sequence(elements)) => elements.get_mut(*index),
                _ => None,
            };
            let Some(inner) = inner else { return false };
            node = inner;
        }
        match (last, &mut node.value) {
            (Segment::Key(key), Value::Mapping(entries)) => {
                let before = entries.len();
                entries.retain(|entry| *entry.key != **key);
                entries.len() < before
            }
            (Segment::Index(index), Value::Sequence(elements)) => match elements.get_mut(*index) {
                Some(element) if element.value != Value::Removed => {
                    element.value = Value::Removed;
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
}

impl Entry {
    /// The line that findings about the field name: that of its value, or of its key when the value
    /// has many lines.
    pub(crate) fn shown_line(&self) -> usize {
        match self.value.value {
            Value::Scalar(_, kind) if kind != ScalarKind::Null => self.value.line,
            _ => self.line,
        }
    }
}
