//! What runs for one neighbour: its links and dials, and its log lines.
//!
//! Carries out the actions of the pure speaker for its peer of the same key. Knows no route. Called by
//! the core task, which owns it.

mod log;
mod logged_reasons;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::addresses::LocalEnd;
use super::connection::Link;
use super::connection_keys::ConnectionKeys;
use super::dial::{DialError, dial};
use super::dial_pace::DialPace;
use super::link::LinkWatch;
use super::link_state::LinkState;
use super::news::{NetworkEvent, News};
use super::{sockopt, tcp_ao};
use fairway_bgp::session::{Connected, ConnectionId};
use fairway_bgp::speaker::PeerAction;
use fairway_ground::{Allowance, Allowances, Instant, PeerKey, Remote};
use fairway_seam::{PeerConfig, Stall};
use logged_reasons::LoggedReasons;

/// What the links of every neighbour need of the loop.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Where their tasks send events.
    pub(super) events: mpsc::Sender<NetworkEvent>,
    /// Tasks that must end before the process may.
    pub(super) tasks: TaskTracker,
    /// Decides the jitter of timers.
    pub(super) seed: u64,
    /// When dials may start.
    pub(super) dial_pace: DialPace,
    /// Log lines that neighbours cause.
    pub(super) lines: Allowances<(PeerKey, Line)>,
}

/// A kind of log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// A session came up or went down.
    Session,
    /// An attempt failed.
    Attempt,
    /// Routes are kept over a restart.
    Stale,
    /// A connection that came in cannot be used.
    Accept,
    /// BFD came up or went down.
    Bfd,
}

impl Line {
    /// A session that comes and goes each minute is logged in full.
    pub(super) const ALLOWANCE: Allowance =
        Allowance { burst: 60, interval: Duration::from_secs(5) };
}

/// What runs for a neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    config: PeerConfig,
    links: BTreeMap<ConnectionId, Link>,
    pub(super) dials: BTreeMap<ConnectionId, AbortHandle>,
    /// The state of its link, and the task that discovers the router, where it is unnumbered.
    link: LinkState,
    _watch: Option<LinkWatch>,
    /// Dials that failed one after the other: each tries another key of TCP-AO.
    dials_failed: usize,
    /// The failures that were logged, so that the same ones are not logged repeatedly.
    logged_failures: LoggedReasons,
    /// When a malformed UPDATE was logged last, and how many were received since.
    malformed_logged_at: Option<Instant>,
    malformed_unlogged: u64,
}

impl Neighbour {
    /// A neighbour for which nothing runs yet, except discovery on the link of an unnumbered one.
    pub(super) fn new(config: PeerConfig, surroundings: &Surroundings) -> Self {
        let key = config.key;
        let Surroundings { events, seed, .. } = surroundings;
        let watch = |interface| LinkWatch::start(key, interface, *seed, events.clone());
        Self {
            config,
            link: LinkState::default(),
            _watch: key.interface().map(watch),
            links: BTreeMap::new(),
            dials: BTreeMap::new(),
            dials_failed: 0,
            logged_failures: LoggedReasons::default(),
            malformed_logged_at: None,
            malformed_unlogged: 0,
        }
    }

    /// The settings in force.
    pub(super) fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// New settings. Connections that must end because of them are gone: the others stay, with the new
    /// keys.
    pub(super) fn reconfigure(&mut self, config: PeerConfig) {
        self.config = config;
        self.logged_failures.clear();
        self.follow_keys();
    }

    /// What the kernel repeats in vain on one of its connections.
    pub(super) fn stall(&self) -> Option<Stall> {
        self.links.values().find_map(Link::stall)
    }

    /// The new state of its link. Returns whether the router on it has changed.
    pub(super) fn set_link(&mut self, link: LinkState) -> bool {
        let is_new = link.router.is_some() && link.router != self.link.router;
        self.link = link;
        is_new
    }

