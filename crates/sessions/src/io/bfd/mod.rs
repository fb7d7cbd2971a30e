//! BFD's sockets and clock, and the thread that drives the sessions (`crate::bfd`) with them.
//!
//! A thread and not a task: no other work of this process may come before a packet. The core hands
//! it the sessions it wants, and hears what became of them; it never waits for it. What ends the
//! thread (a fault of ours) ends no BGP session: it begins anew after a wait, and says so.
//!
//! What a packet costs here is what the kernel asks for sending it, and a fraction of a system call
//! for receiving it: under load the thread rests to the next millisecond and then reads all that
//! came in meanwhile with one call. The kernel's time stamps say when that was.

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
use crate::bfd::{BfdEvent, BfdView};
use crate::types::{BfdPath, BfdSettings};

/// Questions that may wait for the thread, which answers within a millisecond. Who asks when there
/// is no room hears nothing, as if there was no thread.
const QUESTIONS_MAX: usize = 16;

/// How BFD is to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct BfdOptions {
    /// Before all other work of this machine, and never paged out.
    pub realtime: bool,
}

/// The sessions that are wanted.
#[derive(Debug, Clone, Default)]
struct Wanted {
    /// Counts up: the thread looks when it can, and is to know that it missed some.
    number: u64,
    sessions: Arc<BTreeMap<BfdPath, BfdSettings>>,
}

/// The thread, from when the first session is wanted. Dropped, it ends; nothing is said then, for
/// that there is [`BfdThread::leave`].
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
    /// Only the latest counts.
    wanted: watch::Sender<Wanted>,
    questions: SyncSender<Command>,
    /// Wakes the thread. It looks at the two above only then, and so this one goes last: the thread
    /// is to see that they are closed.
    wake: Wake,
}

/// What wakes the thread, also when nobody wants it any more.
#[derive(Debug)]
struct Wake(Arc<EventFd>);

impl BfdThread {
    /// One that tells `events` what becomes of its sessions. `seed` is nobody's to guess.
    pub(super) fn start(options: BfdOptions, seed: u64, events: mpsc::Sender<BfdEvent>) -> Self {
        Self { options, endpoint: Endpoint::STANDARD, seed, events, running: None }
    }

    /// The same at an address and ports of its own, for one of many on this machine.
    #[cfg(test)]
    pub(super) fn at(self, address: std::net::Ipv4Addr, port_offset: u16) -> Self {
        Self { endpoint: Endpoint::test(address, port_offset, port_offset), ..self }
    }

    /// The sessions that are wanted from now on.
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

    /// What BFD does and sees right now. No answer means that the thread is too busy to say.
    pub(super) fn view(&self) -> oneshot::Receiver<BfdView> {
        let (answer, view) = oneshot::channel();
        match &self.running {
            Some(running) => running.ask(Command::View(answer)),
            // Whoever asks may have gone.
            None => drop(answer.send(BfdView::default())),
        }
        view
    }

    /// Tells every other end that BFD is switched off, on purpose. Answers when that was said; it is
    /// said again for as long as the handle is kept, for packets may be lost.
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

    /// Starts the thread. What keeps it from starting is tried again with the next change.
    fn spawn(&self) -> Option<Running> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = match EventFd::from_flags(flags) {
            Ok(wake) => Arc::new(wake),
            Err(error) => {
                error!(%error, "BFD cannot start: no eventfd");
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
                error!(%error, "BFD cannot start: no thread");
                None
            }
        }
    }
}

impl Running {
    fn ask(&self, question: Command) {
        // Where there is no room the question goes, and whoever asked sees that.
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
        // It cannot overflow in any lifetime, and then it would be readable.
        let _ = self.0.write(1);
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.wake();
    }
}
