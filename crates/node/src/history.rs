//! The last change of each Service, and when it was: for `fairway explain`.
//!
//! Remembers one change of its addresses and one of its routes, no more, and forgets a deleted
//! Service; starts empty after a restart. Decides nothing. The standalone loop writes it,
//! `fairway explain` reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_allocator::Outcomes;
use fairway_ground::{PeerKey, Prefix};
use fairway_model::ObjectName;
use fairway_plan::NodePlan;

/// The prefixes to announce, each with its peers.
pub type Routes = BTreeMap<Prefix, Arc<BTreeSet<PeerKey>>>;

/// A current value, and its last change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracked<T> {
    now: T,
    /// `None` if it has not changed since the daemon started.
    pub last: Option<Change<T>>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<T> {
    /// When, in Unix time.
    pub at_epoch_seconds: u64,
    /// The value until then.
    pub before: T,
}

impl<T: PartialEq + Default> Tracked<T> {
    /// The current value.
    pub fn now(&self) -> &T {
        &self.now
    }

    fn would_change(&self, now: &T) -> bool {
        self.now != *now
    }

    fn set(&mut self, now: T, at_epoch_seconds: Option<u64>) {
        if self.would_change(&now) {
            let before = std::mem::replace(&mut self.now, now);
            self.last = at_epoch_seconds.map(|at| Change { at_epoch_seconds: at, before });
        }
    }
}

/// The history of one Service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceHistory {
    /// When it appeared, in Unix time; `None` if it was there when the daemon started.
    pub appeared_at_epoch_seconds: Option<u64>,
    /// Its addresses.
    pub addresses: Tracked<Vec<IpAddr>>,
    /// The routes that this node announces for it.
    pub routes: Tracked<Routes>,
}

/// The history of all Services.
#[derive(Debug, Clone, Default)]
pub struct History {
    services: BTreeMap<ObjectName, Arc<ServiceHistory>>,
    has_begun: bool,
}

impl History {
    /// The history of a Service.
    pub fn of(&self, service: &ObjectName) -> Option<&ServiceHistory> {
        self.services.get(service).map(Arc::as_ref)
    }

    /// These Services may have changed. The first observation is not a change: its time is
    /// unknown.
    pub fn note<'a>(
        &mut self,
        now_epoch_seconds: u64,
        touched: impl IntoIterator<Item = &'a ObjectName>,
        outcomes: &Outcomes,
        plan: &NodePlan,
    ) {
        let at = self.has_begun.then_some(now_epoch_seconds);
        self.has_begun = true;
        for name in touched {
            let Some(outcome) = outcomes.get(name) else {
                self.services.remove(name);
                continue;
            };
            let routes = routes(plan, name);
            let history = self.services.entry(name.clone()).or_insert_with(|| {
                Arc::new(ServiceHistory {
                    appeared_at_epoch_seconds: at,
                    ..ServiceHistory::default()
                })
            });
            if history.addresses.would_change(&outcome.addresses)
                || history.routes.would_change(&routes)
            {
                let history = Arc::make_mut(history);
                history.addresses.set(outcome.addresses.clone(), at);
                history.routes.set(routes, at);
            }
        }
    }
}

fn routes(plan: &NodePlan, service: &ObjectName) -> Routes {
    let announcement = plan.services.get(service);
    let addresses = announcement.into_iter().flat_map(|it| &it.addresses);
    let prefixes = addresses.flat_map(|address| &address.prefixes);
    let told = prefixes.filter(|it| it.reason.is_none() && !it.peers.is_empty());
    told.map(|it| (it.prefix, Arc::clone(&it.peers))).collect()
}

#[cfg(test)]
mod tests {
    use fairway_allocator::Outcome;

    use super::*;

    fn outcomes(addresses: &[&str]) -> Outcomes {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let outcome = Outcome { addresses, pool: None, reason: None };
        Outcomes::from([(ObjectName::new("default", "web"), outcome)])
    }

    #[test]
    fn what_was_there_at_the_start_is_no_news_and_later_changes_are() {
        let (web, plan) = (ObjectName::new("default", "web"), NodePlan::default());
        let mut history = History::default();
        history.note(100, [&web], &outcomes(&["192.0.2.1"]), &plan);
        assert_eq!(history.of(&web).unwrap().addresses.last, None);
        history.note(200, [&web], &outcomes(&["192.0.2.1"]), &plan);
        assert_eq!(history.of(&web).unwrap().addresses.last, None);
        history.note(300, [&web], &outcomes(&["192.0.2.2"]), &plan);
        history.note(400, [&web], &outcomes(&["192.0.2.2"]), &plan);
        let last = history.of(&web).unwrap().addresses.last.clone();
        let before = vec!["192.0.2.1".parse().unwrap()];
        assert_eq!(last, Some(Change { at_epoch_seconds: 300, before }));
        history.note(500, [&web], &Outcomes::new(), &plan);
        assert!(history.of(&web).is_none());
        history.note(600, [&web], &outcomes(&["192.0.2.2"]), &plan);
        let last = history.of(&web).unwrap().addresses.last.clone();
        assert_eq!(last, Some(Change { at_epoch_seconds: 600, before: Vec::new() }));
        let pending = ObjectName::new("default", "pending");
        let waits = Outcome { addresses: Vec::new(), pool: None, reason: None };
        history.note(700, [&pending], &Outcomes::from([(pending.clone(), waits)]), &plan);
        assert_eq!(history.of(&pending).unwrap().appeared_at_epoch_seconds, Some(700));
        assert_eq!(history.of(&pending).unwrap().addresses.last, None);
    }
}
