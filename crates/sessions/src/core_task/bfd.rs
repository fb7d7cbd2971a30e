//! How BFD and the neighbours are joined (RFC 5882): which paths are monitored, and which neighbours
//! the state of a path concerns.
//!
//! Another part of [`CoreTask`]. Knows no packet and no timer of BFD, which are the thread's
//! ([`crate::bfd`]); what a session makes of its path is [`fairway_bgp::session::Peer`]'s.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::CoreTask;
use crate::addresses::Addresses;
use crate::bfd::{BfdOptions, BfdThread};
use crate::neighbour::Line;
use fairway_bfd::{BfdChange, BfdEvent, BfdView};
use fairway_bgp::session::{self, Peer};
use fairway_bgp::speaker::Event;
use fairway_ground::{BfdPath, BfdSettings, Instant, PeerKey, PeerKind, Remote, nonzero};
use fairway_seam::{BgpView, DownCause, Liveness, SessionState};

/// Events of BFD sessions that may wait for the core; the thread keeps what does not fit.
const EVENTS_MAX: usize = 256;
/// How long BFD stays up for the neighbours to read that their sessions ended. `Ours:` FRR and BIRD
/// treat a BFD session that is administratively down as one that failed, and would end a BGP session
/// that they still have in a way that costs our routes. A neighbour that has seen TCP end waits for us.
const HEARD_TIMEOUT: Duration = Duration::from_millis(500);
/// What passes from there to the neighbour and its consequences.
const HEARD: Duration = Duration::from_millis(50);
/// How long BFD may take to signal AdminDown. It takes less than a millisecond, unless something is
/// wrong.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(100);
/// How long it repeats that, for neighbours that lost a packet.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a client that asks for the state of BFD waits for the answer.
const VIEW_TIMEOUT: Duration = Duration::from_millis(250);

/// BFD as the core knows it.
#[derive(Debug)]
pub(super) struct Coupling {
    thread: BfdThread,
    events: mpsc::Receiver<BfdEvent>,
    /// The path that is monitored for each neighbour.
    paths: BTreeMap<PeerKey, BfdPath>,
    /// All paths that are monitored.
    wanted: BTreeMap<BfdPath, BfdSettings>,
    /// The state of each path, where it is known.
    liveness: BTreeMap<BfdPath, Liveness>,
    /// The networks of this machine, as far as they have been looked up.
    addresses: Option<Addresses>,
    /// Paths may have changed.
    is_due: bool,
    /// Some neighbour has used BFD once.
    is_used: bool,
}

