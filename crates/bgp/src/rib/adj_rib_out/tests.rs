use super::*;
use crate::wire::update::Announced;
use crate::wire::{Framing, Update, UpdateContext};
use fairway_ground::{AsPath, Asn, Community, NextHop, PathId, PeerKey, PeerKind, RouterId};
use fairway_seam::PathSource;

fn attributes(community: u32) -> Arc<PathAttributes> {
    let next_hop = NextHop::Ipv4("192.0.2.1".parse().unwrap());
    let mut attributes = PathAttributes::originated(AsPath::sequence(vec![65001]), next_hop);
    attributes.communities = vec![Community(community)];
    Arc::new(attributes)
}

fn prefix(number: u32) -> Nlri {
    Prefix::from_ipv4_bits(0x0A00_0000 + number, 32).unwrap().into()
}

fn table() -> AdjRibOut {
    let mut table = AdjRibOut::new(FamilySet::EMPTY, FamilySet::EMPTY, true);
    assert!(!table.has_pending());
    table.end_of_rib = FamilySet::EMPTY;
    table
}

/// Sends everything that is pending and returns the messages as a receiver decodes them.
fn drain(table: &mut AdjRibOut) -> Vec<Update> {
    let mut bytes = BytesMut::new();
    while table.next_message(&mut bytes).is_some() {}
    assert!(!table.has_pending());
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
    let mut table = AdjRibOut::new(FamilySet::BOTH, FamilySet::EMPTY, true);
    table.set(prefix(1), attributes(1)).unwrap();
    let updates = drain(&mut table);
    let markers: Vec<_> = updates.iter().map(|update| update.end_of_rib).collect();
    assert_eq!(markers, [None, Some(AddressFamily::Ipv4Unicast), Some(AddressFamily::Ipv6Unicast)]);
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
fn what_changes_and_changes_back_while_a_refresh_is_answered_is_said_all_the_same() {
    for marks in [false, true] {
        let mut table = table();
        if marks {
            table.mark_refreshes();
        }
        for number in 0..3 {
            table.set(prefix(number), attributes(1)).unwrap();
        }
        drain(&mut table);
        // Two are pending when the answer starts: one with other attributes, one to be withdrawn.
        table.set(prefix(1), attributes(2)).unwrap();
        table.remove(prefix(2));
        table.refresh(AddressFamily::Ipv4Unicast);
        let mut first = BytesMut::new();
        let begun = table.next_message(&mut first);
        assert_eq!(begun == Some(MessageType::RouteRefresh), marks);
        for number in [1, 2] {
            table.set(prefix(number), attributes(1)).unwrap();
        }
        let updates = drain(&mut table);
        let announced = updates.iter().flat_map(|it| &it.announced).flat_map(|it| &it.prefixes);
        assert_eq!(announced.copied().collect::<Vec<_>>(), [0, 1, 2].map(prefix), "{marks}");
        assert!(
            table.owed.of(AddressFamily::Ipv4Unicast).is_empty(),
            "the next refresh can be answered"
        );
    }
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

/// So long that some two dozen prefixes fit beside it.
fn long_attributes(community: u32) -> Arc<PathAttributes> {
    let mut long = (*attributes(community)).clone();
    long.communities = (0..975).map(|it| Community(community * 10_000 + it)).collect();
    Arc::new(long)
}

/// What the parts of the table know of each other.
fn expect_consistent(table: &AdjRibOut, why: &str) {
    let standing =
        table.routes.sorted(|_, known| Some((known.advertised.is_some(), known.pending)));
    assert!(standing.iter().all(|(_, (told, pending))| *told || pending.is_some()), "{why}: empty");
    for (id, group) in &table.groups.by_id {
        let members = standing.iter().filter(|(_, (_, pending))| *pending == Some(*id)).count();
        assert_eq!(group.count, members, "{why}: members of a group");
        assert!(group.count > 0, "{why}: an empty group");
        assert!(group.has_left || group.joined.len() == group.count, "{why}: entries");
        assert!(group.joined.len() / 2 <= group.count.max(LEFT_MAX), "{why}: too many have left");
    }
    assert_eq!(table.groups.by_id.len(), table.groups.by_value.len(), "{why}");
    let pending = standing.iter().filter_map(|(_, (_, pending))| *pending);
    for id in pending {
        assert!(table.groups.by_id.contains_key(&id), "{why}: a group that is gone");
    }
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
                        table.set(prefix(number), Arc::clone(&attributes)).unwrap();
                        wanted.insert(prefix(number), Arc::clone(&attributes));
                    }
                }
            }
            expect_consistent(&table, &format!("seed {seed}, step {step}"));
        }
        while table.next_message(&mut bytes).is_some() {}
        assert!(!table.has_pending() && table.groups.by_id.is_empty(), "seed {seed}");
        assert!(AddressFamily::ALL.iter().all(|it| table.owed.of(*it).is_empty()), "seed {seed}");
        assert_eq!(usize::try_from(table.counts().ipv4).unwrap(), wanted.len(), "seed {seed}");
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
                    received.insert(prefix, Arc::new(group.attributes.clone()));
                }
            }
        }
        assert_eq!(received, wanted, "seed {seed}");
        let advertised: BTreeMap<_, _> = table.advertised().into_iter().collect();
        assert_eq!(advertised, wanted, "seed {seed}");
    }
}

