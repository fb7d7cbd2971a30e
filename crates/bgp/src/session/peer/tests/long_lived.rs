//! A neighbour that is away for longer than its restart time: its routes stay as long-lived stale
//! (RFC 9494).

use super::helper::{Helper, IPV4, IPV6, Offer, helping};
use super::*;
use fairway_ground::{ChosenNextHops, Community, GracefulRestart, PeerKey, PrefixFilter};
use fairway_seam::{PathSource, StalePhase};

const ALL: &str = "10.0.0.0/8 11.0.0.0/8 2001:db8::/32";
const STALE: Community = Community::LLGR_STALE;

//= RFC 9494 §4.2 MUST: after the restart time stale routes are kept for the long-lived stale time of their family.
//= RFC 9494 §4.2 MUST: routes that are kept for that long carry LLGR_STALE.
//= RFC 9494 §4.2 MUST: they are removed when that time is over.
//= RFC 9494 §4.2 MUST: a timer runs for each family with a time of its own.
#[test]
fn after_the_restart_time_routes_stay_as_the_last_resort() {
    let mut offer = Offer::new().long_lived(1000);
    offer.long_lived[1].stale_time_seconds = 500;
    let mut helper = Helper::with_routes(&offer);
    helper.lose();
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Away, 1120)));
    helper.pass(119);
    assert_eq!(helper.carrying(STALE), 0);
    helper.pass(1);
    assert_eq!((helper.table().as_str(), helper.carrying(STALE)), (ALL, 3));
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::LongLived, 1000)));
    assert!(helper.view().received.iter().all(|it| it.stale));
    helper.pass(500);
    assert_eq!(helper.table(), "10.0.0.0/8 11.0.0.0/8");
    helper.pass(499);
    assert_eq!(helper.stale(), Some((2, 0, StalePhase::LongLived, 1)));
    helper.pass(1);
    assert_eq!((helper.table().as_str(), helper.stale()), ("", None));
}

//= RFC 9494 §4.2 MUST NOT: routes with NO_LLGR are kept beyond the restart time.
#[test]
fn who_does_not_want_its_route_used_that_long_says_so() {
    let offer = Offer::new().long_lived(1000);
    let mut helper = Helper::new(helping());
    helper.connect(&offer);
    helper.say_with(&["10.0.0.0/8"], &[Community::NO_LLGR]);
    helper.say_with(&["11.0.0.0/8"], &[STALE, Community::NO_LLGR]);
    helper.say_with(&["12.0.0.0/8"], &[STALE]);
    helper.say_with(&["13.0.0.0/8"], &[Community::NO_EXPORT]);
    helper.lose();
    assert_eq!(helper.rib.learned().count(), 4, "a restart is no reason");
    helper.pass(120);
    assert_eq!(helper.table(), "12.0.0.0/8 13.0.0.0/8");
    let communities = helper.rib.learned().map(|it| it.path.attributes.communities.clone());
    let communities: Vec<_> = communities.collect();
    assert_eq!(communities, [vec![STALE], vec![STALE, Community::NO_EXPORT]]);
}

#[test]
fn nobody_waits_for_long_where_nothing_is_left() {
    let offer = Offer::new().long_lived(1000);
    let mut helper = Helper::new(helping());
    helper.connect(&offer);
    helper.say_with(&["10.0.0.0/8"], &[Community::NO_LLGR]);
    helper.lose();
    assert!(!helper.peer.is_at_rest());
    helper.pass(120);
    assert_eq!((helper.table().as_str(), helper.stale()), ("", None));
    assert!(helper.peer.is_at_rest());
}

#[test]
fn thousands_of_routes_share_their_attributes_when_they_are_marked_as_before() {
    let mut helper = Helper::with_routes(&Offer::new().long_lived(9));
    let share = |helper: &Helper| {
        let routes: Vec<_> = helper.view().received.into_iter().map(|it| it.attributes).collect();
        Arc::ptr_eq(&routes[0], &routes[1])
    };
    // One UPDATE with two prefixes.
    let mut both: BTreeSet<fairway_ground::Nlri> =
        ["10.0.0.0/8", "11.0.0.0/8"].map(|it| it.parse().unwrap()).into();
    let attributes = Arc::clone(&helper.view().received[0].attributes);
    let changed = fairway_seam::PathAttributes { med: Some(7), ..(*attributes).clone() };
    let block = crate::wire::announce::AttributeBlock::encode(&changed, true).unwrap();
    let mut bytes = BytesMut::new();
    crate::wire::announce::announcement(IPV4, false, &block, &mut both, &mut bytes);
    helper.hear(&bytes);
    assert!(share(&helper));
    helper.lose();
    helper.pass(120);
    assert!(share(&helper) && helper.carrying(STALE) == 3);
}

