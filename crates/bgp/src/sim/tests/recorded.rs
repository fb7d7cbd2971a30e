//! Sessions with real routers, byte for byte as they were received, and logs of simulated ones.

use std::time::Duration;

use super::super::faults::Faults;
use super::super::log::{Hex, Line, What};
use super::super::replay::{Heading, Replay, parse};
use super::super::settings::{drawn, speaker};
use super::super::world::World;
use crate::session::DownReason;
use crate::wire::{Framing, MessageType, Notification};
use fairway_ground::{Instant, Rng};
use fairway_seam::{SessionState, ViewScope};

/// Plays a recording to the speaker that we replaced: AS 65001, identifier 0.0.0.1.
fn play(text: &str, check: impl Fn(&Replay)) -> (Heading, Replay) {
    let (heading, lines) = parse(text).unwrap();
    assert!(lines.len() > 5, "{}: nothing was recorded", heading.router);
    let mut replay = Replay::new(0, speaker(1, 1), 7, &lines);
    for line in &lines {
        replay.hear(line);
        check(&replay);
    }
    (heading, replay)
}

/// What the speaker sent, by type.
fn sent(lines: &[Line], kind: MessageType) -> usize {
    let mut framing = Framing::default();
    for line in lines {
        if let What::Sends { bytes: Hex(bytes) } = &line.what {
            framing.push(bytes);
        }
    }
    let messages = std::iter::from_fn(|| framing.next_message().unwrap());
    messages.filter(|message| message.kind == kind).count()
}

fn prefixes(replay: &Replay) -> Vec<String> {
    replay.router.heard().keys().map(ToString::to_string).collect()
}

/// Every recording: up with both prefixes, then with one, then down for the reason that `reason`
/// looks for; one OPEN sent, KEEPALIVEs in time, and no NOTIFICATION.
fn assert_story(text: &str, reason: &str) {
    let both = ["198.51.100.0/24", "203.0.113.0/24"];
    let had_both = std::cell::Cell::new(false);
    let had_one = std::cell::Cell::new(false);
    let (heading, replay) = play(text, |replay| {
        let heard = prefixes(replay);
        had_both.set(had_both.get() || heard == both);
        had_one.set(had_one.get() || (had_both.get() && heard == both[1..]));
    });
    let what = format!("{}: {}", heading.router, heading.story);
    assert!(had_both.get() && had_one.get(), "{what}");
    let view = replay.router.peer().view(replay.now, ViewScope::SESSIONS);
    assert_eq!(view.state, SessionState::Idle, "{what}");
    assert_eq!((view.connections_established, view.connections_dropped), (1, 1), "{what}");
    assert_eq!(view.last_reset.unwrap().text, reason, "{what}");
    let log = replay.router.log.lines();
    assert_eq!(sent(log, MessageType::Open), 1, "{what}");
    // About eleven seconds at a third of nine, with jitter.
    assert!((4..=6).contains(&sent(log, MessageType::Keepalive)), "{what}");
    assert_eq!(sent(log, MessageType::Notification), 0, "{what}");
    assert!(view.malformed.resets == 0 && view.malformed.treated_as_withdraw == 0, "{what}");
}

#[test]
fn a_session_with_frr_that_its_operator_shut_down() {
    let notification = Notification { code: 6, subcode: 2, data: b"\x0brack 4, U17".to_vec() };
    let reason = DownReason::Received(notification).to_string();
    assert_story(include_str!("../recorded/frr-8.4.4.jsonl"), &reason);
}

#[test]
fn a_session_that_bird_dialled_and_its_operator_disabled() {
    let notification = Notification { code: 6, subcode: 2, data: b"\x0brack 4, U17".to_vec() };
    let reason = DownReason::Received(notification).to_string();
    assert_story(include_str!("../recorded/bird-2.0.12.jsonl"), &reason);
}

#[test]
fn a_session_with_gobgp_that_was_killed() {
    let reason = DownReason::Closed.to_string();
    assert_story(include_str!("../recorded/gobgp-3.10.0.jsonl"), &reason);
}

#[test]
fn a_recording_cut_at_every_byte_ends_the_same() {
    let (_, lines) = parse(include_str!("../recorded/frr-8.4.4.jsonl")).unwrap();
    let mut replay = Replay::new(0, speaker(1, 1), 7, &lines);
    for line in &lines {
        let What::Received { bytes: Hex(bytes) } = &line.what else {
            replay.hear(line);
            continue;
        };
        for byte in bytes {
            let what = What::Received { bytes: Hex(vec![*byte]) };
            replay.hear(&Line { what, ..line.clone() });
        }
    }
    let view = replay.router.peer().view(replay.now, ViewScope::SESSIONS);
    assert!(view.last_reset.unwrap().text.contains("rack 4, U17"));
}

#[test]
fn the_log_of_a_simulated_speaker_replays_to_the_same_log() {
    // Routes and restarts are the speaker's own outputs, not inputs.
    let faults = Faults { restart_every: 0, change: 0, ..Faults::MANY };
    for seed in 0..200 {
        let configs = drawn(&mut Rng::seeded(seed));
        let mut world = World::seeded(seed, configs.clone(), faults, true);
        world.run_for(Duration::from_secs(30));
        let lines: Vec<Line> = world.log().into_iter().filter(|it| it.side == 0).cloned().collect();
        let text: Vec<String> =
            lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let heading = r#"{"router": "our own", "story": "a schedule"}"#;
        let (_, lines) = parse(&format!("{heading}\n{}", text.join("\n"))).unwrap();
        let [left, _] = configs;
        let jitter = Rng::seeded(seed).next_u64();
        let mut replay = Replay::new(0, left, jitter, &lines);
        lines.iter().for_each(|line| replay.hear(line));
        assert_eq!(replay.router.log.lines(), lines, "seed {seed}");
        assert!(replay.now > Instant::ZERO);
    }
}
