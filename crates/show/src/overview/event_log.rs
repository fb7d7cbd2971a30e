//! Events while somebody watches: those of the first overview, and then what each further one adds.
//!
//! An overview has the last event of everything; two of one session between two overviews are one, with the number of times that
//! it came up meanwhile. Bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{EventRow, Overview};

/// Times are made from ages in whole seconds: one event may have two times that differ by so much.
const JITTER_SECONDS: u64 = 2;

/// As many events about different things are remembered, to know which are new: twice what is kept.
const LAST_MAX: usize = EventLog::EVENTS_MAX * 2;

/// The events so far.
#[derive(Debug, Clone, Default)]
pub struct EventLog {
    /// The latest first.
    events: VecDeque<EventRow>,
    /// The last event about each of these.
    last: BTreeMap<String, (u64, String)>,
    /// The sessions that were Established, each with how often it had come up.
    established: BTreeMap<String, u64>,
    /// The time of the last overview, in Unix time.
    looked_at: u64,
    added: u64,
}

impl EventLog {
    /// As many are kept: several screens, and less than a megabyte.
    pub const EVENTS_MAX: usize = 500;

    /// Adds what `overview` has and the log has not. Returns how many are new.
    pub fn follow(&mut self, overview: &Overview) -> usize {
        let resets = self.resets(overview);
        let mut new: Vec<EventRow> = Vec::new();
        for event in &overview.events {
            let is_same = self.last.get(&event.about).is_some_and(|(at, what)| {
                *what == event.what && at.abs_diff(event.at_epoch_seconds) <= JITTER_SECONDS
            });
            // What is older than the last look is there because something newer has gone, or the clock was set.
            let is_old = event.at_epoch_seconds.saturating_add(JITTER_SECONDS) < self.looked_at;
            if resets.contains_key(&event.about) || !(is_same || is_old) {
                new.push(event.clone());
            }
        }
        self.looked_at = overview.now_epoch_seconds;
        name_resets(&resets, &mut new);
        let established = overview.sessions.iter().filter(|it| it.is_established);
        self.established = established.map(|it| (it.about(), it.connections_established)).collect();
        if self.last.len() > LAST_MAX {
            let now: BTreeSet<&str> = overview.events.iter().map(|it| it.about.as_str()).collect();
            self.last.retain(|about, _| now.contains(about.as_str()));
        }
        let count = new.len();
        for event in new.into_iter().rev() {
            self.last.insert(event.about.clone(), (event.at_epoch_seconds, event.what.clone()));
            self.events.push_front(event);
        }
        self.events.truncate(Self::EVENTS_MAX);
        self.added = self.added.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        count
    }

    /// The sessions that went down and came up again since the last overview, each with how often.
    fn resets(&self, overview: &Overview) -> BTreeMap<String, u64> {
        let up = overview.sessions.iter().filter(|it| it.is_established);
        let counted = up.filter_map(|session| {
            let about = session.about();
            let before = self.established.get(&about)?;
            let resets = session.connections_established.saturating_sub(*before);
            (resets > 0).then_some((about, resets))
        });
        counted.collect()
    }

    /// The latest first.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &EventRow> {
        self.events.iter()
    }

    /// How many were ever added: it tells whether there are new ones.
    pub fn added(&self) -> u64 {
        self.added
    }
}

/// Such a session has the later event alone.
fn name_resets(resets: &BTreeMap<String, u64>, new: &mut [EventRow]) {
    for event in new {
        if let Some(resets) = resets.get(&event.about) {
            let times = if *resets == 1 { "time" } else { "times" };
            event.what = format!("{} again, it was down {resets} {times}", event.what);
        }
    }
}
