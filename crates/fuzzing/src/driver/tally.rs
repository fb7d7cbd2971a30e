//! The results of each target: the number of inputs, their outcomes, and their cost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fairway_fuzzing::{Answer, Outcome, Target};

use super::finding::Finding;
use super::schedule::{Batch, Schedule};

/// The run stops after this number of different defects.
const FINDINGS_MAX: usize = 20;

/// The results of one batch.
#[derive(Debug, Default)]
pub(crate) struct BatchTally {
    outcomes: BTreeMap<Outcome, u64>,
    inputs: u64,
    bytes: u64,
    /// Bytes allocated for each byte of input, in hundredths, and the seed.
    hungriest: (u64, u64),
    pub(crate) cpu: Duration,
    /// Time and seed.
    pub(crate) slowest: (Duration, u64),
    pub(crate) findings: Vec<Finding>,
}

/// Shorter inputs are excluded from the ratio: their allocations are constant ones.
const RATIO_LENGTH_BYTES_MIN: usize = 256;

impl BatchTally {
    /// Counts one input.
    pub(crate) fn count(
        &mut self,
        input: &[u8],
        outcome: Option<Outcome>,
        peak_bytes: u64,
        seed: u64,
    ) {
        self.inputs += 1;
        let length = u64::try_from(input.len()).unwrap_or(u64::MAX);
        self.bytes += length;
        if let Some(outcome) = outcome {
            *self.outcomes.entry(outcome).or_insert(0) += 1;
        }
        if input.len() >= RATIO_LENGTH_BYTES_MIN {
            let ratio = peak_bytes.saturating_mul(100).checked_div(length).unwrap_or(0);
            self.hungriest = self.hungriest.max((ratio, seed));
        }
    }

    fn add(&mut self, other: Self) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_insert(0) += count;
        }
        self.inputs += other.inputs;
        self.bytes += other.bytes;
        self.cpu += other.cpu;
        self.hungriest = self.hungriest.max(other.hungriest);
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Tally {
    targets: BTreeMap<&'static str, BatchTally>,
    /// The time of the slowest batch so far.
    slowest_batch: BTreeMap<&'static str, Duration>,
    findings: Vec<Finding>,
}

impl Tally {
    pub(crate) fn new(targets: &[&'static Target]) -> Self {
        let empty = targets.iter().map(|target| (target.name, BatchTally::default()));
        Self { targets: empty.collect(), slowest_batch: BTreeMap::new(), findings: Vec::new() }
    }

    /// Whether no batch of the target was slower before.
    pub(crate) fn is_slowest_batch(&mut self, batch: Batch, cpu: Duration) -> bool {
        let slowest = self.slowest_batch.entry(batch.target.name).or_default();
        let is_slowest = cpu > *slowest;
        *slowest = cpu.max(*slowest);
        is_slowest
    }

    /// Adds a batch; prints and stores new findings. Returns whether to continue.
    pub(crate) fn hand_in(&mut self, batch: Batch, mut result: BatchTally) -> bool {
        for finding in std::mem::take(&mut result.findings) {
            if !self.findings.iter().any(|known| known.resembles(&finding)) {
                println!("{finding}\n  {}", finding.keep());
                self.findings.push(finding);
            }
        }
        self.targets.entry(batch.target.name).or_default().add(result);
        self.findings.len() < FINDINGS_MAX
    }

    /// The number of inputs that were run.
    pub(crate) fn inputs(&self) -> u64 {
        self.targets.values().map(|tally| tally.inputs).sum()
    }

    /// Whether there are no findings.
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The table of the run.
    pub(crate) fn print(&self, schedule: &Schedule, took: Duration) {
        println!(
            "{:31} {:>8} {:>8} {:>8} {:>8} {:>7} {:>9} {:>7}  seed of the slowest",
            "target", "inputs", "inputs/s", "accepted", "outcomes", "answers", "slowest", "alloc/B"
        );
        let mut answers = BTreeSet::new();
        for (name, tally) in &self.targets {
            let own: BTreeSet<Answer> = tally.outcomes.keys().map(|it| it.answer).collect();
            answers.extend(own.iter().copied());
            let accepted = tally.outcomes.iter().filter(|(outcome, _)| outcome.is_accepted());
            let accepted: u64 = accepted.map(|(_, count)| count).sum();
            println!(
                "{:31} {:>8} {:>8} {:>7}% {:>8} {:>7} {:>6} µs {:>6}x  {}",
                name,
                tally.inputs,
                per_second(tally.inputs, tally.cpu),
                accepted.saturating_mul(100).checked_div(tally.inputs).unwrap_or(0),
                tally.outcomes.len(),
                own.len(),
                tally.slowest.0.as_micros(),
                tally.hungriest.0 / 100,
                tally.slowest.1,
            );
        }
        let sessions_ended = answers.iter().filter(|it| matches!(it, Answer::Notification(..)));
        println!(
            "{} inputs in {:.1} s ({}/s), {} different answers, {} of them NOTIFICATIONs; \
             seeds from {}; {} findings",
            self.inputs(),
            took.as_secs_f64(),
            per_second(self.inputs(), took),
            answers.len(),
            sessions_ended.count(),
            schedule.first_seed(),
            self.findings.len(),
        );
        println!(
            "inputs/s: for one thread, without drawing the input; slowest: thread CPU time of one \
             input; alloc/B: peak allocation for each byte of inputs of {RATIO_LENGTH_BYTES_MIN} \
             bytes and more"
        );
    }
}

fn per_second(count: u64, time: Duration) -> u64 {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    count.saturating_mul(1_000_000).checked_div(micros).unwrap_or(0)
}

/// The wall clock: for limits and the report, never for a decision about an input.
#[allow(clippy::disallowed_methods)]
pub(crate) fn wall_clock() -> Instant {
    Instant::now()
}
