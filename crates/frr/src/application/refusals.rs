//! What FRR refused, and what is said in its place.
//!
//! A resource with a refused line stays as it was when all was well; where that is refused, too, all
//! of it is left out. It is tried again when its lines change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Statement, without_secrets};
use crate::daemon::Daemon;
use crate::difference::{Place, Step, same_settings};

/// What is set aside as one: what is from the same resource, or a line that is from none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Resource(Arc<str>),
    Line(Place),
}

#[derive(Debug)]
struct Refusal {
    daemon: Daemon,
    fault: String,
    /// What was wanted of it.
    wanted: BTreeSet<Place>,
    /// What it was before is refused, too.
    is_out: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Subject, Refusal>);

fn subject(origin: Option<&Arc<str>>, place: impl FnOnce() -> Place) -> Subject {
    origin.map_or_else(|| Subject::Line(place()), |origin| Subject::Resource(origin.clone()))
}

fn subject_of(statement: &Statement) -> Subject {
    subject(statement.origin.as_ref(), || (statement.context.clone(), statement.line.clone()))
}

impl Refusals {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        self.0.values().map(|it| it.fault.clone())
    }

    /// FRR refused a line.
    pub(super) fn add<'a>(
        &mut self,
        daemon: Daemon,
        step: &Step,
        words: String,
        wanted: impl Iterator<Item = &'a Statement>,
    ) {
        let subject = subject(step.origin.as_ref(), || step.place());
        let of_it = wanted.filter(|it| subject_of(it) == subject);
        let wanted = of_it.map(|it| (it.context.clone(), it.line.clone())).collect();
        let (line, words) = (without_secrets(&step.line), words.trim().replace('\n', "; "));
        let who = match &subject {
            Subject::Resource(name) => name.to_string(),
            Subject::Line(_) => "the configuration".to_owned(),
        };
        let name = daemon.name();
        let fault = format!("{who} is as it was before: FRR's {name} refuses `{line}`: {words}");
        let is_out = self.0.contains_key(&subject);
        self.0.insert(subject, Refusal { daemon, fault, wanted, is_out });
    }

    /// A daemon that is another one may take what it refused.
    pub(super) fn forget_daemon(&mut self, daemon: Daemon) {
        self.0.retain(|_, it| it.daemon != daemon);
    }

    /// What is wanted otherwise now is tried.
    pub(super) fn forget_what_changed(&mut self, wanted: &[Statement]) {
        if self.0.is_empty() {
            return;
        }
        let mut now: BTreeMap<Subject, BTreeSet<Place>> = BTreeMap::new();
        for statement in wanted {
            let place = (statement.context.clone(), statement.line.clone());
            now.entry(subject_of(statement)).or_default().insert(place);
        }
        self.0.retain(|subject, it| now.get(subject) == Some(&it.wanted));
    }

    /// What FRR should have: what is wanted, and of what was refused what it was when all was well;
    /// where that is refused, too, what of it is `shown` stays.
    pub(super) fn target<'a>(
        &self,
        wanted: &'a [Statement],
        good: &'a [Statement],
        shown: impl Iterator<Item = &'a Configuration>,
    ) -> Vec<&'a Statement> {
        if self.0.is_empty() {
            return wanted.iter().collect();
        }
        let refusal = |it: &Statement| self.0.get(&subject_of(it));
        let of_refused = |statements: &'a [Statement], is_out: bool| {
            statements.iter().filter(move |it| refusal(it).is_some_and(|it| it.is_out == is_out))
        };
        let mut target: Vec<_> = wanted.iter().filter(|it| refusal(it).is_none()).collect();
        let aside: Vec<&Statement> = of_refused(wanted, false).collect();
        target.extend(of_refused(good, false));
        // At first it is not known what is from where.
        target.extend(same_settings(good.iter().filter(|it| it.origin.is_none()), &aside));
        let shown: BTreeSet<_> = shown.flat_map(|it| &it.statements).map(place).collect();
        let out = of_refused(wanted, true).chain(of_refused(good, true));
        target.extend(out.filter(|it| shown.contains(&place(it))));
        target
    }
}

fn place(statement: &Statement) -> (&[Arc<str>], &str) {
    (&statement.context, &statement.line)
}
