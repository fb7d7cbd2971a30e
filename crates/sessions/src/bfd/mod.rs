//! BFD's sockets and clock, and the thread that drives the sessions (`fairway_bfd`) with them.
//!
//! A thread and not a task: no other work of this process may delay a packet. The core sends it the wanted
//! sessions, and receives their events; it never waits for it. If an internal error ends the thread, no BGP
//! session ends: the thread restarts after a delay, and reports that.
//!
//! A packet costs one system call for sending, and a fraction of one for receiving: under load the thread
//! sleeps until the next millisecond and then reads all received packets with one call. The kernel's time
//! stamps have the exact times.

mod clock;
mod datagram;
mod echo;
mod endpoint;
mod handover;
mod link_echo;
mod realtime;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use nix::sys::eventfd::{EfdFlags, EventFd};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

use self::endpoint::Endpoint;
use self::thread::{Command, Orders};
use fairway_bfd::{BfdEvent, BfdView};
use fairway_ground::{BfdPath, BfdSettings};

/// Maximum number of pending requests; the thread answers within a millisecond. A request beyond that is not
/// answered, as if there were no thread.
const QUESTIONS_MAX: usize = 16;

/// Options of BFD.
#[derive(Debug, Clone, Copy, Default)]
pub struct BfdOptions {
    /// Real-time priority, and memory that is never paged out.
    pub realtime: bool,
}

/// The wanted sessions.
#[derive(Debug, Clone, Default)]
struct Wanted {
    /// Incremented with each change, so that the thread notices if it missed some.
    number: u64,
    sessions: Arc<BTreeMap<BfdPath, BfdSettings>>,
}

/// The thread, once the first session is wanted. It ends when this is dropped, without sending AdminDown;
/// [`BfdThread::leave`] does that.
#[derive(Debug)]
pub(super) struct BfdThread {
    options: BfdOptions,
    endpoint: Endpoint,
    seed: u64,
    events: mpsc::Sender<BfdEvent>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    /// Only the latest value counts.
    wanted: watch::Sender<Wanted>,
    questions: SyncSender<Command>,
    /// Wakes the thread, which reads the two channels above only then. Must be dropped last, so that the
    /// thread sees that they are closed.
    wake: Wake,
}

/// Wakes the thread, also when it is dropped.
#[derive(Debug)]
struct Wake(Arc<EventFd>);

impl BfdThread {
    /// Sends the events of its sessions to `events`. `seed` must be unpredictable.
    pub(super) fn start(options: BfdOptions, seed: u64, events: mpsc::Sender<BfdEvent>) -> Self {
        Self { options, endpoint: Endpoint::STANDARD, seed, events, running: None }
    }

    /// The same at its own address and ports, for one of many on this machine.
    #[cfg(test)]
    pub(super) fn at(self, address: std::net::Ipv4Addr, port_offset: u16) -> Self {
        Self { endpoint: Endpoint::test(address, port_offset, port_offset), ..self }
    }

    /// Sets the wanted sessions.
    pub(super) fn set(&mut self, wanted: BTreeMap<BfdPath, BfdSettings>) {
        if self.running.is_none() && !wanted.is_empty() {
            self.running = self.spawn();
        }
        if let Some(running) = &self.running {
            running.wanted.send_modify(|it| {
                *it = Wanted { number: it.number.wrapping_add(1), sessions: Arc::new(wanted) };
            });
            running.wake();
        }
    }

    /// The current state. No answer means that the thread is too busy.
    pub(super) fn view(&self) -> oneshot::Receiver<BfdView> {
        let (answer, view) = oneshot::channel();
        match &self.running {
            Some(running) => running.ask(Command::View(answer)),
            // The requester may be gone.
            None => drop(answer.send(BfdView::default())),
        }
        view
    }

    /// Sends AdminDown to every remote system. Answers when that was sent; it is repeated for as long as the
    /// handle exists, since packets may be lost.
    pub(super) fn leave(&self) -> oneshot::Receiver<()> {
        let (answer, left) = oneshot::channel();
        match &self.running {
            Some(running) => running.ask(Command::Leave(answer)),
            None => {
                let _ = answer.send(());
            }
        }
        left
    }

    /// Starts the thread. If that fails, it is tried again with the next change.
    fn spawn(&self) -> Option<Running> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = match EventFd::from_flags(flags) {
            Ok(wake) => Arc::new(wake),
            Err(error) => {
                error!(%error, "cannot start BFD: creating an eventfd failed");
                return None;
            }
        };
        let (wanted, wanted_here) = watch::channel(Wanted::default());
        let (questions, questions_here) = sync_channel(QUESTIONS_MAX);
        let orders = Orders { wanted: wanted_here, questions: questions_here, wake: wake.clone() };
        let (options, endpoint, seed) = (self.options, self.endpoint, self.seed);
        let events = self.events.clone();
        let body = move || thread::run(options, endpoint, seed, orders, events);
        match std::thread::Builder::new().name("bfd".to_owned()).spawn(body) {
            Ok(_) => Some(Running { wanted, questions, wake: Wake(wake) }),
            Err(error) => {
                error!(%error, "cannot start BFD: creating a thread failed");
                None
            }
        }
    }
}

impl Running {
    fn ask(&self, question: Command) {
        // If the queue is full, the request is dropped, and the requester notices.
        if self.questions.try_send(question).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        self.wake.wake();
    }
}

impl Wake {
    fn wake(&self) {
        // It cannot overflow in practice, and would be readable then anyway.
        let _ = self.0.write(1);
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.wake();
    }
}
