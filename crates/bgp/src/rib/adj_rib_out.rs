//! The routes advertised to one peer, and the pending changes (RFC 4271 §3.2, Adj-RIB-Out).
//!
//! Messages are built when the socket has room, from what is pending at that time: the last change of a
//! prefix wins, withdrawals are sent first, announcements are grouped by attributes and packed into full
//! messages. A prefix that flaps while the socket is busy costs one message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::BytesMut;

use super::path_ids::{PathIds, PathKey};
use super::shared::Shared;
use crate::wire::announce::{self, AttributeBlock, TooLong};
use crate::wire::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, MESSAGE_LENGTH_BYTES_MAX, MessageType, RouteRefresh,
};
use fairway_ground::{AddressFamily, FamilySet, Nlri, PerFamily, Prefix};
use fairway_seam::PathAttributes;

/// The Adj-RIB-Out of one session, with the same lifetime.
#[derive(Debug)]
pub struct AdjRibOut {
    four_octet_as: bool,
    /// The longest message that the peer accepts.
    message_length_bytes_max: usize,
    /// Families in which the peer is sent several paths to a prefix.
    add_path: FamilySet,
    path_ids: PathIds,
    advertised: BTreeMap<Nlri, Arc<PathAttributes>>,
    counts: PerFamily<u32>,
    withdrawals: PerFamily<BTreeSet<Nlri>>,
    /// The group of each pending announcement.
    pending: BTreeMap<Nlri, GroupKey>,
    groups: BTreeMap<GroupKey, Group>,
    /// The last attributes that were too long: a thousand routes may share them.
    too_long: Option<Arc<PathAttributes>>,
    /// Routes that a refresh requested and that have not been sent or withdrawn since: they are sent even if
    /// the peer has them.
    owed: PerFamily<BTreeSet<Nlri>>,
    /// Families with a requested refresh that is not yet expanded into `owed`. A neighbour may send a
    /// thousand requests while the socket is busy: they cost a bit here, and one iteration over the table
    /// later.
    refresh: FamilySet,
    /// The peer supports the markers of RFC 7313.
    marks_refreshes: bool,
    /// Families with an answer that starts with a marker.
    begin: FamilySet,
    /// Families with an answer that ends with a marker.
    end: FamilySet,
    /// Families with a pending End-of-RIB marker.
    end_of_rib: FamilySet,
    /// End-of-RIB markers are held back: the initial routes are not complete yet.
    end_of_rib_held: bool,
    /// Families for which the End-of-RIB marker was sent.
    end_of_rib_sent: PerFamily<bool>,
}

type GroupKey = (AddressFamily, Shared);

#[derive(Debug)]
struct Group {
    block: AttributeBlock,
    prefixes: BTreeSet<Nlri>,
}

impl AdjRibOut {
    /// An empty table. An End-of-RIB marker is pending for each of `families` from the start; in the families
    /// of `add_path` the peer is sent several paths to a prefix.
    pub fn new(families: FamilySet, add_path: FamilySet, four_octet_as: bool) -> Self {
        Self {
            four_octet_as,
            message_length_bytes_max: MESSAGE_LENGTH_BYTES_MAX,
            add_path,
            path_ids: PathIds::default(),
            advertised: BTreeMap::new(),
            counts: PerFamily::default(),
            withdrawals: PerFamily::default(),
            pending: BTreeMap::new(),
            groups: BTreeMap::new(),
            too_long: None,
            owed: PerFamily::default(),
            refresh: FamilySet::EMPTY,
            marks_refreshes: false,
            begin: FamilySet::EMPTY,
            end: FamilySet::EMPTY,
            end_of_rib: families,
            end_of_rib_held: false,
            end_of_rib_sent: PerFamily::default(),
        }
    }

    /// The peer supports extended messages (RFC 8654).
    pub fn allow_extended_messages(&mut self) {
        self.message_length_bytes_max = EXTENDED_MESSAGE_LENGTH_BYTES_MAX;
    }

    /// Answers to refreshes start and end with markers (RFC 7313). Otherwise, they end with an End-of-RIB
    /// marker.
    pub fn mark_refreshes(&mut self) {
        self.marks_refreshes = true;
    }

    /// No End-of-RIB marker is sent before [`AdjRibOut::release_end_of_rib`].
    pub fn hold_end_of_rib(&mut self) {
        self.end_of_rib_held = true;
    }

    /// The initial routes are complete: the markers may be sent after them.
    pub fn release_end_of_rib(&mut self) {
        self.end_of_rib_held = false;
    }

