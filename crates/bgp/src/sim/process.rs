//! The process around a speaker: what it finds on its disk, which sources are ready, and what it may
//! advertise about its restart meanwhile (RFC 4724 §4.1). Knows no route of the neighbour.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::session::OwnRestart;
use fairway_ground::{Community, Instant, PeerKey, Prefix};
use fairway_seam::{Desired, DesiredRoute, EarlierRun, PeerConfig, RouteAttributes};

/// Prefixes, and what each is announced with.
pub(super) type Routes = BTreeMap<Prefix, Community>;

/// What a process finds of the one before when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// What that announced last.
    Everything,
    /// All but the last change, which had not reached the disk.
    AllButTheLast,
    /// A file that cannot be read.
    Nothing,
}

/// What a process knows beside its neighbour.
#[derive(Debug)]
pub(super) struct Process {
    config: PeerConfig,
    /// Counts the desired states that were handed over.
    generation: u64,
    /// What is configured; the sources may not have reported it yet.
    pub(super) wanted: Routes,
    /// Not all sources are ready.
    awaits_sources: bool,
    /// What was announced last, and before that, as it stands on the disk.
    written: [Vec<DesiredRoute>; 2],
    started_at: Instant,
    /// What it may advertise about its restart in the first OPENs.
    own: OwnRestart,
    /// Sessions so far.
    pub(super) sessions: u64,
}

impl Process {
    /// The first one, which finds nothing and gets everything at once.
    pub(super) fn first(config: &PeerConfig) -> Self {
        Self {
            config: config.clone(),
            generation: 0,
            wanted: Routes::new(),
            awaits_sources: false,
            written: Default::default(),
            started_at: Instant::ZERO,
            own: OwnRestart::default(),
            sessions: 0,
        }
    }

    /// The next one, and what it finds.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        found: Found,
        forwarding: bool,
        awaits: bool,
    ) -> Option<EarlierRun> {
        let [last, before] = std::mem::take(&mut self.written);
        let routes = match found {
            Found::Everything => Some(last),
            Found::AllButTheLast => Some(before),
            Found::Nothing => None,
        };
        let restarted = routes.is_some();
        self.own = OwnRestart { restarted, forwarding: restarted && forwarding };
        self.awaits_sources = awaits;
        self.started_at = now;
        self.sessions = 0;
        routes.map(|routes| EarlierRun { routes, forwarding })
    }

    /// This is originated now, and soon written to disk.
    pub(super) fn write<'a>(&mut self, routes: impl Iterator<Item = &'a DesiredRoute>) {
        let [last, _] = std::mem::take(&mut self.written);
        self.written = [routes.cloned().collect(), last];
    }

    /// What the sources have reported so far.
    pub(super) fn desired(&mut self) -> Desired {
        self.generation += 1;
        let peers = Arc::new(BTreeSet::from([self.config.key]));
        // Half of the sources report at once.
        let known =
            self.wanted.iter().filter(|(prefix, _)| !self.awaits_sources || is_even(prefix));
        Desired {
            generation: self.generation,
            peers: vec![self.config.clone()],
            routes: known.map(|(prefix, community)| route(*prefix, *community, &peers)).collect(),
            awaits_sources: self.awaits_sources,
            ..Desired::default()
        }
    }

    /// All sources are ready. Returns whether that is a change.
    pub(super) fn sources_speak(&mut self) -> bool {
        std::mem::take(&mut self.awaits_sources)
    }

    /// Whether what is announced may lack something that is configured: the sources are not ready, and half
    /// the restart time is over.
    pub(super) fn is_incomplete(&self, now: Instant) -> bool {
        let restart_time = self.config.graceful_restart.unwrap_or_default().restart_time();
        self.awaits_sources && now >= self.started_at + restart_time / 2
    }

    /// Whether End-of-RIB has to wait.
    pub(super) fn is_waiting(&self, now: Instant) -> bool {
        self.awaits_sources && !self.is_incomplete(now)
    }

    /// What an OPEN advertises about the restart.
    pub(super) fn own_restart(&self, now: Instant) -> OwnRestart {
        let restart_time = self.config.graceful_restart.unwrap_or_default().restart_time();
        let is_first = self.sessions == 0;
        OwnRestart {
            restarted: self.own.restarted && is_first && now < self.started_at + restart_time,
            forwarding: self.own.forwarding || !is_first,
        }
    }
}

fn is_even(prefix: &Prefix) -> bool {
    match prefix.address() {
        IpAddr::V4(address) => u32::from(address).is_multiple_of(2),
        IpAddr::V6(address) => u128::from(address).is_multiple_of(2),
    }
}

fn route(prefix: Prefix, community: Community, peers: &Arc<BTreeSet<PeerKey>>) -> DesiredRoute {
    let attributes = RouteAttributes { communities: vec![community], ..RouteAttributes::default() };
    DesiredRoute { prefix, peers: Arc::clone(peers), attributes: Arc::new(attributes) }
}
