//! When does the process take too much memory, so that the neighbour with the most routes has to go?
//!
//! The decision is pure: resident memory and what neighbours hold come in. Memory that was freed stays with the
//! allocator, so resident memory does not fall at once, and the next neighbour goes only when what was freed is
//! in use again. Knows no neighbour. Called by [`super::core_task`].

use std::fs;
use std::time::Duration;

use fairway_ground::Instant;

/// The time between two looks. In it, a neighbour on a fast link may send some megabytes.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Memory that was freed may take this long to be of use.
const RELIEF: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Memory {
    limit_bytes: Option<u64>,
    look_at: Instant,
    relieved: Option<Relieved>,
}

/// A neighbour that went.
#[derive(Debug, Clone, Copy)]
struct Relieved {
    at: Instant,
    /// Then, of all neighbours.
    held_bytes: u64,
    /// Then.
    resident_bytes: u64,
}

impl Memory {
    pub(super) fn new(limit_bytes: Option<u64>) -> Self {
        Self { limit_bytes, look_at: Instant::ZERO, relieved: None }
    }

    /// The limit.
    pub(super) fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.limit_bytes.is_some() && now >= self.look_at;
        if is_due {
            self.look_at = now + LOOK_INTERVAL;
        }
        is_due
    }

    /// Whether a neighbour has to go. `held_bytes`: of all neighbours.
    pub(super) fn is_short(&mut self, now: Instant, resident_bytes: u64, held_bytes: u64) -> bool {
        if self.limit_bytes.is_none_or(|limit| resident_bytes <= limit) {
            self.relieved = None;
            return false;
        }
        let is_short = self.relieved.is_none_or(|last| {
            let is_late = now.since(last.at) >= RELIEF && resident_bytes > last.resident_bytes;
            held_bytes >= last.held_bytes || is_late
        });
        if is_short {
            self.relieved = Some(Relieved { at: now, held_bytes, resident_bytes });
        }
        is_short
    }
}

/// The resident memory of this process; none if the kernel does not say.
pub(super) fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 100;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_neighbour_goes_when_there_is_too_much_and_the_next_when_that_was_of_no_use() {
        let mut memory = Memory::new(Some(LIMIT));
        assert!(!memory.is_short(at(0), 100, 90));
        assert!(memory.is_short(at(1), 101, 90));
        // The allocator keeps what was freed.
        assert!(!memory.is_short(at(1), 101, 10));
        assert!(!memory.is_short(at(20), 101, 50), "it has stopped growing");
        assert!(memory.is_short(at(21), 101, 90), "what was freed is in use again");
        assert!(!memory.is_short(at(22), 110, 20));
        assert!(memory.is_short(at(31), 110, 20), "something else grows");
    }

    #[test]
    fn memory_that_is_back_is_a_new_beginning() {
        let mut memory = Memory::new(Some(LIMIT));
        assert!(memory.is_short(at(1), 101, 90));
        assert!(!memory.is_short(at(2), 50, 0));
        assert!(memory.is_short(at(3), 101, 20));
    }

    #[test]
    fn without_a_limit_nobody_looks() {
        let mut memory = Memory::new(None);
        assert!(!memory.is_due(at(0)) && !memory.is_short(at(0), u64::MAX, 1));
        let mut memory = Memory::new(Some(LIMIT));
        assert!(memory.is_due(at(0)) && !memory.is_due(at(0)) && memory.is_due(at(1)));
    }

    #[test]
    fn the_kernel_says_how_much_there_is() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
