//! The neighbour restarts, and its routes stay: for how long, and until which end of a session.

use super::helper::{Helper, IPV4, IPV6, Offer, helping};
use super::*;
use crate::wire::RouteRefresh;
use fairway_ground::{
    GracefulRestart, ImportPolicy, MaximumPrefixes, PrefixFilter, PrefixRange, ShutdownMessage,
};
use fairway_seam::StalePhase;

const ALL: &str = "10.0.0.0/8 11.0.0.0/8 2001:db8::/32";

//= RFC 4724 §4.2 MUST: routes of a neighbour that restarts are kept for the families that it names.
//= RFC 4724 §4.2 MUST: routes that are kept are marked as stale.
//= RFC 4724 §4.2 MUST NOT: a stale route is used otherwise than others.
//= RFC 4724 §4.2 MUST: what is said after the restart takes the place of what is stale.
//= RFC 4724 §4.2 MUST: what is still stale when the End-of-RIB marker of its family comes is removed.
#[test]
fn routes_of_a_neighbour_that_restarts_stay_until_it_has_said_everything() {
    let mut helper = Helper::with_routes(&Offer::new());
    assert_eq!(helper.stale(), None);
    helper.changes = 0;
    helper.lose();
    assert_eq!((helper.table().as_str(), helper.changes), (ALL, 0), "no change");
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Away, 120)));
    let view = helper.view();
    assert!(view.received.iter().all(|it| it.stale) && view.received.len() == 3);
    assert_eq!((view.prefixes_accepted.ipv4, view.prefixes_accepted.ipv6), (2, 1));
    helper.pass(119);
    helper.connect(&Offer::new());
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Back, 360)));
    helper.say(&["10.0.0.0/8"]);
    assert_eq!((helper.table().as_str(), helper.changes), (ALL, 0));
    assert_eq!(helper.stale(), Some((1, 1, StalePhase::Back, 360)));
    let stale: Vec<bool> = helper.view().received.iter().map(|it| it.stale).collect();
    assert_eq!(stale, [false, true, true]);
    // Each family by itself.
    helper.end_of_rib(IPV4);
    assert_eq!(helper.table(), "10.0.0.0/8 2001:db8::/32");
    assert_eq!(helper.stale(), Some((0, 1, StalePhase::Back, 360)));
    helper.say(&["2001:db8:1::/48"]);
    helper.end_of_rib(IPV6);
    assert_eq!(helper.table(), "10.0.0.0/8 2001:db8:1::/48");
    assert_eq!(helper.stale(), None);
    assert!(helper.view().received.iter().all(|it| !it.stale));
}

//= RFC 4724 §4.2 MUST: stale routes are removed when the neighbour is not back within its restart time.
#[test]
fn who_is_away_for_longer_than_its_restart_time_loses_its_routes() {
    for restart_time in [0, 1, 120, 4095] {
        let offer = Offer::new().with(|it| it.restart_time_seconds = restart_time);
        let mut helper = Helper::with_routes(&offer);
        helper.lose();
        if let Some(last) = restart_time.checked_sub(1) {
            helper.pass(last.into());
            assert_eq!(helper.table(), ALL, "{restart_time}");
            helper.pass(1);
        }
        assert_eq!((helper.table().as_str(), helper.stale()), ("", None), "{restart_time}");
        assert_eq!(helper.peer.next_deadline(), None);
        assert!(helper.peer.is_at_rest());
    }
}

//= RFC 4724 §4.2 MUST: stale routes of a family go at once when the neighbour is back without the capability, the family, or its forwarding bit.
#[test]
fn what_was_not_forwarded_meanwhile_goes_when_the_neighbour_is_back() {
    let silent = Offer { restart: None, ..Offer::new() };
    let unnamed = Offer::new().with(|it| it.families.retain(|it| it.family == IPV6.into()));
    let cold = Offer::new().with(|it| it.families[1].forwarding = false);
    let markers = Offer::new().with(|it| it.families.clear());
    let cases =
        [(silent, ""), (unnamed, "2001:db8::/32"), (cold, "10.0.0.0/8 11.0.0.0/8"), (markers, "")];
    for (offer, expected) in cases {
        let mut helper = Helper::with_routes(&Offer::new());
        helper.lose();
        helper.connect(&offer);
        assert_eq!(helper.table(), expected);
    }
}

