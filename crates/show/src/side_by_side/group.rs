//! Rows that several nodes have alike.

use std::collections::BTreeMap;

/// Names that a cell shows; of more, it shows the number.
const NAMES_MAX: usize = 3;

/// Names of nodes, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Nodes<'a>(Vec<&'a str>);

impl<'a> Nodes<'a> {
    pub(super) fn of(node: &'a str) -> Self {
        Self(vec![node])
    }

    /// Nodes are added in their order, one perhaps several times.
    pub(super) fn add(&mut self, node: &'a str) {
        if self.0.last() != Some(&node) {
            self.0.push(node);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them.
    pub(super) fn all(&self) -> String {
        self.0.join(",")
    }

    /// A cell: all of them if it is to be wide, or if they are few.
    pub(super) fn cell(&self, is_wide: bool) -> String {
        if is_wide || self.0.len() <= NAMES_MAX {
            return self.all();
        }
        format!("{} nodes", self.0.len())
    }
}

/// Rows, each with the nodes that have it.
#[derive(Debug)]
pub(super) struct Groups<'a, Row>(BTreeMap<Row, Nodes<'a>>);

impl<'a, Row: Ord> Groups<'a, Row> {
    pub(super) fn of(rows: impl Iterator<Item = (&'a str, Row)>) -> Self {
        let mut groups: BTreeMap<Row, Nodes<'a>> = BTreeMap::new();
        for (node, row) in rows {
            groups.entry(row).or_default().add(node);
        }
        Self(groups)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&Row, &Nodes<'a>)> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