#[test]
fn back_from_long_its_routes_lose_the_mark_as_they_are_said_again() {
    let offer = Offer::new().long_lived(1000);
    let mut helper = Helper::with_routes(&offer);
    helper.lose();
    helper.pass(600);
    helper.connect(&offer);
    assert_eq!((helper.table().as_str(), helper.carrying(STALE)), (ALL, 3));
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Back, 360)));
    helper.say(&["10.0.0.0/8"]);
    assert_eq!((helper.table().as_str(), helper.carrying(STALE)), (ALL, 2));
    helper.end_of_rib(IPV4);
    helper.end_of_rib(IPV6);
    assert_eq!((helper.table().as_str(), helper.carrying(STALE)), ("10.0.0.0/8", 0));
}

//= RFC 9494 §4.2 MUST: long-lived stale routes of a family go at once when the neighbour is back without the capabilities, the family, or its forwarding bit.
#[test]
fn what_was_not_forwarded_for_so_long_goes_when_the_neighbour_is_back() {
    let offer = Offer::new().long_lived(1000);
    let without = Offer::new();
    let mut unnamed = offer.clone();
    unnamed.long_lived.remove(0);
    let mut cold = offer.clone();
    cold.long_lived[1].forwarding = false;
    let alone = Offer { restart: None, ..offer.clone() };
    // What the other capability advertises about forwarding does not count any more.
    let other = offer.clone().with(|it| it.families[0].forwarding = false);
    let cases = [
        (without, ""),
        (unnamed, "2001:db8::/32"),
        (cold, "10.0.0.0/8 11.0.0.0/8"),
        (alone, ""),
        (other, ALL),
    ];
    for (back, expected) in cases {
        let mut helper = Helper::with_routes(&offer);
        helper.lose();
        helper.pass(300);
        helper.connect(&back);
        assert_eq!(helper.table(), expected);
    }
}

//= RFC 9494 §4.2 MUST NOT: in case of consecutive restarts long-lived stale routes are removed before their time.
//= RFC 9494 §4.2 MUST NOT: the timer of a family is set anew before the neighbour has said everything in a new session.
#[test]
fn a_second_loss_neither_shortens_nor_renews_the_long_lived_time() {
    let offer = Offer::new().plain().long_lived(1000);
    let mut helper = Helper::with_routes(&offer);
    helper.lose();
    helper.pass(120 + 300);
    helper.connect(&Offer::new().plain().long_lived(5000));
    helper.say(&["11.0.0.0/8"]);
    helper.lose();
    assert_eq!(helper.table(), ALL);
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Away, 700)));
    helper.pass(120);
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::LongLived, 580)));
    assert_eq!(helper.carrying(STALE), 3);
    helper.pass(579);
    assert_eq!(helper.table(), ALL);
    helper.pass(1);
    assert_eq!(helper.table(), "");
}

#[test]
fn the_long_lived_time_ends_for_what_is_that_old_also_while_the_neighbour_restarts_again() {
    let offer = Offer::new().long_lived(1000);
    let mut helper = Helper::with_routes(&offer);
    helper.lose();
    helper.pass(120 + 950);
    helper.connect(&offer);
    helper.say(&["11.0.0.0/8"]);
    helper.lose();
    helper.pass(50);
    assert_eq!(helper.table(), "11.0.0.0/8", "it was sent since, and has its restart time");
    helper.pass(70);
    assert_eq!(helper.table(), "");
}

//= RFC 9494 §4.2 MUST: routes whose long-lived time is over go at once when a session ends before it has said everything.
#[test]
fn the_long_lived_time_ends_as_well_while_the_neighbour_is_back() {
    let offer = Offer::new().long_lived(200);
    let mut helper = Helper::with_routes(&offer);
    helper.lose();
    helper.pass(120 + 150);
    helper.connect(&offer);
    helper.say(&["10.0.0.0/8"]);
    assert_eq!(helper.stale(), Some((1, 1, StalePhase::Back, 50)));
    helper.pass(49);
    assert_eq!(helper.table(), ALL);
    helper.pass(1);
    assert_eq!((helper.table().as_str(), helper.stale()), ("10.0.0.0/8", None));
    helper.say(&["2001:db8::/32"]);
    helper.end_of_rib(IPV6);
    helper.lose();
    assert_eq!(helper.table(), "2001:db8::/32", "the other family was not sent in full");
}