//= RFC 4724 §4.2 MAY: the time for which stale routes are kept is bounded.
//= RFC 8538 §4.1 MUST: a timer bounds the time for which stale routes are kept.
#[test]
fn who_never_says_that_this_was_all_has_six_minutes() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.lose();
    helper.pass(100);
    helper.connect(&Offer::new());
    helper.say(&["10.0.0.0/8"]);
    helper.pass(359);
    assert_eq!(helper.table(), ALL);
    helper.pass(1);
    assert_eq!((helper.table().as_str(), helper.stale()), ("10.0.0.0/8", None));
    // The marker that comes after all has nothing left to do.
    helper.end_of_rib(IPV4);
    assert_eq!(helper.table(), "10.0.0.0/8");
}

//= RFC 4724 §4.2 MUST: routes that are stale already are removed when the neighbour restarts again.
#[test]
fn a_second_restart_in_a_row_takes_what_the_first_one_left() {
    let mut helper = Helper::with_routes(&Offer::new().plain());
    helper.lose();
    helper.connect(&Offer::new().plain());
    helper.say(&["11.0.0.0/8"]);
    helper.end_of_rib(IPV6);
    helper.lose();
    assert_eq!(helper.table(), "11.0.0.0/8");
    assert_eq!(helper.stale(), Some((1, 0, StalePhase::Away, 120)));
}

//= RFC 8538 §4.1 SHOULD NOT: a second restart in a row removes routes that are stale already.
#[test]
fn with_notifications_agreed_on_a_second_loss_takes_nothing_but_delays_nothing_either() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.lose();
    helper.pass(60);
    helper.connect(&Offer::new());
    helper.say(&["11.0.0.0/8"]);
    helper.lose();
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Away, 120)));
    helper.pass(119);
    helper.connect(&Offer::new());
    assert_eq!(helper.table(), ALL);
    // The restart time and six minutes after the first loss the stale routes are removed, however often the
    // neighbour comes and goes.
    helper.pass(120 + 360 - 60 - 119 - 1);
    helper.say(&["11.0.0.0/8"]);
    helper.lose();
    helper.pass(1);
    assert_eq!(helper.table(), "11.0.0.0/8");
    helper.connect(&Offer::new());
    helper.lose();
    helper.pass(120);
    assert_eq!(helper.table(), "");
}

#[test]
fn who_flaps_for_ever_and_never_says_everything_keeps_nothing_alive() {
    for offer in [Offer::new(), Offer::new().plain(), Offer::new().long_lived(600)] {
        let mut helper = Helper::with_routes(&offer);
        for _ in 0..40 {
            helper.lose();
            helper.pass(119);
            helper.connect(&offer);
            helper.say(&["11.0.0.0/8"]);
            helper.pass(10);
        }
        assert_eq!(helper.table(), "11.0.0.0/8");
    }
}

//= RFC 8538 §4 MUST: with N from both sides routes outlive a NOTIFICATION that is received, unless it is a Hard Reset.
//= RFC 8538 §3.2 MUST: a Hard Reset that is received ends the session as without graceful restart.
//= RFC 4724 §4 MUST: a NOTIFICATION ends a session as without graceful restart.
#[test]
fn a_notification_leaves_routes_behind_where_both_said_so_and_a_hard_reset_never_does() {
    let kept = |offer: &Offer, code, subcode, data: &[u8]| {
        let mut helper = Helper::with_routes(offer);
        let notification = Notification { code, subcode, data: data.to_vec() };
        helper.hear(&notification.encode());
        assert_eq!(helper.up, None);
        helper.table() == ALL
    };
    for (code, subcode) in [(6, 2), (6, 4), (6, 6), (6, 1), (4, 0), (3, 1), (1, 1)] {
        assert!(kept(&Offer::new(), code, subcode, &[]), "{code}/{subcode}");
        assert!(!kept(&Offer::new().plain(), code, subcode, &[]), "{code}/{subcode}");
    }
    for offer in [Offer::new(), Offer::new().plain()] {
        assert!(!kept(&offer, 6, cease::HARD_RESET, &[6, 2]));
        assert!(!kept(&offer, 6, cease::HARD_RESET, &[]));
    }
}

