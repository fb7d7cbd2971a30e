//! How are durations spread? Median, 99th percentile and worst, as figures of a report.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

/// Durations in order, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    pub(crate) fn of(mut durations: Vec<Duration>) -> Result<Self> {
        ensure!(!durations.is_empty(), "nothing was measured");
        durations.sort_unstable();
        Ok(Self(durations))
    }

    /// The smallest duration that this share of all does not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        write!(
            formatter,
            "p50 {:.1} ms, p99 {:.1} ms, worst {:.1} ms of {}",
            milliseconds(50),
            milliseconds(99),
            milliseconds(100),
            self.0.len()
        )
    }
}
