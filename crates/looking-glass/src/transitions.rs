//! The sessions of the last hour: when each came up and went down. Bounded.

use std::collections::{BTreeMap, VecDeque};

use fairway_show::overview::{Overview, SessionRow};

/// So many transitions of one session are kept: with more it is drawn from the first of these on.
const TRANSITIONS_MAX: usize = 64;
/// So many sessions: more than a page has room for.
const SESSIONS_MAX: usize = 1_000;
/// Times are made from ages in whole seconds: one transition may have two times that differ by so much.
const JITTER_SECONDS: u64 = 2;

/// From a moment on a session is up, or is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transition {
    /// In Unix time.
    pub(crate) at_epoch_seconds: u64,
    /// Established.
    pub(crate) is_up: bool,
}

/// Of one session.
#[derive(Debug, Clone, Default)]
struct Session {
    /// The earliest first.
    transitions: VecDeque<Transition>,
    connections_established: u64,
}

/// Of all sessions, by neighbor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transitions(BTreeMap<String, Session>);

impl Transitions {
    /// For so long.
    pub(crate) const KEPT_SECONDS: u64 = 3_600;

    /// Adds what `overview` has; forgets what is too old, and sessions that are gone.
    pub(crate) fn follow(&mut self, overview: &Overview) {
        let now = overview.now_epoch_seconds;
        let mut earlier = std::mem::take(&mut self.0);
        for row in overview.sessions.iter().take(SESSIONS_MAX) {
            let mut session = earlier.remove(&row.neighbor).unwrap_or_default();
            session.follow(row, now);
            self.0.insert(row.neighbor.clone(), session);
        }
    }

    /// The earliest first. The first one says how the time before the second was, and may be older than an hour.
    pub(crate) fn of(&self, neighbor: &str) -> impl Iterator<Item = Transition> {
        self.0.get(neighbor).into_iter().flat_map(|it| it.transitions.iter().copied())
    }

    /// Since when it has been as it is; the same while nothing happens. `None` if it never was up.
    pub(crate) fn since(&self, row: &SessionRow) -> Option<u64> {
        row.since_seconds?;
        self.of(&row.neighbor).last().map(|it| it.at_epoch_seconds)
    }
}

impl Session {
    fn follow(&mut self, row: &SessionRow, now: u64) {
        let known = self.transitions.back().copied();
        let since = row.since_seconds.map(|it| now.saturating_sub(it));
        // A session that never was up is down from the first look on.
        let at = since.or_else(|| known.filter(|it| !it.is_up).map(|it| it.at_epoch_seconds));
        let at_epoch_seconds = at.unwrap_or(now);
        let new = Transition { at_epoch_seconds, is_up: row.is_established };
        let is_known = known.is_some_and(|it| {
            it.is_up == new.is_up
                && it.at_epoch_seconds.abs_diff(at_epoch_seconds) <= JITTER_SECONDS
        });
        let has_come_back = row.connections_established > self.connections_established;
        if let Some(known) = known
            && known.is_up == new.is_up
            && (!is_known || (new.is_up && has_come_back))
        {
            // It was otherwise between two looks.
            let between = at_epoch_seconds.saturating_sub(1).max(known.at_epoch_seconds);
            self.transitions.push_back(Transition { at_epoch_seconds: between, is_up: !new.is_up });
            self.transitions.push_back(new);
        } else if !is_known {
            self.transitions.push_back(new);
        }
        self.connections_established = row.connections_established;
        self.forget(now.saturating_sub(Transitions::KEPT_SECONDS));
    }

    /// What was before `begin`, but for the last one of these.
    fn forget(&mut self, begin: u64) {
        while self.transitions.len() > TRANSITIONS_MAX
            || self.transitions.get(1).is_some_and(|it| it.at_epoch_seconds <= begin)
        {
            self.transitions.pop_front();
        }
    }
}
