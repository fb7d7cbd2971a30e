//! A reflector beside the model API server: stories, and random schedules by seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing
)] // What fails here fails the test.

mod schedules;

use std::sync::Arc;

use super::*;
use serde_json::json;

const HOLD: Duration = Duration::from_secs(300);

fn object(name: &str, uid: &str, version: u64) -> Arc<Value> {
    Arc::new(json!({"metadata": {
        "namespace": "default", "name": name, "uid": uid, "resourceVersion": version.to_string(),
    }}))
}

fn name(name: &str) -> ObjectName {
    ObjectName::new("default", name)
}

const fn seconds(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

fn listed(items: &[&Arc<Value>], version: u64) -> Reply {
    Reply::Listed {
        items: items.iter().map(|it| ListedObject::from(&***it)).collect(),
        resource_version: version.to_string(),
        continue_token: None,
    }
}

fn is_list(request: Option<Request>) -> bool {
    matches!(request, Some(Request::List { continue_token: None }))
}

fn watches_from(request: Option<Request>, version: u64) -> bool {
    request == Some(Request::Watch { resource_version: version.to_string() })
}

/// A reflector that has listed `items` at 0 s, and watches.
fn watching(items: &[&Arc<Value>], version: u64) -> Reflector {
    let mut reflector = Reflector::new(1, HOLD);
    assert!(is_list(reflector.next_request(Instant::ZERO)));
    reflector.handle(Instant::ZERO, listed(items, version));
    assert!(watches_from(reflector.next_request(Instant::ZERO), version));
    reflector
}

/// Waits for the next request.
fn ask(reflector: &mut Reflector, now: &mut Instant) -> Request {
    for _ in 0..10 {
        *now = (*now).max(reflector.next_deadline());
        if let Some(request) = reflector.next_request(*now) {
            return request;
        }
    }
    panic!("it asks nothing: {reflector:?}");
}

#[test]
fn it_lists_and_watches_from_there() {
    let mut reflector = Reflector::new(1, HOLD);
    assert!(!reflector.is_synced());
    assert!(is_list(reflector.next_request(Instant::ZERO)));
    assert_eq!(reflector.next_request(Instant::ZERO), None, "one request at a time");
    let deltas = reflector.handle(Instant::ZERO, listed(&[&object("a", "u1", 3)], 5));
    assert_eq!(deltas, [Delta::Applied(ObjectText::from(&*object("a", "u1", 3)))]);
    assert!(reflector.is_synced());
    assert!(watches_from(reflector.next_request(Instant::ZERO), 5));
}

#[test]
fn a_broken_watch_goes_on_where_it_was_without_a_list() {
    let mut reflector = watching(&[], 5);
    let mut now = seconds(1);
    reflector.handle(now, Reply::Applied(object("a", "u1", 8)));
    reflector.handle(now, Reply::Bookmark("20".to_owned()));
    assert_eq!(reflector.handle(now, Reply::Failed), []);
    assert_eq!(reflector.items().len(), 1, "a failure is no news");
    assert_eq!(reflector.next_request(now), None, "there is a pause");
    assert!(watches_from(Some(ask(&mut reflector, &mut now)), 20));
    assert!(now <= seconds(2));
}

#[test]
fn after_410_a_list_tells_what_vanished_unseen() {
    let (a, b) = (object("a", "u1", 3), object("b", "u2", 4));
    let mut reflector = watching(&[&a, &b], 5);
    let mut now = seconds(1);
    assert_eq!(reflector.handle(now, Reply::Gone), []);
    assert!(reflector.is_synced(), "it still knows the most that anybody does");
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    let deltas = reflector.handle(now, listed(&[&b], 9));
    assert_eq!(deltas, [Delta::Deleted(name("a"))], "and nothing about what is as it was");
}

#[test]
fn another_object_of_the_same_name_is_a_deletion_and_an_addition() {
    let (old, new) = (object("a", "u1", 3), object("a", "u2", 8));
    let expected = [Delta::Deleted(name("a")), Delta::Applied(ObjectText::from(&*new))];
    let mut reflector = watching(&[&old], 5);
    let mut now = seconds(1);
    reflector.handle(now, Reply::Gone);
    ask(&mut reflector, &mut now);
    assert_eq!(reflector.handle(now, listed(&[&new], 9)), expected, "unseen");
    let mut reflector = watching(&[&old], 5);
    assert_eq!(
        reflector.handle(now, Reply::Applied(new)),
        expected,
        "and from a server that skipped it"
    );
}

#[test]
fn pages_are_believed_when_all_of_them_are_there() {
    let (a, b, c) = (object("a", "u1", 3), object("b", "u2", 4), object("c", "u3", 5));
    let mut reflector = watching(&[&a, &b, &c], 5);
    let mut now = seconds(1);
    reflector.handle(now, Reply::Gone);
    ask(&mut reflector, &mut now);
    let page = |items: &[&Arc<Value>], token: Option<&str>| match listed(items, 9) {
        Reply::Listed { items, resource_version, .. } => {
            Reply::Listed { items, resource_version, continue_token: token.map(str::to_owned) }
        }
        other => other,
    };
    assert_eq!(reflector.handle(now, page(&[&a], Some("after a"))), []);
    let next = Request::List { continue_token: Some("after a".to_owned()) };
    assert_eq!(reflector.next_request(now), Some(next));
    reflector.handle(now, Reply::Gone);
    assert_eq!(reflector.items().len(), 3, "half a list is no list");
    assert!(is_list(Some(ask(&mut reflector, &mut now))), "and it starts again");
    reflector.handle(now, page(&[&a], Some("after a")));
    reflector.next_request(now);
    assert_eq!(reflector.handle(now, page(&[&c], None)), [Delta::Deleted(name("b"))]);
}

#[test]
fn failures_are_answered_with_growing_pauses_and_no_deltas() {
    let mut reflector = Reflector::new(7, HOLD);
    let mut now = Instant::ZERO;
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let failed_at = now;
        assert!(is_list(Some(ask(&mut reflector, &mut now))));
        pauses.push(now.since(failed_at));
        assert_eq!(reflector.handle(now, Reply::Failed), []);
    }
    assert!(pauses[1] <= PAUSE_MIN);
    assert!(pauses[2] > PAUSE_MIN && pauses[3] > pauses[2]);
    assert!(pauses[10] <= PAUSE_MAX && pauses[10] >= PAUSE_MAX * 3 / 4);
    assert!(!reflector.is_synced());
}

