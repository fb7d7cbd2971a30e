//! Which peers are sent the same UPDATEs? Those whose export policies differ in nothing but the peer and the address of our
//! end. What was encoded for one of them is kept for the others, as long as the table stays as it is. A peer whose policy
//! no other has looks itself: what waits for it alone is packed better.
//!
//! Knows no session. Owned by the speaker; asked by the Established state of a peer that has been told all before.

use std::sync::Arc;

use super::export::Exporter;
use super::group_updates::{Changed, Counter, GroupUpdates};
use super::loc_rib::{Changes, LocRib};
use super::prefix_table::PrefixId;
use super::routes::Routes;
use fairway_ground::PeerKey;

/// Of the table, as much is kept, in octets, beside what was encoded last: peers that begin at the same time go through
/// it at different speeds. The last changes are kept until all peers have them.
const KEPT_BYTES_MAX: usize = if cfg!(test) { 2_000 } else { 4 << 20 };

/// As many entries are kept.
const KEPT_MAX: usize = 2 * GROUPS_MAX;

/// While more octets than this are kept or on their way, nothing more is encoded: each peer looks itself.
const ENCODED_BYTES_MAX: usize = if cfg!(test) { 6_000 } else { 128 << 20 };

/// There are as many groups: the policy of a peer is compared with each.
const GROUPS_MAX: usize = 64;

/// What is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The last changes.
    Changes,
    /// Routes from this number on, for peers that were told none of them.
    RoutesFrom(PrefixId),
}

/// Peers with the same policy.
#[derive(Debug)]
struct Group {
    policy: Exporter,
    /// The first that asked since the table changed.
    first: Option<PeerKey>,
    /// Others have asked since then.
    has_others: bool,
    /// Others had asked before the table changed.
    had_others: bool,
}

#[derive(Debug)]
struct Kept {
    /// Its place among the groups.
    group: usize,
    of: Of,
    /// `None` if each peer of the group must look itself.
    updates: Option<Arc<GroupUpdates>>,
    /// Prefixes from this number on are not in it.
    end: PrefixId,
}

impl Kept {
    /// How many octets it takes, if it is a part of the table.
    fn table_bytes(&self) -> usize {
        let updates = self.updates.as_ref().filter(|_| self.of != Of::Changes);
        updates.map_or(0, |it| it.length_bytes())
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct ExportGroups {
    groups: Vec<Group>,
    kept: Vec<Kept>,
    /// How many octets of the table are kept.
    kept_bytes: usize,
    /// Of all that was encoded and is on its way to some peer, or is kept.
    encoded: Counter,
    /// The version of the table that they follow from.
    version: u64,
}

impl ExportGroups {
    /// What a peer with the policy `exporter` is sent for `changes`, the last that were taken from `rib`. `None` if it
    /// must look itself.
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
        const NOTHING: &Routes = &Routes::NONE;
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
            self.follow(rib.version());
        }
        let group = self.joined(exporter)?;
        let key = exporter.route_key();
        let is_it = |kept: &&Kept| {
            kept.of == of
                && kept.group == group
                && kept.updates.as_ref().is_none_or(|it| it.is_for(key))
        };
        if let Some(Kept { updates, end, .. }) = self.kept.iter().find(is_it) {
            return updates.clone().map(|updates| (updates, *end));
        }
        if self.length_bytes() >= ENCODED_BYTES_MAX {
            return None;
        }
        let (updates, end) = encode(&mut exporter.of_group());
        let updates = updates.map(|updates| Arc::new(updates.counted(&self.encoded)));
        self.keep(Kept { group, of, updates: updates.clone(), end });
        updates.map(|updates| (updates, end))
    }

    /// Keeps it, in place of the oldest parts of the table where there is too much.
    fn keep(&mut self, kept: Kept) {
        let bytes = kept.table_bytes();
        let is_too_much = |before: usize| before.saturating_add(bytes) > KEPT_BYTES_MAX;
        while is_too_much(self.kept_bytes) || self.kept.len() >= KEPT_MAX {
            let Some(oldest) = self.kept.iter().position(|it| it.of != Of::Changes) else { break };
            let oldest = self.kept.remove(oldest);
            self.kept_bytes = self.kept_bytes.saturating_sub(oldest.table_bytes());
        }
        if self.kept.len() < KEPT_MAX {
            self.kept_bytes = self.kept_bytes.saturating_add(bytes);
            self.kept.push(kept);
        }
    }

    /// The table has changed.
    fn follow(&mut self, version: u64) {
        self.forget();
        self.version = version;
        self.groups.retain_mut(|group| {
            group.had_others = std::mem::take(&mut group.has_others);
            group.first.take().is_some()
        });
    }

    /// The place of the peer's group, if it has others in it.
    fn joined(&mut self, exporter: &Exporter) -> Option<usize> {
        let key = exporter.key();
        let place = self.groups.iter().position(|it| exporter.is_of_group(&it.policy));
        let Some(group) = place.and_then(|place| self.groups.get_mut(place)) else {
            if self.groups.len() < GROUPS_MAX {
                let (policy, first) = (exporter.of_group(), Some(key));
                self.groups.push(Group { policy, first, has_others: false, had_others: false });
            }
            return None;
        };
        group.has_others |= *group.first.get_or_insert(key) != key;
        place.filter(|_| group.has_others || group.had_others)
    }

    /// How many octets are on their way to some peer, or are kept.
    pub fn length_bytes(&self) -> usize {
        self.encoded.count()
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