    /// Carries out one action of the speaker.
    pub(super) fn act(
        &mut self,
        now: Instant,
        action: PeerAction,
        surroundings: &mut Surroundings,
    ) {
        match action {
            PeerAction::Connect(id) => self.connect(id, surroundings),
            PeerAction::Close(id, last_words) => {
                if let Some(dial) = self.dials.remove(&id) {
                    dial.abort();
                }
                if let Some(link) = self.links.remove(&id) {
                    link.finish(last_words);
                }
            }
            PeerAction::StartedOver(farewell) => self.start_over(&farewell),
            PeerAction::Report(report) => self.log(now, report, &mut surroundings.lines),
            // Handled by the core task, which owns all neighbours.
            PeerAction::Configured(_) | PeerAction::Removed => {}
        }
    }

    /// Ends everything: the peer has a new incarnation from now on.
    fn start_over(&mut self, farewell: &Bytes) {
        error!(peer = %self.config.key, "internal error: session reset, restarting");
        for link in std::mem::take(&mut self.links).into_values() {
            link.finish(Some(farewell.clone()));
        }
        for dial in std::mem::take(&mut self.dials).into_values() {
            dial.abort();
        }
    }

    /// Gives the writer of a connection what the peer has for it.
    pub(super) fn write(&mut self, id: ConnectionId, bytes: Bytes) {
        if let Some(link) = self.links.get_mut(&id) {
            link.write(bytes);
        }
    }

    fn connect(&mut self, id: ConnectionId, surroundings: &mut Surroundings) {
        let config = self.config.clone();
        let remote = self.remote();
        let events = surroundings.events.clone();
        let attempt = self.dials_failed;
        let start = surroundings.dial_pace.slot(tokio::time::Instant::now());
        let task = tokio::spawn(async move {
            let key = config.key;
            tokio::time::sleep_until(start).await;
            let dialled = match remote {
                Ok(remote) => dial(&config, remote, attempt).await,
                Err(error) => Err(error),
            };
            let news = match dialled {
                Ok(stream) => {
                    let end = stream.local_addr().map(|local| LocalEnd::at(local, key.vrf));
                    News::Connected { id, stream, end: end.unwrap_or_default() }
                }
                Err(error) => News::ConnectFailed { id, why: error.to_string() },
            };
            // The core is gone: there is no receiver.
            let _ = events.send(NetworkEvent { key, news }).await;
        });
        self.dials.insert(id, task.abort_handle());
    }

    /// The router of its link, where it is unnumbered and one was discovered.
    pub(super) fn router(&self) -> Option<Ipv6Addr> {
        self.link.router.map(|(address, _)| address)
    }

    /// Where it is to be dialled.
    fn remote(&self) -> Result<SocketAddr, DialError> {
        let PeerConfig { key, port, .. } = &self.config;
        match key.remote {
            Remote::Address(address) => Ok(SocketAddr::new(address, *port)),
            Remote::Interface(interface) => match (self.link.remote(*port), &self.link.trouble) {
                (Some(remote), _) => Ok(remote.into()),
                (None, Some(trouble)) => Err(trouble.clone().into()),
                (None, None) => Err(DialError::NoRouter(interface)),
            },
            Remote::Range(_) | Remote::DefaultGateway(_) => Err(DialError::NoAddress),
        }
    }

    /// A dial failed.
    pub(super) fn dial_failed(&mut self, id: ConnectionId) {
        self.dials.remove(&id);
        self.dials_failed = self.dials_failed.wrapping_add(1);
    }

    /// A dial succeeded: `None` if it was cancelled meanwhile.
    pub(super) fn dial_succeeded(
        &mut self,
        id: ConnectionId,
        stream: TcpStream,
        end: LocalEnd,
        surroundings: &Surroundings,
    ) -> Option<Result<Connected, String>> {
        // Dropping the stream closes it.
        self.dials.remove(&id)?;
        self.dials_failed = 0;
        Some(self.prepare(&stream, end).map(|(connected, keys)| {
            self.start_link(id, stream, keys, surroundings);
            connected
        }))
    }