#[test]
fn a_server_that_closes_each_watch_at_once_is_not_asked_in_a_hot_loop() {
    let mut reflector = watching(&[], 5);
    let mut now = Instant::ZERO;
    let mut watches = 0;
    while now < seconds(600) {
        reflector.handle(now, Reply::Closed);
        ask(&mut reflector, &mut now);
        watches += 1;
    }
    assert!(watches < 70, "{watches} in ten minutes");
}

#[test]
fn a_server_that_lists_and_then_says_410_is_not_asked_in_a_hot_loop() {
    let mut reflector = watching(&[], 5);
    let mut now = Instant::ZERO;
    let mut lists = 0;
    while now < seconds(600) {
        reflector.handle(now, Reply::Gone);
        assert!(is_list(Some(ask(&mut reflector, &mut now))));
        reflector.handle(now, listed(&[], 5));
        assert!(watches_from(reflector.next_request(now), 5));
        lists += 1;
    }
    assert!(lists < 70, "{lists} in ten minutes");
}

#[test]
fn a_watch_that_is_silent_is_replaced_by_a_list() {
    let mut reflector = watching(&[], 5);
    let mut now = Instant::ZERO;
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    assert_eq!(now, Instant::ZERO + SILENCE_MAX);
}

#[test]
fn every_hour_there_is_a_list_though_no_watch_breaks() {
    let mut reflector = watching(&[], 5);
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + RELIST_INTERVAL {
        assert_eq!(reflector.next_request(now), None);
        now = now + Duration::from_secs(60);
        reflector.handle(now, Reply::Bookmark("5".to_owned()));
    }
    assert!(is_list(reflector.next_request(now)));
}

#[test]
fn a_list_without_an_answer_is_given_up() {
    let mut reflector = Reflector::new(1, HOLD);
    assert!(is_list(reflector.next_request(Instant::ZERO)));
    let mut now = seconds(1);
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    assert!(now > Instant::ZERO + LIST_MAX);
}

#[test]
fn what_is_told_twice_is_no_news_and_what_is_older_asks_for_a_list() {
    let mut reflector = watching(&[], 5);
    let mut now = seconds(1);
    assert_eq!(reflector.handle(now, Reply::Applied(object("a", "u1", 8))).len(), 1);
    assert_eq!(reflector.handle(now, Reply::Applied(object("a", "u1", 8))), []);
    assert_eq!(reflector.handle(now, Reply::Deleted(object("a", "u1", 7))), []);
    assert_eq!(reflector.items().len(), 1);
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
}

