//! Is bgpd in a configuration that somebody has not ended, and what about our neighbors meanwhile?
//!
//! vtysh and frr-reload.py put marks around what they load; bgpd starts no neighbor that is new between them, for ten
//! minutes at most. One that was cut short leaves out the second mark. Part of [`Application`].

use std::time::Duration;

use super::{Application, Now, Running};
use crate::configuration::Configuration;
use crate::daemon::Daemon;
use crate::difference::{Step, neighbor};

/// How long bgpd may be in a configuration to which nothing is added, before it is taken for one that was cut short.
const IDLE_LIMIT: Duration = Duration::from_secs(20);
/// Interval between two looks meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long bgpd takes to start its neighbors after a configuration.
const END: Duration = Duration::from_secs(2);

/// A configuration that has not ended.
#[derive(Debug)]
pub(super) struct Load {
    /// When somebody else added something to it for the last time.
    since: Now,
    shown: Configuration,
    /// Lines of ours were sent since it was shown.
    has_ours: bool,
    /// Neighbors of ours may wait for its end.
    holds_ours: bool,
}

impl Application {
    /// Takes what bgpd shows. Returns when to look again.
    pub(super) fn read_load(&mut self, now: Now, running: &Running) -> Option<Now> {
        let before = self.load.take();
        if !running.is_loading {
            return None;
        }
        let bgpd = running.daemons.get(&Daemon::Bgpd).cloned().unwrap_or_default();
        // Those that were there when this process came may have been made in it.
        let is_first = self.good.is_none() && before.is_none();
        let has_neighbors = || bgpd.statements.iter().any(|it| self.is_neighbor_of_ours(it));
        let holds_ours =
            before.as_ref().is_some_and(|it| it.holds_ours) || (is_first && has_neighbors());
        let same = before.filter(|it| it.has_ours || it.shown == bgpd);
        self.load = Some(Load {
            since: same.map_or(now, |it| it.since),
            shown: bgpd,
            has_ours: false,
            holds_ours,
        });
        Some(now.saturating_add(LOOK_INTERVAL))
    }

    /// Takes lines that were sent.
    pub(super) fn load_grew(&mut self, taken: &[(Daemon, Step)]) {
        let Some(load) = &mut self.load else { return };
        let mut of_bgpd = taken.iter().filter(|(daemon, _)| *daemon == Daemon::Bgpd);
        load.has_ours |= of_bgpd.clone().next().is_some();
        load.holds_ours |= of_bgpd.any(|(_, step)| step.makes_neighbor());
    }

    /// Whether a configuration was cut short and holds neighbors of ours: it is to be ended.
    pub(super) fn has_cut_load(&self, now: Now) -> bool {
        let load = self.load.as_ref().filter(|it| it.holds_ours);
        load.is_some_and(|it| now.saturating_sub(it.since) >= IDLE_LIMIT)
    }

    /// Takes the end of [`super::Next::EndLoad`].
    pub fn ended_load(&mut self, now: Now) {
        self.load = None;
        self.read_at = now.saturating_add(END);
    }

    /// Why new neighbors are not started.
    pub(super) fn load_fault(&self) -> Option<String> {
        self.load.as_ref().filter(|it| it.holds_ours).map(|_| {
            format!(
                "FRR's bgpd is in a configuration that has not ended (of vtysh or frr-reload.py, running or cut \
                 short): it starts no new neighbors; Fairway ends it once nothing was added for {} s",
                IDLE_LIMIT.as_secs()
            )
        })
    }

    fn is_neighbor_of_ours(&self, statement: &crate::configuration::Statement) -> bool {
        let is_ours = || statement.line.split(' ').any(|it| it.starts_with(&*self.mark));
        neighbor(&statement.context, &statement.line).is_some() && is_ours()
    }
}
