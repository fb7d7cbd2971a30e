//! What a peer accepts, counts, refuses, requests again, and forgets.

use super::*;
use crate::wire::announce::{AttributeBlock, announcement};
use fairway_ground::{
    AsPath, ImportPolicy, MaximumPrefixes, NextHop, PerFamily, PrefixFilter, PrefixRange,
};
use fairway_seam::{ClearError, PathAttributes, Refusal, ResetCause};

fn accepting(import: ImportPolicy) -> Pair {
    Pair::new(config(65001, 65002, 1), PeerConfig { import, ..config(65002, 65001, 2) })
}

fn limited(limit: u32) -> ImportPolicy {
    let maximum = Some(MaximumPrefixes { limit, warn_percent: 75, attribute_bytes: None });
    ImportPolicy { allowed: PrefixFilter::Everything, maximum, ..ImportPolicy::default() }
}

fn listed(prefix: &str) -> PrefixFilter {
    PrefixFilter::Listed(vec![PrefixRange::new(prefix.parse().unwrap(), None, Some(32)).unwrap()])
}

fn prefixes(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("198.51.{}.{}/32", number / 256, number % 256)).collect()
}

fn originate(pair: &mut Pair, count: u32) {
    let prefixes = prefixes(count);
    pair.originate(0, &prefixes.iter().map(String::as_str).collect::<Vec<_>>());
}

/// What the right side refused, each with the rule.
fn refused(pair: &Pair) -> Vec<(String, Refusal)> {
    let refused = view(pair, 1).refused.unwrap_or_default().routes.into_iter();
    refused.map(|it| (it.route.prefix.to_string(), it.refusal)).collect()
}

fn view(pair: &Pair, side: usize) -> fairway_seam::PeerView {
    pair.sides[side].peer.view(pair.now, ViewScope::EVERYTHING)
}

/// The right side, given bytes as if the left one had sent them.
fn hear(pair: &mut Pair, bytes: &[u8]) {
    let id = pair.sides[1].peer.established.as_ref().unwrap().connection;
    pair.sides[1].peer.handle(pair.now, Event::Received(id, bytes));
    pair.settle();
}

/// An UPDATE that announces 203.0.113.0/24 along `as_path` to `next_hop`.
fn update(as_path: &[u32], next_hop: [u8; 4]) -> BytesMut {
    let next_hop = NextHop::Ipv4(next_hop.into());
    let attributes = PathAttributes::originated(AsPath::sequence(as_path.to_vec()), next_hop);
    let block = AttributeBlock::encode(&attributes, true).unwrap();
    let mut prefixes = BTreeSet::from(["203.0.113.0/24".parse().unwrap()]);
    let mut bytes = BytesMut::new();
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    bytes
}

//= RFC 8212 §3 MUST NOT: routes of an external peer are used without an import policy.
#[test]
fn nothing_is_accepted_that_nobody_asked_for() {
    let mut pair = accepting(ImportPolicy::default());
    originate(&mut pair, 3);
    pair.run_for(seconds(5));
    let view = view(&pair, 1);
    assert_eq!(view.prefixes_accepted, PerFamily::default());
    assert_eq!(view.refusals, [(Refusal::Policy, 3)]);
    assert_eq!(pair.sides[1].rib.learned().count(), 0);
}

#[test]
fn only_the_listed_prefixes_are_accepted() {
    let allowed = listed("198.51.0.0/31");
    let mut pair = accepting(ImportPolicy { allowed, ..ImportPolicy::default() });
    originate(&mut pair, 5);
    pair.run_for(seconds(5));
    let view = view(&pair, 1);
    assert_eq!(view.received.len(), 2);
    assert_eq!((view.prefixes_accepted.ipv4, view.prefixes_refused.ipv4), (2, 3));
}

//= RFC 4271 §6 MUST: the end of a session clears its Adj-RIB-In and the Loc-RIB of its routes.
#[test]
fn routes_go_when_their_session_does() {
    let mut pair = Pair::ebgp();
    originate(&mut pair, 3);
    pair.run_for(seconds(5));
    assert_eq!(pair.sides[1].rib.learned().count(), 3);
    pair.sides[0].peer.stop(pair.now, cease::ADMINISTRATIVE_SHUTDOWN, "a test");
    pair.settle();
    assert_eq!(pair.sides[1].rib.learned().count(), 0);
    assert_eq!(view(&pair, 1).prefixes_accepted.ipv4, 0);
}

