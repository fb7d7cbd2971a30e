//! Gives Services their addresses, says when that changes, and hands what must survive a restart
//! to the state directory.
//!
//! Knows no node, no router and no session. The standalone loop calls it after every change of
//! the index.

pub mod announced;
pub mod state;

use tracing::{info, warn};

use crate::allocator::{Allocator, Outcome, Outcomes};
use crate::model::ClusterIndex;

/// The allocator, and what it decided last.
#[derive(Debug, Default)]
pub struct Controller {
    allocator: Allocator,
    load_balancer_class: Option<String>,
    outcomes: Outcomes,
}

impl Controller {
    /// Goes on from what `allocator` remembers, for Services of one class (`None`: those without
    /// a class).
    pub fn new(allocator: Allocator, load_balancer_class: Option<String>) -> Self {
        Self { allocator, load_balancer_class, outcomes: Outcomes::new() }
    }

    /// Decides anew, and logs what is different.
    pub fn converge(&mut self, index: &ClusterIndex) -> &Outcomes {
        let outcomes = self.allocator.converge(index, self.load_balancer_class.as_deref());
        for (name, outcome) in &outcomes {
            let before = self.outcomes.get(name);
            if before != Some(outcome) {
                log(&name.to_string(), before, outcome);
            }
        }
        for (name, before) in &self.outcomes {
            if !outcomes.contains_key(name) && !before.addresses.is_empty() {
                info!(service = %name, addresses = ?before.addresses, "addresses released");
            }
        }
        self.outcomes = outcomes;
        &self.outcomes
    }

    /// What was decided last.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// What must survive a restart.
    pub fn allocator(&self) -> &Allocator {
        &self.allocator
    }
}

fn log(service: &str, before: Option<&Outcome>, now: &Outcome) {
    if !now.addresses.is_empty() && before.map(|it| &it.addresses) != Some(&now.addresses) {
        let pool = now.pool.as_deref().unwrap_or_default();
        info!(service, addresses = ?now.addresses, pool, "addresses assigned");
    }
    if let Some(reason) = &now.reason {
        let pending = now.is_pending();
        warn!(service, pending, %reason, "service does not have all that it asks for");
    }
}