    /// Families in which the peer is sent several paths to a prefix.
    pub fn add_path(&self) -> FamilySet {
        self.add_path
    }

    /// Advertises exactly `paths` for `prefix`, and only the first of them if the peer is sent no more. Paths
    /// that do not fit into a message are not advertised.
    pub fn tell(
        &mut self,
        prefix: Prefix,
        paths: Vec<(PathKey, Arc<PathAttributes>)>,
    ) -> Result<(), TooLong> {
        if !self.add_path.contains(prefix.family()) {
            return match paths.into_iter().next() {
                Some((_, attributes)) => self.set(prefix.into(), attributes),
                None => {
                    self.remove(prefix.into());
                    Ok(())
                }
            };
        }
        let is_wanted = |path: &PathKey| paths.iter().any(|(wanted, _)| wanted == path);
        let gone = self.path_ids.of(prefix).filter(|(_, path)| !is_wanted(path));
        let gone: Vec<Nlri> = gone.map(|(nlri, _)| *nlri).collect();
        gone.into_iter().for_each(|nlri| self.remove(nlri));
        let mut outcome = Ok(());
        for (path, attributes) in paths {
            let nlri = self.path_ids.assign(prefix, path);
            outcome = outcome.and(self.set(nlri, attributes));
        }
        outcome
    }

    /// Advertises `nlri` with `attributes`. Attributes that do not fit into a message withdraw the previous
    /// ones: a stuck session would be worse.
    fn set(&mut self, nlri: Nlri, attributes: Arc<PathAttributes>) -> Result<(), TooLong> {
        let family = nlri.prefix.family();
        self.cancel(nlri);
        if self.advertised.get(&nlri) == Some(&attributes) && !self.owed.of(family).contains(&nlri)
        {
            return Ok(());
        }
        let length_max = self.message_length_bytes_max;
        if self.too_long.as_ref().is_some_and(|it| Arc::ptr_eq(it, &attributes)) {
            self.remove(nlri);
            return Err(TooLong(length_max));
        }
        let key = (family, Shared(attributes));
        if !self.groups.contains_key(&key) {
            match AttributeBlock::encode_within(length_max, &key.1.0, self.four_octet_as) {
                Ok(block) => {
                    let group = Group { block, prefixes: BTreeSet::new() };
                    self.groups.insert(key.clone(), group);
                }
                Err(error) => {
                    self.too_long = Some(key.1.0);
                    self.remove(nlri);
                    return Err(error);
                }
            }
        }
        if let Some(group) = self.groups.get_mut(&key) {
            group.prefixes.insert(nlri);
            self.pending.insert(nlri, key);
        }
        Ok(())
    }

    /// Withdraws `nlri`. Until that is sent, no other path gets the identifier.
    fn remove(&mut self, nlri: Nlri) {
        self.cancel(nlri);
        if self.advertised.contains_key(&nlri) {
            self.withdrawals.of_mut(nlri.prefix.family()).insert(nlri);
        } else {
            self.path_ids.release(nlri);
        }
    }

    /// Sends all of `family` again (RFC 2918), followed by the marker. The initial routes and those of an
    /// earlier refresh are sent first.
    pub fn refresh(&mut self, family: AddressFamily) {
        self.refresh.insert(family);
    }

    /// Expands requested refreshes into the prefixes to send.
    fn expand_refreshes(&mut self) {
        for family in AddressFamily::ALL {
            if self.refresh.contains(family) && self.can_refresh(family) {
                self.refresh.remove(family);
                self.owe_all(family);
            }
        }
    }

    /// Whether the answer to a refresh can start.
    fn can_refresh(&self, family: AddressFamily) -> bool {
        // RFC 7313 §4: no marker before End-of-RIB.
        let is_busy =
            self.end.contains(family) || self.marks_refreshes && self.end_of_rib.contains(family);
        self.owed.of(family).is_empty() && !is_busy
    }

    /// The next family with an End-of-RIB marker to send.
    fn due_end_of_rib(&self) -> Option<AddressFamily> {
        self.end_of_rib.iter().next().filter(|_| !self.end_of_rib_held)
    }

