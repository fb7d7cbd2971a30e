//! `fairway frr-agent`: FRR's sockets for a Fairway in another container.
//!
//! Runs beside FRR, as a user with access to FRR's sockets, and opens a socket of the same name for each of
//! them in a folder that is shared with Fairway, which thus needs no access to FRR's file system and none of
//! its rights. Connections are relayed to the daemon unchanged. Knows neither the protocol nor the list of
//! daemons: a socket of FRR that appears is served, one that disappears is removed, and if its daemon does
//! not answer, the connection is closed at once, so that the client notices. Does not start daemons: that is
//! the task of FRR's watchfrr.

mod relay;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use crate::admin::{SocketError, SocketFile, SocketMode, listen_at};
use crate::build_info;
use crate::host;

/// The suffix of FRR's sockets.
const SUFFIX: &str = ".vty";
/// The interval between two reads of FRR's folder: how long a daemon that starts keeps Fairway waiting at
/// most.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum of sockets; FRR has about twenty daemons.
const SOCKETS_MAX: usize = 64;
/// Connections to one of them at the same time. Fairway has a few.
const CONNECTIONS_MAX: usize = 32;

/// The options of the agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where FRR has its sockets.
    pub frr_socket_dir: PathBuf,
    /// Where sockets of the same names are opened.
    pub socket_dir: PathBuf,
    /// Which users may connect to them.
    pub socket_mode: SocketMode,
}

/// Why the agent ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Signals.
    #[error("cannot handle signals")]
    Signals(#[from] io::Error),
}

/// Runs until a signal ends it.
pub async fn run(options: Options) -> Result<(), AgentError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    host::outlive_signals()?;
    let mut look = interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    info!(
        from = %options.frr_socket_dir.display(),
        to = %options.socket_dir.display(),
        version = build_info::RELEASE,
        "fairway frr-agent is running"
    );
    let mut agent = Agent::new(options);
    loop {
        tokio::select! {
            _ = look.tick() => agent.look()?,
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
}

/// The sockets that are served.
struct Agent {
    options: Options,
    served: BTreeMap<String, Served>,
    /// The last error about a folder that cannot be read.
    trouble: Option<String>,
}

/// One of them. Dropping it ends its connections and removes the socket.
struct Served {
    _connections: JoinSet<()>,
    _file: SocketFile,
}

impl Agent {
    fn new(options: Options) -> Self {
        Self { options, served: BTreeMap::new(), trouble: None }
    }

    /// Serves the sockets that exist now, and no others.
    fn look(&mut self) -> Result<(), SocketError> {
        let there = self.there();
        self.served.retain(|name, _| {
            let stays = there.contains(name);
            if !stays {
                info!(name, "a socket of FRR disappeared");
            }
            stays
        });
        for name in there {
            if self.served.contains_key(&name) {
                continue;
            }
            let path = self.options.socket_dir.join(&name);
            let (listener, file) = listen_at(&path, self.options.socket_mode, "--socket-dir")?;
            let mut connections = JoinSet::new();
            connections.spawn(accept(listener, self.options.frr_socket_dir.join(&name)));
            info!(name, "serving a socket of FRR");
            self.served.insert(name, Served { _connections: connections, _file: file });
        }
        Ok(())
    }

    /// The names of FRR's sockets; none if the folder does not exist yet.
    fn there(&mut self) -> BTreeSet<String> {
        match sockets(&self.options.frr_socket_dir) {
            Ok(names) => {
                self.trouble = None;
                names
            }
            Err(error) => {
                let error = error.to_string();
                if self.trouble.as_ref() != Some(&error) {
                    let folder = self.options.frr_socket_dir.display();
                    warn!("cannot read {folder}: {error}; trying again");
                }
                self.trouble = Some(error);
                BTreeSet::new()
            }
        }
    }
}

/// The sockets in a folder that have names of FRR's daemons.
fn sockets(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // An entry may be gone already.
        let is_socket = entry.file_type().is_ok_and(|it| it.is_socket());
        if is_socket && name.ends_with(SUFFIX) && names.len() < SOCKETS_MAX {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Accepts connections, up to the maximum, and relays them to the daemon at `path`.
async fn accept(listener: UnixListener, path: PathBuf) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // Remove those that have ended.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                let path = path.clone();
                connections.spawn(async move {
                    if let Err(error) = pass_on(client, &path).await {
                        debug!(%error, path = %path.display(), "a connection ended");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                // Most likely out of descriptors: wait until others are closed.
                warn!(%error, "cannot accept a client");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn pass_on(client: UnixStream, path: &Path) -> io::Result<()> {
    let daemon = UnixStream::connect(path).await?;
    relay::relay(&client, &daemon).await
}

#[cfg(test)]
mod tests;