impl Coupling {
    pub(super) fn new(options: BfdOptions, seed: u64) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        Self {
            // Discriminators must not be predictable from the core's timers.
            thread: BfdThread::start(options, seed.rotate_left(32), sender),
            events,
            paths: BTreeMap::new(),
            wanted: BTreeMap::new(),
            liveness: BTreeMap::new(),
            addresses: None,
            is_due: false,
            is_used: false,
        }
    }

    /// The same for one of many on this machine.
    #[cfg(test)]
    pub(super) fn new_at(address: std::net::Ipv4Addr, port_offset: u16) -> Self {
        let coupling = Self::new(BfdOptions::default(), 7);
        Self { thread: coupling.thread.at(address, port_offset), ..coupling }
    }

    /// The next event of a path. Never resolves where there is no thread.
    pub(super) async fn event(&mut self) -> BfdEvent {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// The same, if it is there.
    pub(super) fn next_event(&mut self) -> Option<BfdEvent> {
        self.events.try_recv().ok()
    }

    /// Paths may have changed.
    pub(super) fn look_again(&mut self) {
        self.is_due = true;
    }

    /// When paths are checked, if nothing else happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.is_due.then_some(Instant::ZERO)
    }

    /// This neighbour is gone. Should it come back at once it is another one, which receives the known
    /// state of its path again.
    pub(super) fn forget(&mut self, key: PeerKey) {
        self.paths.remove(&key);
        self.is_due = true;
    }

    /// The networks of this machine may have changed.
    pub(super) fn follow_addresses(&mut self, addresses: Addresses) {
        self.addresses = Some(addresses);
        // So may the other end of a link.
        self.is_due = true;
    }

    /// All sessions have ended; `tasks` runs what remains. Signals AdminDown on every path, so that no
    /// neighbour takes the end for a failure.
    pub(super) async fn leave(&mut self, tasks: &TaskTracker) {
        if !self.is_used {
            return;
        }
        tasks.close();
        // A slow neighbour may treat it as a failure; the shutdown is bounded.
        let _ = timeout(HEARD_TIMEOUT, tasks.wait()).await;
        sleep(HEARD).await;
        if timeout(LEAVE_TIMEOUT, self.thread.leave()).await.is_err() {
            warn!(
                "BFD did not signal AdminDown in time: neighbors may treat the shutdown as a failure"
            );
        }
    }

    /// Repeats AdminDown for a while, beside the end of the sessions.
    pub(super) fn fade(self) {
        if self.is_used {
            tokio::spawn(async move {
                sleep(FAREWELL).await;
                drop(self.thread);
            });
        }
    }

    /// Answers with `view` and the state of BFD, without the core waiting for it.
    pub(super) fn complete(&self, mut view: BgpView, answer: oneshot::Sender<BgpView>) {
        if !self.is_used {
            // The client may have stopped waiting: then the answer is not needed.
            let _ = answer.send(view);
            return;
        }
        let bfd = self.thread.view();
        tokio::spawn(async move {
            let bfd = timeout(VIEW_TIMEOUT, bfd).await.ok().and_then(Result::ok);
            view.bfd = Some(bfd.unwrap_or_else(|| BfdView {
                trouble: vec!["BFD did not answer in time; try again".to_owned()],
                unanswered: true,
                ..BfdView::default()
            }));
            let _ = answer.send(view);
        });
    }
}

impl CoreTask {
    /// Hands BFD the paths to monitor, if they have changed, and notifies the neighbours with a changed
    /// path.
    pub(super) fn follow_paths(&mut self, now: Instant) {
        if !std::mem::take(&mut self.bfd.is_due) {
            return;
        }
        let mut paths = BTreeMap::new();
        let mut wanted: BTreeMap<BfdPath, BfdSettings> = BTreeMap::new();
        for (key, peer) in self.speaker.peers() {
            let Some(bfd) = &peer.config().bfd else { continue };
            let Some(path) = self.path(key, peer) else { continue };
            paths.insert(key, path);
            wanted
                .entry(path)
                .and_modify(|it| it.absorb(&bfd.settings))
                .or_insert_with(|| bfd.settings.clone());
        }
        if wanted != self.bfd.wanted {
            self.bfd.is_used |= !wanted.is_empty();
            self.bfd.thread.set(wanted.clone());
            self.bfd.wanted = wanted;
            let Coupling { liveness, wanted, .. } = &mut self.bfd;
            liveness.retain(|path, _| wanted.contains_key(path));
        }
        let before = std::mem::replace(&mut self.bfd.paths, paths);
        for key in self.keys() {
            let path = self.bfd.paths.get(&key).copied();
            if before.get(&key).copied() == path {
                continue;
            }
            let known = path.and_then(|path| self.bfd.liveness.get(&path).copied());
            // The state of another path is unknown, which is no failure of this one.
            for liveness in [Liveness::Unknown].into_iter().chain(known) {
                self.handle(now, Event::Peer(key, session::Event::Bfd(liveness)));
            }
        }
    }

    /// The path to a neighbour, if there is to be a session and its address is known.
    fn path(&self, key: PeerKey, peer: &Peer) -> Option<BfdPath> {
        if peer.is_down() {
            return None;
        }
        let config = peer.config();
        let remote = self.bfd_remote(key, peer)?;
        let interface = key.interface();
        let multihop = match config.kind() {
            _ if interface.is_some() => false,
            PeerKind::External => !config.is_next_door(),
            PeerKind::Internal => !config.is_next_door() || self.is_far(key, peer, remote),
        };
        let local = config.source_address.filter(|it| it.is_ipv4() == remote.is_ipv4());
        Some(BfdPath { remote, vrf: key.vrf, multihop, interface, local })
    }

