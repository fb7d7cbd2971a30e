//! What watchers get: rows, events, and what one overview adds to those before it.

use std::time::Duration;

use fairway_seam::SessionState;

use super::lab::Lab;
use crate::overview::{EventLog, Overview};

fn overview(lab: &Lab) -> Overview {
    Overview::of(&lab.snapshot(), 100)
}

fn said(log: &EventLog) -> Vec<String> {
    log.events().map(|it| format!("{} {}", it.about, it.what)).collect()
}

#[test]
fn an_overview_says_what_each_neighbor_does_and_why_it_does_not() {
    let lab = Lab::new();
    let overview = overview(&lab);
    assert_eq!(overview.node, "node-a");
    assert_eq!(overview.local_as, [65001]);
    assert_eq!(overview.sessions.len(), lab.bgp.peers.len());
    let up: Vec<_> = overview.sessions.iter().filter(|it| it.is_established).collect();
    assert_eq!(up.len(), overview.established());
    assert!(up.iter().all(|it| it.reason.is_empty() && it.since_seconds.is_some()));
    let down = overview.sessions.iter().find(|it| it.neighbor == "10.1.1.97").unwrap();
    assert!(!down.is_established && !down.reason.is_empty(), "{down:?}");
}

#[test]
fn an_overview_comes_back_from_json_as_it_was() {
    let overview = overview(&Lab::new());
    let text = serde_json::to_string(&overview).unwrap();
    assert!(!text.contains(super::lab::PASSWORD));
    assert_eq!(serde_json::from_str::<Overview>(&text).unwrap(), overview);
}

#[test]
fn a_second_look_at_the_same_state_adds_no_event() {
    let mut lab = Lab::new();
    let mut log = EventLog::default();
    let first = log.follow(&overview(&lab));
    assert!(first > 0);
    // A second later, and rounded to the next one.
    for peer in &mut lab.bgp.peers {
        peer.since = peer.since.map(|it| it + Duration::from_secs(1));
    }
    assert_eq!(log.follow(&overview(&lab)), 0);
    assert_eq!(log.events().len(), first);
}

#[test]
fn an_event_that_has_just_happened_is_not_told_again_when_its_time_is_rounded() {
    let mut lab = Lab::new();
    lab.router_one().since = Some(Duration::ZERO);
    let mut log = EventLog::default();
    let mut overview = overview(&lab);
    log.follow(&overview);
    // Nine tenths of a second later, in the next one, the age is 0 s as before.
    overview.now_epoch_seconds += 1;
    overview.events.iter_mut().for_each(|it| it.at_epoch_seconds += 1);
    assert_eq!(log.follow(&overview), 0);
}

#[test]
fn a_session_that_ends_is_an_event_and_one_that_comes_back_unseen_is_another() {
    let mut lab = Lab::new();
    let mut log = EventLog::default();
    log.follow(&overview(&lab));
    let router = lab.router_one();
    assert_eq!(router.state, SessionState::Established);
    router.state = SessionState::Idle;
    router.since = Some(Duration::ZERO);
    assert_eq!(log.follow(&overview(&lab)), 1);
    assert!(said(&log)[0].contains("session down"), "{:?}", said(&log));
    assert!(log.events().next().unwrap().is_warning);
    let router = lab.router_one();
    router.state = SessionState::Established;
    router.connections_established += 1;
    assert_eq!(log.follow(&overview(&lab)), 1);
    assert!(said(&log)[0].ends_with("session Established"), "{:?}", said(&log));
    // Down and up again between two looks, with nothing else to tell it by.
    let router = lab.router_one();
    router.connections_established += 2;
    router.since = Some(Duration::from_secs(1));
    assert_eq!(log.follow(&overview(&lab)), 1);
    assert!(
        said(&log)[0].ends_with("session Established again, it was down 2 times"),
        "{:?}",
        said(&log)
    );
}

#[test]
fn a_log_of_a_flapping_neighbor_stays_within_its_bound() {
    let mut lab = Lab::new();
    let mut log = EventLog::default();
    for turn in 0..3 * EventLog::EVENTS_MAX {
        let router = lab.router_one();
        router.state = [SessionState::Idle, SessionState::Established][turn % 2];
        router.since = Some(Duration::ZERO);
        log.follow(&overview(&lab));
    }
    assert_eq!(log.events().len(), EventLog::EVENTS_MAX);
    assert!(log.added() > 2 * EventLog::EVENTS_MAX as u64);
}
