//! The native backend: hands the desired state to the core task, and questions with it.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::core_task::{Command, CoreTask};
use super::listen::{accept_all, listen};
use crate::backend::{Backend, BackendError, Clear, ClearFuture, Desired, ViewFuture, ViewScope};
use crate::types::PeerKey;

/// Events that may wait for the core: enough that readers rarely wait for each other, few enough
/// that a flood fills the sockets and not our memory (each holds at most one read, 16 KiB, and no
/// connection has more than two).
const EVENTS_MAX: usize = 256;
/// Questions that may wait: each is one `show`.
const COMMANDS_MAX: usize = 16;
/// How long leaving may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// An address to accept connections on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

/// BGP sessions of our own.
#[derive(Debug)]
pub struct NativeBackend {
    desired: watch::Sender<Arc<Desired>>,
    commands: mpsc::Sender<Command>,
    tasks: TaskTracker,
    listening: Vec<SocketAddr>,
}

impl NativeBackend {
    /// Starts the tasks. An address that cannot be listened on is reported once and left out;
    /// dialling goes on. `seed` decides the jitter of the timers.
    ///
    /// Must be called inside a tokio runtime.
    pub fn start(addresses: &[ListenAddress], seed: u64) -> Self {
        let tasks = TaskTracker::new();
        let (events, network) = mpsc::channel(EVENTS_MAX);
        let (known, known_peers) = watch::channel(Arc::new(BTreeSet::new()));
        let mut listeners: Vec<Arc<TcpListener>> = Vec::new();
        let mut listening = Vec::new();
        for ListenAddress(address) in addresses {
            match listen(*address) {
                Ok(listener) => {
                    let local = listener.local_addr().unwrap_or(*address);
                    info!(address = %local, "listening for BGP");
                    listening.push(local);
                    let listener = Arc::new(listener);
                    listeners.push(Arc::clone(&listener));
                    tokio::spawn(accept_all(listener, known_peers.clone(), events.clone()));
                }
                Err(error) => {
                    warn!(%address, %error, "cannot listen for BGP there; only dialling");
                }
            }
        }
        let (desired, wanted) = watch::channel(Arc::new(Desired::default()));
        let (commands, questions) = mpsc::channel(COMMANDS_MAX);
        let core = CoreTask::new(listeners, known, events, tasks.clone(), seed);
        tokio::spawn(core.run(wanted, questions, network));
        Self { desired, commands, tasks, listening }
    }

    /// The addresses that it accepts connections on.
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// Sends the core a command, and waits for its answer.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, BackendError> {
        let (sender, answer) = oneshot::channel();
        self.commands.send(command(sender)).await.map_err(|_| BackendError::Stopped)?;
        answer.await.map_err(|_| BackendError::Stopped)
    }
}

impl Backend for NativeBackend {
    fn apply(&self, desired: Desired) {
        self.desired.send_replace(Arc::new(desired));
    }

    fn view(&self, scope: ViewScope) -> ViewFuture<'_> {
        Box::pin(self.ask(move |answer| Command::View(scope, answer)))
    }

    fn clear(&self, peer: PeerKey, how: Clear) -> ClearFuture<'_> {
        Box::pin(async move { self.ask(|answer| Command::Clear(peer, how, answer)).await? })
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // The core task holds the other end for as long as it lives.
        Box::pin(self.desired.closed())
    }

    fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            // If it has ended already, there is nothing left to end.
            let _ = self.ask(Command::Shutdown).await;
            self.tasks.close();
            if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await.is_err() {
                warn!("not every neighbour closed its side in time");
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::time::timeout;

    use super::*;
    use crate::backend::{PeerView, SessionState};
    use crate::types::{PeerConfig, PeerKey};
    use crate::wire::header::keepalive;
    use crate::wire::notification::cease;
    use crate::wire::{Capability, Notification, Open};

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Asks again and again until the one neighbour is as `is_so` wants it.
    async fn wait_until(backend: &NativeBackend, is_so: impl Fn(&PeerView) -> bool) {
        let look = async {
            while !backend
                .view(ViewScope::SESSIONS)
                .await
                .unwrap()
                .peers
                .first()
                .is_some_and(&is_so)
            {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, look).await.expect("in time");
    }

    /// A connection from `source`, over which speaker 2 has said OPEN and KEEPALIVE.
    async fn speak(to: SocketAddr, source: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        let PeerConfig { local_asn, hold_time, router_id, .. } = PeerConfig::example(2);
        let capabilities = vec![Capability::FourOctetAs(local_asn.get())];
        let open = Open { asn: local_asn.get(), hold_time, router_id, capabilities };
        stream.write_all(&[open.encode(), keepalive()].concat()).await.unwrap();
        stream
    }

    //= RFC 4486 §4 SHOULD: sessions that end because the daemon stops end with 6/2.
    //= RFC 4271 §6.7 MAY: a session without a fault is ended with Cease.
    #[tokio::test]
    async fn a_daemon_that_stops_takes_its_leave() {
        let backend = NativeBackend::start(&[ListenAddress(([127, 0, 0, 1], 0).into())], 7);
        let key = PeerKey::from(std::net::IpAddr::from([127, 0, 0, 2]));
        let peers = vec![PeerConfig { key, port: 1, ..PeerConfig::example(1) }];
        backend.apply(Desired { peers, ..Desired::default() });
        wait_until(&backend, |_| true).await;
        let mut stream = speak(backend.listening()[0], [127, 0, 0, 2]).await;
        wait_until(&backend, |peer| peer.state == SessionState::Established).await;
        let mut heard = Vec::new();
        let all_is_heard = async {
            stream.read_to_end(&mut heard).await.unwrap();
            drop(stream);
        };
        tokio::join!(backend.shutdown(), all_is_heard);
        let farewell = Notification::cease(cease::ADMINISTRATIVE_SHUTDOWN).encode();
        assert!(heard.ends_with(&farewell), "{heard:?}");
    }
}
