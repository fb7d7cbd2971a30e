//! The socket of the CNI plugin: a connection for each call.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairway_cni::spool;
use fairway_ground::Bound;
use fairway_ipam::cni::{Answer, CALL_BYTES_MAX, CniError, Command, Invocation, Request};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::WriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::SOCKET_MODE;
use crate::admin::{SocketError, SocketFile, listen_at};
use crate::host::{ClientLimits, Clients, Work};

/// A runtime starts the Pods of a node after a reboot all at once; one that waits for its answer stays.
const LIMITS: ClientLimits =
    ClientLimits { clients_max: 1024, silence: Duration::from_secs(5), bound: Bound::AdminClient };
/// How long the plugin may take to send its call, and to read its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Calls in the queue; later ones wait.
const CALLS_MAX: usize = 1024;
/// How often it is looked whether a plugin that waits is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A call, and where its answer goes.
pub(super) struct Call {
    pub(super) bytes: Vec<u8>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Where deletions go while the store is away, so that their runtimes need not wait.
#[derive(Debug, Clone)]
pub(crate) struct Standby {
    is_away: Arc<AtomicBool>,
    spool: PathBuf,
}

impl Standby {
    pub(crate) fn new(spool: PathBuf) -> Self {
        Self { is_away: Arc::default(), spool }
    }

    pub(super) fn spool(&self) -> &Path {
        &self.spool
    }

    pub(super) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    pub(super) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Notes a deletion, which is done then as far as its runtime is concerned.
    pub(super) fn note(&self, call: &[u8]) -> Result<Option<Value>, CniError> {
        spool::put(&self.spool, call).map(|()| None).map_err(|error| {
            let folder = self.spool.display();
            CniError::try_again(format!("cannot note the call in {folder}: {error}"))
        })
    }

    /// The answer to a deletion while the store is away.
    fn answer(&self, call: &[u8]) -> Option<Answer> {
        let invocation = Invocation::parse(call).ok().filter(|_| self.is_away())?;
        let request = Request::parse(&invocation).ok();
        request.filter(|it| it.command == Command::Delete)?;
        Some(Answer::of(&invocation, self.note(call)))
    }
}

/// The open socket, which goes with it.
pub(crate) struct CallSocket {
    standby: Standby,
    calls: mpsc::Receiver<Call>,
    task: AbortHandle,
    _file: SocketFile,
}

impl Drop for CallSocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CallSocket {
    pub(crate) fn open(path: &Path, standby: Standby) -> Result<Self, SocketError> {
        let (listener, file) = listen_at(path, SOCKET_MODE, "--cni-socket")?;
        let (tell, calls) = mpsc::channel(CALLS_MAX);
        let task = tokio::spawn(serve(listener, tell, standby.clone())).abort_handle();
        Ok(Self { standby, calls, task, _file: file })
    }

    /// Waits for calls, and takes those that wait: at most `count`. Cancel-safe.
    pub(super) async fn take(&mut self, count: usize) -> Vec<Call> {
        let mut calls = Vec::new();
        if self.calls.recv_many(&mut calls, count).await == 0 {
            // The task has ended, and the process is about to.
            std::future::pending::<()>().await;
        }
        calls
    }

    /// Takes those that have come since, until there are `count`.
    pub(super) fn take_waiting(&mut self, calls: &mut Vec<Call>, count: usize) {
        while calls.len() < count {
            let Ok(call) = self.calls.try_recv() else { return };
            calls.push(call);
        }
    }

    /// Where deletions wait.
    pub(super) fn standby(&self) -> Standby {
        self.standby.clone()
    }

    /// Notes each deletion, and answers that every other call is to be repeated.
    pub(super) async fn refuse_all(mut self, reason: &str) {
        self.standby.set_away(true);
        loop {
            for Call { bytes, answer } in self.take(CALLS_MAX).await {
                let invocation = Invocation::parse(&bytes).unwrap_or_default();
                let outcome = match Request::parse(&invocation).map(|it| it.command) {
                    Ok(Command::Delete) => self.standby.note(&bytes),
                    Ok(Command::Status) => Err(CniError::not_available(reason)),
                    Ok(_) => Err(CniError::try_again(reason)),
                    Err(error) => Err(error),
                };
                // The plugin may have gone.
                let _ = answer.send(Answer::of(&invocation, outcome));
            }
        }
    }
}

async fn serve(listener: UnixListener, tell: mpsc::Sender<Call>, standby: Standby) {
    let mut clients = Clients::new(LIMITS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                clients.make_room().await;
                let (tell, standby) = (tell.clone(), standby.clone());
                clients.serve(|work| async move {
                    if let Err(error) = converse(stream, tell, &standby, &work).await {
                        debug!(%error, "a call of the CNI plugin ended early");
                    }
                    work.ends();
                });
            }
            Err(error) => {
                warn!(%error, "cannot accept a call of the CNI plugin");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Fails if the plugin has gone: its runtime has ended it.
fn ensure_open(stream: &WriteHalf<'_>) -> io::Result<()> {
    let stream: &UnixStream = stream.as_ref();
    let mut watched = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    poll(&mut watched, PollTimeout::ZERO)?;
    let seen = watched.first().and_then(PollFd::revents).unwrap_or(PollFlags::empty());
    match seen.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
        true => Err(io::ErrorKind::ConnectionReset.into()),
        false => Ok(()),
    }
}

async fn converse(
    mut stream: UnixStream,
    tell: mpsc::Sender<Call>,
    standby: &Standby,
    work: &Work,
) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let limit = u64::try_from(CALL_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let reading = async { read.take(limit.saturating_add(1)).read_to_end(&mut bytes).await };
    timeout(PATIENCE, reading).await??;
    ensure_open(&write)?;
    work.begins();
    let reply = if bytes.len() > CALL_BYTES_MAX {
        let error = CniError::try_again(format!("the call is longer than {CALL_BYTES_MAX} bytes"));
        Answer::of(&Invocation::default(), Err(error))
    } else if let Some(noted) = standby.answer(&bytes) {
        noted
    } else {
        let (answer, mut answered) = oneshot::channel();
        // A server that has ended answers nothing: the plugin notes the call, or is asked again.
        let _ = tell.send(Call { bytes, answer }).await;
        loop {
            tokio::select! {
                answer = &mut answered => break answer.map_err(io::Error::other)?,
                // What it asked for is dropped then, unless it is being served.
                () = sleep(LOOK_INTERVAL) => ensure_open(&write)?,
            }
        }
    };
    timeout(PATIENCE, write.write_all(&reply.to_bytes())).await?
}
