//! One version of an object, and where it was read.
//!
//! Knows no rule; the rules between objects query it.

use std::sync::Arc;

use fairway_model::{
    BfdProfile, BgpAdvertisement, CommunityAliases, Node, Object, ObjectKey, Peer, Pool, Secret,
};

use crate::field_lines::FieldLines;

/// The content of one document.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) key: Arc<ObjectKey>,
    pub(super) object: Arc<Object>,
    pub(super) file: Arc<str>,
    /// The first line of its document.
    pub(super) line: usize,
    pub(super) lines: FieldLines,
    /// Its document on one line, for [`super::Catalog::last_good`].
    pub(super) source: Box<str>,
    /// When its spec was changed last, if that is recorded.
    pub(super) changed_at: Option<Box<str>>,
}

macro_rules! views {
    ($($name:ident: $variant:ident -> $type:ty,)*) => {
        $(
            pub(super) fn $name(&self) -> Option<&$type> {
                match &*self.object {
                    Object::$variant(it) => Some(it),
                    _ => None,
                }
            }
        )*
    };
}

/// The object as one of its kind.
impl Version {
    views! {
        peer: Peer -> Peer,
        profile: BfdProfile -> BfdProfile,
        pool: Pool -> Pool,
        advertisement: BgpAdvertisement -> BgpAdvertisement,
        community: Community -> CommunityAliases,
        node: Node -> Node,
        secret: Secret -> Secret,
    }

    /// The same place with other content.
    pub(super) fn with(&self, object: Object) -> Self {
        Self {
            key: Arc::clone(&self.key),
            object: Arc::new(object),
            file: Arc::clone(&self.file),
            line: self.line,
            lines: self.lines.clone(),
            source: self.source.clone(),
            changed_at: self.changed_at.clone(),
        }
    }
}
