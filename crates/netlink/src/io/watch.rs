//! A snapshot that follows the kernel, for any number of readers.
//!
//! One task moves bytes; a reader gets the newest snapshot without waiting for it, and is woken when a table
//! that it has seen changes. Slow readers miss what was in between, and nothing else.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::socket::{DATAGRAM_LENGTH_BYTES_MAX, Received, RouteSocket};
use crate::follower::{Follower, Input, Note};
use crate::kind::{Kind, Kinds};
use crate::machine::Machine;
use crate::scope::Scope;

/// Datagrams that are read before readers are notified and other tasks run.
const BURST_MAX: usize = 64;
/// Datagrams of the first read: no table is longer, in pieces of 32 KiB.
const FIRST_READ_MAX: usize = 65_536;
/// Until a socket that failed is opened again: it fails for lack of memory or descriptors, which others have
/// to free.
const REOPEN_WAIT: Duration = Duration::from_secs(1);

/// The snapshot of a network namespace. A clone is another reader of the same; the last one ends the task.
#[derive(Debug, Clone)]
pub struct Watch {
    published: watch::Receiver<Machine>,
    seen: Machine,
    _task: Arc<Task>,
}

/// Ends the task when the last reader is gone.
#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watch {
    /// Reads what `scope` asks for, in the network namespace of this thread, and follows it from then on.
    /// Takes no longer than the kernel needs to list its tables.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// There is no socket, or the tables change too fast to be read.
    pub fn open(scope: Scope) -> io::Result<Self> {
        let started = now();
        let socket = RouteSocket::open(&scope, true)?;
        let mut driver = Driver::new(started, scope, socket);
        driver.read_once()?;
        let machine = driver.follower.machine().clone();
        driver.follower.take_changed();
        let socket = driver.socket.watched()?;
        let (publish, published) = watch::channel(machine.clone());
        let Driver { follower, buffer, scope, .. } = driver;
        let following = Following { started, scope, follower, buffer, publish };
        let task = tokio::spawn(following.run(socket)).abort_handle();
        Ok(Self { published, seen: machine, _task: Arc::new(Task(task)) })
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Machine {
        self.published.borrow().clone()
    }

    /// Waits until the snapshot differs from the one that this reader has seen, and returns the tables that
    /// differ; links, too, if one was lost meanwhile and is back. Cancel-safe: a change that was not returned is returned the next time.
    pub async fn changed(&mut self) -> Kinds {
        loop {
            if self.published.changed().await.is_err() {
                // The task ends with the runtime.
                std::future::pending::<()>().await;
            }
            let newest = self.published.borrow_and_update().clone();
            let mut differences = newest.differences(&self.seen);
            if newest.link_losses() != self.seen.link_losses() {
                differences.add(Kind::Link.into());
            }
            self.seen = newest;
            if !differences.is_empty() {
                return differences;
            }
        }
    }
}

/// Reads what `scope` asks for once, in the network namespace of this thread.
///
/// # Errors
/// There is no socket, or the tables change too fast to be read.
pub fn read(scope: Scope) -> io::Result<Machine> {
    /// How often tables are read again that changed while they were read: what is missing then was there.
    const READS_MAX: usize = 5;
    for _ in 0..READS_MAX {
        let socket = RouteSocket::open(&scope, false)?;
        let mut driver = Driver::new(now(), scope.clone(), socket);
        driver.read_once()?;
        if !driver.follower.was_interrupted() {
            return Ok(driver.follower.machine().clone());
        }
    }
    Err(io::Error::other("interfaces and addresses changed each time they were read"))
}

/// What joins a socket and a follower until there is a first snapshot.
struct Driver {
    started: Instant,
    scope: Scope,
    socket: RouteSocket,
    follower: Follower,
    buffer: Vec<u8>,
}

impl Driver {
    fn new(started: Instant, scope: Scope, socket: RouteSocket) -> Self {
        let follower = Follower::new(Duration::ZERO, scope.clone(), socket.port());
        let buffer = vec![0; DATAGRAM_LENGTH_BYTES_MAX];
        Self { started, scope, socket, follower, buffer }
    }