/// A table of a peer that is sent several paths to a prefix.
fn table_of_paths() -> AdjRibOut {
    AdjRibOut {
        end_of_rib: FamilySet::EMPTY,
        ..AdjRibOut::new(FamilySet::BOTH, FamilySet::BOTH, true)
    }
}

/// Neighbour `number` and the only path it announces, which is identified by the number.
fn path(number: u8) -> (PathKey, Arc<PathAttributes>) {
    let address = std::net::IpAddr::from([192, 0, 2, number]);
    let source = PathSource {
        key: PeerKey::from(address),
        address,
        kind: PeerKind::External,
        remote_asn: Asn::new(7).unwrap(),
        router_id: RouterId::new(1).unwrap(),
    };
    (PathKey::Learned(Arc::new(source), PathId::NONE), attributes(number.into()))
}

/// The content of messages: path identifier and announcing neighbour, or `None` for a withdrawal.
fn said(bytes: &[u8]) -> Vec<(u32, Option<u32>)> {
    let mut framing = Framing::default();
    framing.push(bytes);
    let context = UpdateContext::new(PeerKind::External);
    let context = UpdateContext { add_path: FamilySet::BOTH, ..context };
    let mut said = Vec::new();
    while let Some(message) = framing.next_message().unwrap() {
        let update = Update::parse(&message.body, context).unwrap();
        said.extend(update.withdrawn.iter().map(|nlri| (nlri.path_id.get(), None)));
        for Announced { prefixes, attributes } in update.announced {
            let neighbour = attributes.communities[0].0;
            said.extend(prefixes.iter().map(|nlri| (nlri.path_id.get(), Some(neighbour))));
        }
    }
    said
}

/// Advertises the paths of these neighbours to prefix 1.
fn tell(table: &mut AdjRibOut, numbers: &[u8]) {
    let paths = numbers.iter().map(|number| path(*number)).collect();
    table.tell(prefix(1).prefix, paths).unwrap();
}

fn sent(table: &mut AdjRibOut) -> Vec<(u32, Option<u32>)> {
    let mut bytes = BytesMut::new();
    while table.next_message(&mut bytes).is_some() {}
    said(&bytes)
}

//= RFC 7911 §3 MUST: a path that is passed on has an identifier of our own.
//= RFC 7911 §2 MUST: prefix and path identifier tell a path from all others that the peer has.
//= RFC 7911 §5 MUST: routes are told by prefix and path identifier together.
#[test]
fn paths_have_identifiers_of_our_own_and_leave_one_by_one() {
    let mut table = table_of_paths();
    tell(&mut table, &[7, 8, 9]);
    assert_eq!(sent(&mut table), [(1, Some(7)), (2, Some(8)), (3, Some(9))]);
    assert_eq!(table.counts().ipv4, 3);
    // The order is not advertised, and a path that stays keeps its identifier.
    tell(&mut table, &[9, 7]);
    assert_eq!(sent(&mut table), [(2, None)]);
    tell(&mut table, &[6, 9, 7]);
    assert_eq!(sent(&mut table), [(2, Some(6))]);
    tell(&mut table, &[]);
    assert_eq!(sent(&mut table), [(1, None), (2, None), (3, None)]);
    assert_eq!((table.counts().ipv4, table.advertised().len()), (0, 0));
}

#[test]
fn a_number_is_free_only_when_its_withdrawal_is_on_its_way() {
    let mut table = table_of_paths();
    tell(&mut table, &[7, 8]);
    sent(&mut table);
    tell(&mut table, &[8, 9]);
    assert_eq!(sent(&mut table), [(1, None), (3, Some(9))]);
    tell(&mut table, &[8, 9, 5]);
    assert_eq!(sent(&mut table), [(1, Some(5))]);
    // A path that was never sent releases its identifier at once, and one that returns keeps it.
    tell(&mut table, &[8, 9, 6]);
    tell(&mut table, &[8, 9, 4]);
    tell(&mut table, &[8, 9, 5]);
    assert_eq!(sent(&mut table), []);
}