#[test]
fn a_list_of_before_is_believed_only_when_it_stays() {
    let mut reflector = watching(&[&object("a", "u1", 100)], 100);
    let mut now = seconds(1);
    reflector.handle(now, Reply::Gone);
    let began = now;
    let restored = object("b", "u2", 40);
    let mut lists = 0;
    while !reflector.items().contains_key(&name("b")) {
        assert!(is_list(Some(ask(&mut reflector, &mut now))));
        assert_eq!(reflector.items().len(), 1);
        reflector.handle(now, listed(&[&restored], 50));
        lists += 1;
    }
    assert!(now.since(began) >= DOUBT && lists >= DOUBTFUL_LISTS);
    assert!(now.since(began) < DOUBT * 2);
    assert!(!reflector.is_in_doubt());
    assert!(watches_from(reflector.next_request(now), 50), "and goes on in that history");
}

/// A reflector that knew these, and is listed nothing at 1 s; with the time.
fn emptied(items: &[&Arc<Value>]) -> (Reflector, Instant) {
    let mut reflector = watching(items, 5);
    let mut now = seconds(1);
    reflector.handle(now, Reply::Gone);
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    assert_eq!(reflector.handle(now, listed(&[], 9)), []);
    assert!(reflector.is_synced() && reflector.items().len() == items.len());
    assert_eq!(reflector.held_until(), Some(now + HOLD));
    (reflector, now)
}

#[test]
fn a_list_of_nothing_is_held_and_watched_for_a_while() {
    let (mut reflector, began) = emptied(&[&object("a", "u1", 3)]);
    let mut now = began;
    assert!(watches_from(Some(ask(&mut reflector, &mut now)), 9));
    // Bookmarks do not end it.
    for _ in 0..4 {
        now = now + Duration::from_secs(60);
        assert_eq!(reflector.handle(now, Reply::Bookmark("9".to_owned())), []);
        assert_eq!(reflector.next_request(now), None);
    }
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    assert_eq!(now, began + HOLD);
    assert_eq!(reflector.handle(now, listed(&[], 12)), [Delta::Deleted(name("a"))]);
    assert!(reflector.items().is_empty() && reflector.held_until().is_none());
}

#[test]
fn objects_that_come_back_one_by_one_end_the_hold() {
    let (a, b, c) = (object("a", "u1", 3), object("b", "u2", 4), object("c", "u3", 11));
    let (mut reflector, mut now) = emptied(&[&a, &b]);
    assert!(watches_from(Some(ask(&mut reflector, &mut now)), 9));
    let applied = |it: &Arc<Value>| Delta::Applied(ObjectText::from(&**it));
    assert_eq!(reflector.handle(now, Reply::Applied(Arc::clone(&c))), [applied(&c)]);
    let again = object("a", "u4", 12);
    let deltas = reflector.handle(now, Reply::Applied(Arc::clone(&again)));
    assert_eq!(deltas, [Delta::Deleted(name("a")), applied(&again)]);
    assert!(reflector.is_kept(&name("b")) && !reflector.is_kept(&name("a")));
    // A list in between takes nothing away that is kept.
    reflector.handle(now, Reply::Gone);
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    assert_eq!(reflector.handle(now, listed(&[&again], 13)), [Delta::Deleted(name("c"))]);
    assert!(watches_from(Some(ask(&mut reflector, &mut now)), 13));
    reflector.handle(now, Reply::Applied(object("b", "u5", 14)));
    assert_eq!(reflector.held_until(), None);
    assert_eq!(reflector.items().len(), 2);
}

#[test]
fn a_demand_is_met_by_a_list_of_nothing_although_it_is_held() {
    let (mut reflector, mut now) = emptied(&[&object("a", "u1", 3)]);
    reflector.relist();
    assert!(is_list(Some(ask(&mut reflector, &mut now))));
    assert_eq!(reflector.handle(now, listed(&[], 10)), []);
    assert!(reflector.is_synced(), "a controller can lead meanwhile");
    assert_eq!(reflector.items().len(), 1);
}

#[test]
fn an_object_that_is_deleted_goes_at_once_and_the_last_one_too() {
    let a = object("a", "u1", 3);
    let mut reflector = watching(&[&a], 5);
    let deltas = reflector.handle(seconds(1), Reply::Deleted(object("a", "u1", 6)));
    assert_eq!(deltas, [Delta::Deleted(name("a"))]);
    assert_eq!(reflector.held_until(), None);
}

