//! The order of inputs. All workers take batches from one counter; the target and the seeds of a batch follow
//! from its number alone, so a run is the same with any number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fairway_fuzzing::{Dice, Target};

use super::options::Limits;
use super::tally::wall_clock;

/// Inputs between two checks of the clock.
pub(crate) const BATCH: u64 = 256;

pub(crate) struct Schedule {
    /// Each target as often as its weight.
    turns: Vec<&'static Target>,
    first_seed: u64,
    inputs: Option<u64>,
    time: Option<Duration>,
    began: Instant,
    next: AtomicU64,
    stopped: AtomicBool,
}

/// Inputs of one target: the seeds from `first` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) target: &'static Target,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Schedule {
    pub(crate) fn new(targets: &[&'static Target], limits: &Limits) -> Self {
        let heaviest = targets.iter().map(|target| target.weight).max().unwrap_or(1);
        // Round by round, so that an interrupted run has still covered all targets.
        let round = |round| targets.iter().copied().filter(move |target| target.weight > round);
        Self {
            turns: (0..heaviest).flat_map(round).collect(),
            // Seeds of runs with adjacent first seeds must not overlap.
            first_seed: Dice::seeded(limits.first_seed).u64(),
            inputs: limits.inputs,
            time: limits.time,
            began: wall_clock(),
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// The next batch, until the limits are reached.
    pub(crate) fn next(&self) -> Option<Batch> {
        let is_late = self.time.is_some_and(|time| self.began.elapsed() >= time);
        if is_late || self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let before = number.checked_mul(BATCH)?;
        let count = self.inputs.map_or(BATCH, |inputs| inputs.saturating_sub(before).min(BATCH));
        let turn = usize::try_from(number).ok()?.checked_rem(self.turns.len())?;
        let first = self.first_seed.wrapping_add(before);
        (count > 0).then(|| Batch { target: self.turns[turn], first, count })
    }

    /// No further batches are handed out.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The first seed of the run.
    pub(crate) fn first_seed(&self) -> u64 {
        self.first_seed
    }
}

impl Batch {
    pub(crate) fn seeds(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |number| self.first.wrapping_add(number))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairway_fuzzing::TARGETS;

    use super::*;

    #[test]
    fn every_target_gets_its_share_and_the_count_is_exact() {
        let targets: Vec<_> = TARGETS.iter().collect();
        let limits = Limits { inputs: Some(1_000_001), time: None, first_seed: 1, threads: 1 };
        let schedule = Schedule::new(&targets, &limits);
        let mut inputs = BTreeMap::new();
        while let Some(batch) = schedule.next() {
            *inputs.entry(batch.target.name).or_insert(0) += batch.count;
        }
        assert_eq!(inputs.values().sum::<u64>(), 1_000_001);
        assert_eq!(inputs.len(), TARGETS.len());
        assert!(inputs["update_external"] > 5 * inputs["attribute_origin"]);
    }
}
