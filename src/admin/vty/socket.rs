//! FRR's vty protocol: a command ends in a NUL byte; the answer ends in three and the status.
//!
//! A slow reader holds its own connection and nothing else: a connection has one answer at a time,
//! and reads its next command when the last answer is gone.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_sessions::backend::ViewScope;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::Daemon;
use super::commands::{Question, understand};
use super::reply::{Reply, answer, refusal};
use super::search::Search;
use crate::admin::listen::{SocketError, SocketFile, listen};
use crate::admin::observer::Observer;

/// Connections to one socket at the same time: people and scrapers, not a load.
const CONNECTIONS_MAX: usize = 16;
/// The longest command, as in FRR.
const COMMAND_LENGTH_BYTES_MAX: usize = 4096;
/// How long a connection may be idle, and how long an answer may take to be read: vtysh keeps its
/// connections, and stops reading while its pager waits for a person.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The sockets of the daemons that we stand in for.
#[derive(Debug)]
pub struct Sockets(Vec<(Daemon, UnixListener, SocketFile)>);

/// The same at work. Dropping it ends all conversations and takes the sockets away.
#[derive(Debug)]
pub struct Serving {
    _tasks: JoinSet<()>,
    _files: Vec<SocketFile>,
}

impl Sockets {
    /// Opens them in `folder`, mode 0600; a missing folder is made, mode 0700.
    pub fn open(folder: &Path) -> Result<Self, SocketError> {
        let open = |daemon: Daemon| {
            let (listener, file) = listen(&folder.join(daemon.file_name()), "--vty-dir")?;
            Ok((daemon, listener, file))
        };
        let sockets = Daemon::ALL.into_iter().map(open).collect::<Result<_, SocketError>>()?;
        info!(folder = %folder.display(), "FRR's sockets are open");
        Ok(Self(sockets))
    }

    /// Answers on them.
    pub fn serve(self, observer: &Observer) -> Serving {
        let (mut tasks, mut files) = (JoinSet::new(), Vec::new());
        for (daemon, listener, file) in self.0 {
            tasks.spawn(accept(daemon, listener, observer.clone()));
            files.push(file);
        }
        Serving { _tasks: tasks, _files: files }
    }
}

/// Takes connections, as many as may be at a time.
async fn accept(daemon: Daemon, listener: UnixListener, observer: Observer) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut conversations = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // Those that have ended.
        while conversations.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let observer = observer.clone();
                conversations.spawn(async move {
                    if let Err(error) = converse(daemon, stream, &observer, PATIENCE).await {
                        debug!(%error, "a vty client went away");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: give the others time to return some.
                warn!(%error, "cannot accept a vty client");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Command by command until the client has no more.
async fn converse(
    daemon: Daemon,
    stream: UnixStream,
    observer: &Observer,
    patience: Duration,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut command = Vec::new();
        let limit = u64::try_from(COMMAND_LENGTH_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bounded = (&mut read).take(limit);
        timeout(patience, bounded.read_until(0, &mut command)).await??;
        let is_whole = command.pop() == Some(0);
        if !is_whole && command.len() < COMMAND_LENGTH_BYTES_MAX - 1 {
            // The client closed the connection, perhaps within a command.
            return Ok(());
        }
        let (reply, is_last) = match is_whole {
            true => respond(daemon, &String::from_utf8_lossy(&command), observer).await,
            false => (Reply::warning("% Command is too long.\n"), true),
        };
        timeout(patience, write.write_all(&framed(reply))).await??;
        if is_last {
            return Ok(());
        }
    }
}

/// The reply, and whether the connection ends with it.
async fn respond(daemon: Daemon, line: &str, observer: &Observer) -> (Reply, bool) {
    let (command, search) = match line.split_once('|') {
        None => (line, None),
        Some((command, search)) => match Search::new(search) {
            Ok(search) => (command, Some(search)),
            Err(error) => return (Reply::warning(format!("{error}\n")), false),
        },
    };
    let question = match understand(daemon, command) {
        Ok(question) => question,
        Err(why) => return (refusal(daemon, line, why), false),
    };
    let scope = match &question {
        Question::Show { what, .. } => what.scope(),
        _ => ViewScope::SESSIONS,
    };
    let seen = observer.look(scope, |snapshot| answer(&question, snapshot)).await;
    let mut reply = seen.unwrap_or_else(|error| Reply::warning(format!("% {error}\n")));
    if let Some(search) = search {
        reply.text = search.lines_of(&reply.text);
    }
    (reply, question == Question::Exit)
}

/// The bytes of a reply, in one piece: programs take a read that ends in NUL for the end.
fn framed(reply: Reply) -> Vec<u8> {
    // A neighbour chooses some of the text, and must not choose where it ends.
    let mut bytes = reply.text.replace('\0', "\\0").into_bytes();
    bytes.extend([0, 0, 0, reply.status]);
    bytes
}
