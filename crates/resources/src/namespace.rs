//! Namespace (v1): what pools may be restricted to.
//!
//! Answers which labels it has, all of which is metadata. Knows no other object.

use fairway_model::{Namespace, Object};

use super::metadata::Metadata;

/// Parses the object.
pub(crate) fn parse(metadata: Metadata) -> Object {
    Object::Namespace(Namespace::new(metadata.name.name.clone(), metadata.labels))
}
