//! Do the rules notice mistakes? Each one is put into boxes, and some box must break a rule.

#![allow(clippy::panic)] // What fails here fails the test.

use fairway_cluster_simulation::{Misbehaviour, Mistake, Schedule, shrink};

/// Within this many boxes a mistake must show: one that needs more is as good as unnoticed.
const SCHEDULES: u64 = 400;

/// The first seed that shows it, and the broken rule.
fn caught(mistake: Mistake) -> Option<(u64, &'static str)> {
    (1..=SCHEDULES).find_map(|seed| {
        let schedule = Schedule::of(seed);
        let broken = |it: &Misbehaviour| shrink::verdict(&schedule, it, false).violation;
        let (_, violation) = broken(&Misbehaviour::of(mistake))?;
        // The mistake must be the cause.
        broken(&Misbehaviour::default()).is_none().then_some((seed, violation.rule))
    })
}

#[test]
fn every_mistake_is_noticed() {
    let mut missed = Vec::new();
    for mistake in Mistake::ALL {
        match caught(mistake) {
            Some((seed, rule)) => println!("{mistake:?}: {rule}, seed {seed}"),
            None => missed.push(mistake),
        }
    }
    assert!(missed.is_empty(), "no rule notices {missed:?}");
}
