//! Shortens a schedule: as few steps as possible that break the same rule.
//!
//! Removes steps as long as the rule is still broken: halves, quarters, single steps. Knows nothing of
//! the steps.

use crate::misbehaviour::Misbehaviour;
use crate::schedule::Schedule;
use crate::world::{Verdict, World};

/// The maximum number of runs: the result is needed within a minute.
const RUNS_MAX: u32 = 600;

/// The verdict on a schedule.
pub fn verdict(schedule: &Schedule, misbehaviour: &Misbehaviour, keeps_story: bool) -> Verdict {
    World::with(schedule.clone(), misbehaviour.clone(), keeps_story).run()
}

/// A schedule that is no longer than `schedule`, and breaks the same rule.
pub fn shrink(schedule: &Schedule, misbehaviour: &Misbehaviour) -> Schedule {
    let rule = |it: &Schedule| verdict(it, misbehaviour, false).violation.map(|it| it.1.rule);
    let wanted = rule(schedule);
    let mut best = schedule.clone();
    let mut runs = 0;
    let mut length = best.steps.len().div_ceil(2);
    while length > 0 && runs < RUNS_MAX {
        let mut from = 0;
        let before = best.steps.len();
        while from < best.steps.len() && runs < RUNS_MAX {
            let mut shorter = best.clone();
            shorter.steps.drain(from..(from + length).min(best.steps.len()));
            runs += 1;
            if wanted.is_some() && rule(&shorter) == wanted {
                best = shorter;
            } else {
                from += length;
            }
        }
        if length > 1 || best.steps.len() == before {
            length /= 2;
        }
    }
    best
}
