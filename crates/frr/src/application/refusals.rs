//! Which lines did FRR reject, and what is configured in their place?
//!
//! A resource with a rejected line keeps its last good configuration; if FRR rejects that, too, the whole
//! resource is left out. It is retried when its lines change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Statement, without_secrets};
use crate::daemon::Daemon;
use crate::difference::{Place, Step, same_settings};

/// The unit that is set aside: all lines of one resource, or a single line that belongs to none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Resource(Arc<str>),
    Line(Place),
}

#[derive(Debug)]
struct Refusal {
    daemon: Daemon,
    fault: String,
    /// The wanted lines of the subject.
    wanted: BTreeSet<Place>,
    /// The last good configuration was rejected, too.
    is_out: bool,
}

/// All rejections.
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

    /// FRR rejected a line.
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
        let name_of_subject = match &subject {
            Subject::Resource(name) => name.to_string(),
            Subject::Line(_) => "the configuration".to_owned(),
        };
        let name = daemon.name();
        let fault = format!(
            "{name_of_subject} keeps its previous configuration: FRR's {name} rejected `{line}`: \
             {words}"
        );
        let is_out = self.0.contains_key(&subject);
        self.0.insert(subject, Refusal { daemon, fault, wanted, is_out });
    }

    /// A daemon that restarted may accept what it rejected before.
    pub(super) fn forget_daemon(&mut self, daemon: Daemon) {
        self.0.retain(|_, it| it.daemon != daemon);
    }

    /// A subject with changed lines is retried.
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

    /// The configuration that FRR should have: the wanted one, with the last good configuration of each
    /// rejected subject; if that was rejected, too, those of its lines that are `shown` stay.
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
        // At first, the origin of a line is not known.
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
