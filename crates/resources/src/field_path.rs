//! The path of a field in an object: `spec.communities[2]`.
//!
//! Answers how a field is shown to users and whether one field lies inside another. Knows no
//! tree; the parsers of the kinds build paths, `report` turns them into lines.

use std::borrow::Cow;
use std::fmt;

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// Into a mapping.
    Key(String),
    /// Into a list, counted from 0.
    Index(usize),
}

/// The way from an object's root to one of its fields; empty for the object itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// A path of plain keys, as in `spec.peerPort`. Keys that contain dots need [`Self::key`].
    pub(crate) fn of(dotted: &str) -> Self {
        Self(dotted.split('.').map(|key| Segment::Key(key.to_owned())).collect())
    }

    /// A path from its steps.
    pub(crate) fn from_segments(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The field `key` of the mapping at this path.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.then(Segment::Key(key.to_owned()))
    }

    /// The element at `position` of the list at this path.
    pub(crate) fn index(&self, position: usize) -> Self {
        self.then(Segment::Index(position))
    }

    fn then(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// `inner`, which is relative to this path, from the root.
    pub(crate) fn join(&self, inner: &Self) -> Self {
        Self(self.0.iter().chain(&inner.0).cloned().collect())
    }

    /// The steps, outermost first.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether it names the object itself.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this field is `outer` or lies inside it.
    pub(crate) fn is_inside(&self, outer: &Self) -> bool {
        self.0.starts_with(&outer.0)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                // As kubectl writes keys that otherwise read as several fields.
                Segment::Key(key) if key.contains(['.', '/']) => write!(f, "[{}]", name_in(key))?,
                Segment::Key(key) if position == 0 => f.write_str(&name_in(key))?,
                Segment::Key(key) => write!(f, ".{}", name_in(key))?,
            }
        }
        Ok(())
    }
}

/// The part of a key that is a name. The rest may be a value, even a secret one, that a missing blank or quote made part of
/// the key.
fn name_in(key: &str) -> Cow<'_, str> {
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/');
    match key.find(|it| !is_of_name(it)).and_then(|end| key.get(..end)) {
        Some(name) => format!("{name}...").into(),
        None => key.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_name_is_not_shown() {
        let path = FieldPath::of("spec").key("password:\tsecret\n  password");
        assert_eq!(path.to_string(), "spec.password...");
    }

    #[test]
    fn paths_read_as_kubectl_writes_them() {
        let path = FieldPath::of("spec.communities").index(2).key("name");
        assert_eq!(path.to_string(), "spec.communities[2].name");
        let path = FieldPath::of("metadata.annotations").key("metallb.io/address-pool");
        assert_eq!(path.to_string(), "metadata.annotations[metallb.io/address-pool]");
        assert!(path.is_inside(&FieldPath::of("metadata")));
        assert!(!FieldPath::of("metadata").is_inside(&path));
    }
}
