//! What the first moments of a process know: what an earlier run left behind, whether the sources
//! have spoken, and until when what is missing is waited for (RFC 4724 §4.1).
//!
//! Knows no neighbour and no session. The core task of `io` asks it, and tells each
//! [`super::Peer`] what follows.

use std::collections::BTreeSet;
use std::time::Duration;

use super::graceful_restart::OwnRestart;
use crate::backend::{Desired, DesiredRoute, EarlierRun};
use crate::time::Instant;
use crate::types::{GracefulRestart, PeerConfig, Prefix, PrefixFilter};

/// The beginning of a process.
#[derive(Debug)]
pub struct Startup {
    at: Instant,
    own: OwnRestart,
    /// What an earlier run announced, while it may be all there is.
    earlier: Option<Vec<DesiredRoute>>,
    awaits_sources: bool,
}

/// Half the time for which a neighbour waits: what is missing then has the other half to be told.
fn patience(graceful_restart: Option<GracefulRestart>) -> Duration {
    graceful_restart.unwrap_or_default().restart_time() / 2
}

impl Startup {
    /// A process that begins `at`, perhaps after another one.
    pub fn new(at: Instant, earlier: Option<EarlierRun>) -> Self {
        let forwarding = earlier.as_ref().is_some_and(|earlier| earlier.forwarding);
        let own = OwnRestart { restarted: earlier.is_some(), forwarding };
        let earlier = earlier.map(|earlier| earlier.routes);
        Self { at, own, earlier, awaits_sources: true }
    }

    /// What a neighbour that is configured now is told of the restart: nothing when it has given up
    /// waiting long ago. It has no routes of an earlier run then, and F is true of all others.
    pub fn own_restart(&self, now: Instant, config: &PeerConfig) -> OwnRestart {
        let restart_time = config.graceful_restart.unwrap_or_default().restart_time();
        if now.since(self.at) < restart_time {
            self.own
        } else {
            OwnRestart { restarted: false, forwarding: true }
        }
    }

    /// Until when End-of-RIB to such a neighbour waits: for the sources, and after a restart for the
    /// neighbours whose routes are passed on to it.
    pub fn hold_end_of_rib_until(&self, now: Instant, config: &PeerConfig) -> Option<Instant> {
        let until = self.at + patience(config.graceful_restart);
        let waits = self.awaits_sources || self.defers_to_neighbours(config);
        (waits && now < until).then_some(until)
    }

    /// Whether End-of-RIB to such a neighbour waits for that of others, whose routes it is told.
    ///
    /// `Ours:` RFC 4724 §4.1 has route selection wait with it. Here nothing is forwarded by what is
    /// selected, so routes are passed on as they come, and only the marker says that they are all.
    pub fn defers_to_neighbours(&self, config: &PeerConfig) -> bool {
        self.own.restarted && config.pass_on != PrefixFilter::Nothing
    }

    /// The routes to originate: what is desired, and while that may not be all, what an earlier run
    /// announced for other prefixes.
    pub fn routes(&mut self, desired: &Desired) -> Vec<DesiredRoute> {
        self.awaits_sources = desired.awaits_sources;
        if !desired.awaits_sources {
            self.earlier = None;
        }
        match &self.earlier {
            Some(earlier) => beside(&desired.routes, earlier),
            None => desired.routes.clone(),
        }
    }

    /// Whether some source has not spoken.
    pub fn awaits_sources(&self) -> bool {
        self.awaits_sources
    }

    /// When what an earlier run announced goes, whoever has not spoken: `None` when it has gone.
    pub fn deadline(&self, desired: &Desired) -> Option<Instant> {
        self.earlier.as_ref()?;
        let patience = desired.peers.iter().map(|config| patience(config.graceful_restart)).max();
        Some(self.at + patience.unwrap_or_else(|| self::patience(None)))
    }

    /// It goes.
    pub fn forget_earlier(&mut self) {
        self.earlier = None;
    }
}

/// `desired`, and of `earlier` what is for other prefixes.
pub fn beside(desired: &[DesiredRoute], earlier: &[DesiredRoute]) -> Vec<DesiredRoute> {
    let known: BTreeSet<Prefix> = desired.iter().map(|route| route.prefix).collect();
    let missing = earlier.iter().filter(|route| !known.contains(&route.prefix));
    desired.iter().chain(missing).cloned().collect()
}
