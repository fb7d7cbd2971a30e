//! Which lines did FRR reject, and what is configured in their place?
//!
//! A resource with a rejected line keeps its last good configuration; if FRR rejects that, too, the whole
//! resource is left out. It is retried when its lines change. Of the operator's own lines each stands for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Statement, is_extra, without_secrets};
use crate::daemon::Daemon;
use crate::difference::{Place, Step, same_settings};

/// The unit that is set aside: all lines of one resource, or a single line that belongs to none or to the operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Resource(Arc<str>),
    Line(Place),
}

#[derive(Debug)]
struct Refusal {
    /// The daemon that rejected it; none where no daemon knows the line.
    daemon: Option<Daemon>,
    fault: String,
    group: Subject,
    /// The wanted lines of the group.
    wanted: BTreeSet<Place>,
    /// The last good configuration was rejected, too.
    is_out: bool,
}

/// All rejections.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Subject, Refusal>);

impl Subject {
    pub(super) fn of(origin: Option<&Arc<str>>, place: impl FnOnce() -> Place) -> Self {
        let resource = origin.filter(|it| !is_extra(Some(it)));
        resource.map_or_else(|| Self::Line(place()), |origin| Self::Resource(origin.clone()))
    }

    pub(super) fn of_statement(statement: &Statement) -> Self {
        Self::of(statement.origin.as_ref(), || (statement.context.clone(), statement.line.clone()))
    }
}

/// What is retried together: the operator's lines may depend on each other.
fn group(origin: Option<&Arc<str>>, place: impl FnOnce() -> Place) -> Subject {
    match origin {
        Some(origin) => Subject::Resource(origin.clone()),
        None => Subject::Line(place()),
    }
}

fn group_of(statement: &Statement) -> Subject {
    group(statement.origin.as_ref(), || (statement.context.clone(), statement.line.clone()))
}

impl Refusals {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        self.0.values().map(|it| it.fault.clone())
    }

    /// FRR rejected a line: this daemon, or all that answer. `is_new`: its resource was not configured before.
    pub(super) fn add<'a>(
        &mut self,
        daemon: Option<Daemon>,
        step: &Step,
        words: String,
        is_new: bool,
        wanted: impl Iterator<Item = &'a Statement>,
    ) {
        let subject = Subject::of(step.origin.as_ref(), || step.place());
        let group = group(step.origin.as_ref(), || step.place());
        let of_it = wanted.filter(|it| group_of(it) == group);
        let wanted = of_it.map(|it| (it.context.clone(), it.line.clone())).collect();
        let (line, words) = (without_secrets(&step.line), words.trim().replace('\n', "; "));
        let rejected = match daemon {
            Some(daemon) => format!("FRR's {} rejected `{line}`: {words}", daemon.name()),
            None => format!("no daemon of FRR that runs knows `{line}`: {words}"),
        };
        let fault = match (&subject, &step.origin) {
            (Subject::Resource(resource), _) if is_new => {
                format!("{resource} is not configured: {rejected}")
            }
            (Subject::Resource(resource), _) => {
                format!("{resource} keeps its previous configuration: {rejected}")
            }
            (Subject::Line(_), Some(origin)) => {
                let context = step.context.last().map(|it| format!(" in `{it}`"));
                format!(
                    "{origin}: a line is not in force{}: {rejected}",
                    context.unwrap_or_default()
                )
            }
            (Subject::Line(_), None) => {
                format!("the configuration keeps its previous state: {rejected}")
            }
        };
        let is_out = self.0.contains_key(&subject);
        self.0.insert(subject, Refusal { daemon, fault, group, wanted, is_out });
    }

    /// A daemon that restarted may accept what it rejected before, and know what nobody knew.
    pub(super) fn forget_daemon(&mut self, daemon: Daemon) {
        self.0.retain(|_, it| it.daemon.is_some_and(|it| it != daemon));
    }

    /// What was made has room for lines that were rejected without it.
    pub(super) fn forget_what_is_in(&mut self, made: &Step) {
        self.0.retain(|subject, _| match subject {
            Subject::Line((context, line)) => !made.is_around(context, line),
            Subject::Resource(_) => true,
        });
    }

    /// A group with changed lines is retried.
    pub(super) fn forget_what_changed(&mut self, wanted: &[Statement]) {
        if self.0.is_empty() {
            return;
        }
        let mut now: BTreeMap<Subject, BTreeSet<Place>> = BTreeMap::new();
        for statement in wanted {
            let place = (statement.context.clone(), statement.line.clone());
            now.entry(group_of(statement)).or_default().insert(place);
        }
        self.0.retain(|_, it| now.get(&it.group) == Some(&it.wanted));
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
        let refusal = |it: &Statement| self.0.get(&Subject::of_statement(it));
        let of_refused = |statements: &'a [Statement], is_out: bool| {
            statements.iter().filter(move |it| refusal(it).is_some_and(|it| it.is_out == is_out))
        };
        let mut target: Vec<_> = wanted.iter().filter(|it| refusal(it).is_none()).collect();
        let aside: Vec<&Statement> = of_refused(wanted, false).collect();
        target.extend(of_refused(good, false));
        // At first, the origin of a line is not known; one of the operator's has its earlier value.
        let earlier = good.iter().filter(|it| it.origin.is_none() || it.is_extra());
        let earlier = earlier.filter(|it| refusal(it).is_none());
        target.extend(same_settings(earlier, &aside));
        let shown: BTreeSet<_> = shown.flat_map(|it| &it.statements).map(place).collect();
        let out = of_refused(wanted, true).chain(of_refused(good, true));
        target.extend(out.filter(|it| shown.contains(&place(it))));
        target
    }
}

fn place(statement: &Statement) -> (&[Arc<str>], &str) {
    (&statement.context, &statement.line)
}
