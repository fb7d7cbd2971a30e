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
/// A neighbour with less than this part of the limit is not the cause.
const SHARE: u64 = 20;

/// What to do about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is enough, or what was done helps.
    Enough,
    /// The neighbour with the most routes has to go.
    Relieve,
    /// There is too little, and not for the routes of a neighbour. Once for each shortage.
    Unexplained,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Memory {
    limit_bytes: Option<u64>,
    look_at: Instant,
    relieved: Option<Relieved>,
    has_warned: bool,
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
        Self { limit_bytes, look_at: Instant::ZERO, relieved: None, has_warned: false }
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

    /// What to do. `held_bytes`: of all neighbours; `largest_bytes`: of the one with the most.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        resident_bytes: u64,
        held_bytes: u64,
        largest_bytes: u64,
    ) -> Verdict {
        let Some(limit) = self.limit_bytes.filter(|limit| resident_bytes > *limit) else {
            self.relieved = None;
            self.has_warned = false;
            return Verdict::Enough;
        };
        let share = limit / SHARE;
        if largest_bytes < share {
            // It is no neighbour's.
            let is_news = !std::mem::replace(&mut self.has_warned, true);
            return if is_news { Verdict::Unexplained } else { Verdict::Enough };
        }
        let is_due = self.relieved.is_none_or(|last| {
            let growth = resident_bytes.saturating_sub(last.resident_bytes);
            let is_late = now.since(last.at) >= RELIEF && growth > 0;
            held_bytes >= last.held_bytes || is_late || growth >= share
        });
        if is_due {
            self.relieved = Some(Relieved { at: now, held_bytes, resident_bytes });
        }
        if is_due { Verdict::Relieve } else { Verdict::Enough }
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

    /// One neighbour holds all.
    fn goes(memory: &mut Memory, seconds: u64, resident: u64, held: u64) -> bool {
        memory.judge(at(seconds), resident, held, held) == Verdict::Relieve
    }

    #[test]
    fn a_neighbour_goes_when_there_is_too_much_and_the_next_when_that_was_of_no_use() {
        let mut memory = Memory::new(Some(LIMIT));
        assert!(!goes(&mut memory, 0, 100, 90));
        assert!(goes(&mut memory, 1, 101, 90));
        // The allocator keeps what was freed.
        assert!(!goes(&mut memory, 1, 101, 10));
        assert!(!goes(&mut memory, 20, 101, 50), "it has stopped growing");
        assert!(goes(&mut memory, 21, 101, 90), "what was freed is in use again");
        assert!(!goes(&mut memory, 22, 104, 20));
        assert!(goes(&mut memory, 22, 106, 20), "it grows all the same");
        assert!(goes(&mut memory, 32, 107, 20), "and slowly");
    }

    #[test]
    fn memory_that_is_back_is_a_new_beginning() {
        let mut memory = Memory::new(Some(LIMIT));
        assert!(goes(&mut memory, 1, 101, 90));
        assert!(!goes(&mut memory, 2, 50, 0));
        assert!(goes(&mut memory, 3, 101, 20));
    }

    #[test]
    fn nobody_goes_whose_routes_are_not_the_cause() {
        let mut memory = Memory::new(Some(LIMIT));
        assert_eq!(memory.judge(at(1), 150, 90, 4), Verdict::Unexplained);
        assert_eq!(memory.judge(at(2), 170, 90, 4), Verdict::Enough, "that is told once");
        assert_eq!(memory.judge(at(3), 90, 90, 4), Verdict::Enough);
        assert_eq!(memory.judge(at(4), 150, 0, 0), Verdict::Unexplained);
    }

    #[test]
    fn without_a_limit_nobody_looks() {
        let mut memory = Memory::new(None);
        assert!(!memory.is_due(at(0)) && !goes(&mut memory, 0, u64::MAX, 1));
        let mut memory = Memory::new(Some(LIMIT));
        assert!(memory.is_due(at(0)) && !memory.is_due(at(0)) && memory.is_due(at(1)));
    }

    #[test]
    fn the_kernel_says_how_much_there_is() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
