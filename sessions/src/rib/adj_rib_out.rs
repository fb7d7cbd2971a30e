//! What one peer was told, and what it still has to be told (RFC 4271 §3.2, Adj-RIB-Out).
//!
//! Messages are built when the socket has room, from what is pending at that moment: the last
//! change of a prefix wins, withdrawals go first, announcements are grouped by attributes and
//! packed full. A prefix that flaps while the socket is busy costs one message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::BytesMut;

use super::shared::Shared;
use crate::types::{AddressFamily, FamilySet, PathAttributes, PerFamily, Prefix};
use crate::wire::announce::{self, AttributeBlock, TooLong};
use crate::wire::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, MESSAGE_LENGTH_BYTES_MAX, MessageType, RouteRefresh,
};

/// The Adj-RIB-Out of one session; it begins and ends with it.
#[derive(Debug)]
pub struct AdjRibOut {
    four_octet_as: bool,
    /// The longest message that the peer reads.
    message_length_bytes_max: usize,
    advertised: BTreeMap<Prefix, Arc<PathAttributes>>,
    counts: PerFamily<u32>,
    withdrawals: PerFamily<BTreeSet<Prefix>>,
    /// The group that holds each pending announcement.
    pending: BTreeMap<Prefix, GroupKey>,
    groups: BTreeMap<GroupKey, Group>,
    /// Attributes that were too long the last time: a thousand routes may share them.
    too_long: Option<Arc<PathAttributes>>,
    /// Prefixes that a refresh asked for and that have not gone out since: they are sent even if
    /// the peer has them.
    owed: PerFamily<BTreeSet<Prefix>>,
    /// Families that a refresh asked for and that are not yet owed. A neighbour may ask a thousand
    /// times while the socket is busy: it costs a bit here, and one walk over the table later.
    refresh: FamilySet,
    /// The peer knows the marks of RFC 7313.
    marks_refreshes: bool,
    /// Families whose answer is to begin with a mark.
    begin: FamilySet,
    /// Families whose answer is to end with a mark.
    end: FamilySet,
    /// Families whose End-of-RIB marker is still owed.
    end_of_rib: FamilySet,
    /// Families whose End-of-RIB marker was sent.
    end_of_rib_sent: PerFamily<bool>,
}

type GroupKey = (AddressFamily, Shared);

#[derive(Debug)]
struct Group {
    block: AttributeBlock,
    prefixes: BTreeSet<Prefix>,
}

impl AdjRibOut {
    /// An empty one. An End-of-RIB marker for each of `families` is owed from the start.
    pub fn new(families: FamilySet, four_octet_as: bool) -> Self {
        Self {
            four_octet_as,
            message_length_bytes_max: MESSAGE_LENGTH_BYTES_MAX,
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
            end_of_rib_sent: PerFamily::default(),
        }
    }

    /// The peer reads extended messages (RFC 8654).
    pub fn allow_extended_messages(&mut self) {
        self.message_length_bytes_max = EXTENDED_MESSAGE_LENGTH_BYTES_MAX;
    }

    /// The peer is told where what a refresh asked for begins and ends (RFC 7313). Without that the
    /// end is an End-of-RIB marker.
    pub fn mark_refreshes(&mut self) {
        self.marks_refreshes = true;
    }

