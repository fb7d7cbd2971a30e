//! The first moments of a process: what an earlier run left behind, whether the sources are ready, and
//! until when missing routes are waited for (RFC 4724 §4.1).
//!
//! Knows no neighbour and no session. The speaker queries it, and passes the result to each
//! [`super::Peer`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::graceful_restart::OwnRestart;
use fairway_ground::{GracefulRestart, Instant, PeerKey, Prefix, PrefixFilter};
use fairway_seam::{Desired, DesiredRoute, EarlierRun, PeerConfig};

/// The start of a process.
#[derive(Debug)]
pub struct Startup {
    at: Instant,
    own: OwnRestart,
    /// What an earlier run announced, while that may be all there is.
    earlier: Option<Vec<DesiredRoute>>,
    awaits_sources: bool,
    /// Neighbours that are gone, and had a session: for them the restart is over.
    met: BTreeSet<PeerKey>,
}

/// How many of them are remembered: far more than a listen range holds by default, and little memory.
/// One that is not remembered sees the restart again.
const MET_MAX: usize = 10_000;

/// Half the time for which a neighbour waits: routes that are missing then have the other half to be
/// sent.
fn patience(graceful_restart: Option<GracefulRestart>) -> Duration {
    graceful_restart.unwrap_or_default().restart_time() / 2
}

impl Startup {
    /// A process that starts `at`, perhaps after another one.
    pub fn new(at: Instant, earlier: Option<EarlierRun>) -> Self {
        let forwarding = earlier.as_ref().is_some_and(|earlier| earlier.forwarding);
        let own = OwnRestart { restarted: earlier.is_some(), forwarding };
        let earlier = earlier.map(|earlier| earlier.routes);
        Self { at, own, earlier, awaits_sources: true, met: BTreeSet::new() }
    }

    /// What a neighbour that is configured now learns of the restart: nothing when it has given up waiting
    /// long ago, or had a session since. It has no routes of an earlier run then, and F is true of all
    /// others.
    pub fn own_restart(&self, now: Instant, config: &PeerConfig) -> OwnRestart {
        let restart_time = config.graceful_restart.unwrap_or_default().restart_time();
        if now.since(self.at) < restart_time && !self.met.contains(&config.key) {
            self.own
        } else {
            OwnRestart { restarted: false, forwarding: true }
        }
    }

    /// A neighbour is forgotten. It may come again, and then had a session before.
    pub fn forget(&mut self, key: PeerKey, had_session: bool) {
        if had_session && self.met.len() < MET_MAX {
            self.met.insert(key);
        }
    }

    /// Until when End-of-RIB to such a neighbour waits: for the sources, and after a restart for the
    /// neighbours that have routes to pass on to it.
    pub fn hold_end_of_rib_until(&self, now: Instant, config: &PeerConfig) -> Option<Instant> {
        let until = self.at + patience(config.graceful_restart);
        let waits = self.awaits_sources || self.defers_to_neighbours(config);
        (waits && now < until).then_some(until)
    }

    /// Whether End-of-RIB to such a neighbour waits for that of others, which have routes to pass on to it.
    ///
    /// `Ours:` RFC 4724 §4.1 delays route selection, too. Here routes are passed on as they arrive, and only the
    /// marker says that they are all; those of the earlier run stay in the kernel until then.
    pub fn defers_to_neighbours(&self, config: &PeerConfig) -> bool {
        self.own.restarted && config.pass_on != PrefixFilter::Nothing
    }

    /// The routes to originate: the desired ones, and while those may not be all, what an earlier run
    /// announced for other prefixes.
    pub fn routes(&mut self, desired: &Desired) -> Arc<[DesiredRoute]> {
        self.awaits_sources = desired.awaits_sources;
        if !desired.awaits_sources {
            self.earlier = None;
        }
        match &self.earlier {
            Some(earlier) => beside(&desired.routes, earlier).into(),
            None => Arc::clone(&desired.routes),
        }
    }

    /// Whether routes of an earlier run are announced beside the desired ones.
    pub fn keeps_earlier(&self) -> bool {
        self.earlier.is_some()
    }

    /// Whether some source is not ready.
    pub fn awaits_sources(&self) -> bool {
        self.awaits_sources
    }

    /// When the routes of an earlier run are withdrawn, even if a source is not ready: `None` when they
    /// are gone.
    pub fn deadline(&self, desired: &Desired) -> Option<Instant> {
        self.earlier.as_ref()?;
        let patience = desired.peers.iter().map(|config| patience(config.graceful_restart)).max();
        Some(self.at + patience.unwrap_or_else(|| self::patience(None)))
    }

    /// Drops the routes of the earlier run.
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::*;
    use crate::example::Example as _;

    fn at(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(second)
    }