#[test]
fn objects_of_a_kind_whose_definition_goes_are_held() {
    let (a, b) = (object("a", "u1", 3), object("b", "u2", 4));
    for comes_back in [false, true] {
        let mut reflector = watching(&[&a, &b], 5);
        let mut now = seconds(1);
        let began = now;
        assert_eq!(reflector.handle(now, Reply::Undefined), []);
        while now.since(began) < HOLD {
            assert_eq!(reflector.items().len(), 2, "{now:?}");
            assert!(is_list(Some(ask(&mut reflector, &mut now))));
            if comes_back && now.since(began) > HOLD / 2 {
                break;
            }
            if now.since(began) < HOLD {
                assert_eq!(reflector.handle(now, Reply::Undefined), []);
            }
        }
        if comes_back {
            assert_eq!(reflector.handle(now, listed(&[], 20)), [], "none of them is back yet");
            assert!(watches_from(Some(ask(&mut reflector, &mut now)), 20));
            reflector.handle(now, Reply::Applied(object("b", "u3", 21)));
            reflector.handle(now, Reply::Applied(object("a", "u4", 22)));
            assert_eq!(reflector.items().len(), 2);
        } else {
            let deltas = reflector.handle(now, Reply::Undefined);
            assert_eq!(deltas, [Delta::Deleted(name("a")), Delta::Deleted(name("b"))]);
        }
        assert_eq!(reflector.held_until(), None);
    }
}

#[test]
fn a_kind_without_a_definition_is_known_to_those_that_have_seen_it() {
    let mut reflector = watching(&[&object("a", "u1", 3)], 5);
    let mut now = seconds(1);
    reflector.relist();
    assert!(is_list(Some(ask(&mut reflector, &mut now))) && !reflector.is_synced());
    reflector.handle(now, Reply::Undefined);
    assert!(reflector.is_synced(), "a controller can lead meanwhile");
    let mut first = Reflector::new(1, HOLD);
    assert!(is_list(first.next_request(now)));
    first.handle(now, Reply::Undefined);
    assert!(!first.is_synced(), "the definitions may come");
    let mut optional = Reflector::new(1, HOLD).of_optional_kind();
    assert!(is_list(optional.next_request(now)));
    optional.handle(now, Reply::Failed);
    assert!(!optional.is_synced(), "a server that fails has said nothing");
    now = optional.next_deadline();
    assert!(is_list(optional.next_request(now)));
    optional.handle(now, Reply::Undefined);
    assert!(optional.is_synced(), "there is none, which nobody waits for");
}

#[test]
fn a_server_that_fails_ends_no_hold() {
    let mut reflector = watching(&[&object("a", "u1", 3)], 5);
    let mut now = seconds(1);
    reflector.handle(now, Reply::Undefined);
    while now.since(seconds(1)) < HOLD * 2 {
        ask(&mut reflector, &mut now);
        assert_eq!(reflector.handle(now, Reply::Failed), []);
    }
    assert_eq!(reflector.items().len(), 1);
}

#[test]
fn without_a_hold_a_list_of_nothing_is_believed() {
    let mut reflector = Reflector::new(1, Duration::ZERO);
    let mut now = Instant::ZERO;
    ask(&mut reflector, &mut now);
    reflector.handle(now, listed(&[&object("a", "u1", 3)], 5));
    reflector.relist();
    ask(&mut reflector, &mut now);
    assert_eq!(reflector.handle(now, listed(&[], 9)), [Delta::Deleted(name("a"))]);
    assert_eq!(reflector.held_until(), None);
}

#[test]
fn a_demanded_list_is_not_older_than_the_demand() {
    let mut reflector = watching(&[], 5);
    reflector.relist();
    assert!(!reflector.is_synced());
    assert_eq!(reflector.handle(seconds(1), Reply::Applied(object("a", "u1", 8))), []);
    assert!(is_list(reflector.next_request(seconds(1))));
    reflector.handle(seconds(1), listed(&[], 9));
    assert!(reflector.is_synced());
}

#[test]
fn versions_that_are_no_numbers_are_believed() {
    let mut reflector = Reflector::new(1, HOLD);
    let reply = |version: &str| Reply::Listed {
        items: Vec::new(),
        resource_version: version.to_owned(),
        continue_token: None,
    };
    reflector.next_request(Instant::ZERO);
    reflector.handle(Instant::ZERO, reply("zz"));
    reflector.relist();
    reflector.next_request(Instant::ZERO);
    reflector.handle(Instant::ZERO, reply("aa"));
    assert!(reflector.is_synced());
}