//= RFC 8538 §4 MUST: who sends a NOTIFICATION that is no Hard Reset keeps routes like who receives it.
//= RFC 8538 §4 MUST: with N from both sides routes outlive a session whose hold timer expired.
#[test]
fn a_notification_of_ours_leaves_routes_behind_too() {
    for (offer, expected) in [(Offer::new(), ALL), (Offer::new().plain(), "")] {
        let mut silent = Helper::with_routes(&offer);
        let up = silent.up.take().unwrap();
        silent.pass(10);
        assert_eq!(silent.closed, [(up, "4/0".to_owned())]);
        assert_eq!(silent.table(), expected);
        let mut confused = Helper::with_routes(&offer);
        confused.hear(&offer.open());
        assert_eq!(confused.closed, [(up, "5/3:01".to_owned())]);
        assert_eq!(confused.table(), expected);
        // What the operator requested is no reason to lose routes either.
        let mut cleared = Helper::with_routes(&offer);
        cleared.peer.reset(cleared.now);
        cleared.settle();
        assert_eq!((cleared.closed[0].1.as_str(), cleared.table().as_str()), ("6/4", expected));
    }
}

//= RFC 8538 §4.1 MUST NOT: a neighbour that comes back without N loses its stale routes for that.
#[test]
fn a_neighbour_may_take_back_what_it_said_of_notifications() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.lose();
    helper.connect(&Offer::new().plain());
    assert_eq!(helper.table(), ALL);
}

#[test]
fn nobody_waits_for_a_neighbour_that_the_operator_sent_away() {
    let gone = |change: &dyn Fn(&mut Peer, Instant)| {
        for is_away in [true, false] {
            let mut helper = Helper::with_routes(&Offer::new());
            if is_away {
                helper.lose();
            }
            change(&mut helper.peer, helper.now);
            helper.settle();
            assert_eq!((helper.table().as_str(), helper.stale()), ("", None), "{is_away}");
            assert!(helper.peer.is_at_rest());
        }
    };
    gone(&|peer, now| peer.stop(now, cease::PEER_DECONFIGURED, "removed"));
    gone(&|peer, now| assert!(peer.set_aside(now, Some("no such thing".to_owned()))));
    gone(&|peer, now| {
        let shutdown = ShutdownMessage::new("for a while").ok();
        peer.reconfigure(now, PeerConfig { shutdown, ..helping() });
    });
    gone(&|peer, now| peer.reconfigure(now, PeerConfig { graceful_restart: None, ..helping() }));
    gone(&|peer, now| {
        let remote_as = RemoteAs::Asn(Asn::new(65_009).unwrap());
        peer.reconfigure(now, PeerConfig { remote_as, ..helping() });
    });
    // To clear a neighbour that is away is to give it up.
    let mut away = Helper::with_routes(&Offer::new());
    away.lose();
    away.peer.reset(away.now);
    away.settle();
    assert_eq!(away.table(), "");
}

/// A route of a provider is marked only from the moment on that we are its customer, and must not
/// leave for other providers without the mark.
#[test]
fn routes_from_before_another_role_do_not_wait() {
    let mut helper = Helper::with_routes(&Offer::new());
    let role = Some(fairway_ground::Role::Customer);
    helper.peer.reconfigure(helper.now, PeerConfig { role, ..helping() });
    helper.settle();
    assert_eq!((helper.closed[0].1.as_str(), helper.table().as_str()), ("6/6", ""));
}

#[test]
fn routes_of_a_family_that_is_no_longer_wanted_do_not_wait() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper
        .peer
        .reconfigure(helper.now, PeerConfig { families: FamilySet::only(IPV6), ..helping() });
    helper.settle();
    assert_eq!(helper.closed[0].1, "6/6");
    assert_eq!(helper.table(), "2001:db8::/32");
}

#[test]
fn another_policy_holds_for_what_is_stale_too() {
    let range = PrefixRange::new("10.0.0.0/8".parse().unwrap(), None, None).unwrap();
    let narrow = ImportPolicy { allowed: PrefixFilter::Listed(vec![range]), ..helping().import };
    let limit = MaximumPrefixes { limit: 1, warn_percent: 100, attribute_bytes: None };
    let limited = ImportPolicy { maximum: Some(limit), ..helping().import };
    for (import, expected) in [(narrow, "10.0.0.0/8"), (limited, "2001:db8::/32")] {
        let mut helper = Helper::with_routes(&Offer::new());
        helper.lose();
        helper.peer.reconfigure(helper.now, PeerConfig { import, ..helping() });
        helper.settle();
        assert_eq!(helper.table(), expected);
    }
}

