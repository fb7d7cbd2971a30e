//! FRR has one configuration, so at most one object may extend it.
//!
//! Knows no files.

use std::sync::Arc;

use fairway_model::ObjectKey;

use super::settle::{Problem, Rule};
use super::version::Version;
use crate::field_path::FieldPath;

/// The ConfigMap `bgpextras` in force.
#[derive(Default)]
pub(super) struct Extras(Option<Arc<ObjectKey>>);

impl Rule for Extras {
    fn problems(&self, version: &Version) -> Vec<Problem> {
        let problem = |other: &ObjectKey| {
            let path = || FieldPath::of("metadata.namespace");
            let message = |other: &ObjectKey| {
                format!(
                    "there is another {other} in namespace {}, and FRR has one configuration; \
                     expected one in all namespaces",
                    other.name.namespace
                )
            };
            let problem = Problem::new(path(), message(other));
            problem.because(other, path(), message(&version.key))
        };
        self.0.iter().map(|other| problem(other)).collect()
    }

    fn admit(&mut self, version: &Arc<Version>) {
        self.0 = Some(Arc::clone(&version.key));
    }
}
