//! FRR's vty sockets: a command ends in a NUL byte; the answer ends in three and the status.
//!
//! A slow reader blocks only its own connection: a connection has one answer at a time, and reads its next
//! command once the last answer is sent.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_show::vty::{Daemon, Reply, Request};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::admin::listen::{SocketError, SocketFile, SocketMode, listen};
use crate::admin::observer::Observer;

/// Connections to one socket at the same time: people and scrapers, not a load.
const CONNECTIONS_MAX: usize = 16;
/// The longest command, as in FRR.
const COMMAND_LENGTH_BYTES_MAX: usize = 4096;
/// How long a connection may be idle, and how long an answer may take to be read: vtysh keeps its connections
/// open, and stops reading while its pager waits for input.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The sockets of the daemons that Fairway stands in for.
#[derive(Debug)]
pub struct Sockets(Vec<(Daemon, UnixListener, SocketFile)>);

/// The same while serving. Dropping it ends all connections and removes the sockets.
#[derive(Debug)]
pub struct Serving {
    _tasks: JoinSet<()>,
    _files: Vec<SocketFile>,
}

impl Sockets {
    /// Opens them in `folder`; creates a missing folder.
    pub fn open(folder: &Path, mode: SocketMode) -> Result<Self, SocketError> {
        let open = |daemon: Daemon| {
            let (listener, file) = listen(&folder.join(daemon.file_name()), mode, "--vty-dir")?;
            Ok((daemon, listener, file))
        };
        let sockets = Daemon::ALL.into_iter().map(open).collect::<Result<_, SocketError>>()?;
        info!(folder = %folder.display(), "FRR's sockets are open");
        Ok(Self(sockets))
    }

    /// Serves them.
    pub fn serve(self, observer: &Observer) -> Serving {
        let (mut tasks, mut files) = (JoinSet::new(), Vec::new());
        for (daemon, listener, file) in self.0 {
            tasks.spawn(accept(daemon, listener, observer.clone()));
            files.push(file);
        }
        Serving { _tasks: tasks, _files: files }
    }
}