    fn owe_all(&mut self, family: AddressFamily) {
        let of_family = |(nlri, _): &(&Nlri, _)| nlri.prefix.family() == family;
        let advertised = self.advertised.iter().filter(of_family);
        let again: Vec<_> =
            advertised.map(|(nlri, attributes)| (*nlri, Arc::clone(attributes))).collect();
        for (nlri, attributes) in again {
            // Pending changes and withdrawals are owed, too: the change may be reverted.
            self.owed.of_mut(family).insert(nlri);
            let waits = self.withdrawals.of(family).contains(&nlri);
            if !waits && !self.pending.contains_key(&nlri) {
                // It was encoded before, so it fits.
                let _ = self.set(nlri, attributes);
            }
        }
        if self.marks_refreshes {
            self.begin.insert(family);
            self.end.insert(family);
        } else {
            self.end_of_rib.insert(family);
        }
    }

    /// Cancels anything that is pending for `nlri`.
    fn cancel(&mut self, nlri: Nlri) {
        self.withdrawals.of_mut(nlri.prefix.family()).remove(&nlri);
        let Some(key) = self.pending.remove(&nlri) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&key) {
            group.prefixes.remove(&nlri);
            if group.prefixes.is_empty() {
                self.groups.remove(&key);
            }
        }
    }

    /// Whether the peer may have a route that it should not have: a withdrawal is pending, or the End-of-RIB
    /// marker, which removes routes of an earlier session.
    pub fn owes_withdrawals(&self) -> bool {
        !self.end_of_rib.is_empty()
            || AddressFamily::ALL.iter().any(|family| !self.withdrawals.of(*family).is_empty())
    }

    /// Whether there is anything to send.
    pub fn has_pending(&self) -> bool {
        self.due_end_of_rib().is_some()
            || !self.end.is_empty()
            || self.refresh.iter().any(|family| self.can_refresh(family))
            || !self.groups.is_empty()
            || AddressFamily::ALL.iter().any(|family| !self.withdrawals.of(*family).is_empty())
    }

    /// Appends the next message to `to`: the start marker of a refresh, withdrawals, announcements,
    /// End-of-RIB, the end marker of a refresh. Returns its type, if there was one.
    pub fn next_message(&mut self, to: &mut BytesMut) -> Option<MessageType> {
        if !self.refresh.is_empty() {
            self.expand_refreshes();
        }
        if let Some(family) = self.begin.iter().next() {
            self.begin.remove(family);
            to.extend_from_slice(&RouteRefresh::begin(family).encode());
            return Some(MessageType::RouteRefresh);
        }
        for family in AddressFamily::ALL {
            let withdrawals = self.withdrawals.of_mut(family);
            if !withdrawals.is_empty() {
                let path_ids = self.add_path.contains(family);
                for nlri in announce::withdrawal(family, path_ids, withdrawals, to) {
                    if self.advertised.remove(&nlri).is_some() {
                        let count = self.counts.of_mut(family);
                        *count = count.saturating_sub(1);
                    }
                    self.owed.of_mut(family).remove(&nlri);
                    self.path_ids.release(nlri);
                }
                return Some(MessageType::Update);
            }
        }
        if let Some(mut entry) = self.groups.first_entry() {
            let (family, Shared(attributes)) = entry.key().clone();
            let group = entry.get_mut();
            let (path_ids, prefixes) = (self.add_path.contains(family), &mut group.prefixes);
            let taken = announce::announcement(family, path_ids, &group.block, prefixes, to);
            if group.prefixes.is_empty() {
                entry.remove();
            }
            for nlri in taken {
                self.pending.remove(&nlri);
                self.owed.of_mut(family).remove(&nlri);
                if self.advertised.insert(nlri, Arc::clone(&attributes)).is_none() {
                    let count = self.counts.of_mut(family);
                    *count = count.saturating_add(1);
                }
            }
            return Some(MessageType::Update);
        }
        if let Some(family) = self.due_end_of_rib() {
            self.end_of_rib.remove(family);
            *self.end_of_rib_sent.of_mut(family) = true;
            announce::end_of_rib(family, to);
            return Some(MessageType::Update);
        }
        let family = self.end.iter().next()?;
        self.end.remove(family);
        to.extend_from_slice(&RouteRefresh::end(family).encode());
        Some(MessageType::RouteRefresh)
    }

    /// The advertised routes, in the order of prefixes.
    pub fn advertised(&self) -> &BTreeMap<Nlri, Arc<PathAttributes>> {
        &self.advertised
    }

    /// The number of advertised routes of each family. Several paths to one prefix are several.
    pub fn counts(&self) -> PerFamily<u32> {
        self.counts
    }

    /// The families for which the End-of-RIB marker was sent.
    pub fn end_of_rib_sent(&self) -> PerFamily<bool> {
        self.end_of_rib_sent
    }
}

#[cfg(test)]
mod tests;
