//! What is known of a daemon beyond its running configuration: the lines it was sent, the lines it shows in
//! another form, and the lines it does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Statement};
use crate::daemon::{Daemon, Takes};
use crate::difference::{Batch, Place, Purpose, Step, shown_for, without_router};

/// How often a line is sent before it counts as in effect without being shown, or as rejected: the first time, a
/// manual change may have interfered.
fn attempts_max(daemon: Daemon) -> u8 {
    match daemon {
        // 10.3 drops a change that it is committing when any other connection to it closes, as after each `vtysh -c`,
        // and reports success; or it rejects the next line, whose context is gone.
        Daemon::Mgmtd => 10,
        _ => 2,
    }
}

/// The conclusion from a line that was sent and is due again.
pub(super) enum Learnt {
    /// No conclusion yet.
    Nothing,
    /// The line is in effect and is not sent again.
    Accepted,
    /// The line is not in effect, for the reason that FRR gave.
    Refused(String),
}

/// What is known of one daemon since it started.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Lines that it was sent and has.
    pub(super) told: BTreeSet<Place>,
    /// Lines that it has but shows in another form, with that form.
    pub(super) hidden: BTreeMap<Place, Option<Arc<str>>>,
    /// Removals that have no effect: the daemon still shows the setting.
    pub(super) stubborn: BTreeSet<Place>,
    /// They are sent once more.
    pub(super) tries_again: bool,
    /// How often each line was sent in a row.
    attempts: BTreeMap<Place, u8>,
    unknown: BTreeMap<Place, String>,
    remarks: BTreeMap<Place, String>,
}

impl Memory {
    /// Whether the statement is expected in this daemon.
    pub(super) fn may_take(&self, daemon: Daemon, statement: &Statement) -> bool {
        match daemon.takes(statement) {
            Takes::Must => true,
            Takes::May => self.words_about(statement).is_none(),
            Takes::Not => false,
        }
    }

    /// Whether the daemon knows every statement.
    pub(super) fn knows_all(&self) -> bool {
        self.unknown.is_empty()
    }

    /// The daemon may have restarted: only what it shows counts.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { told: std::mem::take(&mut self.told), ..Self::default() };
    }

    /// The reply with which the daemon rejected a statement.
    pub(super) fn words_about(&self, statement: &Statement) -> Option<&String> {
        self.unknown.get(&(statement.context.clone(), statement.line.clone()))
    }

    /// A line was accepted. Returns how often it was before, in a row, and had no effect.
    pub(super) fn took(&mut self, daemon: Daemon, step: Step) -> u32 {
        self.tried(daemon, &step);
        let place = step.place();
        let lost = self.attempts.get(&place).map_or(0, |it| u32::from(it.saturating_sub(1)));
        if step.purpose == Purpose::Add {
            self.told.insert(place);
        }
        lost
    }

    /// Counts a line that was sent or rejected. Returns whether that was the last attempt.
    pub(super) fn tried(&mut self, daemon: Daemon, step: &Step) -> bool {
        let attempts = self.attempts.entry(step.place()).or_default();
        *attempts = attempts.saturating_add(1);
        *attempts >= attempts_max(daemon)
    }

    pub(super) fn does_not_know(&mut self, step: Step, words: String) {
        self.unknown.insert(step.place(), words);
    }

    pub(super) fn remarked(&mut self, step: Step, words: String) {
        self.remarks.insert(step.place(), words);
    }

    /// Compares with the running configuration: a line that is no longer there counts as not sent.
    ///
    /// `tries_again`: what kept the daemon from a removal may have gone.
    pub(super) fn compare(&mut self, running: &Configuration, tries_again: bool) {
        self.tries_again = tries_again;
        let shown: BTreeSet<(&[Arc<str>], &str)> =
            running.statements.iter().map(|it| (&*it.context, &*it.line)).collect();
        let hidden = &self.hidden;
        let attempts = &self.attempts;
        self.told.retain(|place| {
            shown.contains(&(&*place.0, &*place.1))
                || hidden.contains_key(place)
                || attempts.contains_key(place)
        });
    }

    /// A context that is created again is empty. Returns whether anything was assumed to be in it.
    pub(super) fn forget_what_is_in(&mut self, made: &[&Step]) -> bool {
        let before = self.hidden.len();
        self.hidden.retain(|(context, line), _| !made.iter().any(|it| it.is_around(context, line)));
        self.hidden.len() != before
    }

    /// Draws a conclusion from an earlier attempt to send `step`, which is due again.
    pub(super) fn learn(&mut self, daemon: Daemon, step: &Step, running: &Configuration) -> Learnt {
        let place = step.place();
        if self.attempts.get(&place).is_none_or(|it| *it < attempts_max(daemon)) {
            return Learnt::Nothing;
        }
        match step.purpose {
            Purpose::Remove => {
                if self.tries_again && self.stubborn.contains(&place) {
                    return Learnt::Nothing;
                }
                self.stubborn.insert(place);
            }
            Purpose::Add => {
                if let Some(words) = self.remarks.remove(&place) {
                    return Learnt::Refused(words);
                }
                let shown = shown_for(running, &step.context, &step.line);
                self.hidden.insert(place, shown);
            }
        }
        Learnt::Accepted
    }

    /// Drops lines that have no effect however often they are sent, and forgets lines that need not be sent
    /// any more.
    pub(super) fn sort_out(&mut self, batch: &mut Batch) {
        let steps = batch.additions.iter().chain(&batch.removals);
        let places: BTreeSet<Place> = steps.map(Step::place).collect();
        self.attempts.retain(|it, _| places.contains(it));
        self.stubborn.retain(|it| places.contains(it));
        if self.tries_again {
            return;
        }
        batch.additions.retain(|it| !self.stubborn.contains(&it.place()));
        batch.removals.retain(|it| !self.stubborn.contains(&it.place()));
        // FRR 8.4 crashes when a router goes that has neighbours.
        let kept = self.stubborn.iter().filter_map(|(context, _)| context.first());
        let kept: BTreeSet<String> = kept.map(|it| without_router(it)).collect();
        for steps in [&mut batch.additions, &mut batch.removals] {
            steps.retain(|it| it.purpose == Purpose::Add || !kept.contains(&*it.line));
        }
    }
}
