//! Several speakers in transit, under faults: no route outlives its neighbour's announcement, and in the
//! end all tables are those of a plain computation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::transit::Network;
use super::number;

/// Worlds of the ordinary test.
const SEEDS_DEFAULT: u64 = 60;

/// Lives through one world; returns its events, its routes in the end, and panics on the way.
fn live_through(seed: u64) -> [u64; 3] {
    let mut network = Network::seeded(seed);
    network.live_through();
    [network.events, network.routes() as u64, network.panics()]
}

/// `FAIRWAY_SEEDS` asks for more, on all cores; `FAIRWAY_SEED` for one alone.
#[test]
fn speakers_in_transit_keep_no_route_that_is_gone_and_agree_in_the_end() {
    let count = number("FAIRWAY_SEEDS").unwrap_or(SEEDS_DEFAULT);
    let seeds = number("FAIRWAY_SEED").map_or(0..count, |seed| seed..seed + 1);
    let next = AtomicU64::new(seeds.start);
    let failed = AtomicU64::new(u64::MAX);
    let totals = [const { AtomicU64::new(0) }; 3];
    std::thread::scope(|scope| {
        for _ in 0..if seeds.end - seeds.start > 10_000 { 2 } else { 1 } {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == u64::MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    match catch_unwind(AssertUnwindSafe(|| live_through(seed))) {
                        Ok(counts) => {
                            for (total, count) in totals.iter().zip(counts) {
                                total.fetch_add(count, Ordering::Relaxed);
                            }
                        }
                        Err(_) => failed.store(seed, Ordering::Relaxed),
                    }
                }
            });
        }
    });
    let seed = failed.into_inner();
    assert_eq!(
        seed,
        u64::MAX,
        "seed {seed} failed, see above; replay: FAIRWAY_SEED={seed} cargo test -p fairway-bgp \
         --lib transit"
    );
    let [events, routes, panics] = totals.map(AtomicU64::into_inner);
    let count = seeds.end - seeds.start;
    println!("{count} worlds, {events} events, {routes} routes in the end, {panics} panics");
    // What never happens is not tested.
    assert!(count < 50 || routes > count * 5 && panics > count / 5, "too little happens");
}
