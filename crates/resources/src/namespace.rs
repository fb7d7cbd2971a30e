//! Namespace (v1): what pools may be kept for.
//!
//! Answers how it is labelled; all of that is metadata. Knows no other object.

use fairway_model::{Namespace, Object};

use super::metadata::Metadata;

/// Reads the object.
pub(crate) fn parse(metadata: Metadata) -> Object {
    Object::Namespace(Namespace::new(metadata.name.name, metadata.labels))
}