//= RFC 9494 §4.2 MAY: the long-lived stale time of a neighbour is made shorter by configuration.
//= RFC 9494 §5 MUST NOT: routes are kept for that long without being asked for.
#[test]
fn the_operator_bounds_what_a_neighbour_asks_for() {
    for (ours, expected) in [(0, 120), (300, 420), ((1 << 24) - 1, 120 + (1 << 24) - 1)] {
        let graceful_restart = GracefulRestart::new(120, ours);
        let mut helper = Helper::new(PeerConfig { graceful_restart, ..helping() });
        helper.connect(&Offer::new().long_lived((1 << 24) - 1));
        helper.say(&["10.0.0.0/8"]);
        helper.lose();
        assert_eq!(helper.stale(), Some((1, 0, StalePhase::Away, expected)));
        helper.pass(expected - 1);
        assert_eq!(helper.table(), "10.0.0.0/8");
        helper.pass(1);
        assert_eq!(helper.table(), "");
    }
}

#[test]
fn a_shorter_long_lived_time_holds_for_a_neighbour_that_is_away_too() {
    let offer = Offer::new().long_lived(1000);
    for (away, ours, expected) in [
        (0, 0, (2, 1, StalePhase::Away, 120)),
        (0, 7, (2, 1, StalePhase::Away, 127)),
        (420, 0, (2, 1, StalePhase::LongLived, 0)),
        (420, 7, (2, 1, StalePhase::LongLived, 7)),
        (420, 5000, (2, 1, StalePhase::LongLived, 700)),
    ] {
        let mut helper = Helper::with_routes(&offer);
        helper.lose();
        helper.pass(away);
        let graceful_restart = GracefulRestart::new(120, ours);
        helper.peer.reconfigure(helper.now, PeerConfig { graceful_restart, ..helping() });
        helper.settle();
        assert_eq!(helper.stale(), Some(expected));
        helper.pass(expected.3);
        assert_eq!(helper.table(), "");
    }
}

//= RFC 9494 §4.5 MUST: the long-lived capability without that of graceful restart is ignored.
#[test]
fn the_long_lived_capability_needs_the_other_one_but_not_its_families() {
    let alone = Offer { restart: None, ..Offer::new().long_lived(100) };
    let mut helper = Helper::with_routes(&alone);
    helper.lose();
    assert_eq!(helper.table(), "");
    let no_families = Offer::new().long_lived(100).with(|it| it.families.clear());
    let mut helper = Helper::with_routes(&no_families);
    helper.lose();
    assert_eq!((helper.table().as_str(), helper.carrying(STALE)), (ALL, 3));
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::LongLived, 100)));
}

/// How many routes `left` receives when we know one long-lived stale route, before and after a change of
/// what is passed on.
fn heard_by(left: PeerConfig) -> [usize; 2] {
    let graceful_restart = GracefulRestart::new(120, 60);
    let ours = PeerConfig { pass_on: PrefixFilter::Everything, ..config(65_002, 65_001, 2) };
    let mut pair = Pair::new(left, PeerConfig { graceful_restart, ..ours.clone() });
    pair.run_for(seconds(5));
    pair.assert_up();
    let mut away = Helper::with_routes(&Offer::new().long_lived(60));
    away.lose();
    away.pass(120);
    let now = pair.now;
    let Side { peer, rib, .. } = &mut pair.sides[1];
    for route in away.rib.learned() {
        let source = PathSource {
            key: PeerKey::from(std::net::IpAddr::from([192, 0, 2, 9])),
            ..(*route.path.source).clone()
        };
        let nlri = route.prefix.into();
        let change = RouteChange { nlri, attributes: Some(route.path.attributes) };
        rib.learn(&Arc::new(source), vec![change]);
        let changes = rib.take_changes();
        peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    }
    pair.settle();
    let first = pair.sides[0].rib.learned().count();
    let Side { peer, rib, .. } = &mut pair.sides[1];
    let next_hops = ChosenNextHops { ipv4: Some([192, 0, 2, 77].into()), ipv6: None };
    peer.reconfigure(now, PeerConfig { graceful_restart, next_hops, ..ours });
    peer.announce_all(rib);
    pair.settle();
    [first, pair.sides[0].rib.learned().count()]
}

#[test]
fn what_a_neighbour_offered_decides_whether_it_hears_of_the_last_resort() {
    let left = config(65_001, 65_002, 1);
    assert_eq!(heard_by(left.clone()), [0, 0]);
    let restarts = |stale_time| GracefulRestart::new(120, stale_time);
    assert_eq!(heard_by(PeerConfig { graceful_restart: restarts(0), ..left.clone() }), [0, 0]);
    assert_eq!(heard_by(PeerConfig { graceful_restart: restarts(9), ..left }), [3, 3]);
}
