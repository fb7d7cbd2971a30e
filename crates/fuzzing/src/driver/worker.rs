//! One thread: takes batches, runs them, submits the results.

use std::sync::{Mutex, PoisonError};

use super::CPU_TIME_MAX;
use super::finding::Finding;
use super::measure::{self, Cost, cpu_time};
use super::schedule::{Batch, Schedule};
use super::tally::{BatchTally, Tally};
use super::watchdog::Post;

/// Runs until the schedule is exhausted.
pub(crate) fn work(schedule: &Schedule, tally: &Mutex<Tally>, post: &Post) {
    while let Some(batch) = schedule.next() {
        let inputs: Vec<Vec<u8>> = batch.seeds().map(|seed| batch.target.input(seed)).collect();
        let mut result = run(batch, &inputs, post);
        let is_slowest = {
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.is_slowest_batch(batch, result.cpu)
        };
        if is_slowest || result.cpu > CPU_TIME_MAX {
            look_closer(batch, &inputs, &mut result, post);
        }
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        if !tally.hand_in(batch, result) {
            schedule.stop();
        }
    }
    post.leave();
}

fn run(batch: Batch, inputs: &[Vec<u8>], post: &Post) -> BatchTally {
    let mut result = BatchTally::default();
    let before = cpu_time();
    for (seed, input) in batch.seeds().zip(inputs) {
        post.run(batch.target, seed);
        let run = measure::run(batch.target, input);
        result.count(input, run.outcome.as_ref().ok().copied(), run.peak_bytes, seed);
        let cost =
            Cost { outcome: run.outcome, peak_bytes: run.peak_bytes, cpu: Default::default() };
        result.findings.extend(Finding::of(batch.target, Some(seed), input, &cost));
    }
    result.cpu = cpu_time().saturating_sub(before);
    result
}

/// Runs the inputs one by one, to find the slow one.
fn look_closer(batch: Batch, inputs: &[Vec<u8>], result: &mut BatchTally, post: &Post) {
    for (seed, input) in batch.seeds().zip(inputs) {
        post.run(batch.target, seed);
        let cost = measure::alone(batch.target, input);
        if cost.cpu > result.slowest.0 {
            result.slowest = (cost.cpu, seed);
        }
        if cost.cpu > CPU_TIME_MAX {
            result.findings.extend(Finding::of(batch.target, Some(seed), input, &cost));
        }
    }
}

#[cfg(test)]
mod tests {
    use fairway_fuzzing::{Outcome, Target};

    use super::*;
    use crate::driver::finding::Fault;
    use crate::driver::watchdog::Watchdog;

    /// One of its inputs is slow, one panics, one takes too much memory.
    static BAD: Target = Target {
        name: "bad",
        run: |input| {
            match input {
                [1, ..] => {
                    let before = cpu_time();
                    while cpu_time() < before + CPU_TIME_MAX + CPU_TIME_MAX {}
                }
                [2, ..] => assert_eq!(input.len(), 9),
                [3, ..] => drop(std::hint::black_box(vec![1_u8; 1 << 20])),
                _ => {}
            }
            Outcome::ACCEPTED
        },
        draw: |dice| vec![dice.u8(); 8],
        weight: 1,
        copies: 1,
    };

    #[test]
    fn one_bad_input_among_many_is_found_whatever_it_does() {
        let watchdog = Watchdog::new(1);
        let post = watchdog.posts().next().unwrap();
        let batch = Batch { target: &BAD, first: 0, count: 2 };
        for (byte, expected) in [(1_u8, "Slow"), (2, "Panic"), (3, "Hungry"), (4, "")] {
            let inputs = vec![vec![9; 8], vec![byte; 8]];
            let mut result = run(batch, &inputs, post);
            if result.cpu > CPU_TIME_MAX {
                look_closer(batch, &inputs, &mut result, post);
            }
            let found: Vec<Option<u64>> = result.findings.iter().map(|it| it.seed).collect();
            let kind = result.findings.first().map_or("", |finding| match finding.fault {
                Fault::Slow(_) => "Slow",
                Fault::Panic(_) => "Panic",
                Fault::Hungry(_) => "Hungry",
                Fault::Hangs => "Hangs",
            });
            assert_eq!(kind, expected);
            assert_eq!(found, if expected.is_empty() { vec![] } else { vec![Some(1)] });
        }
    }
}
