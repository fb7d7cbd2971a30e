//! The socket of the service proxy, in the run directory: `fairway show proxy`, and those who announce addresses. A line
//! of JSON each way; who announces gets further lines.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::admin::{Answer, ProxyQuery, Request, SocketError, SocketFile, SocketMode, listen_at};
use crate::host::{ClientLimits, Clients, Work};

/// The name of the socket.
pub(crate) const SOCKET: &str = "proxy.sock";
/// People, not a load. A client that has not asked makes room at once.
const LIMITS: ClientLimits =
    ClientLimits { clients_max: 16, silence: Duration::ZERO, bound: Bound::AdminClient };
/// The longest request.
const REQUEST_LENGTH_BYTES_MAX: u64 = 4096;
/// How long a client may take to ask, and to read its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests in the queue for the loop; later ones wait.
const QUERIES_MAX: usize = 16;
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Lines that wait for one who announces. A reader that is further behind is disconnected, and asks again for all.
const LINES_MAX: usize = 256;

/// A request, and where its answer goes.
pub(super) enum Asked {
    View(ProxyQuery, oneshot::Sender<String>),
    Deliveries(mpsc::Sender<Arc<str>>),
}

/// The open socket, which goes with it.
pub(super) struct ProxySocket {
    queries: mpsc::Receiver<Asked>,
    task: AbortHandle,
    _file: SocketFile,
}

impl Drop for ProxySocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ProxySocket {
    pub(super) fn open(run_dir: &Path, mode: SocketMode) -> Result<Self, SocketError> {
        let path = run_dir.join(SOCKET);
        let (listener, file) = listen_at(&path, mode, "--run-dir")?;
        let (ask, queries) = mpsc::channel(QUERIES_MAX);
        let task = tokio::spawn(serve(listener, ask)).abort_handle();
        Ok(Self { queries, task, _file: file })
    }

    /// The next request. Cancel-safe.
    pub(super) async fn asked(&mut self) -> Asked {
        match self.queries.recv().await {
            Some(query) => query,
            None => std::future::pending().await,
        }
    }
}

async fn serve(listener: UnixListener, ask: mpsc::Sender<Asked>) {
    let mut clients = Clients::new(LIMITS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                clients.make_room().await;
                let ask = ask.clone();
                clients.serve(|work| async move {
                    let conversed = match timeout(PATIENCE, converse(stream, ask, &work)).await {
                        // It is silent from here on: it asks again, and what it heard stands.
                        Ok(Ok(Some(follower))) => {
                            work.ends();
                            tell(follower).await
                        }
                        Ok(Ok(None)) => Ok(()),
                        Ok(Err(error)) => Err(error),
                        Err(_) => Err(io::ErrorKind::TimedOut.into()),
                    };
                    if let Err(error) = conversed {
                        debug!(%error, "a client of the proxy disconnected");
                    }
                    work.ends();
                });
            }
            Err(error) => {
                warn!(%error, "cannot accept a client of the proxy");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Who announces, and the lines for it.
struct Follower {
    stream: UnixStream,
    lines: mpsc::Receiver<Arc<str>>,
}

/// Tells it each change until it disconnects, or does not read.
async fn tell(Follower { mut stream, mut lines }: Follower) -> io::Result<()> {
    let (mut read, mut write) = stream.split();
    let mut nothing = [0];
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => timeout(PATIENCE, write.write_all(line.as_bytes())).await??,
                None => return Ok(()),
            },
            // It has nothing more to say.
            _ = read.read(&mut nothing) => return Ok(()),
        }
    }
}

/// Answers one request. Returns the connection if further lines are wanted.
async fn converse(
    mut stream: UnixStream,
    ask: mpsc::Sender<Asked>,
    work: &Work,
) -> io::Result<Option<Follower>> {
    let (read, mut write) = stream.split();
    let mut line = Vec::new();
    BufReader::new(read.take(REQUEST_LENGTH_BYTES_MAX)).read_until(b'\n', &mut line).await?;
    work.begins();
    let answer = match serde_json::from_slice::<Request>(&line) {
        Ok(Request::Proxy(query)) => {
            let (answer, answered) = oneshot::channel();
            // A loop that has ended answers nothing.
            let _ = ask.send(Asked::View(query, answer)).await;
            match answered.await {
                Ok(text) => Answer::Output(text),
                Err(_) => Answer::Error("the service proxy is ending".to_owned()),
            }
        }
        Ok(Request::Deliveries) => {
            let (tell, lines) = mpsc::channel(LINES_MAX);
            let _ = ask.send(Asked::Deliveries(tell)).await;
            return Ok(Some(Follower { stream, lines }));
        }
        Ok(_) => Answer::Error("this is the socket of the service proxy: show proxy".to_owned()),
        Err(error) => Answer::Error(format!("malformed request: {error}")),
    };
    let mut reply = serde_json::to_string(&answer)?;
    reply.push('\n');
    write.write_all(reply.as_bytes()).await?;
    Ok(None)
}