    /// Whether there may be routers between us and an internal neighbour: as in FRR, if it is on none of
    /// our networks. A path that works is kept: a network that goes away is a failure, and no other
    /// path. A path that did not work yet is found again even for a neighbour that has a session.
    fn is_far(&self, key: PeerKey, peer: &Peer, remote: IpAddr) -> bool {
        let is_up = peer.liveness() == Liveness::Up;
        let works = is_up || peer.state() == SessionState::Established;
        let before = self.bfd.paths.get(&key).filter(|it| works && it.remote == remote);
        match (before, &self.bfd.addresses) {
            (Some(before), _) if is_up || !before.multihop => before.multihop,
            (Some(_), Some(addresses)) => !addresses.are_beside(remote, key.vrf),
            (Some(before), None) => before.multihop,
            (None, Some(addresses)) => !addresses.are_beside(remote, key.vrf),
            (None, None) => false,
        }
    }

    /// The state of a path changed.
    pub(super) fn bfd_event(&mut self, event: BfdEvent) {
        let now = self.clock.now();
        let BfdEvent { path, change } = event;
        if !self.bfd.wanted.contains_key(&path) {
            return; // It is no longer monitored.
        }
        let (liveness, was_up) = match change {
            BfdChange::Up => (Liveness::Up, false),
            BfdChange::Down { cause, diagnostic, remote_control_plane_independent, was_up } => {
                let independent = remote_control_plane_independent;
                (Liveness::Down { cause, independent, diagnostic }, was_up)
            }
        };
        if liveness == Liveness::Up && self.bfd.liveness.get(&path) == Some(&Liveness::Up) {
            return; // The thread repeated it, in case it was lost.
        }
        self.has_changed = true;
        let cause = PeerKey { remote: Remote::Address(path.remote), vrf: path.vrf };
        log(&path, liveness, was_up, self.surroundings.lines.take(now, (cause, Line::Bfd)));
        let before = self.bfd.liveness.insert(path, liveness);
        // It came up and went down before the event was handled.
        let missed = (was_up && before != Some(Liveness::Up)).then_some(Liveness::Up);
        let concerned = self.bfd.paths.iter().filter(|(_, it)| **it == path);
        let concerned: Vec<PeerKey> = concerned.map(|(key, _)| *key).collect();
        for key in concerned {
            for liveness in missed.into_iter().chain([liveness]) {
                self.handle(now, Event::Peer(key, session::Event::Bfd(liveness)));
            }
        }
    }

    /// The address that BFD is to monitor: that of the session, or else the one that is dialled.
    fn bfd_remote(&self, key: PeerKey, peer: &Peer) -> Option<IpAddr> {
        match key.remote {
            Remote::Address(address) => Some(address),
            Remote::Interface(_) => {
                let session = peer.remote_address().map(|it| it.ip());
                session.or_else(|| self.neighbours.get(&key)?.router().map(IpAddr::V6))
            }
            Remote::Range(_) | Remote::DefaultGateway(_) => None,
        }
    }

    /// The path that is monitored for a neighbour.
    pub(super) fn bfd_path(&self, key: PeerKey) -> Option<BfdPath> {
        self.bfd.paths.get(&key).copied()
    }
}

/// `left_out`: lines since the last one, beyond what a neighbour may cause; none if this is another one.
fn log(path: &BfdPath, liveness: Liveness, was_up: bool, left_out: Option<u64>) {
    let Some(left_out) = left_out else {
        debug!(%path, ?liveness, "the state of BFD changed");
        return;
    };
    let lines_left_out = nonzero(left_out);
    match liveness {
        Liveness::Up => info!(%path, lines_left_out, "BFD up"),
        Liveness::Down { cause: DownCause::SwitchedOff, .. } => {
            info!(%path, lines_left_out, "BFD administratively down at the neighbor");
        }
        Liveness::Down { cause: DownCause::BeganAnew, .. } => {
            info!(%path, lines_left_out, "BFD restarted at the neighbor");
        }
        Liveness::Down { diagnostic, .. } if was_up => {
            warn!(%path, %diagnostic, lines_left_out, "BFD down");
        }
        Liveness::Down { .. } | Liveness::Unknown => {}
    }
}

#[cfg(test)]
mod tests;