    /// The peer should have `prefix` with `attributes`. Attributes that fit no message withdraw
    /// what it had: a stuck session would be worse.
    pub fn set(&mut self, prefix: Prefix, attributes: Arc<PathAttributes>) -> Result<(), TooLong> {
        let family = prefix.family();
        self.cancel(prefix);
        if self.advertised.get(&prefix) == Some(&attributes)
            && !self.owed.of(family).contains(&prefix)
        {
            return Ok(());
        }
        let length_max = self.message_length_bytes_max;
        if self.too_long.as_ref().is_some_and(|it| Arc::ptr_eq(it, &attributes)) {
            self.remove(prefix);
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
                    self.remove(prefix);
                    return Err(error);
                }
            }
        }
        if let Some(group) = self.groups.get_mut(&key) {
            group.prefixes.insert(prefix);
            self.pending.insert(prefix, key);
        }
        Ok(())
    }

    /// The peer should not have `prefix`.
    pub fn remove(&mut self, prefix: Prefix) {
        self.cancel(prefix);
        if self.advertised.contains_key(&prefix) {
            self.withdrawals.of_mut(prefix.family()).insert(prefix);
        }
    }

    /// All of `family` goes out again (RFC 2918), followed by the marker. What the session began with
    /// and what an earlier refresh still owes is sent first.
    pub fn refresh(&mut self, family: AddressFamily) {
        self.refresh.insert(family);
    }

    /// Turns the refreshes that were asked for into prefixes that are owed.
    fn expand_refreshes(&mut self) {
        for family in AddressFamily::ALL {
            // RFC 7313 §4: no mark comes before End-of-RIB.
            let is_busy = self.end.contains(family)
                || self.marks_refreshes && self.end_of_rib.contains(family);
            if self.refresh.contains(family) && self.owed.of(family).is_empty() && !is_busy {
                self.refresh.remove(family);
                self.owe_all(family);
            }
        }
    }

    fn owe_all(&mut self, family: AddressFamily) {
        let of_family = |prefix: &Prefix| prefix.family() == family;
        let again: Vec<_> = self
            .advertised
            .iter()
            .filter(|(prefix, _)| of_family(prefix))
            .filter(|(prefix, _)| !self.withdrawals.of(family).contains(prefix))
            .filter(|(prefix, _)| !self.pending.contains_key(prefix))
            .map(|(prefix, attributes)| (*prefix, Arc::clone(attributes)))
            .collect();
        for (prefix, attributes) in again {
            self.owed.of_mut(family).insert(prefix);
            // It was encoded before, so it fits.
            let _ = self.set(prefix, attributes);
        }
        if self.marks_refreshes {
            self.begin.insert(family);
            self.end.insert(family);
        } else {
            self.end_of_rib.insert(family);
        }
    }

    /// Takes back whatever was pending for `prefix`.
    fn cancel(&mut self, prefix: Prefix) {
        self.withdrawals.of_mut(prefix.family()).remove(&prefix);
        let Some(key) = self.pending.remove(&prefix) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&key) {
            group.prefixes.remove(&prefix);
            if group.prefixes.is_empty() {
                self.groups.remove(&key);
            }
        }
    }

    /// Whether there is anything to send.
    pub fn has_pending(&self) -> bool {
        !self.end_of_rib.is_empty()
            || !self.end.is_empty()
            || !self.refresh.is_empty()
            || !self.groups.is_empty()
            || AddressFamily::ALL.iter().any(|family| !self.withdrawals.of(*family).is_empty())
    }

    /// Appends the next message to `to`: the mark that a refresh begins, withdrawals, announcements,
    /// End-of-RIB, the mark that a refresh ends. Says what it was, if there was one.
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
                for prefix in announce::withdrawal(family, withdrawals, to) {
                    if self.advertised.remove(&prefix).is_some() {
                        let count = self.counts.of_mut(family);
                        *count = count.saturating_sub(1);
                    }
                    self.owed.of_mut(family).remove(&prefix);
                }
                return Some(MessageType::Update);
            }
        }
        if let Some(mut entry) = self.groups.first_entry() {
            let (family, Shared(attributes)) = entry.key().clone();
            let group = entry.get_mut();
            let taken = announce::announcement(family, &group.block, &mut group.prefixes, to);
            if group.prefixes.is_empty() {
                entry.remove();
            }
            for prefix in taken {
                self.pending.remove(&prefix);
                self.owed.of_mut(family).remove(&prefix);
                if self.advertised.insert(prefix, Arc::clone(&attributes)).is_none() {
                    let count = self.counts.of_mut(family);
                    *count = count.saturating_add(1);
                }
            }
            return Some(MessageType::Update);
        }
        if let Some(family) = self.end_of_rib.iter().next() {
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

    /// What the peer was told, in the order of prefixes.
    pub fn advertised(&self) -> &BTreeMap<Prefix, Arc<PathAttributes>> {
        &self.advertised
    }

    /// How many prefixes of each family the peer was told.
    pub fn counts(&self) -> PerFamily<u32> {
        self.counts
    }

    /// For which families the End-of-RIB marker was sent.
    pub fn end_of_rib_sent(&self) -> PerFamily<bool> {
        self.end_of_rib_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{AsPath, Community, NextHop, PeerKind};
    use crate::wire::{Framing, Update, UpdateContext};

    fn attributes(community: u32) -> Arc<PathAttributes> {
        let next_hop = NextHop::Ipv4("192.0.2.1".parse().unwrap());
        let mut attributes = PathAttributes::originated(AsPath::sequence(vec![65001]), next_hop);
        attributes.communities = vec![Community(community)];
        Arc::new(attributes)
    }

    fn prefix(number: u32) -> Prefix {
        Prefix::from_ipv4_bits(0x0A00_0000 + number, 32).unwrap()
    }

    fn table() -> AdjRibOut {
        let mut table = AdjRibOut::new(FamilySet::EMPTY, true);
        assert!(!table.has_pending());
        table.end_of_rib = FamilySet::EMPTY;
        table
    }

    /// Sends all that is pending and returns the messages as a receiver reads them.
    fn drain(table: &mut AdjRibOut) -> Vec<Update> {
        let mut bytes = BytesMut::new();
        while table.next_message(&mut bytes).is_some() {}
        assert!(!table.has_pending());
        let mut framing = Framing::default();
        framing.allow_extended_messages();
        framing.push(&bytes);
        let context = UpdateContext {
            kind: PeerKind::External,
            four_octet_as: true,
            families: FamilySet::BOTH,
            extended_next_hop: false,
        };
        std::iter::from_fn(|| framing.next_message().unwrap())
            .map(|message| Update::parse(&message.body, context).unwrap())
            .collect()
    }

    //= RFC 4271 §9.2.1.1 MUST: of several changes that wait the last one is sent.
    #[test]
    fn a_flapping_prefix_costs_one_message() {
        let mut table = table();
        for round in 0..100 {
            table.set(prefix(1), attributes(round)).unwrap();
            table.remove(prefix(1));
        }
        table.set(prefix(1), attributes(7)).unwrap();
        let updates = drain(&mut table);
        assert_eq!(updates.len(), 1);
        assert_eq!(updates[0].announced[0].attributes, *attributes(7));
    }

    //= RFC 4271 §9.2 SHOULD NOT: a route that the peer has is sent again.
    #[test]
    fn what_the_peer_already_has_is_not_sent_again() {
        let mut table = table();
        table.set(prefix(1), attributes(1)).unwrap();
        drain(&mut table);
        table.set(prefix(1), attributes(2)).unwrap();
        table.set(prefix(1), attributes(1)).unwrap();
        table.remove(prefix(2));
        assert_eq!(drain(&mut table), []);
    }

    #[test]
    fn withdrawals_go_first_and_groups_share_messages() {
        let mut table = table();
        for number in 0..10 {
            table.set(prefix(number), attributes(number % 2)).unwrap();
        }
        assert_eq!(drain(&mut table).len(), 2);
        table.set(prefix(100), attributes(1)).unwrap();
        table.remove(prefix(3));
        let updates = drain(&mut table);
        assert_eq!(updates[0].withdrawn, [prefix(3)]);
        assert_eq!(updates[1].announced[0].prefixes, [prefix(100)]);
    }

    #[test]
    fn the_marker_follows_the_routes() {
        let mut table = AdjRibOut::new(FamilySet::BOTH, true);
        table.set(prefix(1), attributes(1)).unwrap();
        let updates = drain(&mut table);
        let markers: Vec<_> = updates.iter().map(|update| update.end_of_rib).collect();
        assert_eq!(
            markers,
            [None, Some(AddressFamily::Ipv4Unicast), Some(AddressFamily::Ipv6Unicast)]
        );
    }

    //= RFC 2918 §4 MUST: a ROUTE-REFRESH is answered with the Adj-RIB-Out of its family.
    #[test]
    fn a_refresh_sends_everything_again_and_nothing_twice() {
        let mut table = table();
        for number in 0..3 {
            table.set(prefix(number), attributes(1)).unwrap();
        }
        drain(&mut table);
        table.remove(prefix(0));
        table.set(prefix(1), attributes(2)).unwrap();
        table.refresh(AddressFamily::Ipv4Unicast);
        let updates = drain(&mut table);
        assert_eq!(updates[0].withdrawn, [prefix(0)]);
        let announced: usize =
            updates.iter().flat_map(|it| &it.announced).map(|it| it.prefixes.len()).sum();
        assert_eq!(announced, 2);
        assert_eq!(table.advertised().len(), 2);
    }

    #[test]
    fn a_storm_of_refreshes_costs_one_table() {
        let mut table = table();
        for number in 0..3 {
            table.set(prefix(number), attributes(1)).unwrap();
        }
        drain(&mut table);
        for _ in 0..1_000 {
            table.refresh(AddressFamily::Ipv4Unicast);
        }
        assert_eq!(drain(&mut table).len(), 2); // one UPDATE and the marker
    }

    //= RFC 8654 §4 MUST NOT: a message of more than 4096 octets is sent to who did not offer to read it.
    //= RFC 8654 §4 MUST: a route that does not fit into 4096 octets is withdrawn from who reads no more.
    #[test]
    fn attributes_too_long_for_some_are_told_to_who_reads_long_messages() {
        let mut long = (*attributes(1)).clone();
        long.communities = (0..2000).map(Community).collect();
        let long = Arc::new(long);
        let [mut plain, mut extended] = [table(), table()];
        extended.allow_extended_messages();
        for table in [&mut plain, &mut extended] {
            table.set(prefix(1), attributes(1)).unwrap();
            drain(table);
        }
        let refused = plain.set(prefix(1), Arc::clone(&long)).unwrap_err();
        assert_eq!(refused.to_string(), "the attributes do not fit a message of 4096 bytes");
        assert_eq!(drain(&mut plain)[0].withdrawn, [prefix(1)]);
        extended.set(prefix(1), Arc::clone(&long)).unwrap();
        assert_eq!(drain(&mut extended)[0].announced[0].attributes, *long);
    }

    //= RFC 4271 §9.2 MUST NOT: a route that does not fit into a message is sent.
    #[test]
    fn attributes_that_fit_no_message_withdraw_the_route() {
        let mut table = table();
        table.set(prefix(1), attributes(1)).unwrap();
        drain(&mut table);
        let mut huge = (*attributes(1)).clone();
        huge.communities = (0..2000).map(Community).collect();
        assert!(table.set(prefix(1), Arc::new(huge)).is_err());
        assert_eq!(drain(&mut table)[0].withdrawn, [prefix(1)]);
    }

    /// Random changes and sends in any order: the receiver's table always ends as the last
    /// changes say.
    //= RFC 4271 §9.2 MUST: every route that is new and every route that is gone is told.
    #[test]
    fn the_receiver_ends_with_what_was_set_last() {
        for seed in 0..200 {
            let mut rng = crate::rng::Rng::seeded(seed);
            let mut draw = |bound: u64| u32::try_from(rng.next_u64() % bound).unwrap();
            let mut table = table();
            let mut wanted = BTreeMap::new();
            let mut bytes = BytesMut::new();
            for _ in 0..300 {
                let prefix = prefix(draw(20));
                match draw(4) {
                    0 => {
                        table.remove(prefix);
                        wanted.remove(&prefix);
                    }
                    1 => drop(table.next_message(&mut bytes)),
                    2 if draw(10) == 0 => table.refresh(AddressFamily::Ipv4Unicast),
                    _ => {
                        let attributes = attributes(draw(3));
                        table.set(prefix, Arc::clone(&attributes)).unwrap();
                        wanted.insert(prefix, attributes);
                    }
                }
            }
            while table.next_message(&mut bytes).is_some() {}
            let mut framing = Framing::default();
            framing.push(&bytes);
            let context = UpdateContext {
                kind: PeerKind::External,
                four_octet_as: true,
                families: FamilySet::BOTH,
                extended_next_hop: false,
            };
            let mut received = BTreeMap::new();
            while let Some(message) = framing.next_message().unwrap() {
                let update = Update::parse(&message.body, context).unwrap();
                for prefix in update.withdrawn {
                    assert!(
                        received.remove(&prefix).is_some(),
                        "seed {seed}: withdrawn for nothing"
                    );
                }
                for group in update.announced {
                    for prefix in group.prefixes {
                        received.insert(prefix, Arc::new(group.attributes.clone()));
                    }
                }
            }
            assert_eq!(received, wanted, "seed {seed}");
            assert_eq!(*table.advertised(), wanted, "seed {seed}");
        }
    }
}