//= RFC 4271 §6.7 MAY: the number of prefixes that a neighbour may announce is bounded.
//= RFC 4271 §6.7 MUST: a session with too many prefixes ends with Cease.
//= RFC 4486 §4 MUST: a session with too many prefixes ends with Maximum Number of Prefixes Reached, 6/1.
//= RFC 4486 §4 SHOULD: a connection that is accepted and not wanted ends with Connection Rejected, 6/5.
#[test]
fn one_prefix_too_many_ends_the_session_and_keeps_the_neighbour_out_for_a_while() {
    let mut pair = accepting(limited(10));
    originate(&mut pair, 10);
    pair.run_for(seconds(5));
    pair.assert_up();
    originate(&mut pair, 11);
    pair.run_for(seconds(5));
    let reason = "Cease/Maximum Number of Prefixes Reached (6/1)";
    assert!(pair.sides[0].log.iter().any(|line| line.contains(reason)), "{:?}", pair.sides[0].log);
    assert_eq!(pair.sides[1].rib.learned().count(), 0);
    // The neighbour dials all the time, and is sent 6/5.
    pair.run_for(seconds(20));
    assert_eq!(view(&pair, 1).connections_established, 1);
    let rejected = "Cease/Connection Rejected (6/5)";
    assert!(
        pair.sides[0].log.iter().any(|line| line.contains(rejected)),
        "{:?}",
        pair.sides[0].log
    );
    // When the mistake at the other end is fixed, the session comes back by itself.
    originate(&mut pair, 10);
    pair.run_for(seconds(45));
    pair.assert_up();
    assert_eq!(pair.sides[1].rib.learned().count(), 10);
}

#[test]
fn a_higher_limit_ends_the_wait() {
    let mut pair = accepting(limited(10));
    originate(&mut pair, 11);
    pair.run_for(seconds(5));
    assert_eq!(view(&pair, 1).connections_dropped, 1);
    let config = PeerConfig { import: limited(11), ..pair.sides[1].peer.config().clone() };
    pair.sides[1].peer.reconfigure(pair.now, config);
    pair.run_for(seconds(5));
    pair.assert_up();
    assert_eq!(pair.sides[1].rib.learned().count(), 11);
}

#[test]
fn a_neighbour_that_swings_around_the_warning_does_not_write_our_log() {
    let mut pair = accepting(limited(100));
    pair.run_for(seconds(5));
    for _ in 0..50 {
        originate(&mut pair, 75);
        pair.settle();
        originate(&mut pair, 74);
        pair.settle();
    }
    let log = &pair.sides[1].log;
    assert_eq!(log.iter().filter(|line| line.starts_with("near maximum")).count(), 1);
}

#[test]
fn who_brought_about_a_panic_is_not_let_in_before_the_wait_is_over() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let at = pair.now + seconds(30);
    let mut peer = pair.sides[1].peer.after_panic(pair.now, at, 1, 2);
    let id = peer.accept(pair.now, ends(2));
    let Some(Action::Close(closed, Some(words))) = peer.poll_action() else {
        panic!("the neighbor was accepted");
    };
    assert_eq!((closed, words[19..].to_vec()), (id, vec![6, cease::CONNECTION_REJECTED]));
    let id = peer.accept(at, ends(2));
    assert!(peer.connection(id).is_some());
}

#[test]
fn every_notification_is_counted() {
    let mut pair = Pair::ebgp();
    pair.silent = true;
    pair.run_for(seconds(1));
    assert_eq!(pair.sides[0].peer.state(), SessionState::OpenSent);
    let connections = pair.sides[0].peer.connection_ids().len();
    pair.sides[0].peer.reset(pair.now);
    let farewells = std::iter::from_fn(|| pair.sides[0].peer.poll_action())
        .filter(|action| matches!(action, Action::Close(_, Some(_))))
        .count();
    assert_eq!(farewells, connections);
    let counted = pair.sides[0].peer.messages.sent.notifications;
    assert_eq!(counted, u64::try_from(farewells).unwrap());
}

