use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use bytes::BytesMut;

use super::super::export::Encoding;
use super::super::group_updates::{OCTETS_MAX, OnTheWay};
use super::*;
use crate::example::Example as _;
use crate::wire::{Framing, MESSAGE_LENGTH_BYTES_MAX, Update, UpdateContext};
use fairway_ground::{
    AsPath, ChosenNextHops, Community, FamilySet, LocalNextHops, NextHop, Nlri, PathId, PeerKey,
    PeerKind, PrefixFilter,
};
use fairway_seam::{
    DesiredRoute, DrainState, PathAttributes, PathSource, PeerConfig, RouteAttributes, RouteChange,
};

const ENCODING: Encoding =
    Encoding { four_octet_as: true, message_length_bytes_max: MESSAGE_LENGTH_BYTES_MAX };

fn key(number: u8) -> PeerKey {
    PeerKey::from(IpAddr::from([192, 0, 2, number]))
}

/// Our end of the session with a peer.
fn own_address(number: u8) -> Ipv4Addr {
    [198, 51, 100, number].into()
}

fn exporter(number: u8, change: impl FnOnce(&mut PeerConfig)) -> Exporter {
    let mut config = PeerConfig {
        key: key(number),
        pass_on: PrefixFilter::Everything,
        ..PeerConfig::example(1)
    };
    change(&mut config);
    let next_hops = LocalNextHops { ipv4: Some(own_address(number)), ..LocalNextHops::default() };
    let ipv4 = FamilySet::only(fairway_ground::AddressFamily::Ipv4Unicast);
    Exporter::new(&config, ipv4, next_hops, DrainState::InService, ENCODING)
}

fn plain(number: u8) -> Exporter {
    exporter(number, |_| ())
}

/// Announced by peer `number`.
fn learn(rib: &mut LocRib, number: u8, prefix: &str, change: impl FnOnce(&mut PathAttributes)) {
    let source = PathSource {
        key: key(number),
        address: [192, 0, 2, number].into(),
        kind: PeerKind::External,
        remote_asn: fairway_ground::Asn::new(65_000 + u32::from(number)).unwrap(),
        router_id: fairway_ground::RouterId::new(u32::from(number)).unwrap(),
        is_client: false,
    };
    let next_hop = NextHop::Ipv4([192, 0, 2, number].into());
    let as_path = AsPath::sequence(vec![65_000 + u32::from(number)]);
    let mut attributes = PathAttributes::originated(as_path, next_hop);
    change(&mut attributes);
    let nlri = Nlri { prefix: prefix.parse().unwrap(), path_id: PathId::NONE };
    let change = RouteChange { nlri, attributes: Some(Arc::new(attributes)) };
    rib.learn(&Arc::new(source), vec![change]);
}

fn originate(rib: &mut LocRib, prefix: &str, peers: &[u8]) {
    rib.set(vec![DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(peers.iter().map(|it| key(*it)).collect::<BTreeSet<_>>()),
        attributes: Arc::new(RouteAttributes::default()),
    }]);
}

/// Another peer of the same policy has asked before.
fn all(groups: &mut ExportGroups, exporter: &Exporter, rib: &LocRib) -> Option<Arc<GroupUpdates>> {
    groups.routes_from(&exporter.of_group(), rib, PrefixId::FIRST, 100);
    groups.routes_from(exporter, rib, PrefixId::FIRST, 100).map(|(updates, _)| updates)
}

/// What a peer reads: prefixes and next hops.
fn read(exporter: &Exporter, updates: Arc<GroupUpdates>) -> Vec<(String, String)> {
    let mut on_the_way = OnTheWay::new(updates, exporter.key(), exporter.own_next_hops());
    let mut bytes = BytesMut::new();
    while !on_the_way.is_sent() {
        on_the_way.next_message(&mut bytes);
    }
    let mut framing = Framing::default();
    framing.push(&bytes);
    let mut told = Vec::new();
    while let Some(message) = framing.next_message().unwrap() {
        let context = UpdateContext::new(PeerKind::External);
        let update = Update::parse(&message.body, context).unwrap();
        told.extend(update.withdrawn.iter().map(|it| (it.to_string(), "gone".to_owned())));
        for group in update.announced {
            let next_hop = group.attributes.next_hop.to_string();
            told.extend(group.prefixes.iter().map(|it| (it.to_string(), next_hop.clone())));
        }
    }
    told
}

fn told(prefix: &str, next_hop: &str) -> (String, String) {
    (prefix.to_owned(), next_hop.to_owned())
}

#[test]
fn peers_of_one_policy_share_what_was_encoded_and_keep_their_next_hops() {
    let mut rib = LocRib::default();
    learn(&mut rib, 9, "10.0.0.0/8", |_| ());
    rib.take_changes();
    let mut groups = ExportGroups::default();
    let (one, two) = (plain(2), plain(3));
    let first = all(&mut groups, &one, &rib).unwrap();
    let second = all(&mut groups, &two, &rib).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(read(&one, first), [told("10.0.0.0/8", "198.51.100.2")]);
    assert_eq!(read(&two, second), [told("10.0.0.0/8", "198.51.100.3")]);
}

