//! What all viewers see: the parts of the page, each with when it changed last.

use fairway_looking_glass::{Fragment, Part};
use hyper::body::Bytes;
use tokio::sync::watch;

use crate::host::epoch_seconds;

/// The page at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    pub(super) node: String,
    /// When it was looked at, in Unix time.
    pub(super) at_epoch_seconds: u64,
    /// The number of the last change.
    pub(super) number: u64,
    /// In the order of the page; empty before the first look.
    pub(super) parts: Vec<Painted>,
    /// Tells this run of the daemon from others: numbers begin again.
    pub(super) run: u64,
}

/// A part.
#[derive(Debug, Clone)]
pub(super) struct Painted {
    pub(super) fragment: Fragment,
    /// The number of the change that made it what it is.
    pub(super) number: u64,
    /// The event that tells a viewer about it; shared by all.
    pub(super) event: Bytes,
}

/// The latest one alone is kept: a viewer that comes late misses the ones before.
pub(super) fn channel() -> (watch::Sender<Sight>, watch::Receiver<Sight>) {
    watch::channel(Sight { run: epoch_seconds(), ..Sight::default() })
}

impl Sight {
    /// The same with `fragments`; those that are new are numbered. Returns whether any is.
    pub(super) fn follow(&mut self, fragments: Vec<Fragment>) -> bool {
        let number = self.number.saturating_add(1);
        let is_known =
            |it: &Fragment, at: usize| self.parts.get(at).is_some_and(|old| old.fragment == *it);
        let is_new = fragments.iter().enumerate().any(|(at, it)| !is_known(it, at));
        if !is_new {
            return false;
        }
        let mut earlier = std::mem::take(&mut self.parts).into_iter();
        let painted = fragments.into_iter().map(|fragment| match earlier.next() {
            Some(old) if old.fragment == fragment => old,
            _ => {
                let event = event(&fragment);
                Painted { fragment, number, event }
            }
        });
        self.parts = painted.collect();
        self.number = number;
        true
    }

    /// What a viewer has that has everything up to here, for [`Self::after`].
    pub(super) fn seen(&self) -> String {
        format!("{}-{}", self.run, self.number)
    }

    /// The number behind [`Self::seen`] of this run; 0 of any other text: everything is new then.
    pub(super) fn number_of(&self, seen: &str) -> u64 {
        let halves = seen.split_once('-').filter(|(run, _)| run.parse() == Ok(self.run));
        halves.and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }

    /// The parts that changed after `number`.
    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = &Painted> {
        self.parts.iter().filter(move |it| it.number > number)
    }
}

/// What a viewer has when it has taken all parts up to here: an event without data, which sets the last event ID alone. A part
/// with an ID of its own would be the last of a change that was cut off before its other parts.
pub(super) fn mark(seen: &str) -> Bytes {
    format!("id: {seen}\n\n").into()
}

/// As EventSource reads it. HTML of the looking glass has no carriage return, which would end a line.
fn event(fragment: &Fragment) -> Bytes {
    let part: Part = fragment.part;
    let mut text = format!("event: {}\n", part.name());
    for line in fragment.html.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(part: Part, html: &str) -> Fragment {
        Fragment { part, html: html.to_owned() }
    }

    #[test]
    fn a_viewer_is_due_the_parts_that_changed_since_it_looked() {
        let mut sight = Sight { run: 7, ..Sight::default() };
        assert!(sight.follow(vec![fragment(Part::Head, "a"), fragment(Part::Events, "b")]));
        assert_eq!((sight.seen().as_str(), sight.after(0).count()), ("7-1", 2));
        assert!(!sight.follow(vec![fragment(Part::Head, "a"), fragment(Part::Events, "b")]));
        assert!(sight.follow(vec![fragment(Part::Head, "a"), fragment(Part::Events, "c\nd")]));
        let due: Vec<&Bytes> = sight.after(sight.number_of("7-1")).map(|it| &it.event).collect();
        assert_eq!(due, ["event: events\ndata: c\ndata: d\n\n"]);
        for other_run in ["6-2", "", "7", "7-x"] {
            assert_eq!(sight.after(sight.number_of(other_run)).count(), 2, "{other_run:?}");
        }
        assert_eq!(sight.after(sight.number_of("7-2")).count(), 0);
    }
}
