//! Messages per second, from the counters of overviews.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fairway_ground::Instant;
use fairway_show::overview::Overview;

/// Over this time: long enough to be steady, short enough to follow.
const SPAN: Duration = Duration::from_secs(2);
/// As many samples are kept: with a look each 100 ms those of the span.
const SAMPLES_MAX: usize = 24;

/// The counters at one moment.
#[derive(Debug, Clone)]
struct Sample {
    at: Instant,
    /// Messages received and sent, by neighbor.
    counters: BTreeMap<String, (u64, u64)>,
}

/// Messages per second, received and sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rate {
    pub(crate) received: f64,
    pub(crate) sent: f64,
}

/// The last samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rates {
    samples: VecDeque<Sample>,
    latest: BTreeMap<String, Rate>,
}

impl Rates {
    pub(crate) fn follow(&mut self, at: Instant, overview: &Overview) {
        let counters: BTreeMap<String, (u64, u64)> = overview
            .sessions
            .iter()
            .map(|it| (it.neighbor.clone(), (it.messages_received, it.messages_sent)))
            .collect();
        // The oldest one stays as long as the next is not old enough.
        while self.samples.len() >= SAMPLES_MAX
            || self.samples.get(1).is_some_and(|next| at.since(next.at) >= SPAN)
        {
            self.samples.pop_front();
        }
        self.latest = match self.samples.front() {
            Some(before) => rates(before, at, &counters),
            None => BTreeMap::new(),
        };
        self.samples.push_back(Sample { at, counters });
    }

    /// Those of one neighbor.
    pub(crate) fn of(&self, neighbor: &str) -> Rate {
        self.latest.get(neighbor).copied().unwrap_or_default()
    }

    /// Those of all together.
    pub(crate) fn total(&self) -> Rate {
        self.latest.values().fold(Rate::default(), |sum, it| Rate {
            received: sum.received + it.received,
            sent: sum.sent + it.sent,
        })
    }
}

fn rates(
    before: &Sample,
    at: Instant,
    counters: &BTreeMap<String, (u64, u64)>,
) -> BTreeMap<String, Rate> {
    let seconds = at.since(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return BTreeMap::new();
    }
    // Counters of a daemon that started again are below the earlier ones.
    let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
    let of = |(neighbor, now): (&String, &(u64, u64))| {
        let then = before.counters.get(neighbor)?;
        let rate = Rate { received: per_second(now.0, then.0), sent: per_second(now.1, then.1) };
        Some((neighbor.clone(), rate))
    };
    counters.iter().filter_map(of).collect()
}
