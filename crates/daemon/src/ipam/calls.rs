//! The socket of the CNI plugin: a connection for each call.

use std::io;
use std::path::Path;
use std::time::Duration;

use fairway_ground::Bound;
use fairway_ipam::cni::{Answer, CALL_BYTES_MAX, CniError, Invocation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    ClientLimits { clients_max: 2048, silence: Duration::from_secs(5), bound: Bound::AdminClient };
/// How long the plugin may take to send its call, and to read its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Calls in the queue; later ones wait.
const CALLS_MAX: usize = 1024;
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A call, and where its answer goes.
pub(super) struct Call {
    pub(super) bytes: Vec<u8>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The open socket, which goes with it.
pub(crate) struct CallSocket {
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
    pub(crate) fn open(path: &Path) -> Result<Self, SocketError> {
        let (listener, file) = listen_at(path, SOCKET_MODE, "--cni-socket")?;
        let (tell, calls) = mpsc::channel(CALLS_MAX);
        let task = tokio::spawn(serve(listener, tell)).abort_handle();
        Ok(Self { calls, task, _file: file })
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

    /// Answers each call that it is to be repeated.
    pub(super) async fn refuse_all(mut self, reason: &str) {
        loop {
            for Call { bytes, answer } in self.take(CALLS_MAX).await {
                let error = CniError::try_again(reason);
                let invocation = Invocation::parse(&bytes).unwrap_or_default();
                // The plugin may have gone.
                let _ = answer.send(Answer::of(&invocation, Err(error)));
            }
        }
    }
}

async fn serve(listener: UnixListener, tell: mpsc::Sender<Call>) {
    let mut clients = Clients::new(LIMITS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                clients.make_room().await;
                let tell = tell.clone();
                clients.serve(|work| async move {
                    if let Err(error) = converse(stream, tell, &work).await {
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

async fn converse(mut stream: UnixStream, tell: mpsc::Sender<Call>, work: &Work) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let limit = u64::try_from(CALL_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let reading = async { read.take(limit.saturating_add(1)).read_to_end(&mut bytes).await };
    timeout(PATIENCE, reading).await??;
    work.begins();
    let reply = if bytes.len() > CALL_BYTES_MAX {
        let error = CniError::try_again(format!("the call is longer than {CALL_BYTES_MAX} bytes"));
        Answer::of(&Invocation::default(), Err(error))
    } else {
        let (answer, answered) = oneshot::channel();
        // A server that has ended answers nothing: the plugin notes the call, or is asked again.
        let _ = tell.send(Call { bytes, answer }).await;
        answered.await.map_err(io::Error::other)?
    };
    timeout(PATIENCE, write.write_all(&reply.to_bytes())).await?
}
