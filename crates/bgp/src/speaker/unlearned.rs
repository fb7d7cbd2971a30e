//! Which changes of a neighbour's routes has the RIB not got yet? A session with a million routes that ends is a million
//! changes at once: they enter the RIB in parts, one each turn, so that no other neighbour waits for all of them. The order
//! stays. Knows no session. Kept by [`super::neighbour`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::vec;

use super::parts::PART_MAX;
use crate::rib::LocRib;
use fairway_seam::{PathSource, RouteChange};

/// What a neighbour announces behind that may wait, in changes of some 50 octets each; of more, the first ones enter the
/// RIB at once. The others belong to routes that had been accepted, of which there are no more than `maxPrefixes` permits.
const ANNOUNCED_MAX: usize = 16 * PART_MAX;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unlearned {
    lists: VecDeque<List>,
    /// Changes in lists that are not longer than one part.
    announced: usize,
}

#[derive(Debug)]
struct List {
    source: Arc<PathSource>,
    changes: vec::IntoIter<RouteChange>,
    is_long: bool,
}

impl Unlearned {
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// The routes of `source` have changed.
    pub(super) fn push(
        &mut self,
        source: Arc<PathSource>,
        changes: Vec<RouteChange>,
        rib: &mut LocRib,
    ) {
        let is_long = changes.len() > PART_MAX;
        if !is_long && self.lists.is_empty() {
            rib.learn(&source, changes);
            return;
        }
        if !is_long {
            self.announced = self.announced.saturating_add(changes.len());
        }
        self.lists.push_back(List { source, changes: changes.into_iter(), is_long });
        while self.announced > ANNOUNCED_MAX {
            self.learn_part(rib, PART_MAX);
        }
    }

    /// The first ones enter the RIB, as many as there is room for.
    pub(super) fn learn_part(&mut self, rib: &mut LocRib, mut room: usize) {
        while room > 0
            && let Some(List { source, changes, is_long }) = self.lists.front_mut()
        {
            let count = changes.len().min(room);
            rib.learn(source, changes.by_ref().take(count));
            room = room.saturating_sub(count);
            if !*is_long {
                self.announced = self.announced.saturating_sub(count);
            }
            if changes.len() == 0 {
                self.lists.pop_front();
            }
        }
    }

    /// All of them enter the RIB.
    pub(super) fn learn_all(&mut self, rib: &mut LocRib) {
        for List { source, changes, .. } in std::mem::take(self).lists {
            rib.learn(&source, changes);
        }
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::{AsPath, Asn, NextHop, PeerKey, PeerKind, Prefix, RouterId};
    use fairway_seam::PathAttributes;

    fn source() -> Arc<PathSource> {
        let address = [192, 0, 2, 1].into();
        Arc::new(PathSource {
            key: PeerKey::from(address),
            address,
            kind: PeerKind::External,
            remote_asn: Asn::new(65_002).unwrap(),
            router_id: RouterId::new(2).unwrap(),
            is_client: false,
        })
    }

    fn changes(numbers: std::ops::Range<usize>, is_announced: bool) -> Vec<RouteChange> {
        let next_hop = NextHop::Ipv4([192, 0, 2, 1].into());
        let attributes = PathAttributes::originated(AsPath::sequence(vec![65_002]), next_hop);
        let attributes = is_announced.then(|| Arc::new(attributes));
        let change = |number: usize| RouteChange {
            nlri: Prefix::from_ipv4_bits(u32::try_from(number << 8).unwrap(), 24).unwrap().into(),
            attributes: attributes.clone(),
        };
        numbers.map(change).collect()
    }

    #[test]
    fn what_is_said_behind_a_long_list_waits_for_it_and_a_short_one_alone_does_not() {
        let (mut rib, mut unlearned) = (LocRib::default(), Unlearned::default());
        unlearned.push(source(), changes(0..PART_MAX, true), &mut rib);
        assert!(unlearned.is_empty());
        rib.learn(&source(), changes(PART_MAX..4 * PART_MAX, true));
        // The session ends, and another one announces the last routes again.
        unlearned.push(source(), changes(0..4 * PART_MAX, false), &mut rib);
        unlearned.push(source(), changes(4 * PART_MAX - 3..4 * PART_MAX, true), &mut rib);
        for left in (0..4).rev() {
            unlearned.learn_part(&mut rib, PART_MAX);
            assert_eq!(rib.counts().ipv4, left * PART_MAX);
        }
        unlearned.learn_part(&mut rib, PART_MAX);
        assert_eq!((rib.counts().ipv4, unlearned.is_empty()), (3, true));
    }

    #[test]
    fn a_neighbour_that_announces_behind_it_without_end_has_no_more_than_its_share() {
        let (mut rib, mut unlearned) = (LocRib::default(), Unlearned::default());
        rib.learn(&source(), changes(0..9 * PART_MAX, true));
        unlearned.push(source(), changes(0..9 * PART_MAX, false), &mut rib);
        for number in 0..3 * ANNOUNCED_MAX {
            unlearned.push(source(), changes(number..number + 1, true), &mut rib);
            assert!(unlearned.announced <= ANNOUNCED_MAX);
        }
        unlearned.learn_all(&mut rib);
        assert_eq!(rib.counts().ipv4, 3 * ANNOUNCED_MAX);
    }
}
