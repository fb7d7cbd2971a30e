//! Which number stands for which path, on a session that is told several paths to a prefix
//! (RFC 7911 §2). Used by [`super::AdjRibOut`]; knows no attributes and no message.

use std::collections::BTreeMap;

use crate::types::{Nlri, PathId, PeerKey, Prefix};

/// A path as this node knows it, whatever it is told with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKey {
    /// The one that is originated here.
    Originated,
    /// The one that this neighbour gave this identifier.
    Learned(PeerKey, PathId),
}

/// The identifiers of one session. A path keeps its own until it is released.
#[derive(Debug, Default)]
pub(super) struct PathIds {
    assigned: BTreeMap<Prefix, Vec<(PathKey, PathId)>>,
}

impl PathIds {
    /// The identifier of `path` to `prefix`: the one it has, or the smallest that no other path to
    /// `prefix` has. Counted from 1, since some routers show 0 as none.
    pub(super) fn assign(&mut self, prefix: Prefix, path: PathKey) -> Nlri {
        let assigned = self.assigned.entry(prefix).or_default();
        let present = assigned.iter().find(|(key, _)| *key == path).map(|(_, path_id)| *path_id);
        let path_id = present.unwrap_or_else(|| {
            let is_free = |path_id: &PathId| assigned.iter().all(|(_, taken)| taken != path_id);
            let free = (1..u32::MAX).map(PathId::new).find(is_free).unwrap_or(PathId::MAX);
            assigned.push((path, free));
            free
        });
        Nlri { prefix, path_id }
    }

    /// The paths to `prefix` that have an identifier.
    pub(super) fn assigned(&self, prefix: Prefix) -> Vec<(PathKey, PathId)> {
        self.assigned.get(&prefix).cloned().unwrap_or_default()
    }

    /// `nlri` stands for no path any more: the next one may have its identifier.
    pub(super) fn release(&mut self, nlri: Nlri) {
        let Some(assigned) = self.assigned.get_mut(&nlri.prefix) else { return };
        assigned.retain(|(_, path_id)| *path_id != nlri.path_id);
        if assigned.is_empty() {
            self.assigned.remove(&nlri.prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(path_id: u32) -> PathKey {
        let peer = PeerKey::from(std::net::IpAddr::from([192, 0, 2, 1]));
        PathKey::Learned(peer, PathId::new(path_id))
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
        assert_eq!(ids.assigned(one), []);
        assert_eq!(ids.assigned(other), [(learned(2), PathId::new(1))]);
        assert_eq!(ids.assigned.len(), 1);
    }
}
