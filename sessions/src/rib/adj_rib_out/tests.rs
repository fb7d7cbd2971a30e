use super::*;
use crate::types::{AsPath, Community, NextHop, PeerKind};
use crate::wire::{Framing, Update, UpdateContext};

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

/// Sends all that is pending and returns the messages as a receiver reads them.
fn drain(table: &mut AdjRibOut) -> Vec<Update> {
    let mut bytes = BytesMut::new();
    while table.next_message(&mut bytes).is_some() {}
    assert!(!table.has_pending());
    let mut framing = Framing::default();
    framing.allow_extended_messages();
    framing.push(&bytes);
    let context = UpdateContext::new(PeerKind::External);
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
        let context = UpdateContext::new(PeerKind::External);
        let mut received = BTreeMap::new();
        while let Some(message) = framing.next_message().unwrap() {
            let update = Update::parse(&message.body, context).unwrap();
            for prefix in update.withdrawn {
                assert!(received.remove(&prefix).is_some(), "seed {seed}: withdrawn for nothing");
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
