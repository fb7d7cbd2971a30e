//! Is bgpd in a configuration that somebody has not ended, and what about our neighbors meanwhile?
//!
//! vtysh and frr-reload.py put marks around what they load; bgpd starts no neighbor that is new between them, for ten
//! minutes at most. One that was cut short leaves out the second mark. Part of [`Application`].

use std::time::Duration;

use super::{Application, Now};
use crate::configuration::Configuration;
use crate::difference::neighbor;

/// How long bgpd may be in a configuration to which nothing is added, before it is taken for one that was cut short.
const IDLE_LIMIT: Duration = Duration::from_secs(20);
/// Interval between two looks meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long bgpd takes to start its neighbors after a configuration.
const END: Duration = Duration::from_secs(2);

/// A configuration that has not ended.
#[derive(Debug)]
pub(super) struct Load {
    /// When something was added to it for the last time.
    since: Now,
    shown: Configuration,
}

impl Application {
    /// Takes what bgpd shows. Returns when to look again.
    pub(super) fn read_load(
        &mut self,
        now: Now,
        bgpd: &Configuration,
        is_loading: bool,
    ) -> Option<Now> {
        let before = self.load.take().filter(|it| it.shown == *bgpd);
        self.load = is_loading
            .then(|| Load { since: before.map_or(now, |it| it.since), shown: bgpd.clone() });
        is_loading.then(|| now.saturating_add(LOOK_INTERVAL))
    }

    /// Whether a configuration was cut short and holds neighbors of ours: it is to be ended.
    pub(super) fn has_cut_load(&self, now: Now) -> bool {
        let since = self.load.as_ref().map(|it| it.since);
        since.is_some_and(|it| now.saturating_sub(it) >= IDLE_LIMIT) && self.wants_neighbors()
    }

    /// Takes the end of [`super::Next::EndLoad`].
    pub fn ended_load(&mut self, now: Now) {
        self.load = None;
        self.read_at = now.saturating_add(END);
    }

    /// Why new neighbors are not started.
    pub(super) fn load_fault(&self) -> Option<String> {
        (self.load.is_some() && self.wants_neighbors()).then(|| {
            format!(
                "FRR's bgpd is in a configuration that has not ended (of vtysh or frr-reload.py, running or cut \
                 short): it starts no new neighbors; Fairway ends it once nothing was added for {} s",
                IDLE_LIMIT.as_secs()
            )
        })
    }

    fn wants_neighbors(&self) -> bool {
        let mut lines = self.wanted.iter().flat_map(|it| &it.configuration.statements);
        lines.any(|it| neighbor(&it.context, &it.line).is_some())
    }
}
