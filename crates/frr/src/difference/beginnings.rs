//! A new neighbour starts with its complete configuration.
//!
//! FRR accepts connections of a neighbour as soon as it knows its AS, and resets the session at each further
//! line. So a new neighbour is shut down until all its lines are sent. BFD comes last: FRR 10.3 sometimes
//! leaves a neighbour down, now and then for good, if its BFD existed before its session. Its route map comes right
//! after its AS: the name in it says whose the neighbour is, whatever happens to the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Context, Place, Purpose, Sides, Step, words};

/// The lines of routers, with each new neighbour shut down while it is configured.
pub(super) fn whole(sides: &Sides<'_>, steps: Vec<Step>) -> Vec<Step> {
    let (mut described, mut begun, mut watched) = (Vec::new(), Vec::new(), Vec::new());
    let mut new: Vec<(Context, Arc<str>)> = Vec::new();
    let mut marks: BTreeMap<(Arc<str>, String), Step> = BTreeMap::new();
    for step in &steps {
        if let (Some(router), Some((name, ["route-map", _, "in"]))) =
            (step.context.first(), neighbour(&step.line).as_ref().map(|(name, it)| (name, &**it)))
        {
            marks.entry((router.clone(), (*name).to_owned())).or_insert_with(|| step.clone());
        }
    }
    let mut brought_forward: BTreeSet<Place> = BTreeSet::new();
    for step in steps {
        let begins = begins(&step).filter(|name| is_new(sides, &step.context, name));
        let shut = begins.map(|name| command(&step, format!("neighbor {name} shutdown")));
        let starts = begins.map(|name| command(&step, format!("no neighbor {name} shutdown")));
        if let Some(name) = begins {
            new.push((step.context.clone(), Arc::from(name)));
        }
        let is_watched = neighbour(&step.line).is_some_and(|(name, rest)| {
            rest.first() == Some(&"bfd")
                && new.iter().any(|(context, it)| *context == step.context && **it == *name)
        });
        let mark = begins.zip(step.context.first());
        let mark = mark.and_then(|(name, router)| marks.remove(&(router.clone(), name.to_owned())));
        // The first one may have been brought forward.
        if !brought_forward.contains(&step.place()) {
            if is_watched { &mut watched } else { &mut described }.push(step);
        }
        described.extend(shut);
        brought_forward.extend(mark.iter().map(Step::place));
        described.extend(mark);
        begun.extend(starts);
    }
    described.into_iter().chain(begun).chain(watched).collect()
}

/// A temporary command, not part of the wanted configuration.
fn command(step: &Step, line: String) -> Step {
    let Step { context, origin, .. } = step.clone();
    Step { context, line: line.into(), origin, purpose: Purpose::Remove }
}

/// The name of a neighbour, and the rest of the line.
fn neighbour(line: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = words(line).into_iter();
    match (words.next(), words.next()) {
        (Some("neighbor"), Some(name)) => Some((name, words.collect())),
        _ => None,
    }
}

/// The neighbour that this line creates, if it does.
fn begins(step: &Step) -> Option<&str> {
    let (name, rest) = neighbour(&step.line)?;
    let is_first = matches!(rest.first(), Some(&"remote-as" | &"interface"));
    (is_first && step.context.len() == 1).then_some(name)
}

/// Whether FRR does not have the neighbour yet, and it is not to stay shut down.
fn is_new(sides: &Sides<'_>, context: &Context, name: &str) -> bool {
    let is_about = |line: &str| neighbour(line).is_some_and(|(it, _)| it == name);
    let mut known = sides.running.statements.iter();
    let is_known = known.any(|it| it.context == *context && is_about(&it.line));
    let is_down = |line: &str| {
        neighbour(line).is_some_and(|(it, rest)| it == name && rest.first() == Some(&"shutdown"))
    };
    let mut wanted = sides.wanted.iter();
    !is_known && !wanted.any(|it| it.context == *context && is_down(&it.line))
}
