//! The shortest story: a schedule that breaks the same rule with as few steps as can be found.
//!
//! Leaves out steps as long as the rule is still broken: halves, quarters, single steps. Knows no
//! step.

use crate::misbehaviour::Misbehaviour;
use crate::schedule::Schedule;
use crate::world::{Verdict, World};

/// So many runs at most: a failure is to be read within a minute.
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
