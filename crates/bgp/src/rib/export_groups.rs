//! Which peers are sent the same UPDATEs? Those whose export policies differ in nothing but the peer and the address of our
//! end. What one of them was encoded is kept for the others, as long as the table stays as it is.
//!
//! Knows no session. Owned by the speaker; asked by the Established state of a peer that has been told all before.

use std::sync::Arc;

use super::export::Exporter;
use super::group_updates::{Changed, GroupUpdates};
use super::loc_rib::{Changes, LocRib};
use super::prefix_table::PrefixId;
use super::routes::Routes;

/// As much is kept, in octets, beside what was encoded last: peers that begin at the same time go through the table at
/// different speeds.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// As many entries are kept: each is compared with the policy of a peer.
const KEPT_MAX: usize = 64;

/// What is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The last changes.
    Changes,
    /// Routes from this number on, for peers that were told none of them.
    RoutesFrom(PrefixId),
}

#[derive(Debug)]
struct Kept {
    group: Exporter,
    of: Of,
    /// `None` if each peer of the group must look itself.
    updates: Option<Arc<GroupUpdates>>,
    /// Prefixes from this number on are not in it.
    end: PrefixId,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ExportGroups {
    kept: Vec<Kept>,
    kept_bytes: usize,
    /// The version of the table that they follow from.
    version: u64,
}

impl ExportGroups {
    /// What a peer with the policy `exporter` is sent for `changes`, the last that were taken from `rib`.
    pub fn changes(
        &mut self,
        exporter: &Exporter,
        rib: &LocRib,
        changes: &Changes,
    ) -> Option<Arc<GroupUpdates>> {
        let encode = |group: &mut Exporter| {
            let concerning = changes.list.iter().enumerate().filter(|(_, it)| it.concerns_all);
            let changed = concerning.filter_map(|(place, change)| {
                let (prefix, now) = rib.known_routes(change.id)?;
                Some(Changed { place, prefix, before: &change.before, now })
            });
            (GroupUpdates::encode(group, changed), rib.end())
        };
        self.find_or_encode(exporter, rib, Of::Changes, encode).map(|(updates, _)| updates)
    }

    /// What such a peer is sent that was told nothing of the prefixes from `first` on: of as many prefixes as have `limit`
    /// routes for it, and the number of the first that is not among them.
    pub fn routes_from(
        &mut self,
        exporter: &Exporter,
        rib: &LocRib,
        first: PrefixId,
        limit: usize,
    ) -> Option<(Arc<GroupUpdates>, PrefixId)> {
        const NOTHING: &Routes = &Routes::None;
        let encode = |group: &mut Exporter| {
            let mut end = rib.end();
            let mut count = 0_usize;
            let mut known = rib.known_between(first, end);
            let changed = std::iter::from_fn(|| {
                let (id, prefix, now) = known.next()?;
                if count >= limit {
                    end = id;
                    return None;
                }
                count = count.saturating_add(usize::from(!now.is_none()));
                Some(Changed { place: 0, prefix, before: NOTHING, now })
            });
            let updates = GroupUpdates::encode(group, changed);
            (updates, end)
        };
        self.find_or_encode(exporter, rib, Of::RoutesFrom(first), encode)
    }

    fn find_or_encode(
        &mut self,
        exporter: &Exporter,
        rib: &LocRib,
        of: Of,
        encode: impl FnOnce(&mut Exporter) -> (Option<GroupUpdates>, PrefixId),
    ) -> Option<(Arc<GroupUpdates>, PrefixId)> {
        if !exporter.may_be_grouped() {
            return None;
        }
        if self.version != rib.version() {
            self.forget();
            self.version = rib.version();
        }
        let key = exporter.route_key();
        let is_it = |kept: &&Kept| {
            kept.of == of
                && kept.updates.as_ref().is_none_or(|it| it.is_for(key))
                && exporter.is_of_group(&kept.group)
        };
        if let Some(Kept { updates, end, .. }) = self.kept.iter().find(is_it) {
            return updates.clone().map(|updates| (updates, *end));
        }
        let mut group = exporter.of_group();
        let (updates, end) = encode(&mut group);
        let updates = updates.map(Arc::new);
        let length_bytes = |kept: &Kept| kept.updates.as_ref().map_or(0, |it| it.length_bytes());
        let kept = Kept { group, of, updates: updates.clone(), end };
        self.kept_bytes = self.kept_bytes.saturating_add(length_bytes(&kept));
        while self.kept_bytes > KEPT_BYTES_MAX || self.kept.len() >= KEPT_MAX {
            if self.kept.is_empty() {
                break;
            }
            let oldest = self.kept.remove(0);
            self.kept_bytes = self.kept_bytes.saturating_sub(length_bytes(&oldest));
        }
        self.kept.push(kept);
        updates.map(|updates| (updates, end))
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Forgets what was encoded.
    pub fn forget(&mut self) {
        self.kept = Vec::new();
        self.kept_bytes = 0;
    }
}

#[cfg(test)]
mod tests;