//= RFC 4486 §4 MAY: the data of 6/1 has the family and the bound.
#[test]
fn the_notification_of_too_many_prefixes_names_family_and_limit() {
    let notification = Notification::maximum_prefixes(AddressFamily::Ipv6Unicast, 1000);
    assert_eq!(notification.data, [0, 2, 1, 0, 0, 0x03, 0xE8]);
}

#[test]
fn nearly_too_many_prefixes_are_warned_of_once() {
    let mut pair = accepting(limited(100));
    let warnings = |pair: &Pair| {
        pair.sides[1].log.iter().filter(|line| line.starts_with("near maximum")).count()
    };
    originate(&mut pair, 74);
    pair.run_for(seconds(5));
    assert_eq!(warnings(&pair), 0);
    originate(&mut pair, 75);
    pair.run_for(seconds(1));
    originate(&mut pair, 80);
    pair.run_for(seconds(1));
    assert_eq!(warnings(&pair), 1);
    originate(&mut pair, 10);
    pair.run_for(seconds(10));
    originate(&mut pair, 90);
    pair.run_for(seconds(1));
    assert_eq!(warnings(&pair), 2);
    pair.assert_up();
}

//= RFC 2918 §4 MAY: another import policy is applied to all routes by asking for them again.
#[test]
fn a_wider_policy_asks_for_everything_again_and_a_narrower_one_forgets_at_once() {
    let mut pair =
        accepting(ImportPolicy { allowed: listed("198.51.0.0/31"), ..ImportPolicy::default() });
    originate(&mut pair, 5);
    pair.run_for(seconds(5));
    let change = |pair: &mut Pair, import| {
        let config = PeerConfig { import, ..pair.sides[1].peer.config().clone() };
        pair.sides[1].peer.reconfigure(pair.now, config);
        pair.settle();
    };
    change(
        &mut pair,
        ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() },
    );
    assert_eq!((pair.sides[1].rib.learned().count(), refused(&pair)), (5, vec![]));
    change(&mut pair, ImportPolicy { allowed: listed("198.51.0.4/32"), ..ImportPolicy::default() });
    assert_eq!((pair.sides[1].rib.learned().count(), refused(&pair).len()), (1, 4));
    change(&mut pair, ImportPolicy { allowed: PrefixFilter::Everything, ..limited(4) });
    assert!(pair.sides[0].log.last().unwrap().contains("(6/1)"), "{:?}", pair.sides[0].log);
}

#[test]
fn refused_routes_are_shown_until_they_are_withdrawn_and_with_their_session() {
    let mut pair =
        accepting(ImportPolicy { allowed: listed("198.51.0.0/31"), ..ImportPolicy::default() });
    originate(&mut pair, 4);
    pair.run_for(seconds(5));
    let all = [2, 3].map(|host| (format!("198.51.0.{host}/32"), Refusal::Policy));
    assert_eq!(refused(&pair), all);
    originate(&mut pair, 3);
    pair.run_for(seconds(5));
    assert_eq!(refused(&pair), all[..1]);
    pair.sides[1].peer.refresh_in().unwrap();
    pair.settle();
    assert_eq!(refused(&pair), all[..1], "announced again, and refused again");
    pair.sides[1].peer.reset(pair.now);
    assert!(view(&pair, 1).refused.is_none());
}

//= RFC 2918 §4 MUST NOT: ROUTE-REFRESH is sent to a neighbour that did not offer it.
#[test]
fn without_route_refresh_another_policy_needs_another_session() {
    let mut pair = accepting(ImportPolicy::default());
    originate(&mut pair, 2);
    pair.run_for(seconds(5));
    let up = pair.sides[1].peer.established.as_ref().unwrap().connection;
    let connection = pair.sides[1].peer.connection_mut(up).unwrap();
    connection.negotiated.as_mut().unwrap().route_refresh = false;
    assert_eq!(pair.sides[1].peer.refresh_in(), Err(ClearError::NoRouteRefresh));
    let import = ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() };
    let config = PeerConfig { import, ..pair.sides[1].peer.config().clone() };
    pair.sides[1].peer.reconfigure(pair.now, config);
    pair.run_for(seconds(10));
    assert!(pair.sides[0].log[1].contains("(6/6)"), "{:?}", pair.sides[0].log);
    assert_eq!(pair.sides[1].rib.learned().count(), 2);
}

