//! Schedules drawn from seeds; every order of the first events; restarts at every point; sessions
//! with real routers.

mod exhaustive;
mod recorded;
mod restarts;
pub(crate) mod seeds;
mod transit;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use self::seeds::number;
use super::log::What;
use super::settings::{drawn, speaker};
use super::{Faults, World};
use fairway_ground::Rng;

/// After the last fault: the longest idle hold, the longest connect retry, and a little.
const BOUND: Duration = Duration::from_secs(30 + 5 + 2);
/// How long faults happen.
const FAULTY: Duration = Duration::from_secs(30);
/// Lines of the log that a failure prints.
const LAST_LINES: usize = 100;

/// A kind of schedules: its name, and the world that a seed makes.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    world: fn(seed: u64, keep_log: bool) -> World,
}

const FAULTS: Kind = Kind {
    name: "two_speakers",
    world: |seed, keep_log| {
        let mut rng = Rng::seeded(seed ^ 0x5E77_1265);
        World::seeded(seed, drawn(&mut rng), Faults::MANY, keep_log)
    },
};

fn live_through(world: &mut World) {
    world.run_for(FAULTY);
    world.heal_and_converge(BOUND);
}

/// Prints how `seed` failed: the same again, with a log.
fn explain(kind: Kind, seed: u64) {
    let mut world = (kind.world)(seed, true);
    let _ = catch_unwind(AssertUnwindSafe(|| live_through(&mut world)));
    let log = world.log();
    for line in &log[log.len().saturating_sub(LAST_LINES)..] {
        println!("{}", serde_json::to_string(line).unwrap());
    }
    println!("failed at {:?}", world.now());
}

fn assert_all_seeds(kind: Kind, count: u64) {
    let (count, [steps]) = seeds::tell(kind.name, count, |seed| {
        let mut world = (kind.world)(seed, false);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| live_through(&mut world))) {
            explain(kind, seed);
            resume_unwind(panic);
        }
        [world.steps]
    });
    println!("{}: {count} schedules, {steps} events", kind.name);
}

#[test]
fn two_speakers_always_find_each_other_again() {
    assert_all_seeds(FAULTS, seeds::asked(2_000));
}

#[test]
fn a_good_network_never_loses_a_session_that_was_up() {
    let good = Faults { delay_max_ms: 20, pieces_max: 4, ..Faults::NONE };
    for seed in 0..1_000 {
        let mut world = World::seeded(seed, [speaker(1, 1), speaker(2, 2)], good, false);
        world.run_for(Duration::from_secs(20));
        world.assert_converged();
        assert_eq!(world.sessions_dropped(), 0, "seed {seed}");
    }
}

/// Rare: a side gives up a dial that the other has just accepted and decided for. They lose both
/// connections, and a second later one of them dials again.
#[test]
fn a_collision_costs_hardly_anybody_a_third_dial() {
    let good = Faults { delay_max_ms: 20, pieces_max: 4, ..Faults::NONE };
    for (left, right) in [(1, 2), (2, 1), (7, 7)] {
        let mut unlucky = 0;
        for seed in 0..200 {
            let configs = [speaker(1, left), speaker(2, right)];
            let mut world = World::seeded(seed, configs, good, true);
            world.run_for(Duration::from_secs(10));
            world.assert_converged();
            let dials = world.log().iter().filter(|line| line.what == What::Dials).count();
            unlucky += usize::from(dials > 2);
        }
        assert!(unlucky <= 20, "{unlucky} of 200 with {left} and {right}");
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in 0..20 {
        let [first, second] = [0, 1].map(|_| {
            let mut world = (FAULTS.world)(seed, true);
            live_through(&mut world);
            world.log().into_iter().cloned().collect::<Vec<_>>()
        });
        assert!(!first.is_empty());
        assert_eq!(first, second, "seed {seed}");
    }
}
