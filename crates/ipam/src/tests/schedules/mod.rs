//! Several processes work on one store, call by call, in random order: nodes give and release addresses, blocks are taken
//! from them, the collector works; each may die between two calls, and a call may fail.
//!
//! `FAIRWAY_SEED` begins with another schedule, `FAIRWAY_SEEDS` says how many there are.

mod invariants;
mod node_store;
mod shaky_store;
mod world;

pub(super) use invariants::Contents;
pub(super) use shaky_store::ShakyStore;
use world::World;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How many are enough to notice a mistake.
const SEEDS: u64 = 400;

/// Schedules that once found a mistake.
const FOUND: &[u64] = &[540, 2082, 3100, 12780, 51285];

#[test]
fn no_address_has_two_owners_and_nothing_is_lost_in_any_schedule() {
    let first = number("FAIRWAY_SEED").unwrap_or(0);
    let count = number("FAIRWAY_SEEDS").unwrap_or(SEEDS);
    let seeds = first..first + count;
    let mut counts = world::Counts::default();
    for seed in FOUND.iter().copied().chain(seeds) {
        if let Err(fault) = World::new(seed).run(&mut counts) {
            panic!("seed {seed}: {fault}");
        }
    }
    // A simulation in which nothing happens proves nothing.
    if count >= SEEDS {
        assert!(counts.is_lively(), "{counts:?}");
    }
}