#[test]
fn a_peer_with_another_policy_is_in_another_group() {
    let mut rib = LocRib::default();
    learn(&mut rib, 9, "10.0.0.0/8", |_| ());
    rib.take_changes();
    let mut groups = ExportGroups::default();
    let chosen = ChosenNextHops { ipv4: Some([192, 0, 2, 77].into()), ipv6: None };
    let others = [
        exporter(3, |it| it.pass_on = PrefixFilter::Nothing),
        exporter(3, |it| it.next_hops = chosen),
        exporter(3, |it| it.remote_as = fairway_ground::RemoteAs::Asn(it.local_asn)),
        plain(3).take_long_lived(true),
    ];
    let first = all(&mut groups, &plain(2), &rib).unwrap();
    for other in others {
        let second = all(&mut groups, &other, &rib).unwrap();
        assert!(!Arc::ptr_eq(&first, &second), "{other:?}");
    }
}

#[test]
fn a_peer_that_is_the_configured_next_hop_itself_is_alone() {
    let chosen = ChosenNextHops { ipv4: Some([192, 0, 2, 2].into()), ipv6: None };
    let rib = LocRib::default();
    let mut groups = ExportGroups::default();
    assert!(all(&mut groups, &exporter(2, |it| it.next_hops = chosen), &rib).is_none());
    assert!(all(&mut groups, &exporter(3, |it| it.next_hops = chosen), &rib).is_some());
}

#[test]
fn routes_of_our_own_divide_a_group_by_the_peers_that_they_are_for() {
    let mut rib = LocRib::default();
    originate(&mut rib, "203.0.113.1/32", &[2, 3]);
    rib.take_changes();
    let mut groups = ExportGroups::default();
    let [one, two, three] = [2, 3, 4].map(plain);
    let first = all(&mut groups, &one, &rib).unwrap();
    assert!(Arc::ptr_eq(&first, &all(&mut groups, &two, &rib).unwrap()));
    assert_eq!(read(&two, first), [told("203.0.113.1/32", "198.51.100.3")]);
    let other = all(&mut groups, &three, &rib).unwrap();
    assert_eq!(read(&three, other), []);
}

#[test]
fn a_path_that_replaces_another_one_is_sent_to_all_but_their_sources() {
    let mut rib = LocRib::default();
    let longer = |it: &mut PathAttributes| it.as_path = AsPath::sequence(vec![65_002, 7]);
    learn(&mut rib, 2, "10.0.0.0/8", longer);
    rib.take_changes();
    learn(&mut rib, 3, "10.0.0.0/8", |_| ());
    let changes = rib.take_changes();
    let mut groups = ExportGroups::default();
    let peers = [2, 3, 4].map(plain);
    assert!(groups.changes(&peers[1], &rib, &changes).is_none(), "it is alone as yet");
    let updates = groups.changes(&peers[0], &rib, &changes).unwrap();
    let sent = peers.each_ref().map(|peer| read(peer, Arc::clone(&updates)));
    assert_eq!(sent, [vec![], vec![], vec![told("10.0.0.0/8", "198.51.100.4")]]);
    // The one is told a path for the first time, the other has one that it must not keep.
    let alone = peers.each_ref().map(|peer| updates.alone(peer.key()).collect::<Vec<_>>());
    assert_eq!(alone, [vec![0], vec![0], vec![]]);
    let growth = peers.each_ref().map(|peer| updates.growth(peer.key()).map(|it| it.ipv4));
    assert_eq!(growth, [None, None, Some(0)]);
}

#[test]
fn each_peer_looks_itself_where_a_route_cannot_be_sent() {
    let mut rib = LocRib::default();
    let bulky = |it: &mut PathAttributes| it.communities = (0..2_000).map(Community).collect();
    learn(&mut rib, 9, "10.0.0.0/8", bulky);
    rib.take_changes();
    assert!(all(&mut ExportGroups::default(), &plain(2), &rib).is_none());
}

#[test]
fn what_was_encoded_of_an_earlier_table_is_forgotten() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let peer = plain(2);
    assert_eq!(read(&peer, all(&mut groups, &peer, &rib).unwrap()), []);
    learn(&mut rib, 9, "10.0.0.0/8", |_| ());
    rib.take_changes();
    let now = all(&mut groups, &peer, &rib).unwrap();
    assert_eq!(read(&peer, now), [told("10.0.0.0/8", "198.51.100.2")]);
}

#[test]
fn a_peer_looks_itself_until_another_one_has_its_policy_and_after_that_has_left() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let [one, two] = [2, 3].map(plain);
    let mut asks = |peer: &Exporter, rib: &LocRib| {
        groups.routes_from(peer, rib, PrefixId::FIRST, 100).is_some()
    };
    assert_eq!([asks(&one, &rib), asks(&one, &rib), asks(&two, &rib)], [false, false, true]);
    assert!(asks(&one, &rib), "there are two now");
    rib.take_changes();
    assert!(asks(&one, &rib), "there were two before");
    rib.take_changes();
    assert!(!asks(&one, &rib), "the other has not asked again");
}

