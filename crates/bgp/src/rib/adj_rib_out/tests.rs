use std::collections::BTreeMap;

use super::super::waiting::tests::expect_consistent;
use super::*;
use crate::wire::announce::AttributeBlock;
use crate::wire::update::Announced;
use crate::wire::{Framing, Update, UpdateContext};
use fairway_ground::{AsPath, Community, NextHop, PeerKind, Prefix};
use fairway_seam::PathAttributes;

fn attributes(community: u32) -> Arc<PathAttributes> {
    let next_hop = NextHop::Ipv4("192.0.2.1".parse().unwrap());
    let mut attributes = PathAttributes::originated(AsPath::sequence(vec![65001]), next_hop);
    attributes.communities = vec![Community(community)].into();
    Arc::new(attributes)
}

fn outgoing(attributes: Arc<PathAttributes>) -> Arc<Outgoing> {
    let block = AttributeBlock::encode(&attributes, true).unwrap();
    Arc::new(Outgoing { block, has_own_next_hop: true })
}

fn prefix(number: u32) -> Nlri {
    Prefix::from_ipv4_bits(0x0A00_0000 + number, 32).unwrap().into()
}

/// A table, and what its session wants the peer to have.
struct Table {
    out: AdjRibOut,
    rib: LocRib,
    wanted: BTreeMap<Nlri, Arc<Outgoing>>,
}

impl Table {
    fn want(&mut self, nlri: Nlri, wanted: Option<Arc<Outgoing>>) {
        let path = (self.rib.number(nlri.prefix).unwrap(), nlri.path_id);
        let before = self.wanted.get(&nlri).cloned();
        self.out.want(nlri.prefix.family(), path, before, wanted.as_ref());
        match wanted {
            Some(wanted) => drop(self.wanted.insert(nlri, wanted)),
            None => drop(self.wanted.remove(&nlri)),
        }
    }

    fn set(&mut self, nlri: Nlri, attributes: Arc<PathAttributes>) {
        self.want(nlri, Some(outgoing(attributes)));
    }

    fn remove(&mut self, nlri: Nlri) {
        self.want(nlri, None);
    }

    fn refresh(&mut self, family: AddressFamily) {
        self.out.refresh(family);
    }

    /// What the peer has been told.
    fn told(&mut self) -> BTreeMap<Nlri, Arc<Outgoing>> {
        let mut told = self.wanted.clone();
        let numbers = (0..100).map(prefix).chain((1..9).map(|id| path(id, 1)));
        for nlri in numbers.collect::<Vec<_>>() {
            let id = self.rib.number(nlri.prefix).unwrap();
            if let Some(before) = self.out.told(id, nlri.path_id) {
                told.remove(&nlri);
                told.extend(before.map(|it| (nlri, Arc::clone(it))));
            }
        }
        told
    }

    fn next_message(&mut self, to: &mut BytesMut) -> Option<MessageType> {
        while let Some(family) = self.out.due_refresh() {
            let told = self.told().into_iter();
            let told =
                told.map(|(nlri, it)| (self.rib.number(nlri.prefix).unwrap(), nlri.path_id, it));
            let told: Vec<_> = told.collect();
            self.out.begin_refresh(family, told);
        }
        self.out.next_message(&self.rib, to)
    }
}

fn table() -> Table {
    let mut out = AdjRibOut::new(FamilySet::EMPTY, FamilySet::EMPTY);
    assert!(!out.has_pending());
    out.end_of_rib = FamilySet::EMPTY;
    Table { out, rib: LocRib::default(), wanted: BTreeMap::new() }
}

/// Sends everything that is pending and returns the messages as a receiver decodes them.
fn drain(table: &mut Table) -> Vec<Update> {
    let mut bytes = BytesMut::new();
    while table.next_message(&mut bytes).is_some() {}
    assert!(!table.out.has_pending());
    let mut framing = Framing::default();
    framing.allow_extended_messages();
    framing.push(&bytes);
    let context = UpdateContext::new(PeerKind::External);
    std::iter::from_fn(|| framing.next_message().unwrap())
        .filter(|message| message.kind == MessageType::Update)
        .map(|message| Update::parse(&message.body, context).unwrap())
        .collect()
}

//= RFC 4271 §9.2.1.1 MUST: of several changes that wait the last one is sent.
#[test]
fn a_flapping_prefix_costs_one_message() {
    let mut table = table();
    for round in 0..100 {
        table.set(prefix(1), attributes(round));
        table.remove(prefix(1));
    }
    table.set(prefix(1), attributes(7));
    let updates = drain(&mut table);
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].announced[0].attributes, attributes(7));
}

//= RFC 4271 §9.2 SHOULD NOT: a route that the peer has is sent again.
#[test]
fn what_the_peer_already_has_is_not_sent_again() {
    let mut table = table();
    table.set(prefix(1), attributes(1));
    drain(&mut table);
    table.set(prefix(1), attributes(2));
    table.set(prefix(1), attributes(1));
    table.remove(prefix(2));
    assert_eq!(drain(&mut table), []);
}

