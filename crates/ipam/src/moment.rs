//! A point in time of the caller's clock: Unix time, or a virtual one.

use std::fmt;

/// Seconds of that clock.
pub type Seconds = u64;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    nanoseconds: u64,
}

impl Moment {
    const PER_SECOND: u64 = 1_000_000_000;

    /// So many nanoseconds after the beginning of that clock.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Self { nanoseconds }
    }

    /// The same in nanoseconds: the first sequence number of a block that is made now.
    pub const fn nanoseconds(self) -> u64 {
        self.nanoseconds
    }

    /// The same in whole seconds.
    pub const fn seconds(self) -> Seconds {
        self.nanoseconds / Self::PER_SECOND
    }
}

/// As seconds, which is what an operator compares with other times.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seconds())
    }
}
