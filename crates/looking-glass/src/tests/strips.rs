//! Sessions over the last hour.

use super::view::{overview, session};
use crate::history::{Span, Strip};
use crate::transitions::Transitions;

fn strip(transitions: &Transitions, now: u64) -> Strip {
    Strip::of(transitions.of("192.0.2.1"), now)
}

#[test]
fn a_flap_between_two_looks_is_seen() {
    let mut overview = overview();
    overview.now_epoch_seconds = 3_600_000;
    overview.sessions[0].since_seconds = Some(7_200);
    let mut transitions = Transitions::default();
    transitions.follow(&overview);
    assert_eq!(strip(&transitions, 3_600_000).spans, [Span { x: 0, width: 120, is_up: true }]);
    overview.now_epoch_seconds += 900;
    overview.sessions[0].since_seconds = Some(1);
    overview.sessions[0].connections_established = 2;
    transitions.follow(&overview);
    overview.now_epoch_seconds += 900;
    overview.sessions[0].since_seconds = Some(901);
    transitions.follow(&overview);
    let strip = strip(&transitions, overview.now_epoch_seconds);
    let expected = [(0, 89, true), (89, 1, false), (90, 30, true)];
    assert_eq!(strip.spans, expected.map(|(x, width, is_up)| Span { x, width, is_up }));
    assert_eq!(strip.words, "up; it went down once in the last hour");
}

#[test]
fn a_session_that_never_was_up_is_down_from_the_first_look_on() {
    let mut overview = overview();
    overview.sessions[0] = session("192.0.2.1", "tor-1", false);
    overview.sessions[0].since_seconds = None;
    overview.now_epoch_seconds = 3_600_000;
    let mut transitions = Transitions::default();
    for _ in 0..10 {
        transitions.follow(&overview);
        overview.now_epoch_seconds += 60;
    }
    let strip = strip(&transitions, overview.now_epoch_seconds);
    assert_eq!(strip.spans, [Span { x: 100, width: 20, is_up: false }]);
    assert_eq!(transitions.since(&overview.sessions[0]), None);
}

#[test]
fn what_flaps_for_days_costs_a_bounded_history_and_what_is_gone_none() {
    let mut overview = overview();
    overview.sessions.truncate(1);
    let mut transitions = Transitions::default();
    for look in 0..10_000 {
        overview.now_epoch_seconds += 7;
        overview.sessions[0].is_established = look % 2 == 0;
        overview.sessions[0].since_seconds = Some(0);
        overview.sessions[0].connections_established = look / 2;
        transitions.follow(&overview);
        assert!(transitions.of("192.0.2.1").count() <= 64);
    }
    overview.sessions.clear();
    transitions.follow(&overview);
    assert_eq!(transitions.of("192.0.2.1").count(), 0);
}