#[test]
fn a_refresh_says_all_paths_with_the_same_numbers() {
    let mut table = table_of_paths();
    tell(&mut table, &[7, 8, 9]);
    let first = sent(&mut table);
    table.refresh(AddressFamily::Ipv4Unicast);
    assert_eq!(sent(&mut table), first);
}

#[test]
fn a_path_that_fits_no_message_leaves_its_siblings() {
    let mut table = table_of_paths();
    tell(&mut table, &[7, 8]);
    sent(&mut table);
    let (key, attributes) = path(7);
    let huge = (0..2000).map(Community).collect();
    let huge = Arc::new(PathAttributes { communities: huge, ..(*attributes).clone() });
    assert!(table.tell(prefix(1).prefix, vec![(key, huge), path(8)]).is_err());
    assert_eq!(sent(&mut table), [(1, None)]);
}

/// Random paths, and a socket that accepts a message now and then: between two withdrawals the peer never
/// mistakes one path for another, and it ends up with the last paths.
#[test]
fn the_same_id_is_never_two_paths() {
    let mut reused = 0;
    for seed in 0..300 {
        let mut rng = fairway_ground::Rng::seeded(seed);
        let mut draw = |bound: u64| u8::try_from(rng.next_u64() % bound).unwrap();
        let mut table = table_of_paths();
        let mut wanted: Vec<u8> = Vec::new();
        let mut bytes = BytesMut::new();
        for _ in 0..200 {
            if draw(3) == 0 {
                table.next_message(&mut bytes);
                continue;
            }
            let drawn: BTreeSet<u8> = (0..draw(4)).map(|_| draw(6)).collect();
            wanted = drawn.into_iter().collect();
            tell(&mut table, &wanted);
        }
        while table.next_message(&mut bytes).is_some() {}
        let (mut has, mut had) = (BTreeMap::new(), BTreeMap::new());
        for (path_id, neighbour) in said(&bytes) {
            let Some(neighbour) = neighbour else {
                assert!(
                    has.remove(&path_id).is_some(),
                    "seed {seed}: withdrawn without being announced"
                );
                continue;
            };
            assert!(path_id <= 6, "seed {seed}: identifiers are not kept small");
            let before = has.insert(path_id, neighbour);
            assert!(
                before.is_none_or(|it| it == neighbour),
                "seed {seed}: {path_id} stands for two paths"
            );
            reused += u32::from(had.insert(path_id, neighbour).is_some_and(|it| it != neighbour));
        }
        let mut has: Vec<u8> =
            has.into_values().map(|neighbour| u8::try_from(neighbour).unwrap()).collect();
        has.sort_unstable();
        assert_eq!(has, wanted, "seed {seed}");
        assert_eq!(table.path_ids.of(prefix(1).prefix).count(), wanted.len(), "seed {seed}");
    }
    assert!(reused > 1_000, "identifiers are reused: {reused}");
}

#[test]
fn a_route_that_flaps_while_the_socket_is_busy_costs_one_message_and_no_memory() {
    let mut table = table();
    for flap in 0..10_000 {
        // One stays behind in each group.
        for number in flap % 20..20 {
            table.set(prefix(number), attributes(flap)).unwrap();
        }
        let waiting: usize = table.groups.by_id.values().map(|group| group.joined.len()).sum();
        assert!(waiting < 20 * 2 * (LEFT_MAX + 1), "{waiting} entries wait");
        expect_consistent(&table, "flapping");
    }
    let updates = drain(&mut table);
    let announced = updates.iter().flat_map(|it| &it.announced);
    let prefixes: Vec<Nlri> = announced.flat_map(|it| it.prefixes.clone()).collect();
    assert_eq!(prefixes.len(), 20, "each once: {prefixes:?}");
}

#[test]
fn a_route_that_is_set_again_as_it_waits_keeps_its_place() {
    let mut table = table();
    table.set(prefix(0), attributes(1)).unwrap();
    for other in 1..5 {
        table.set(prefix(other), attributes(1 + other)).unwrap();
        table.set(prefix(0), attributes(1)).unwrap();
    }
    let first = drain(&mut table)[0].announced[0].prefixes.clone();
    assert_eq!(first, [prefix(0)]);
}
