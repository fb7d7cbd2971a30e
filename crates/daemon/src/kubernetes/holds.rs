//! Which kinds are kept although the API server has none of their objects, and who is told?
//!
//! Each hold is logged when it begins and when it ends, and is an Event about one of the objects. Decides nothing.
//! Called by the controller and the speaker.

use std::collections::BTreeSet;

use fairway_cluster::{EventRecord, Held};
use fairway_ground::Instant;
use fairway_model::Kind;
use tracing::{info, warn};

use super::resource::Resource;

/// The reason of the Event.
const REASON: &str = "ObjectsHeld";

/// The kinds that were logged, and those that an Event was posted about.
#[derive(Debug, Default)]
pub(super) struct Holds {
    logged: BTreeSet<Kind>,
    posted: BTreeSet<Kind>,
}

impl Holds {
    /// Takes the kinds that are held now. Returns the Events to post, about kinds that `is_own`.
    pub(super) fn look(
        &mut self,
        now: Instant,
        held: &[Held],
        is_own: impl Fn(Kind) -> bool,
    ) -> Vec<EventRecord> {
        let Self { logged, posted } = self;
        posted.retain(|kind| held.iter().any(|it| it.kind == *kind));
        logged.retain(|kind| {
            let is_held = held.iter().any(|it| it.kind == *kind);
            if !is_held {
                info!("{} are again what the API server has", Resource::read(*kind).plural);
            }
            is_held
        });
        let mut events = Vec::new();
        for Held { kind, until, name, uid } in held {
            let (is_new, is_due) = (logged.insert(*kind), is_own(*kind) && posted.insert(*kind));
            if !is_new && !is_due {
                continue;
            }
            let message = format!(
                "the Kubernetes API has no {} any more, and did not delete them one by one: each of the known ones stays \
                 in force until it is there again, or for {} s (--empty-list-hold)",
                Resource::read(*kind).plural,
                until.since(now).as_secs(),
            );
            if is_new {
                warn!("{message}");
            }
            if is_due {
                let (name, uid) = (name.clone(), uid.clone());
                let record = EventRecord {
                    kind: (*kind).into(),
                    name,
                    uid,
                    is_warning: true,
                    reason: REASON,
                    message,
                };
                events.push(record);
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use fairway_model::ObjectName;

    use super::*;

    #[test]
    fn a_hold_is_one_event_each_time_that_it_begins() {
        let mut holds = Holds::default();
        let until = Instant::from_micros(300_000_000);
        let name = ObjectName::new("metallb-system", "main");
        let held = [Held { kind: Kind::IpAddressPool, until, name, uid: "u-1".to_owned() }];
        let mut look = |held: &[Held], is_own| holds.look(Instant::ZERO, held, |_| is_own);
        let events = look(&held, true);
        assert_eq!((events[0].reason, events[0].uid.as_str()), (REASON, "u-1"));
        assert!(events[0].message.contains("no ipaddresspools any more"), "{}", events[0].message);
        assert!(events[0].message.contains("for 300 s"), "{}", events[0].message);
        assert_eq!(look(&held, true), []);
        assert_eq!(look(&[], true), []);
        assert_eq!(look(&held, false), [], "another one posts it");
        assert_eq!(look(&held, true).len(), 1, "until this one leads");
        assert_eq!(look(&[], true), []);
        assert_eq!(look(&held, true).len(), 1);
    }
}
