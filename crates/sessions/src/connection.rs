//! The two tasks of a connection: one reads, one writes.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::connection_keys::ConnectionKeys;
use super::news::{NetworkEvent, News};
use super::sockopt;
use fairway_bgp::session::ConnectionId;
use fairway_ground::PeerKey;
use fairway_seam::Stall;

/// Bytes of one read: a few full messages. One neighbour cannot delay the core for longer than these take to
/// parse.
const READ_LENGTH_BYTES: usize = 16 * 1024;
/// Maximum number of pending reads of one connection: one that is being processed, and the next one. A
/// neighbour that sends as fast as it can fills its own socket, and not the queue that all others share.
const READS_MAX: usize = 2;
/// Room for a chunk that is being written, and for the last message.
const CHUNKS_MAX: usize = 2;
/// Timeout for sending the last message, and for the neighbour to close its side after it. Without the wait
/// the kernel would answer unread bytes with a reset, which can overtake the NOTIFICATION.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// An order to the writer.
enum Chunk {
    /// More bytes of the session.
    Bytes(Bytes),
    /// The end: send these bytes, if any, then close.
    LastWords(Bytes),
}

/// The core's handle of an established connection. Dropping it without [`Link::finish`] closes the connection
/// without a NOTIFICATION.
#[derive(Debug)]
pub(super) struct Link {
    chunks: mpsc::Sender<Chunk>,
    tasks: [AbortHandle; 2],
    /// The reader has it.
    stream: Weak<OwnedReadHalf>,
    /// Its authentication keys, if any.
    pub(super) keys: Option<ConnectionKeys>,
}

impl Link {
    /// Starts the two tasks; they report to `events` as connection `id` of peer `key`.
    pub(super) fn start(
        key: PeerKey,
        id: ConnectionId,
        stream: TcpStream,
        keys: Option<ConnectionKeys>,
        events: &mpsc::Sender<NetworkEvent>,
        tasks: &TaskTracker,
    ) -> Self {
        let (read, write) = stream.into_split();
        let (chunks, to_write) = mpsc::channel(CHUNKS_MAX);
        let read = Arc::new(read);
        let stream = Arc::downgrade(&read);
        let reader = tasks.spawn(read_all(key, id, read, events.clone()));
        let stop_reader = reader.abort_handle();
        let events = events.clone();
        let stop = stop_reader.clone();
        let writer = tasks.spawn(async move {
            write_all(key, id, write, to_write, events).await;
            if timeout(GOODBYE_TIMEOUT, reader).await.is_err() {
                stop.abort();
            }
        });
        Self { chunks, tasks: [stop_reader, writer.abort_handle()], stream, keys }
    }

    /// Gives the writer bytes. Only when all that it was given before has been reported as written.
    pub(super) fn write(&mut self, bytes: Bytes) {
        // There is room: at most one chunk is pending. A writer that ended has reported that.
        let _ = self.chunks.try_send(Chunk::Bytes(bytes));
    }

    /// What the kernel repeats in vain.
    pub(super) fn stall(&self) -> Option<Stall> {
        let stream = self.stream.upgrade()?;
        sockopt::stall(OwnedReadHalf::as_ref(&stream)).ok().flatten()
    }

    /// Ends the connection: after pending bytes and `last_words`, or at once if there are none.
    pub(super) fn finish(self, last_words: Option<Bytes>) {
        match last_words {
            Some(bytes) => drop(self.chunks.try_send(Chunk::LastWords(bytes))),
            None => self.tasks.iter().for_each(AbortHandle::abort),
        }
    }
}

/// Reads until the connection ends. Cancel-safe: aborting it loses only bytes of a connection that is closed
/// anyway.
async fn read_all(
    key: PeerKey,
    id: ConnectionId,
    stream: Arc<OwnedReadHalf>,
    events: mpsc::Sender<NetworkEvent>,
) {
    let budget = Arc::new(Semaphore::new(READS_MAX));
    loop {
        // The semaphore is never closed, so the error cannot happen.
        let Ok(permit) = Arc::clone(&budget).acquire_owned().await else { return };
        let news = match read(&stream).await {
            Ok(bytes) if bytes.is_empty() => News::Closed { id, why: None },
            Ok(bytes) => News::Received { id, bytes, permit },
            Err(error) => News::Closed { id, why: Some(error.to_string()) },
        };
        let last = matches!(news, News::Closed { .. });
        if events.send(NetworkEvent { key, news }).await.is_err() || last {
            return;
        }
    }
}

