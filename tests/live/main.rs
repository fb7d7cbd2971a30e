//! Does a change of a field do what `docs/changes.md` says, and nothing else? Each line of the table
//! is tried on a running daemon, with a router that observes everything.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

mod explaining;
mod scene;
mod stage;
mod trial;
mod trials;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fairway_model::Kind;
use fairway_resources::change::Change;
use stage::{SESSIONS, Stage, View};

/// Runs only the trials with these words in their names, for debugging.
const ONLY: &str = "FAIRWAY_TRIAL";

#[test]
fn every_line_of_the_table_is_tried() {
    let trials = trials::all();
    let mut missing = Vec::new();
    for kind in Kind::ALL {
        for Change { part, when, .. } in Change::all(kind) {
            let is_tried =
                |it: &trial::Trial| it.kind == kind && it.part == *part && it.when == *when;
            if !trials.iter().any(is_tried) {
                missing.push(format!("{kind} {part:?} {when:?}"));
            }
        }
    }
    assert!(missing.is_empty(), "no trial for\n{}", missing.join("\n"));
}

#[test]
fn every_change_under_a_running_daemon_does_what_the_table_says() {
    let mut stage = Stage::start();
    scene::set_ports(stage.node_port, stage.router_port);
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut wrong = Vec::new();
    for trial in trials::all() {
        let name = trial.name();
        if !only.split_whitespace().all(|word| name.contains(word)) || !trial.can_run() {
            continue;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| trial.run(&mut stage)));
        let outcome = outcome.unwrap_or_else(|_| Err("see above".to_owned()));
        let verdict = if outcome.is_ok() { "" } else { ": WRONG" };
        println!("{name}{verdict}");
        wrong.extend(outcome.err().map(|why| format!("{name}: {why}")));
    }
    if only.is_empty() {
        a_new_session_loses_routes_unless_both_sides_keep_them(&mut stage);
    }
    if only.is_empty() || only == "explain" {
        explaining::the_chain_follows_what_happens(&mut stage);
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n\n"), stage.logs());
}

/// The statement about graceful restart at the head of the page. The new session cannot be
/// established, so that there is time to observe.
fn a_new_session_loses_routes_unless_both_sides_keep_them(stage: &mut Stage) {
    for keeps in [false, true] {
        let mut scene = scene::common();
        for side in ["peer", "their-trial"] {
            scene.get_mut(side).unwrap()["spec"]["enableGracefulRestart"] = keeps.into();
        }
        stage.put_all(&scene);
        let (before, _) = stage.barrier("before a new session", &SESSIONS);
        assert!(!before["trial"].routes.is_empty());
        let mut elsewhere = scene.clone();
        elsewhere.get_mut("peer").unwrap()["spec"]["peerPort"] = 9.into();
        stage.put_all(&elsewhere);
        let is_down = |view: &View| view["trial"].dropped > before["trial"].dropped;
        stage.wait("the end of the session", is_down);
        let (between, _) = stage.barrier("between sessions", &SESSIONS[..2]);
        assert!(!between["trial"].is_up);
        let is_kept = between["trial"].routes == before["trial"].routes;
        assert_eq!(is_kept, keeps, "{between:#?}");
        assert!(is_kept || between["trial"].routes.is_empty(), "{between:#?}");
        stage.put_all(&scene);
        let (after, _) = stage.barrier("after a new session", &SESSIONS);
        assert_eq!(after["trial"].routes, before["trial"].routes);
    }
}
