//! The cost of running an input: CPU time of the thread, and peak memory.
//!
//! Memory is counted for each input. The clock is a system call, so it is read around a batch, and
//! the inputs of a batch that took long are run again one by one.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fairway_fuzzing::{Outcome, Target};
use nix::time::{ClockId, clock_gettime};

use super::CPU_TIME_MAX;

/// A panic, as it would have been printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panic {
    /// File and line.
    pub(crate) place: String,
    pub(crate) text: String,
}

thread_local! {
    static LAST_PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Panics inside targets are kept for the report instead of being printed.
pub(crate) fn keep_panics_quiet() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let literal = payload.downcast_ref::<&str>().copied();
        let text = payload.downcast_ref::<String>().map(String::as_str).or(literal);
        let text = text.unwrap_or("no text").to_owned();
        // While a thread ends, its storage is gone.
        if LAST_PANIC.try_with(|last| last.replace(Some(Panic { place, text }))).is_err() {
            print(panic);
        }
    }));
}

/// One input's outcome and its memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) outcome: Result<Outcome, Panic>,
    pub(crate) peak_bytes: u64,
}

/// Runs one input and counts what it allocates.
pub(crate) fn run(target: &Target, input: &[u8]) -> Run {
    let mut outcome = Ok(Outcome::ACCEPTED);
    // A target keeps no state between two inputs, so a panic cannot corrupt any.
    let allocated = allocation_counter::measure(|| {
        let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        outcome = result.map_err(|_| {
            let last = LAST_PANIC.with(RefCell::take);
            last.unwrap_or(Panic { place: String::new(), text: "no text".to_owned() })
        });
    });
    Run { outcome, peak_bytes: allocated.bytes_max }
}

/// The cost of one input, measured alone.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) outcome: Result<Outcome, Panic>,
    pub(crate) peak_bytes: u64,
    pub(crate) cpu: Duration,
}

/// Runs one input alone. One that seems slow gets two more tries: the minimum is its own time, the rest is
/// noise of the machine.
pub(crate) fn alone(target: &Target, input: &[u8]) -> Cost {
    let timed = || {
        let before = cpu_time();
        let Run { outcome, peak_bytes } = run(target, input);
        Cost { outcome, peak_bytes, cpu: cpu_time().saturating_sub(before) }
    };
    let first = timed();
    if first.cpu <= CPU_TIME_MAX {
        return first;
    }
    let again = [timed().cpu, timed().cpu];
    Cost { cpu: again.into_iter().fold(first.cpu, Duration::min), ..first }
}

/// The CPU time of this thread since its start.
pub(crate) fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(run: fn(&[u8]) -> Outcome) -> Target {
        Target { name: "example", run, draw: |_| Vec::new(), weight: 1, copies: 1 }
    }

    #[test]
    fn memory_is_counted_at_its_peak() {
        let hungry = target(|input| {
            drop(std::hint::black_box(vec![0_u8; 10_000]));
            assert!(std::hint::black_box(vec![1_u8; 70_000]).len() > input.len());
            Outcome::ACCEPTED
        });
        let Run { outcome, peak_bytes } = run(&hungry, &[]);
        assert!(outcome.is_ok());
        assert!((70_000..71_000).contains(&peak_bytes), "{peak_bytes}");
    }

    #[test]
    fn a_panic_is_an_outcome_and_leaves_the_next_input_alone() {
        let faulty = target(|input| {
            assert!(input.is_empty(), "{} bytes", input.len());
            Outcome::ACCEPTED
        });
        for _ in 0..200 {
            assert!(run(&faulty, &[1, 2]).outcome.is_err());
        }
        assert!(run(&faulty, &[]).outcome.is_ok());
    }

    #[test]
    fn a_slow_input_is_seen_to_be_slow() {
        let slow = target(|_| {
            let before = cpu_time();
            while cpu_time() < before + Duration::from_millis(20) {}
            Outcome::ACCEPTED
        });
        assert!(alone(&slow, &[]).cpu >= Duration::from_millis(20));
    }
}