#[test]
fn stale_routes_make_room_for_new_ones_before_there_are_too_many() {
    let limit = MaximumPrefixes { limit: 3, warn_percent: 100, attribute_bytes: None };
    let import = ImportPolicy { maximum: Some(limit), ..helping().import };
    let mut helper = Helper::new(PeerConfig { import, ..helping() });
    helper.connect(&Offer::new());
    helper.say(&["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"]);
    helper.lose();
    helper.connect(&Offer::new());
    helper.say(&["12.0.0.0/8"]);
    assert_eq!(helper.table(), "10.0.0.0/8 11.0.0.0/8 12.0.0.0/8");
    helper.say(&["20.0.0.0/8"]);
    assert_eq!(helper.table(), "12.0.0.0/8 20.0.0.0/8");
    helper.say(&["21.0.0.0/8", "22.0.0.0/8"]);
    // Now there are too many, and the session ends for good, N or not.
    assert_eq!((helper.up, helper.table().as_str()), (None, ""));
}

#[test]
fn a_lower_limit_takes_stale_routes_before_it_takes_the_session() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.lose();
    helper.connect(&Offer::new());
    helper.say(&["12.0.0.0/8"]);
    let limit = MaximumPrefixes { limit: 1, warn_percent: 100, attribute_bytes: None };
    let import = ImportPolicy { maximum: Some(limit), ..helping().import };
    helper.peer.reconfigure(helper.now, PeerConfig { import, ..helping() });
    helper.settle();
    assert!(helper.up.is_some());
    assert_eq!(helper.table(), "12.0.0.0/8 2001:db8::/32");
}

#[test]
fn a_neighbour_that_comes_back_as_another_has_its_routes_judged_anew() {
    let sources = |helper: &Helper| {
        let ids = helper.rib.learned().map(|it| it.path.source.router_id.get());
        ids.collect::<Vec<_>>()
    };
    let mut helper = Helper::new(PeerConfig { remote_as: RemoteAs::External, ..helping() });
    helper.connect(&Offer::new());
    helper.say(&["10.0.0.0/8", "11.0.0.0/8"]);
    helper.lose();
    helper.connect(&Offer { router_id: 77, ..Offer::new() });
    assert_eq!(sources(&helper), [77, 77]);
    helper.end_of_rib(IPV4);
    helper.say(&["12.0.0.0/8"]);
    helper.lose();
    // In another AS none of these paths could be its own.
    helper.connect(&Offer { asn: 65_003, ..Offer::new() });
    assert_eq!(helper.table(), "");
}

//= RFC 7313 §4 MUST: before the End-of-RIB marker of one that restarts gracefully, the marks of a refresh mean nothing.
#[test]
fn marks_of_a_refresh_do_not_cut_a_restart_short() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.lose();
    helper.connect(&Offer::new());
    let connection = helper.peer.incoming.as_mut().unwrap();
    connection.negotiated.as_mut().unwrap().enhanced_route_refresh = true;
    for subtype in [RouteRefresh::BEGIN, RouteRefresh::END] {
        let mark = RouteRefresh { subtype, ..RouteRefresh::request(IPV4) };
        helper.hear(&mark.encode());
        assert_eq!(helper.table(), ALL);
    }
    helper.end_of_rib(IPV4);
    assert_eq!(helper.table(), "2001:db8::/32");
}

/// A neighbour that restarts after an internal error has an empty state; the RIB forgets its routes.
#[test]
fn a_fault_of_ours_keeps_nothing() {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.lose();
    let peer = helper.peer.after_panic(helper.now, helper.now + seconds(30), 1, 2);
    assert!(peer.inbound().is_none());
}

#[test]
fn without_the_setting_no_route_outlives_its_session() {
    let mut helper = Helper::new(PeerConfig { graceful_restart: None, ..helping() });
    helper.connect(&Offer::new().long_lived(100));
    helper.say(&["10.0.0.0/8"]);
    helper.lose();
    assert_eq!((helper.table().as_str(), helper.stale()), ("", None));
    let mut helper = Helper::new(helping());
    helper.connect(&Offer { restart: None, ..Offer::new().long_lived(100) });
    helper.say(&["10.0.0.0/8"]);
    helper.lose();
    assert_eq!(helper.table(), "", "what the neighbor did not offer");
    assert_eq!(helping().graceful_restart.map(GracefulRestart::restart_time_seconds), Some(120));
}