    /// Until every table was read once. The kernel has each answer ready when the call that asks returns.
    fn read_once(&mut self) -> io::Result<()> {
        for _ in 0..FIRST_READ_MAX {
            let now = self.started.elapsed();
            while let Some(request) = self.follower.poll_request(now) {
                self.socket.send(&request)?;
            }
            let received = self.socket.receive(&mut self.buffer)?;
            self.follower.handle(now, input(received, &self.buffer));
            if self.follower.is_complete() {
                return Ok(());
            }
            if received == Received::Nothing && self.follower.next_deadline() > Some(now) {
                break;
            }
        }
        Err(io::Error::other("the kernel did not list its interfaces and addresses"))
    }
}

fn input(received: Received, buffer: &[u8]) -> Input<'_> {
    match received {
        Received::Datagram(length) => Input::Datagram(buffer.get(..length).unwrap_or_default()),
        Received::Overrun => Input::Overrun,
        Received::Nothing => Input::Drained,
    }
}

/// The task.
struct Following {
    started: Instant,
    scope: Scope,
    follower: Follower,
    buffer: Vec<u8>,
    publish: watch::Sender<Machine>,
}

impl Following {
    async fn run(mut self, socket: AsyncFd<RouteSocket>) {
        let mut socket = socket;
        loop {
            let Err(error) = self.follow(&socket).await;
            warn!(%error, "cannot read the kernel's link and address events; opening a new socket");
            socket = self.reopen().await;
        }
    }

    /// A new socket and a new follower; readers keep the snapshot until there is another.
    async fn reopen(&mut self) -> AsyncFd<RouteSocket> {
        loop {
            tokio::time::sleep(REOPEN_WAIT).await;
            match RouteSocket::open(&self.scope, true).and_then(RouteSocket::watched) {
                Ok(socket) => {
                    let (scope, port) = (self.scope.clone(), socket.get_ref().port());
                    self.follower = Follower::new(self.started.elapsed(), scope, port);
                    return socket;
                }
                Err(error) => debug!(%error, "cannot open an rtnetlink socket; trying again"),
            }
        }
    }

    async fn follow(
        &mut self,
        socket: &AsyncFd<RouteSocket>,
    ) -> io::Result<std::convert::Infallible> {
        loop {
            self.follower.handle(self.started.elapsed(), Input::Tick);
            if let Some(request) = self.follower.poll_request(self.started.elapsed()) {
                socket.get_ref().send(&request)?;
            }
            self.tell();
            let deadline = self.follower.next_deadline();
            let wake = async {
                match deadline.and_then(|deadline| self.started.checked_add(deadline)) {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let mut ready = tokio::select! {
                ready = socket.readable() => ready?,
                () = wake => continue,
            };
            for _ in 0..BURST_MAX {
                let received = socket.get_ref().receive(&mut self.buffer)?;
                let input = input(received, &self.buffer);
                self.follower.handle(self.started.elapsed(), input);
                if received == Received::Nothing {
                    ready.clear_ready();
                    break;
                }
            }
        }
    }

    /// Notifies readers of changes, once everything was read, and logs failures.
    fn tell(&mut self) {
        for note in self.follower.take_notes() {
            log(note);
        }
        if self.follower.is_complete() && !self.follower.take_changed().is_empty() {
            self.publish.send_replace(self.follower.machine().clone());
        }
    }
}

fn log(note: Note) {
    match note {
        Note::Lost { attempt, wait } if attempt < 3 => {
            debug!(attempt, ?wait, "kernel events were lost: reading its tables again");
        }
        Note::Lost { attempt, wait } => {
            info!(
                attempt,
                ?wait,
                "kernel events are lost again and again: links and addresses change faster than they are \
                 read; reading its tables again"
            );
        }
        Note::Missed(kind) => debug!(%kind, "a table of the kernel changed without an event"),
        Note::Refused(kind, code) => {
            let error = io::Error::from_raw_os_error(code);
            warn!(%kind, %error, "the kernel did not list a table; trying again");
        }
        Note::Silent(kind) => warn!(%kind, "the kernel did not list a table in time; trying again"),
        Note::Truncated(kind) => {
            warn!(%kind, "the kernel has more entries than Fairway keeps: some are ignored");
        }
    }
}

/// The clock of the edge.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}
