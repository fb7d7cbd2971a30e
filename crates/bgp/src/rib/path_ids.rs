//! Which identifier does each path have, on a session with several paths to a prefix (RFC 7911 §2)? Used by
//! [`super::AdjRibOut`]; knows no attributes and no message.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{Nlri, PathId, Prefix};
use fairway_seam::PathSource;

/// A path, independent of its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKey {
    /// Originated here.
    Originated,
    /// Received in this session with this identifier.
    Learned(Arc<PathSource>, PathId),
}

/// The identifiers of one session. A path keeps its own until it is released.
#[derive(Debug, Default)]
pub(super) struct PathIds {
    assigned: BTreeMap<Nlri, PathKey>,
}

impl PathIds {
    /// The identifier of `path` to `prefix`: the one it has, or the smallest that no other path to `prefix`
    /// has. Starts at 1, since some routers show 0 as none.
    pub(super) fn assign(&mut self, prefix: Prefix, path: PathKey) -> Nlri {
        let mut free = 1;
        for (nlri, key) in self.of(prefix) {
            if *key == path {
                return *nlri;
            }
            if nlri.path_id.get() == free {
                free = free.saturating_add(1);
            }
        }
        let nlri = Nlri { prefix, path_id: PathId::new(free) };
        self.assigned.insert(nlri, path);
        nlri
    }

    /// The paths to `prefix` that have an identifier, in the order of identifiers.
    pub(super) fn of(&self, prefix: Prefix) -> impl Iterator<Item = (&Nlri, &PathKey)> {
        let nlri = |path_id| Nlri { prefix, path_id };
        self.assigned.range(nlri(PathId::NONE)..=nlri(PathId::MAX))
    }

    /// Releases `nlri`: the next path may get its identifier.
    pub(super) fn release(&mut self, nlri: Nlri) {
        self.assigned.remove(&nlri);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::{Asn, PeerKey, PeerKind, RouterId};

    fn learned(path_id: u32) -> PathKey {
        let address = std::net::IpAddr::from([192, 0, 2, 1]);
        let source = PathSource {
            key: PeerKey::from(address),
            address,
            kind: PeerKind::External,
            remote_asn: Asn::new(7).unwrap(),
            router_id: RouterId::new(1).unwrap(),
        };
        PathKey::Learned(Arc::new(source), PathId::new(path_id))
    }

    #[test]
    fn a_path_keeps_its_number_and_the_smallest_free_one_is_next() {
        let mut ids = PathIds::default();
        let prefix = "10.0.0.0/8".parse().unwrap();
        let mut number = |path| ids.assign(prefix, path).path_id.get();
        assert_eq!(
            [number(PathKey::Originated), number(learned(7)), number(learned(0))],
            [1, 2, 3]
        );
        assert_eq!([number(learned(7)), number(PathKey::Originated)], [2, 1]);
        ids.release(Nlri { prefix, path_id: PathId::new(2) });
        let mut number = |path| ids.assign(prefix, path).path_id.get();
        assert_eq!([number(learned(8)), number(learned(7)), number(learned(0))], [2, 4, 3]);
    }

    #[test]
    fn prefixes_number_their_paths_by_themselves_and_leave_nothing_behind() {
        let mut ids = PathIds::default();
        let (one, other) = ("10.0.0.0/8".parse().unwrap(), "11.0.0.0/8".parse().unwrap());
        let first = ids.assign(one, learned(1));
        assert_eq!(first.path_id, ids.assign(other, learned(2)).path_id);
        ids.release(first);
        assert_eq!(ids.of(one).count(), 0);
        let left = Nlri { prefix: other, path_id: PathId::new(1) };
        assert_eq!(ids.of(other).collect::<Vec<_>>(), [(&left, &learned(2))]);
        assert_eq!(ids.assigned.len(), 1);
    }
}