//= RFC 4486 §4 SHOULD: a session that the operator resets ends with Administrative Reset, 6/4.
#[test]
fn the_operator_resets_and_refreshes() {
    let mut pair = Pair::ebgp();
    assert_eq!(pair.sides[0].peer.refresh_out(), Err(ClearError::NotEstablished));
    assert_eq!(pair.sides[0].peer.refresh_in(), Err(ClearError::NotEstablished));
    originate(&mut pair, 2);
    pair.run_for(seconds(5));
    let updates = |pair: &Pair| pair.sides[1].peer.messages.received.updates;
    let before = updates(&pair);
    pair.sides[0].peer.refresh_out().unwrap();
    pair.settle();
    assert_eq!(updates(&pair), before + 1);
    let marks = pair.sides[1].peer.messages.received.route_refreshes;
    assert_eq!(marks, 4, "two for each family");
    pair.sides[1].peer.refresh_in().unwrap();
    pair.settle();
    assert_eq!(pair.sides[0].peer.messages.received.route_refreshes, 2);
    assert_eq!(updates(&pair), before + 2);
    pair.sides[0].peer.reset(pair.now);
    pair.run_for(seconds(3));
    assert!(pair.sides[1].log[1].contains("Cease/Administrative Reset (6/4)"));
    pair.assert_up();
}

//= RFC 4271 §6.3 SHOULD NOT: a next hop that makes no sense ends the session.
//= RFC 7606 §7.2 SHOULD: a path that does not begin with the AS of the external peer withdraws the route.
#[test]
fn a_route_that_may_not_be_used_takes_the_place_of_the_one_before() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let learned = |pair: &Pair| pair.sides[1].rib.learned().count();
    let cases: [(&[u32], [u8; 4], Refusal); 4] = [
        (&[65001, 65002], [192, 0, 2, 1], Refusal::AsLoop),
        (&[7, 65001], [192, 0, 2, 1], Refusal::FirstAs),
        (&[], [192, 0, 2, 1], Refusal::FirstAs),
        (&[65001], [192, 0, 2, 2], Refusal::OwnNextHop),
    ];
    for (as_path, next_hop, refusal) in cases {
        hear(&mut pair, &update(&[65001, 7], [192, 0, 2, 1]));
        assert_eq!((learned(&pair), refused(&pair)), (1, vec![]));
        hear(&mut pair, &update(as_path, next_hop));
        assert_eq!(learned(&pair), 0, "{refusal:?}");
        let refusals = view(&pair, 1).refusals;
        assert!(refusals.iter().any(|(it, _)| *it == refusal), "{refusals:?}");
        assert_eq!(refused(&pair), [("203.0.113.0/24".to_owned(), refusal)]);
    }
    pair.assert_up();
}

//= RFC 7606 §2 MUST: treat-as-withdraw takes the routes out of the Adj-RIB-In.
#[test]
fn the_last_malformed_update_is_kept_with_its_bytes() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let mut bytes = update(&[65001], [192, 0, 2, 1]);
    hear(&mut pair, &bytes);
    assert_eq!(pair.sides[1].rib.learned().count(), 1);
    let origin = bytes.windows(4).position(|it| it == [0x40, 1, 1, 0]).unwrap();
    bytes[origin + 3] = 9;
    hear(&mut pair, &bytes);
    let view = view(&pair, 1);
    assert_eq!(view.malformed.treated_as_withdraw, 1);
    let last = view.last_malformed.unwrap();
    assert_eq!(last.text, "treated as withdrawal: attribute 1: its value is malformed");
    assert_eq!(last.body, bytes[19..]);
    assert_eq!(pair.sides[1].rib.learned().count(), 0, "the route that it had");
    pair.assert_up();
}

//= RFC 4271 §4.3 SHOULD: a prefix that one UPDATE withdraws and announces counts as announced.
#[test]
fn what_is_withdrawn_and_announced_at_once_is_announced() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let message = update(&[65001], [192, 0, 2, 1]);
    // The same, with its prefix among the withdrawn ones, too.
    let body = [&[0, 4, 24, 203, 0, 113][..], &message[21..]].concat();
    hear(&mut pair, &framed(MessageType::Update, &body).unwrap());
    assert_eq!(pair.sides[1].rib.learned().count(), 1);
}

