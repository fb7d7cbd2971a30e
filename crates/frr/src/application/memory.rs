//! What is known of a daemon beside what it shows: what it was told, what it shows in its own way, and
//! what it does not know at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Statement};
use crate::daemon::{Daemon, Takes};
use crate::difference::{Batch, Place, Purpose, Step, shown_for};

/// How often a line is said before it counts as done without being shown: the first time, somebody may
/// have come between.
const ATTEMPTS_MAX: u8 = 2;

/// What was learnt from a line that was said and that is to be said again.
pub(super) enum Learnt {
    /// Nothing yet.
    Nothing,
    /// It is done; it is not to be said again.
    Accepted,
    /// It is not done, for the reason that FRR gave.
    Refused(String),
}

/// Of one daemon, since it started.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What it was told and has.
    pub(super) told: BTreeSet<Place>,
    /// What it has and shows otherwise, with how it does.
    pub(super) hidden: BTreeMap<Place, Option<Arc<str>>>,
    /// Lines that it does not do although they unset something that it shows.
    pub(super) stubborn: BTreeSet<Place>,
    /// How often a line was said in a row.
    attempts: BTreeMap<Place, u8>,
    unknown: BTreeMap<Place, String>,
    remarks: BTreeMap<Place, String>,
}

impl Memory {
    /// Whether a statement is to be looked for here.
    pub(super) fn may_take(&self, daemon: Daemon, statement: &Statement) -> bool {
        match daemon.takes(statement) {
            Takes::Must => true,
            Takes::May => self.words_about(statement).is_none(),
            Takes::Not => false,
        }
    }

    /// There is nothing that it does not take.
    pub(super) fn knows_all(&self) -> bool {
        self.unknown.is_empty()
    }

    /// It may be another one now: what it has it shows.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { told: std::mem::take(&mut self.told), ..Self::default() };
    }

    /// Why it does not take a statement.
    pub(super) fn words_about(&self, statement: &Statement) -> Option<&String> {
        self.unknown.get(&(statement.context.clone(), statement.line.clone()))
    }

    pub(super) fn took(&mut self, step: Step) {
        self.tried(&step);
        let place = step.place();
        if step.purpose == Purpose::Add {
            self.told.insert(place);
        }
    }

    /// It was said, or refused. Whether that was not the first time in a row.
    pub(super) fn tried(&mut self, step: &Step) -> bool {
        let attempts = self.attempts.entry(step.place()).or_default();
        *attempts = attempts.saturating_add(1);
        *attempts > 1
    }

    pub(super) fn does_not_know(&mut self, step: Step, words: String) {
        self.unknown.insert(step.place(), words);
    }

    pub(super) fn remarked(&mut self, step: Step, words: String) {
        self.remarks.insert(step.place(), words);
    }

    /// What it shows now: what it no longer has it was not told.
    pub(super) fn compare(&mut self, running: &Configuration) {
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

    /// What is made anew has nothing of what it had. Whether something was thought to be there.
    pub(super) fn forget_what_is_in(&mut self, made: &[&Step]) -> bool {
        let before = self.hidden.len();
        self.hidden.retain(|(context, line), _| !made.iter().any(|it| it.is_around(context, line)));
        self.hidden.len() != before
    }

    /// What follows from `step`, which is to be said, having been said before.
    pub(super) fn learn(&mut self, step: &Step, running: &Configuration) -> Learnt {
        let place = step.place();
        if self.attempts.get(&place).is_none_or(|it| *it < ATTEMPTS_MAX) {
            return Learnt::Nothing;
        }
        match step.purpose {
            Purpose::Remove => {
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

    /// Leaves out what is not done however often it is said. What need not be said any more is forgotten.
    pub(super) fn sort_out(&mut self, batch: &mut Batch) {
        let steps = batch.additions.iter().chain(&batch.removals);
        let places: BTreeSet<Place> = steps.map(Step::place).collect();
        self.attempts.retain(|it, _| places.contains(it));
        self.stubborn.retain(|it| places.contains(it));
        batch.additions.retain(|it| !self.stubborn.contains(&it.place()));
        batch.removals.retain(|it| !self.stubborn.contains(&it.place()));
    }
}
