use std::time::Duration;

use super::{Faults, World};
use crate::types::{AddressFamily, FamilySet, PeerConfig, RouterId};

/// After the last fault: the longest idle hold, the longest connect retry, and a little.
const BOUND: Duration = Duration::from_secs(30 + 5 + 2);

fn config(number: u8, router_id: u32) -> PeerConfig {
    PeerConfig {
        router_id: RouterId::new(router_id).unwrap(),
        families: FamilySet::only(AddressFamily::Ipv4Unicast),
        ..PeerConfig::example(number)
    }
}

fn live_through(seed: u64) -> u64 {
    // Identifiers in both orders, and equal ones (RFC 6286).
    let (left, right) = [(1, 2), (2, 1), (7, 7)][usize::try_from(seed % 3).unwrap()];
    let mut world = World::seeded(seed, config(1, left), config(2, right), Faults::MANY);
    world.run_for(Duration::from_secs(60));
    world.stop_faults();
    world.run_for(BOUND);
    world.assert_converged();
    world.steps
}

/// How many seeds; `FAIRWAY_SEEDS` asks for more, `FAIRWAY_SEED` for one alone.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("FAIRWAY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FAIRWAY_SEEDS").unwrap_or(3_000),
    }
}

#[test]
fn two_speakers_always_find_each_other_again() {
    let mut steps = 0;
    for seed in seeds() {
        let outcome = std::panic::catch_unwind(|| live_through(seed));
        match outcome {
            Ok(count) => steps += count,
            Err(_) => panic!("replay with FAIRWAY_SEED={seed} cargo test -p fairway-sessions sim"),
        }
    }
    println!("{} schedules, {steps} events", seeds().count());
}

#[test]
fn a_good_network_never_loses_a_session_that_was_up() {
    let good = Faults { delay_max_ms: 20, ..Faults::NONE };
    for seed in 0..2_000 {
        let mut world = World::seeded(seed, config(1, 1), config(2, 2), good);
        world.run_for(Duration::from_secs(20));
        world.assert_converged();
        assert_eq!(world.sessions_dropped(), 0, "seed {seed}");
    }
}