#[test]
fn withdrawals_go_first_and_groups_share_messages() {
    let mut table = table();
    for number in 0..10 {
        table.set(prefix(number), attributes(number % 2));
    }
    assert_eq!(drain(&mut table).len(), 2);
    table.set(prefix(100), attributes(1));
    table.remove(prefix(3));
    let updates = drain(&mut table);
    assert_eq!(updates[0].withdrawn, [prefix(3)]);
    assert_eq!(updates[1].announced[0].prefixes, [prefix(100)]);
}

#[test]
fn the_marker_follows_the_routes() {
    let mut table = table();
    table.out.end_of_rib = FamilySet::BOTH;
    table.set(prefix(1), attributes(1));
    let updates = drain(&mut table);
    let markers: Vec<_> = updates.iter().map(|update| update.end_of_rib).collect();
    assert_eq!(markers, [None, Some(AddressFamily::Ipv4Unicast), Some(AddressFamily::Ipv6Unicast)]);
}

//= RFC 2918 §4 MUST: a ROUTE-REFRESH is answered with the Adj-RIB-Out of its family.
#[test]
fn a_refresh_sends_everything_again_and_nothing_twice() {
    let mut table = table();
    for number in 0..3 {
        table.set(prefix(number), attributes(1));
    }
    drain(&mut table);
    table.remove(prefix(0));
    table.set(prefix(1), attributes(2));
    table.refresh(AddressFamily::Ipv4Unicast);
    let updates = drain(&mut table);
    assert_eq!(updates[0].withdrawn, [prefix(0)]);
    let announced: usize =
        updates.iter().flat_map(|it| &it.announced).map(|it| it.prefixes.len()).sum();
    assert_eq!(announced, 2);
    assert_eq!(table.told().len(), 2);
}

#[test]
fn what_changes_and_changes_back_while_a_refresh_is_answered_is_said_all_the_same() {
    for marks in [false, true] {
        let mut table = table();
        if marks {
            table.out.mark_refreshes();
        }
        for number in 0..3 {
            table.set(prefix(number), attributes(1));
        }
        drain(&mut table);
        // Two are pending when the answer starts: one with other attributes, one to be withdrawn.
        table.set(prefix(1), attributes(2));
        table.remove(prefix(2));
        table.refresh(AddressFamily::Ipv4Unicast);
        let mut first = BytesMut::new();
        let begun = table.next_message(&mut first);
        assert_eq!(begun == Some(MessageType::RouteRefresh), marks);
        for number in [1, 2] {
            table.set(prefix(number), attributes(1));
        }
        let updates = drain(&mut table);
        let announced = updates.iter().flat_map(|it| &it.announced).flat_map(|it| &it.prefixes);
        assert_eq!(announced.copied().collect::<Vec<_>>(), [0, 1, 2].map(prefix), "{marks}");
        assert!(table.out.can_refresh(AddressFamily::Ipv4Unicast), "the next one can be answered");
    }
}

#[test]
fn a_storm_of_refreshes_costs_one_table() {
    let mut table = table();
    for number in 0..3 {
        table.set(prefix(number), attributes(1));
    }
    drain(&mut table);
    for _ in 0..1_000 {
        table.refresh(AddressFamily::Ipv4Unicast);
    }
    assert_eq!(drain(&mut table).len(), 2); // one UPDATE and the marker
}

/// So long that some two dozen prefixes fit beside it.
fn long_attributes(community: u32) -> Arc<PathAttributes> {
    let mut long = (*attributes(community)).clone();
    long.communities = (0..975).map(|it| Community(community * 10_000 + it)).collect();
    Arc::new(long)
}