#[test]
fn what_is_kept_has_a_bound() {
    let mut rib = LocRib::default();
    for number in 0..=u8::MAX {
        learn(&mut rib, 9, &format!("10.0.{number}.0/24"), |_| ());
    }
    rib.take_changes();
    let mut groups = ExportGroups::default();
    let peer = plain(2);
    groups.routes_from(&plain(3), &rib, PrefixId::FIRST, 2);
    let mut first = PrefixId::FIRST;
    let mut windows = 0;
    while first < rib.end() {
        (_, first) = groups.routes_from(&peer, &rib, first, 2).unwrap();
        windows += 1;
    }
    assert_eq!(windows, 128);
    assert!((KEPT_BYTES_MAX / 2..=KEPT_BYTES_MAX).contains(&groups.kept_bytes));
    assert_eq!(groups.kept.iter().map(Kept::table_bytes).sum::<usize>(), groups.kept_bytes);
    assert_eq!(groups.length_bytes(), groups.kept_bytes, "the rest is given back");
    groups.forget();
    assert!(groups.is_empty() && groups.kept_bytes == 0 && groups.length_bytes() == 0);
}

/// `count` prefixes, each with a path of its own.
fn learn_many(rib: &mut LocRib, count: u8) {
    for number in 0..count {
        let of_its_own =
            |it: &mut PathAttributes| it.communities = [Community(number.into())].into();
        learn(rib, 9, &format!("10.0.{number}.0/24"), of_its_own);
    }
}

#[test]
fn the_last_changes_of_two_groups_are_encoded_once_each_however_long_they_are() {
    let mut rib = LocRib::default();
    learn_many(&mut rib, 10);
    let changes = rib.take_changes();
    let mut groups = ExportGroups::default();
    let policies: [fn(u8) -> Exporter; 2] = [plain, |number| plain(number).take_long_lived(true)];
    let mut encoded = Vec::new();
    for round in [1..3, 3..5, 5..7] {
        for policy in &policies {
            let of_round = round.clone().map(policy);
            let updates = of_round.map(|it| groups.changes(&it, &rib, &changes));
            encoded.push(updates.last().flatten().unwrap());
        }
    }
    assert!(encoded.iter().all(|it| it.length_bytes() > KEPT_BYTES_MAX / 2));
    // Parts of the table, for peers that have just come, take the places of each other only.
    let mut table_bytes = 0;
    for policy in &policies {
        let mut end = PrefixId::FIRST;
        while end < rib.end() {
            let (part, next) = groups.routes_from(&policy(8), &rib, end, 2).unwrap();
            (end, table_bytes) = (next, table_bytes + part.length_bytes());
        }
    }
    assert!(table_bytes > KEPT_BYTES_MAX);
    encoded.extend(policies.map(|policy| groups.changes(&policy(9), &rib, &changes).unwrap()));
    for (place, updates) in encoded.iter().enumerate().skip(2) {
        assert!(Arc::ptr_eq(updates, &encoded[place % 2]), "round {place}");
    }
}

#[test]
fn nothing_more_is_encoded_while_too_much_is_on_its_way() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut on_their_way = Vec::new();
    let mut lengths = Vec::new();
    for round in 0..40 {
        learn(&mut rib, 9, "192.0.2.0/24", |it| it.communities = [Community(round)].into());
        learn_many(&mut rib, 10 + u8::try_from(round).unwrap());
        let changes = rib.take_changes();
        groups.changes(&plain(2), &rib, &changes);
        on_their_way.extend(groups.changes(&plain(3), &rib, &changes));
        lengths.push(groups.length_bytes());
    }
    let held: usize = on_their_way.iter().map(|it| it.length_bytes()).sum();
    assert!((ENCODED_BYTES_MAX..ENCODED_BYTES_MAX + OCTETS_MAX).contains(&held), "{lengths:?}");
    assert_eq!(groups.length_bytes(), held);
    // Those who are not sent it look themselves, until others have read.
    on_their_way.clear();
    learn(&mut rib, 9, "192.0.2.0/24", |_| ());
    let changes = rib.take_changes();
    groups.changes(&plain(2), &rib, &changes);
    assert!(groups.changes(&plain(3), &rib, &changes).is_some());
}

#[test]
fn each_peer_looks_itself_where_a_batch_is_too_long() {
    let mut rib = LocRib::default();
    learn_many(&mut rib, 120);
    let changes = rib.take_changes();
    let mut groups = ExportGroups::default();
    let sent = [2, 3, 4].map(|number| groups.changes(&plain(number), &rib, &changes).is_some());
    assert_eq!(sent, [false; 3]);
    assert_eq!(groups.length_bytes(), 0);
}