/// Accepts connections, up to the maximum.
async fn accept(daemon: Daemon, listener: UnixListener, observer: Observer) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut conversations = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // Remove those that have ended.
        while conversations.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let observer = observer.clone();
                conversations.spawn(async move {
                    if let Err(error) = converse(daemon, stream, &observer, PATIENCE).await {
                        debug!(%error, "a vty client disconnected");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                // Most likely out of descriptors: wait until others are closed.
                warn!(%error, "cannot accept a vty client");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Answers command by command until the client closes the connection.
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
            // The client closed the connection, possibly in the middle of a command.
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
    let request = match Request::parse(daemon, line) {
        Ok(request) => request,
        Err(refusal) => return (refusal, false),
    };
    let seen = observer.look(request.scope(), |snapshot| request.answer(snapshot)).await;
    let reply = seen.unwrap_or_else(|error| request.unavailable(&error.to_string()));
    (reply, request.ends_connection())
}

/// The bytes of a reply, in one piece: programs take a read that ends in NUL for the end.
fn framed(reply: Reply) -> Vec<u8> {
    // Some of the text comes from a neighbour, which must not be able to end the reply.
    let mut bytes = reply.text.replace('\0', "\\0").into_bytes();
    bytes.extend([0, 0, 0, reply.status]);
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use fairway_model::Node;
    use fairway_plan as plan;
    use fairway_sessions::{BfdOptions, Listen, NativeBackend};

    use super::*;
    use crate::host::{Enquirer, Published};

    /// A daemon without any state.
    fn observer() -> Observer {
        let node = Node::assumed("node-a", vec!["10.0.0.1".parse().unwrap()]);
        let published = Published {
            router_id: plan::router_id(&node),
            node,
            index: Arc::default(),
            outcomes: Default::default(),
            plan: Default::default(),
            history: Default::default(),
            findings: Vec::new(),
            stale: Vec::new(),
            sources: Vec::new(),
            outage: None,
            layer2: None,
            members: None,
            health: Default::default(),
            is_reading: true,
            drain: Default::default(),
        };
        Observer::new(
            Enquirer::hearing(published),
            Arc::new(NativeBackend::start(Listen::nowhere(), BfdOptions::default(), 7, None)),
        )
    }

    struct Client(UnixStream);

    impl Client {
        async fn connect(folder: &Path, daemon: Daemon) -> Self {
            Self(UnixStream::connect(folder.join(daemon.file_name())).await.unwrap())
        }

        async fn say(&mut self, bytes: &[u8]) {
            self.0.write_all(bytes).await.unwrap();
        }

        async fn answer(&mut self) -> (String, u8) {
            let mut answer = Vec::new();
            loop {
                answer.push(self.0.read_u8().await.unwrap());
                if let [text @ .., 0, 0, 0, status] = answer.as_slice() {
                    return (String::from_utf8(text.to_vec()).unwrap(), *status);
                }
            }
        }
    }

    #[tokio::test]
    async fn commands_are_answered_one_by_one_however_they_arrive() {
        let folder = tempfile::tempdir().unwrap();
        let _serving = Sockets::open(folder.path(), SocketMode::Owner).unwrap().serve(&observer());
        let mut client = Client::connect(folder.path(), Daemon::Bgpd).await;
        client.say(b"enable\0show bgp summary json\0show bgp n").await;
        assert_eq!(client.answer().await, (String::new(), 0));
        assert_eq!(client.answer().await, ("{}\n".to_owned(), 0));
        client.say(b"onsense\0exit\0").await;
        let refusal = "% [BGP] Unknown command: show bgp nonsense\n".to_owned();
        assert_eq!(client.answer().await, (refusal, 2));
        assert_eq!(client.answer().await, (String::new(), 0));
        assert_eq!(client.0.read(&mut [0]).await.unwrap(), 0);
        let mut client = Client::connect(folder.path(), Daemon::Bfdd).await;
        client.say(b"show bfd peers | include BFD\0").await;
        assert_eq!(client.answer().await, ("BFD Peers:\n".to_owned(), 0));
    }

    #[tokio::test]
    async fn a_command_that_is_too_long_is_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let _serving = Sockets::open(folder.path(), SocketMode::Owner).unwrap().serve(&observer());
        let mut client = Client::connect(folder.path(), Daemon::Zebra).await;
        client.say(&[b'x'; COMMAND_LENGTH_BYTES_MAX]).await;
        assert_eq!(client.answer().await, ("% Command is too long.\n".to_owned(), 1));
        assert_eq!(client.0.read(&mut [0]).await.unwrap(), 0);
        let mut client = Client::connect(folder.path(), Daemon::Zebra).await;
        let longest = vec![b'x'; COMMAND_LENGTH_BYTES_MAX - 1];
        client.say(&[longest.as_slice(), b"\0"].concat()).await;
        assert_eq!(client.answer().await.1, 2);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let _serving = Sockets::open(folder.path(), SocketMode::Owner).unwrap().serve(&observer());
        let mut deaf = Client::connect(folder.path(), Daemon::Bgpd).await;
        // Until its commands are no longer read, because it does not read the answers.
        let question = b"show version\0".repeat(512);
        let patience = Duration::from_millis(200);
        while timeout(patience, deaf.0.write_all(&question)).await.is_ok() {}
        let mut other = Client::connect(folder.path(), Daemon::Bgpd).await;
        other.say(b"enable\0").await;
        assert_eq!(other.answer().await, (String::new(), 0));
    }

    #[tokio::test]
    async fn who_neither_reads_nor_asks_is_let_go() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let patience = Duration::from_millis(50);
        let silent = converse(Daemon::Bgpd, near, &observer(), patience).await;
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        let (near, mut far) = UnixStream::pair().unwrap();
        let observer = observer();
        let conversation = converse(Daemon::Bgpd, near, &observer, patience);
        let questions = b"show version\0".repeat(1 << 20);
        let (outcome, _) = tokio::join!(conversation, far.write_all(&questions));
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn more_connections_than_slots_wait_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let _serving = Sockets::open(folder.path(), SocketMode::Owner).unwrap().serve(&observer());
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            let mut client = Client::connect(folder.path(), Daemon::Bgpd).await;
            client.say(b"enable\0").await;
            client.answer().await;
            held.push(client);
        }
        let mut late = Client::connect(folder.path(), Daemon::Bgpd).await;
        late.say(b"enable\0").await;
        let early = timeout(Duration::from_millis(50), late.answer()).await;
        assert!(early.is_err(), "there was a slot left");
        held.pop();
        assert_eq!(late.answer().await, (String::new(), 0));
    }

    #[tokio::test]
    async fn sockets_are_ours_alone_and_gone_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("made/here");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let serving = Sockets::open(&folder, SocketMode::Owner).unwrap().serve(&observer());
        assert_eq!(mode(&folder), 0o700);
        let sockets = Daemon::ALL.map(|daemon| folder.join(daemon.file_name()));
        assert!(sockets.iter().all(|socket| mode(socket) == 0o600));
        let taken = Sockets::open(&folder, SocketMode::Owner).unwrap_err().to_string();
        assert!(taken.contains("bgpd.vty; stop it, or choose another --vty-dir"), "{taken}");
        assert!(sockets.iter().all(|socket| socket.exists()), "what is another's is left alone");
        drop(serving);
        assert!(sockets.iter().all(|socket| !socket.exists()));
        // Left behind by a daemon that was killed.
        drop(std::os::unix::net::UnixListener::bind(&sockets[0]).unwrap());
        assert!(sockets[0].exists());
        let serving = Sockets::open(&folder, SocketMode::Owner).unwrap().serve(&observer());
        let mut client = Client::connect(&folder, Daemon::Bgpd).await;
        client.say(b"enable\0").await;
        assert_eq!(client.answer().await, (String::new(), 0));
        drop(serving);
    }

    #[test]
    fn a_neighbor_cannot_end_an_answer() {
        let reply = Reply::success("Last error: one\0\0\0\u{1}two\n");
        let text = b"Last error: one\\0\\0\\0\x01two\n".as_slice();
        assert_eq!(framed(reply), [text, [0, 0, 0, 0].as_slice()].concat());
    }
}
