//! The listening side of the admin socket: only its owner may connect.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_sessions::backend::Backend;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::clear::clear;
use super::show::{self, Snapshot};
use super::{Answer, REQUEST_LENGTH_BYTES_MAX, Request};
use crate::standalone::Published;

/// Clients at the same time: people and scrapers, not a load.
const CLIENTS_MAX: usize = 16;
/// How long a client may think before it asks.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to read its answer. One that is stopped holds its slot no longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no admin socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon has it.
    #[error("another daemon answers at {}; stop it, or choose another --socket", .0.display())]
    InUse(PathBuf),
    /// Something that is no socket has its name.
    #[error("{} is in the way and is no socket; choose another --socket", .0.display())]
    InTheWay(PathBuf),
    /// The system refuses.
    #[error("cannot open the admin socket {}: {cause}", path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
}

/// The socket's name in the file system. Dropping it takes the name away, however the daemon ends.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            debug!(%error, path = %self.0.display(), "the admin socket was gone already");
        }
    }
}

/// Opens the socket at `path`, mode 0600; a missing folder is made, mode 0700. What a dead daemon
/// left behind is replaced.
pub fn listen(path: &Path) -> Result<(UnixListener, SocketFile), SocketError> {
    let system = |cause| SocketError::System { path: path.to_owned(), cause };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(system)?;
    }
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(system(cause)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(SocketError::InTheWay(path.to_owned()));
        }
        Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
            return Err(SocketError::InUse(path.to_owned()));
        }
        Ok(_) => fs::remove_file(path).map_err(system)?,
    }
    let listener = UnixListener::bind(path).map_err(system)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(system)?;
    Ok((listener, file))
}

/// Answers clients until it is aborted. Each has a task of its own and sees the state as it is
/// when it asks.
pub async fn serve(
    listener: UnixListener,
    published: watch::Receiver<Arc<Published>>,
    backend: Arc<dyn Backend>,
) {
    let slots = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (published, backend) = (published.clone(), Arc::clone(&backend));
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, published, &*backend).await {
                        debug!(%error, "an admin client went away");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: give the others time to return some.
                warn!(%error, "cannot accept an admin client");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Line by line until the client has no more questions.
async fn converse(
    stream: UnixStream,
    published: watch::Receiver<Arc<Published>>,
    backend: &dyn Backend,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(REQUEST_LENGTH_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bounded = (&mut read).take(limit);
        let count = timeout(REQUEST_TIMEOUT, bounded.read_until(b'\n', &mut line)).await??;
        if count == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => answer(&request, &published, backend).await,
            Err(error) => Answer::Error(format!("not a request: {error}")),
        };
        let mut reply = serde_json::to_string(&answer)?;
        reply.push('\n');
        send(&mut write, reply.as_bytes(), ANSWER_TIMEOUT).await?;
    }
}

/// Gives a client its answer, unless it does not read.
async fn send(
    client: &mut (impl AsyncWrite + Unpin),
    reply: &[u8],
    patience: Duration,
) -> io::Result<()> {
    timeout(patience, client.write_all(reply)).await?
}

async fn answer(
    request: &Request,
    published: &watch::Receiver<Arc<Published>>,
    backend: &dyn Backend,
) -> Answer {
    let (what, format) = match request {
        Request::Show { what, format } => (what, *format),
        Request::Clear { peer, how } => return clear(backend, peer, *how).await,
    };
    let bgp = match backend.view(what.scope()).await {
        Ok(bgp) => bgp,
        Err(error) => return Answer::Error(error.to_string()),
    };
    let state = Arc::clone(&published.borrow());
    let snapshot = Snapshot {
        now_epoch_seconds: epoch_seconds(),
        node: &state.node,
        router_id: state.router_id,
        bgp: &bgp,
        index: &state.index,
        outcomes: &state.outcomes,
        plan: &state.plan,
        findings: &state.findings,
        stale: &state.stale,
        sources: &state.sources,
    };
    match show::render(what, format, &snapshot) {
        Ok(output) => Answer::Output(output),
        Err(error) => Answer::Error(error.to_string()),
    }
}

/// Unix time: the edge reads the clock, and rendering is told.
#[allow(clippy::disallowed_methods)]
fn epoch_seconds() -> u64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_slot() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let table = vec![b'x'; 16 * 1024 * 1024];
        let outcome = send(&mut near, &table, Duration::from_millis(50)).await;
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(far);
    }

    #[tokio::test]
    async fn a_daemon_that_ends_early_leaves_no_socket_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/fairway.sock");
        let bound = listen(&path).unwrap();
        assert!(matches!(listen(&path), Err(SocketError::InUse(_))));
        drop(bound);
        assert!(!path.exists());
    }
}
