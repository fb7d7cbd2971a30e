//! How many random stories does a test tell, from which seeds, and on how many cores?
//!
//! `FAIRWAY_SEEDS` asks for more than a test should take, on two cores; `FAIRWAY_SEED` for one alone, or with the other for
//! as many from it on. Knows no story.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// From so many seeds on, all cores have work.
const MANY: u64 = 10_000;

/// The number in a variable of the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// How many stories there are to be: `count`, unless more are asked for.
pub(crate) fn asked(count: u64) -> u64 {
    number("FAIRWAY_SEEDS").unwrap_or(count)
}

/// Tells the stories of `count` seeds, and adds up what each counts. Returns how many there were, too. Panics if one
/// fails: `test` is the word that finds it again.
pub(crate) fn tell<const COUNTS: usize>(
    test: &str,
    count: u64,
    story: impl Fn(u64) -> [u64; COUNTS] + Sync,
) -> (u64, [u64; COUNTS]) {
    let alone = number("FAIRWAY_SEEDS").is_none();
    let seeds =
        number("FAIRWAY_SEED").map_or(0..count, |seed| seed..seed + if alone { 1 } else { count });
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let totals = [const { AtomicU64::new(0) }; COUNTS];
    std::thread::scope(|scope| {
        for _ in 0..if seeds.end - seeds.start > MANY { 2 } else { 1 } {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == u64::MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    match catch_unwind(AssertUnwindSafe(|| story(seed))) {
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
         --lib {test} -- --nocapture"
    );
    (seeds.end - seeds.start, totals.map(AtomicU64::into_inner))
}
