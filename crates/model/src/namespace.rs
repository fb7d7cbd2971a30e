//! Namespaces, as far as pools are restricted to them.

use super::Labels;

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
}

impl Namespace {
    /// A namespace with these labels, and with its name as a label, which every API server adds.
    pub fn new(name: String, mut labels: Labels) -> Self {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        Self { name, labels }
    }
}