/// Random changes and sends in any order: the receiver's table always ends up as the last changes require. The messages
/// hold few prefixes, so that most groups are sent in parts.
//= RFC 4271 §9.2 MUST: every route that is new and every route that is gone is told.
#[test]
fn the_receiver_ends_with_what_was_set_last() {
    for seed in 0..200 {
        let mut rng = fairway_ground::Rng::seeded(seed);
        let mut draw = |bound: u64| u32::try_from(rng.next_u64() % bound).unwrap();
        let mut table = table();
        let mut wanted = BTreeMap::new();
        let mut bytes = BytesMut::new();
        let places = [0, 1, 2].map(long_attributes);
        for step in 0..300 {
            let first = draw(60);
            match draw(6) {
                0 => {
                    table.remove(prefix(first));
                    wanted.remove(&prefix(first));
                }
                1 => drop(table.next_message(&mut bytes)),
                2 if draw(10) == 0 => table.refresh(AddressFamily::Ipv4Unicast),
                _ => {
                    // Now and then a whole range, from the place that all share, or from another one.
                    let last = if draw(8) == 0 { 60 } else { first + 1 };
                    let number = draw(3);
                    let shared = Arc::clone(&places[usize::try_from(number).unwrap()]);
                    let attributes = if draw(2) == 0 { shared } else { long_attributes(number) };
                    for number in first..last {
                        table.set(prefix(number), Arc::clone(&attributes));
                        wanted.insert(prefix(number), Arc::clone(&attributes));
                    }
                }
            }
            expect_consistent(&table.out.waiting, &format!("seed {seed}, step {step}"));
        }
        while table.next_message(&mut bytes).is_some() {}
        assert!(!table.out.has_pending(), "seed {seed}");
        assert!(AddressFamily::ALL.iter().all(|it| table.out.can_refresh(*it)), "seed {seed}");
        assert_eq!(usize::try_from(table.out.counts().ipv4).unwrap(), wanted.len(), "seed {seed}");
        let mut framing = Framing::default();
        framing.push(&bytes);
        let context = UpdateContext::new(PeerKind::External);
        let mut received = BTreeMap::new();
        while let Some(message) = framing.next_message().unwrap() {
            let update = Update::parse(&message.body, context).unwrap();
            for prefix in update.withdrawn {
                assert!(
                    received.remove(&prefix).is_some(),
                    "seed {seed}: withdrawn without being announced"
                );
            }
            for group in update.announced {
                for prefix in group.prefixes {
                    received.insert(prefix, Arc::clone(&group.attributes));
                }
            }
        }
        assert_eq!(received, wanted, "seed {seed}");
    }
}

/// Path `path_id` to prefix `number`.
fn path(path_id: u32, number: u32) -> Nlri {
    Nlri { path_id: PathId::new(path_id), ..prefix(number) }
}

/// The content of messages: path identifier and community, or `None` for a withdrawal.
fn sent(table: &mut Table) -> Vec<(u32, Option<u32>)> {
    let mut bytes = BytesMut::new();
    while table.next_message(&mut bytes).is_some() {}
    let mut framing = Framing::default();
    framing.push(&bytes);
    let context = UpdateContext::new(PeerKind::External);
    let context = UpdateContext { add_path: FamilySet::BOTH, ..context };
    let mut said = Vec::new();
    while let Some(message) = framing.next_message().unwrap() {
        let update = Update::parse(&message.body, context).unwrap();
        said.extend(update.withdrawn.iter().map(|nlri| (nlri.path_id.get(), None)));
        for Announced { prefixes, attributes } in update.announced {
            let community = attributes.communities[0].0;
            said.extend(prefixes.iter().map(|nlri| (nlri.path_id.get(), Some(community))));
        }
    }
    said
}

//= RFC 7911 §2 MUST: prefix and path identifier tell a path from all others that the peer has.
//= RFC 7911 §5 MUST: routes are told by prefix and path identifier together.
#[test]
fn paths_to_one_prefix_come_and_leave_one_by_one() {
    let mut table = table();
    table.out.add_path = FamilySet::BOTH;
    for path_id in 1..4 {
        table.set(path(path_id, 1), attributes(path_id));
    }
    let first = sent(&mut table);
    assert_eq!(first, [(1, Some(1)), (2, Some(2)), (3, Some(3))]);
    table.refresh(AddressFamily::Ipv4Unicast);
    assert_eq!(sent(&mut table), first, "a refresh says all of them with the same identifiers");
    table.remove(path(2, 1));
    assert!(table.out.awaits(table.rib.number(prefix(1).prefix).unwrap()));
    assert_eq!(sent(&mut table), [(2, None)]);
    assert!(!table.out.awaits(table.rib.number(prefix(1).prefix).unwrap()));
    assert_eq!((table.out.counts().ipv4, table.told().len()), (2, 2));
}

#[test]
fn a_route_that_flaps_while_the_socket_is_busy_costs_one_message_and_no_memory() {
    let mut table = table();
    for flap in 0..10_000 {
        // One stays behind in each group.
        for number in flap % 20..20 {
            table.set(prefix(number), attributes(flap));
        }
        expect_consistent(&table.out.waiting, "flapping");
    }
    let updates = drain(&mut table);
    let announced = updates.iter().flat_map(|it| &it.announced);
    let prefixes: Vec<Nlri> = announced.flat_map(|it| it.prefixes.clone()).collect();
    assert_eq!(prefixes.len(), 20, "each once: {prefixes:?}");
}

#[test]
fn a_route_that_is_set_again_as_it_waits_keeps_its_place() {
    let mut table = table();
    table.set(prefix(0), attributes(1));
    for other in 1..5 {
        table.set(prefix(other), attributes(1 + other));
        table.set(prefix(0), attributes(1));
    }
    let first = drain(&mut table)[0].announced[0].prefixes.clone();
    assert_eq!(first, [prefix(0)]);
}
