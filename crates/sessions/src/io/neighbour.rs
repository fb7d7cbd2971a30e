//! What runs for one neighbour: its links and dials, and what the log says of it.
//!
//! Does what the pure speaker wants done for its peer of the same key. Knows no route. Called by the
//! core task, which owns it.

mod log;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::AbortHandle;
use tracing::{error, info, warn};

use super::addresses::LocalEnd;
use super::connection::Link;
use super::connection_keys::ConnectionKeys;
use super::core_task::Surroundings;
use super::dial::{DialError, dial};
use super::link::{LinkState, LinkWatch};
use super::{sockopt, tcp_ao};
use crate::bgp::{Connected, ConnectionId};
use crate::speaker::PeerAction;
use crate::time::Instant;
use crate::types::{PeerConfig, PeerKey, Remote};

/// What connections, dials and listeners report of a neighbour.
#[derive(Debug)]
pub(super) struct NetworkEvent {
    /// The neighbour.
    pub(super) key: PeerKey,
    /// What they report.
    pub(super) news: News,
}

/// See [`NetworkEvent`].
#[derive(Debug)]
pub(super) enum News {
    /// What is known of the link of an unnumbered neighbour has changed.
    Link(LinkState),
    /// The neighbour dialled us.
    Accepted { stream: TcpStream, remote: SocketAddr, end: LocalEnd },
    /// A dial succeeded.
    Connected { id: ConnectionId, stream: TcpStream, end: LocalEnd },
    /// A dial failed.
    ConnectFailed { id: ConnectionId, why: String },
    /// Bytes came. The next are read when the permit is dropped.
    Received { id: ConnectionId, bytes: Bytes, permit: OwnedSemaphorePermit },
    /// What was given to the writer has left.
    Written { id: ConnectionId },
    /// The connection ended, in order or with an error.
    Closed { id: ConnectionId, why: Option<String> },
}

/// What runs for a neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    config: PeerConfig,
    links: BTreeMap<ConnectionId, Link>,
    pub(super) dials: BTreeMap<ConnectionId, AbortHandle>,
    /// What is known of its link, and who finds out, where it is unnumbered.
    link: LinkState,
    _watch: Option<LinkWatch>,
    /// Dials that failed one after the other: each tries another key of TCP-AO.
    dials_failed: usize,
    /// The failure that was logged last, so that the same one is not logged for ever.
    logged_failure: Option<String>,
    /// When a malformed UPDATE was logged last, and how many came since.
    malformed_logged_at: Option<Instant>,
    malformed_unlogged: u64,
}

impl Neighbour {
    /// A neighbour for which nothing runs yet, but for who watches the link of an unnumbered one.
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
            logged_failure: None,
            malformed_logged_at: None,
            malformed_unlogged: 0,
        }
    }

    /// The settings in force.
    pub(super) fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// Other settings. Connections that had to go for them are gone: the others live on with the new
    /// keys.
    pub(super) fn reconfigure(&mut self, config: PeerConfig) {
        self.config = config;
        self.logged_failure = None;
        self.follow_keys();
    }

    /// What is known of its link. Says whether there is another router on it than before.
    pub(super) fn set_link(&mut self, link: LinkState) -> bool {
        let is_new = link.router.is_some() && link.router != self.link.router;
        self.link = link;
        is_new
    }

    /// Does what the speaker wants done.
    pub(super) fn act(&mut self, now: Instant, action: PeerAction, surroundings: &Surroundings) {
        match action {
            PeerAction::Connect(id) => self.connect(id, &surroundings.events),
            PeerAction::Close(id, last_words) => {
                if let Some(dial) = self.dials.remove(&id) {
                    dial.abort();
                }
                if let Some(link) = self.links.remove(&id) {
                    link.finish(last_words);
                }
            }
            PeerAction::StartedOver(farewell) => self.start_over(&farewell),
            PeerAction::Report(report) => self.log(now, report),
            // The core task's, which owns all of them.
            PeerAction::Configured(_) | PeerAction::Removed => {}
        }
    }

    /// Ends everything: the peer is another incarnation from now on.
    fn start_over(&mut self, farewell: &Bytes) {
        error!(peer = %self.config.key, "a fault of ours: its session is ended and begins anew");
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

    fn connect(&mut self, id: ConnectionId, events: &mpsc::Sender<NetworkEvent>) {
        let config = self.config.clone();
        let remote = self.remote();
        let events = events.clone();
        let attempt = self.dials_failed;
        let task = tokio::spawn(async move {
            let key = config.key;
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
            // Without a core there is nobody to tell.
            let _ = events.send(NetworkEvent { key, news }).await;
        });
        self.dials.insert(id, task.abort_handle());
    }

    /// The router of its link, where it is unnumbered and one was heard.
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
            Remote::Range(_) => Err(DialError::NoAddress),
        }
    }

    /// A dial came to nothing.
    pub(super) fn dial_failed(&mut self, id: ConnectionId) {
        self.dials.remove(&id);
        self.dials_failed = self.dials_failed.wrapping_add(1);
    }

    /// A dial succeeded: `None` if it was given up meanwhile.
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

    /// Listeners hold the keys of an unnumbered neighbour only once it was heard. A connection from
    /// before that, or from another address of the link, is not let in without them.
    fn is_from_router(&self, remote: IpAddr) -> Result<(), String> {
        let PeerConfig { key, password, tcp_ao, .. } = &self.config;
        let has_keys = password.is_some() || !tcp_ao.is_empty();
        let router = self.link.router.map(|(address, _)| IpAddr::V6(address));
        if key.interface().is_some() && has_keys && router != Some(remote) {
            return Err("it was not heard as the router of the link, whose keys are known".into());
        }
        Ok(())
    }

    /// Why this machine cannot have a session with it, if so.
    pub(super) fn unsupported(&self) -> Option<tcp_ao::Unsupported> {
        tcp_ao::supports(&self.config.tcp_ao).err()
    }

    /// Brings the keys of all connections up to date. One that cannot be is left as it is: the
    /// hold timer knows whether it still works.
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
                            "TCP-AO: a key that is no longer in the list stays until the neighbour \
                             uses another"
                        );
                    }
                }
                Err(cause) => warn!(%peer, name, %cause, "a connection did not take its keys"),
            }
        }
    }

    /// Looks whether old keys are still in use.
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
        // An accepted connection has that of its listener, which suits others, too.
        let least = config.ttl_min().unwrap_or(0);
        sockopt::set_ttl_min(stream, local.ip(), least).map_err(|it| it.to_string())?;
        sockopt::set_keepalive(stream).map_err(|it| it.to_string())?;
        let keys = ConnectionKeys::of(stream, config).map_err(|it| it.to_string())?;
        let LocalEnd { next_hops, networks } = end;
        Ok((Connected { local, remote, next_hops, networks }, keys))
    }
}
