//! Attributes as the key of a table.

use std::cmp::Ordering;
use std::sync::Arc;

/// Attributes that many routes share. Equal ones are nearly always the same allocation: a list of ten
/// thousand communities is not compared with itself for each of its routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shared<T>(pub(super) Arc<T>);

impl<T: Ord> Ord for Shared<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl<T: Ord> PartialOrd for Shared<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