    /// Makes an accepted connection ready, if it may be used.
    pub(super) fn prepare_accepted(
        &self,
        stream: &TcpStream,
        remote: SocketAddr,
        end: LocalEnd,
    ) -> Result<(Connected, Option<ConnectionKeys>), String> {
        self.is_from_router(remote.ip())?;
        self.prepare(stream, end)
    }

    /// Starts to read from a connection and to write to it.
    pub(super) fn start_link(
        &mut self,
        id: ConnectionId,
        stream: TcpStream,
        keys: Option<ConnectionKeys>,
        surroundings: &Surroundings,
    ) {
        let Surroundings { events, tasks, .. } = surroundings;
        self.links.insert(id, Link::start(self.config.key, id, stream, keys, events, tasks));
    }

    /// Listeners hold the keys of an unnumbered neighbour only once its router was discovered. A
    /// connection from before that, or from another address of the link, is not accepted without them.
    fn is_from_router(&self, remote: IpAddr) -> Result<(), String> {
        let PeerConfig { key, password, tcp_ao, .. } = &self.config;
        let has_keys = password.is_some() || !tcp_ao.is_empty();
        let router = self.link.router.map(|(address, _)| IpAddr::V6(address));
        if key.interface().is_some() && has_keys && router != Some(remote) {
            return Err("it does not come from the router that was discovered on the link".into());
        }
        Ok(())
    }

    /// Why this machine cannot have a session with it, if so.
    pub(super) fn unsupported(&self) -> Option<tcp_ao::Unsupported> {
        tcp_ao::supports(&self.config.tcp_ao).err()
    }

    /// Updates the keys of all connections. A connection that cannot be updated is left as it is: the
    /// hold timer detects whether it still works.
    fn follow_keys(&mut self) {
        let config = &self.config;
        let (peer, name) = (config.key, &config.name);
        for keys in self.links.values_mut().filter_map(|link| link.keys.as_mut()) {
            match keys.follow(config) {
                Ok(changes) => {
                    for change in &changes {
                        info!(%peer, name, %change, "TCP-AO");
                    }
                    if !changes.is_empty() && keys.is_rolling(config) {
                        info!(
                            %peer, name,
                            "TCP-AO: a key that was removed from the list stays until the neighbor \
                             uses another one"
                        );
                    }
                }
                Err(cause) => warn!(%peer, name, %cause, "cannot set the keys of a connection"),
            }
        }
    }

    /// Checks whether old keys are still in use.
    pub(super) fn follow_rollover(&mut self) {
        let config = &self.config;
        let mut keys = self.links.values().filter_map(|link| link.keys.as_ref());
        if keys.any(|keys| keys.is_rolling(config)) {
            self.follow_keys();
        }
    }

    /// Options that both kinds of connection need, and the keys of those that have any.
    fn prepare(
        &self,
        stream: &TcpStream,
        end: LocalEnd,
    ) -> Result<(Connected, Option<ConnectionKeys>), String> {
        let config = &self.config;
        let text = |error: std::io::Error| error.to_string();
        let local = stream.local_addr().map_err(text)?;
        let remote = stream.peer_addr().map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        sockopt::set_network(stream, local.ip(), config.ttl()).map_err(|it| it.to_string())?;
        // An accepted connection inherits that of its listener, which suits other peers, too.
        let least = config.ttl_min().unwrap_or(0);
        sockopt::set_ttl_min(stream, local.ip(), least).map_err(|it| it.to_string())?;
        sockopt::set_keepalive(stream).map_err(|it| it.to_string())?;
        let keys = ConnectionKeys::of(stream, config).map_err(|it| it.to_string())?;
        let LocalEnd { next_hops, networks } = end;
        Ok((Connected { local, remote, next_hops, networks }, keys))
    }
}