    fn routes(prefixes: &[&str]) -> Vec<DesiredRoute> {
        let peer = PeerKey::from(IpAddr::from([192, 0, 2, 1]));
        let peers = Arc::new(BTreeSet::from([peer]));
        let route = |prefix: &&str| DesiredRoute {
            prefix: prefix.parse().unwrap(),
            peers: Arc::clone(&peers),
            attributes: Arc::default(),
        };
        prefixes.iter().map(route).collect()
    }

    fn earlier(prefixes: &[&str], forwarding: bool) -> Option<EarlierRun> {
        Some(EarlierRun { routes: routes(prefixes), forwarding })
    }

    fn desired(prefixes: &[&str], awaits_sources: bool) -> Desired {
        let peers = vec![patient(120)];
        Desired { peers, routes: routes(prefixes).into(), awaits_sources, ..Desired::default() }
    }

    fn patient(seconds: u16) -> PeerConfig {
        let graceful_restart = GracefulRestart::new(seconds, 0);
        PeerConfig { graceful_restart, ..PeerConfig::example(1) }
    }

    #[test]
    fn what_was_announced_stays_until_the_sources_have_spoken() {
        let mut startup = Startup::new(at(5), earlier(&["10.0.0.1/32", "10.0.0.2/32"], true));
        let partial = desired(&["10.0.0.2/32", "10.0.0.3/32"], true);
        let expected = routes(&["10.0.0.2/32", "10.0.0.3/32", "10.0.0.1/32"]);
        assert_eq!(startup.routes(&partial).to_vec(), expected);
        assert!(startup.awaits_sources());
        assert_eq!(startup.deadline(&partial), Some(at(65)));
        let complete = desired(&["10.0.0.3/32"], false);
        assert_eq!(startup.routes(&complete), complete.routes);
        assert_eq!((startup.awaits_sources(), startup.deadline(&complete)), (false, None));
        // What is gone does not come back, whatever a source reports later.
        assert_eq!(startup.routes(&partial), partial.routes);
    }

    #[test]
    fn what_no_source_speaks_of_goes_in_the_end() {
        let mut startup = Startup::new(at(0), earlier(&["10.0.0.1/32"], true));
        let mut partial = desired(&[], true);
        partial.peers.push(patient(300));
        assert_eq!(startup.deadline(&partial), Some(at(150)), "the most patient neighbor decides");
        startup.forget_earlier();
        assert!(startup.routes(&partial).is_empty() && startup.deadline(&partial).is_none());
        assert_eq!(Startup::new(at(0), None).deadline(&partial), None);
    }

    #[test]
    fn end_of_rib_waits_for_what_may_be_missing() {
        let (asks, told) = (patient(120), patient(60));
        let told = PeerConfig { pass_on: PrefixFilter::Everything, ..told };
        let mut startup = Startup::new(at(10), earlier(&[], true));
        // Until the daemon has reported its sources, everything may be missing.
        assert_eq!(startup.hold_end_of_rib_until(at(10), &asks), Some(at(70)));
        startup.routes(&desired(&[], false));
        assert_eq!(startup.hold_end_of_rib_until(at(10), &asks), None);
        assert_eq!(startup.hold_end_of_rib_until(at(10), &told), Some(at(40)));
        assert_eq!(startup.hold_end_of_rib_until(at(40), &told), None);
        // Without a restart End-of-RIB does not wait for a complete table.
        let mut first = Startup::new(at(10), None);
        assert_eq!(first.hold_end_of_rib_until(at(10), &asks), Some(at(70)));
        first.routes(&desired(&[], false));
        assert_eq!(first.hold_end_of_rib_until(at(10), &told), None);
    }

    #[test]
    fn a_neighbour_that_comes_late_hears_of_no_restart() {
        let own = |restarted, forwarding| OwnRestart { restarted, forwarding };
        let startup = Startup::new(at(10), earlier(&[], false));
        assert_eq!(startup.own_restart(at(10), &patient(60)), own(true, false));
        assert_eq!(startup.own_restart(at(70), &patient(60)), own(false, true));
        let first = Startup::new(at(10), None);
        assert_eq!(first.own_restart(at(10), &patient(60)), own(false, false));
    }

    #[test]
    fn a_neighbour_that_comes_again_hears_of_no_restart() {
        let own = |restarted, forwarding| OwnRestart { restarted, forwarding };
        let mut startup = Startup::new(at(10), earlier(&[], false));
        startup.forget(patient(60).key, false);
        assert_eq!(startup.own_restart(at(11), &patient(60)), own(true, false));
        startup.forget(patient(60).key, true);
        assert_eq!(startup.own_restart(at(11), &patient(60)), own(false, true));
        let other = PeerConfig { key: PeerConfig::example(2).key, ..patient(60) };
        assert_eq!(startup.own_restart(at(11), &other), own(true, false));
    }
}