/// Reads what there is, once there is something; nothing at the end.
async fn read(stream: &OwnedReadHalf) -> io::Result<Bytes> {
    loop {
        stream.readable().await?;
        // On the stack of the thread: hundreds of sessions have nothing to read most of the time.
        let mut buffer = [0; READ_LENGTH_BYTES];
        match stream.try_read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => {
                let read = buffer.get(..outcome?).unwrap_or_default();
                return Ok(Bytes::copy_from_slice(read));
            }
        }
    }
}

/// Writes chunks until the last message, or until the sender is dropped.
async fn write_all(
    key: PeerKey,
    id: ConnectionId,
    mut stream: OwnedWriteHalf,
    mut chunks: mpsc::Receiver<Chunk>,
    events: mpsc::Sender<NetworkEvent>,
) {
    let mut next = chunks.recv().await;
    while let Some(chunk) = next {
        let bytes = match chunk {
            Chunk::Bytes(bytes) => bytes,
            Chunk::LastWords(bytes) => {
                // Not reported: the session is over whether they arrive or not.
                let _ = timeout(GOODBYE_TIMEOUT, stream.write_all(&bytes)).await;
                break;
            }
        };
        let (outcome, end) = write_unless_over(&mut stream, &bytes, &mut chunks).await;
        let broke = outcome.is_err();
        let news = match outcome {
            Ok(()) => News::Written { id },
            Err(error) => News::Closed { id, why: Some(error.to_string()) },
        };
        // After a partial message nothing that follows could be decoded.
        if events.send(NetworkEvent { key, news }).await.is_err() || broke {
            return;
        }
        next = match end {
            Some(end) => end,
            None => chunks.recv().await,
        };
    }
    let _ = stream.shutdown().await;
}

/// Writes, but with a timeout once the end was requested: a neighbour that does not read must not keep the
/// task of a closed session alive. While bytes are pending only the end can be requested; it is returned.
async fn write_unless_over(
    stream: &mut OwnedWriteHalf,
    bytes: &[u8],
    chunks: &mut mpsc::Receiver<Chunk>,
) -> (io::Result<()>, Option<Option<Chunk>>) {
    let mut writing = pin!(stream.write_all(bytes));
    tokio::select! {
        outcome = &mut writing => (outcome, None),
        end = chunks.recv() => {
            let outcome = timeout(GOODBYE_TIMEOUT, writing).await;
            (outcome.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())), Some(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// A link over loopback, and its remote end.
    async fn link() -> (Link, TcpStream, TaskTracker, mpsc::Receiver<NetworkEvent>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let (events, news) = mpsc::channel(16);
        let tasks = TaskTracker::new();
        let key = PeerKey::from(std::net::IpAddr::from([127, 0, 0, 1]));
        let link = Link::start(key, ConnectionId::default(), near, None, &events, &tasks);
        tasks.close();
        (link, far, tasks, news)
    }

    //= RFC 4271 §4.5 MUST: the connection is closed right after a NOTIFICATION was sent.
    #[tokio::test]
    async fn last_words_follow_what_is_being_written() {
        let (mut link, mut far, tasks, _news) = link().await;
        link.write(Bytes::from_static(b"session "));
        link.finish(Some(Bytes::from_static(b"farewell")));
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"session farewell");
        drop(far);
        tasks.wait().await;
    }

    #[tokio::test]
    async fn a_flood_waits_in_the_socket_and_not_in_the_queue_of_all() {
        let (link, mut far, _tasks, mut news) = link().await;
        let flood = tokio::spawn(async move {
            let _ = far.write_all(&vec![0; 4 * 1024 * 1024]).await;
        });
        let mut held = Vec::new();
        for _ in 0..READS_MAX {
            held.push(news.recv().await.unwrap());
        }
        let quiet = timeout(Duration::from_millis(100), news.recv()).await;
        assert!(quiet.is_err(), "no more than its budget is read from one neighbor");
        held.pop();
        assert!(news.recv().await.is_some(), "a processed read makes room for the next");
        drop(link);
        flood.abort();
    }

    #[tokio::test]
    async fn a_neighbour_that_reads_nothing_does_not_keep_a_dead_session_alive() {
        let (mut link, far, tasks, _news) = link().await;
        link.write(Bytes::from(vec![0; 64 * 1024 * 1024]));
        link.finish(Some(Bytes::from_static(b"farewell")));
        timeout(Duration::from_secs(10), tasks.wait()).await.expect("the tasks end");
        drop(far);
    }
}
