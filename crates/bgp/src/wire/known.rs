//! Which attributes did these bytes mean the last time? A neighbour says the same ones over and over: a table of half a
//! million routes has some ten thousand sets of them. What is known needs neither to be parsed nor compared again.
//!
//! Holds the sets of one session, by the bytes of the whole list, as long as they are used. Knows no route. Used by
//! [`super::Update`].

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::context::UpdateContext;
use fairway_seam::PathAttributes;

/// Room for some hundred sets in each half: enough for the tables of most neighbours, and half a megabyte for one that
/// says something else each time.
const HALF_BYTES_MAX: usize = 256 * 1024;
/// Longer lists are rare, and long ones are parsed in less time for each byte.
const LIST_LENGTH_BYTES_MAX: usize = 512;

/// See the module.
#[derive(Default)]
pub struct KnownAttributes {
    /// The session that the bytes belong to: it decides what they mean.
    context: Option<UpdateContext>,
    hasher: RandomState,
    /// Those that were used since the halves changed places; the others are forgotten at the next time.
    recent: Half,
    older: Half,
}

#[derive(Default)]
struct Half {
    sets: HashTable<Known>,
    bytes: usize,
}

struct Known {
    list: Box<[u8]>,
    attributes: Arc<PathAttributes>,
}

impl std::fmt::Debug for KnownAttributes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} and {} sets", self.recent.sets.len(), self.older.sets.len())
    }
}

impl KnownAttributes {
    /// What `list` means in this session, if that is known.
    pub(super) fn get(
        &mut self,
        list: &[u8],
        context: UpdateContext,
    ) -> Option<Arc<PathAttributes>> {
        if self.context != Some(context) {
            *self = Self { context: Some(context), ..Self::default() };
        }
        let hash = self.hasher.hash_one(list);
        let is_it = |known: &Known| *known.list == *list;
        if let Some(known) = self.recent.sets.find(hash, is_it) {
            return Some(Arc::clone(&known.attributes));
        }
        let (known, _) = self.older.sets.find_entry(hash, is_it).ok()?.remove();
        let attributes = Arc::clone(&known.attributes);
        self.keep(known);
        Some(attributes)
    }

    /// What all of it takes in memory.
    pub fn bytes(&self) -> usize {
        self.recent.bytes.saturating_add(self.older.bytes)
    }

    /// What `list` means in the session that was asked for last.
    pub(super) fn insert(&mut self, list: &[u8], attributes: &Arc<PathAttributes>) {
        if list.len() <= LIST_LENGTH_BYTES_MAX {
            self.keep(Known { list: list.into(), attributes: Arc::clone(attributes) });
        }
    }

    fn keep(&mut self, known: Known) {
        let values = usize::try_from(known.attributes.size_bytes()).unwrap_or(usize::MAX);
        let bytes = known.list.len().saturating_add(values);
        if self.recent.bytes.saturating_add(bytes) > HALF_BYTES_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.bytes = self.recent.bytes.saturating_add(bytes);
        let hasher = &self.hasher;
        let hash = |known: &Known| hasher.hash_one(&*known.list);
        self.recent.sets.insert_unique(hash(&known), known, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::{AsPath, NextHop, PeerKind};

    const CONTEXT: UpdateContext = UpdateContext::new(PeerKind::External);

    fn list(number: u32) -> Vec<u8> {
        [&[7; 40][..], &number.to_be_bytes()].concat()
    }

    fn attributes(number: u32) -> Arc<PathAttributes> {
        let next_hop = NextHop::Ipv4([192, 0, 2, 1].into());
        Arc::new(PathAttributes::originated(AsPath::sequence(vec![number]), next_hop))
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let mut known = KnownAttributes::default();
        assert_eq!(known.get(&list(0), CONTEXT), None);
        known.insert(&list(0), &attributes(0));
        for number in 1..20_000 {
            known.insert(&list(number), &attributes(number));
            assert_eq!(known.get(&list(number), CONTEXT), Some(attributes(number)));
            assert_eq!(known.get(&list(0), CONTEXT), Some(attributes(0)), "{number}");
            assert!(known.recent.bytes.max(known.older.bytes) <= HALF_BYTES_MAX);
        }
        assert_eq!(known.get(&list(1), CONTEXT), None);
        assert!(known.recent.sets.len() + known.older.sets.len() < 3_000, "{known:?}");
    }

    #[test]
    fn another_session_means_something_else() {
        let mut known = KnownAttributes::default();
        known.get(&list(0), CONTEXT);
        known.insert(&list(0), &attributes(0));
        let narrow = UpdateContext { four_octet_as: false, ..CONTEXT };
        assert_eq!(known.get(&list(0), narrow), None);
        assert_eq!(known.get(&list(0), CONTEXT), None, "and the first one is forgotten");
    }

    #[test]
    fn long_lists_are_not_kept() {
        let mut known = KnownAttributes::default();
        let long = vec![0; LIST_LENGTH_BYTES_MAX + 1];
        known.get(&long, CONTEXT);
        known.insert(&long, &attributes(0));
        assert_eq!(known.get(&long, CONTEXT), None);
    }
}