//= RFC 4271 §9.1.4 MUST: routes that overlap are both kept.
#[test]
fn a_route_inside_another_takes_nothing_from_it() {
    let mut pair = Pair::ebgp();
    pair.originate(0, &["198.51.100.0/24", "198.51.100.0/25", "198.51.100.1/32"]);
    pair.run_for(seconds(5));
    assert_eq!(pair.sides[1].rib.learned().count(), 3);
}

//= RFC 2918 §4 SHOULD: ROUTE-REFRESH is sent only for families that the neighbour offered.
#[test]
fn only_what_was_agreed_on_is_asked_for_again() {
    let mut pair = Pair::ebgp();
    pair.sides[0].peer.config.families = FamilySet::only(AddressFamily::Ipv4Unicast);
    pair.run_for(seconds(5));
    pair.sides[1].peer.refresh_in().unwrap();
    pair.settle();
    assert_eq!(pair.sides[0].peer.messages.received.route_refreshes, 1);
}

#[test]
fn who_wants_nothing_never_asks() {
    let mut pair = accepting(ImportPolicy::default());
    pair.run_for(seconds(5));
    let network: Prefix = "192.0.2.0/24".parse().unwrap();
    pair.sides[1].peer.set_networks(pair.now, &[network]);
    pair.settle();
    let asked = |pair: &Pair| pair.sides[0].peer.messages.received.route_refreshes;
    assert_eq!(asked(&pair), 0, "for an interface that came up");
    let mut config = pair.sides[1].peer.config().clone();
    for (allowed, expected) in [(PrefixFilter::Everything, 2), (PrefixFilter::Nothing, 2)] {
        config.import.allowed = allowed;
        pair.sides[1].peer.reconfigure(pair.now, config.clone());
        pair.settle();
        assert_eq!(asked(&pair), expected, "{:?}", config.import.allowed);
    }
    pair.assert_up();
}

#[test]
fn an_update_at_the_wrong_time_is_no_malformed_one() {
    let (peer, _) = answers(&[framed(MessageType::Update, &[0; 4]).unwrap()]);
    assert_eq!(peer.malformed.resets, 0);
    assert!(peer.last_malformed.is_none());
}

#[test]
fn attributes_of_more_bytes_than_allowed_end_the_session() {
    let maximum = MaximumPrefixes { limit: 100, warn_percent: 75, attribute_bytes: Some(65_536) };
    let allowed = PrefixFilter::Everything;
    let mut pair =
        accepting(ImportPolicy { allowed, maximum: Some(maximum), ..ImportPolicy::default() });
    pair.run_for(seconds(5));
    let long = |number: u32| {
        let mut path = vec![number; 200];
        path.insert(0, 65_001);
        update(&path, [192, 0, 2, 1])
    };
    // A route that takes the place of another one takes its memory, too.
    for number in 1..200 {
        hear(&mut pair, &long(number));
    }
    let held = view(&pair, 1);
    assert!((800..2000).contains(&held.attribute_bytes), "{}", held.attribute_bytes);
    assert_eq!(held.state, SessionState::Established);

    let attributes = |number: u32| {
        let next_hop = NextHop::Ipv4([192, 0, 2, 1].into());
        let path = [vec![65_001], vec![number; 200]].concat();
        PathAttributes::originated(AsPath::sequence(path), next_hop)
    };
    let mut sent = 0;
    while view(&pair, 1).state == SessionState::Established {
        assert!(sent < 99, "100 prefixes are allowed");
        let block = AttributeBlock::encode(&attributes(sent), true).unwrap();
        let mut prefixes = BTreeSet::from([format!("10.0.{sent}.0/24").parse().unwrap()]);
        let mut bytes = BytesMut::new();
        announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
        hear(&mut pair, &bytes);
        sent += 1;
    }
    assert!(sent > 40, "{sent}");
    let ended = view(&pair, 1);
    assert_eq!(ended.attribute_bytes, 0);
    let reset = ended.last_reset.unwrap();
    assert_eq!(reset.cause, ResetCause::NotificationSent(6, 8));
    assert_eq!(
        reset.text,
        "notification sent: Cease/Out of Resources (6/8): more than 65536 bytes of path attributes (toReceive.maxPrefixes.attributeBytes)"
    );
}
