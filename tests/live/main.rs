//! Does a change of a field do what `docs/changes.md` says, and nothing else? Each line of the table
//! is tried on a running daemon, with a router that observes everything.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

mod cache;
mod explaining;
mod scene;
mod stage;
mod trial;
mod trials;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use clap::Parser;

use fairway_model::Kind;
use fairway_resources::change::Change;
use lab::suite::{self, Case, Suite};
use stage::{SESSIONS, Stage, View};

/// A change of a field does what docs/changes.md says, and nothing else.
///
/// Words: the lines of the table whose name has all of them.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

/// The two daemons, which the first trial starts.
type Shared = Arc<Mutex<Option<Stage>>>;

fn main() -> ExitCode {
    suite::main("live", run)
}

/// Whether every line is true. All trials share two daemons: they run one after the other.
fn run(options: Options) -> Result<bool> {
    let stage: Shared = Arc::default();
    let mut suite = Suite::new("live", options.suite);
    suite.add(Case::new("every line of the table is tried", |_: &suite::Cell| {
        every_line_of_the_table_is_tried();
        Ok(())
    }));
    for (place, trial) in trials::all().into_iter().enumerate() {
        let lack = (!trial.can_run()).then_some("this kernel has no TCP-AO (FAIRWAY_TCP_AO)");
        let name = trial.name();
        // The ports are in its files, and the daemons have them only now.
        let run = move |stage: &mut Stage| trials::all().swap_remove(place).run(stage);
        suite.add(on(&stage, name, run).not_applicable(lack));
    }
    let name = "a new session loses routes unless both sides keep them";
    suite.add(on(&stage, name, |stage| {
        a_new_session_loses_routes_unless_both_sides_keep_them(stage);
        Ok(())
    }));
    let name = "explain: the chain follows what happens";
    suite.add(on(&stage, name, |stage| {
        explaining::the_chain_follows_what_happens(stage);
        Ok(())
    }));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}

/// A case on the stage that all of them share.
fn on(
    stage: &Shared,
    name: impl Into<String>,
    run: impl FnOnce(&mut Stage) -> Result<(), String> + Send + 'static,
) -> Case {
    let stage = Arc::clone(stage);
    let run = move |_: &suite::Cell| {
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = stage.get_or_insert_with(Stage::start);
        // Of this thread: files that it makes have them.
        scene::set_ports(stage.node_port, stage.router_port, stage.cache_port);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(stage)));
        let outcome = outcome.unwrap_or_else(|panic| Err(suite::words_of(&*panic).to_owned()));
        outcome.map_err(|why| anyhow!("{why}\n{}", stage.logs()))
    };
    Case::new(name, run).in_line("two daemons")
}

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
