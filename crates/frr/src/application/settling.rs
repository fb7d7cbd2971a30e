//! What is in force once nothing is left to send?
//!
//! Part of [`Application`].

use std::collections::BTreeSet;

use super::Application;
use crate::configuration::Statement;
use crate::daemon::Daemon;
use crate::difference::neighbor;

impl Application {
    /// Nothing is left to send.
    pub(super) fn settle(&mut self) {
        let (Some(wanted), Some(known)) = (&self.wanted, &self.known) else { return };
        let (generation, is_partial) = (wanted.generation, wanted.is_partial);
        let unready = known.daemons.contains_key(&Daemon::Bgpd).then(|| self.why_no_neighbor());
        let is_missed = known.away.keys().any(|it| self.needs(*it)) || !self.awaited().is_empty();
        self.unready = unready.unwrap_or_else(|| self.unready.take());
        if is_missed {
            return;
        }
        if !self.is_settled {
            let good = self.target().into_iter().cloned().collect();
            self.good = Some(good);
            self.first = Vec::new();
        }
        self.is_settled = true;
        if is_partial {
            return;
        }
        if self.announces_no_more() {
            self.withdrawn = Some(generation);
        }
        let does_all = self.memory.values().all(|it| it.stubborn.is_empty());
        let is_all = self.refusals.is_empty()
            && self.obstacles.is_empty()
            && self.recording.is_written()
            && (!wanted.configuration.statements.is_empty() || self.recording.is_empty());
        if does_all && is_all && self.other_owner.is_none() {
            self.in_force = Some(generation);
        }
    }

    /// Whether no route is originated beyond the wanted ones. A setting that bgpd fails to remove counts as
    /// still present, whatever it is; other daemons originate none of ours.
    fn announces_no_more(&self) -> bool {
        let wanted = self.wanted.iter().flat_map(|it| &it.configuration.statements);
        let place = |it: &Statement| (it.context.clone(), it.line.clone());
        let networks: BTreeSet<_> = wanted.filter(|it| is_network(it)).map(place).collect();
        let mut stays = self.target().into_iter().filter(|it| is_network(it));
        stays.all(|it| networks.contains(&place(it)))
            && self.memory.get(&Daemon::Bgpd).is_none_or(|it| it.stubborn.is_empty())
    }

    /// Why no neighbor is configured in FRR at all.
    fn why_no_neighbor(&self) -> Option<String> {
        let is_neighbor = |it: &Statement| neighbor(&it.context, &it.line).is_some();
        let wanted = self.wanted.iter().flat_map(|it| &it.configuration.statements);
        let is_wanted = wanted.into_iter().any(is_neighbor);
        let target = self.target();
        let mut configured = target.iter().filter(|it| !self.obstacles.concern(it));
        let is_any = configured.any(|it| is_neighbor(it));
        (is_wanted && !is_any).then(|| {
            let why = self.faults().into_iter().next().unwrap_or_default();
            format!("no neighbor is configured in FRR: {why}")
        })
    }
}

/// Whether the statement originates a route.
fn is_network(statement: &Statement) -> bool {
    statement.line.starts_with("network ")
}
