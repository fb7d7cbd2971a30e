//! The thread: waits, reads, runs the sessions, sends, reports.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::EpollTimeout;
use nix::sys::eventfd::EventFd;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

use super::clock::Clock;
use super::endpoint::Endpoint;
use super::handover::Handover;
use super::link_echo::Neighbours;
use super::receive::{Drained, Place, ReceiveSockets};
use super::send::Lines;
use super::{BfdOptions, Wanted, echo, link_echo, realtime};
use fairway_bfd::{
    BfdChange, BfdEvent, BfdView, Diagnostic, DownCause, PACKET_LENGTH_BYTES_MAX, Port, Realtime,
    Received, Sessions, SlotId,
};
use fairway_ground::{BfdPath, BfdSettings, Instant, Rng};

/// The interval at which packets are read under load, and the normal lateness of sessions: their deadlines
/// are on this grid.
const TICK_MICROSECONDS: u64 = 1_000;

/// Two packets within this time mean load.
const BUSY_GAP: Duration = Duration::from_micros(500);

/// More than the grid and the kernel's rounding: this thread did not run when it should have.
const LATE: Duration = Duration::from_millis(3);

/// Interval at which devices and failed sockets are checked.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Interval of retries while the queue of the core is full.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Delay before the thread restarts after an internal error: initial and maximum.
const RESTART_WAIT_MIN: Duration = Duration::from_secs(1);
const RESTART_WAIT_MAX: Duration = Duration::from_secs(60);

/// Maximum number of problems in a view.
const TROUBLES_MAX: usize = 32;

/// Reported for every session after an internal error.
const UNWATCHED: BfdChange = BfdChange::Down {
    cause: DownCause::Unwatched,
    diagnostic: Diagnostic::NONE,
    remote_control_plane_independent: false,
    was_up: false,
};

/// A request to the thread.
pub(super) enum Command {
    View(oneshot::Sender<BfdView>),
    Leave(oneshot::Sender<()>),
    /// Keeps the thread busy, or makes it panic.
    #[cfg(test)]
    Run(Box<dyn FnOnce() + Send>),
}

/// The input of the thread.
pub(super) struct Orders {
    pub(super) wanted: watch::Receiver<Wanted>,
    pub(super) questions: Receiver<Command>,
    pub(super) wake: Arc<EventFd>,
}

/// Why the loop ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("BFD is not used any more")]
    Dropped,
    #[error("epoll: {0}")]
    Epoll(#[from] Errno),
}

/// Runs for as long as the handle exists, and restarts after internal errors.
pub(super) fn run(
    options: BfdOptions,
    endpoint: Endpoint,
    seed: u64,
    mut orders: Orders,
    events: mpsc::Sender<BfdEvent>,
) {
    let mut seeds = Rng::seeded(seed);
    let realtime = realtime::ask(options.realtime);
    let mut wait = RESTART_WAIT_MIN;
    loop {
        let clock = Clock::start();
        let seed = seeds.next_u64();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut driver =
                Driver::new(clock, endpoint, seed, &orders, events.clone(), &realtime)?;
            driver.run(&mut orders)
        }));
        let reason = match outcome {
            Ok(Err(End::Dropped)) => return,
            Ok(Ok(never)) => match never {},
            Ok(Err(error)) => error.to_string(),
            Err(panic) => message_of(panic.as_ref()),
        };
        // After a run of minutes the start itself was not the cause.
        if clock.now().since(Instant::ZERO) > RESTART_WAIT_MAX {
            wait = RESTART_WAIT_MIN;
        }
        error!(%reason, wait_seconds = wait.as_secs(), "internal error: BFD thread ended, restarting");
        let trouble =
            format!("internal error: BFD thread ended ({reason}), restarting; please report it");
        for path in orders.wanted.borrow().sessions.keys() {
            // The core processes events, or has ended.
            let _ = events.blocking_send(BfdEvent { path: *path, change: UNWATCHED });
        }
        if pause(&orders, wait, &realtime, trouble).is_err() {
            return;
        }
        wait = (wait * 2).min(RESTART_WAIT_MAX);
    }
}

/// The handle was dropped.
struct Dropped;

/// Waits, and answers meanwhile that no path is monitored.
#[allow(clippy::disallowed_methods, reason = "the edge reads the clock")]
fn pause(
    orders: &Orders,
    wait: Duration,
    realtime: &Realtime,
    reason: String,
) -> Result<(), Dropped> {
    let end = std::time::Instant::now() + wait;
    loop {
        let left = end.saturating_duration_since(std::time::Instant::now());
        match orders.questions.recv_timeout(left) {
            Ok(Command::View(answer)) => {
                let trouble = vec![reason.clone()];
                // The wanted sessions exist, and are down.
                let mut none_up = Sessions::new(0);
                none_up.set(Instant::ZERO, &orders.wanted.borrow().sessions);
                let view = BfdView {
                    sessions: none_up.view(Instant::ZERO),
                    realtime: realtime.clone(),
                    trouble,
                    ended: true,
                    ..BfdView::default()
                };
                // The requester may be gone.
                drop(answer.send(view));
            }
            // There is no session to shut down.
            Ok(Command::Leave(answer)) => {
                let _ = answer.send(());
            }
            #[cfg(test)]
            Ok(Command::Run(_)) => {}
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(Dropped),
        }
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// One run of the loop, and its state.
struct Driver<'a> {
    clock: Clock,
    sessions: Sessions,
    sockets: ReceiveSockets,
    lines: Lines,
    handover: Handover,
    realtime: &'a Realtime,
    endpoint: Endpoint,
    /// When sockets and devices are checked; `None` while none needs it.
    look_at: Option<Instant>,
    /// When pending events are sent to the core again.
    retry_at: Option<Instant>,
    /// Answered when AdminDown was sent.
    leaving: Option<oneshot::Sender<()>>,
    load: Load,
    wanted: Wanted,
    /// Whether a session uses `link_echo`, where that is possible.
    has_link_echo: bool,
    neighbours: Neighbours,
}

/// Whether packets arrive so quickly that reading each at once would cost more than it helps.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    is_busy: bool,
    heard_at: Instant,
}

impl<'a> Driver<'a> {
    fn new(
        clock: Clock,
        endpoint: Endpoint,
        seed: u64,
        orders: &Orders,
        events: mpsc::Sender<BfdEvent>,
        realtime: &'a Realtime,
    ) -> Result<Self, End> {
        let mut seeds = Rng::seeded(seed);
        Ok(Self {
            clock,
            sessions: Sessions::new(seeds.next_u64()),
            sockets: ReceiveSockets::new(endpoint, &orders.wake)?,
            lines: Lines::new(endpoint, seeds.next_u64()),
            handover: Handover::to(events),
            realtime,
            endpoint,
            look_at: None,
            retry_at: None,
            leaving: None,
            load: Load::default(),
            wanted: Wanted::default(),
            has_link_echo: false,
            neighbours: Neighbours::default(),
        })
    }

    fn run(&mut self, orders: &mut Orders) -> Result<Infallible, End> {
        // The orders of an earlier run still apply.
        self.set(self.clock.now(), &orders.wanted.borrow_and_update().clone());
        loop {
            let due_at = self.due_at();
            let now = self.wait(due_at)?;
            let late = due_at.map_or(Duration::ZERO, |due_at| now.since(due_at));
            if self.sockets.has_commands() {
                self.obey(now, orders)?;
            }
            let drained = self.drain();
            self.load.note(now, drained.count);
            // Only now, since the waiting packets were processed. And as of the time before that: a packet
            // that answers a later deadline may have arrived meanwhile.
            self.sessions.expire(now, (late > LATE).then_some(late));
            self.transmit();
            self.tell(now);
            if self.look_at.is_some_and(|look_at| look_at <= now) {
                self.look(now);
            }
        }
    }

    /// When to act next, if nothing is received.
    fn due_at(&self) -> Option<Instant> {
        [self.sessions.next_deadline(), self.look_at, self.retry_at].into_iter().flatten().min()
    }

    /// Waits until then, or until something is received. Returns a time before which every received packet
    /// will be read.
    fn wait(&mut self, due_at: Option<Instant>) -> Result<Instant, End> {
        let now = self.clock.now();
        if self.load.is_busy {
            rest(now);
            let now = self.clock.now();
            self.sockets.wait(EpollTimeout::ZERO)?;
            return Ok(now);
        }
        self.sockets.wait(timeout(now, due_at))?;
        let now = self.clock.now();
        if due_at.is_some_and(|due_at| now.since(due_at) > LATE) {
            // More may have arrived since the kernel looked.
            self.sockets.wait(EpollTimeout::ZERO)?;
        }
        Ok(now)
    }

    fn obey(&mut self, now: Instant, orders: &mut Orders) -> Result<(), End> {
        // Cleared before the orders are read, so that later ones wake again. Nothing to read is fine.
        let _ = orders.wake.read();
        match orders.wanted.has_changed() {
            Ok(true) => self.set(now, &orders.wanted.borrow_and_update().clone()),
            Ok(false) => {}
            Err(_) => return Err(End::Dropped),
        }
        loop {
            match orders.questions.try_recv() {
                // The requester may be gone.
                Ok(Command::View(answer)) => drop(answer.send(self.view(now))),
                Ok(Command::Leave(answer)) => {
                    self.sessions.leave(now);
                    self.leaving = Some(answer);
                }
                #[cfg(test)]
                Ok(Command::Run(run)) => run(),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(End::Dropped),
            }
        }
    }

    fn set(&mut self, now: Instant, wanted: &Wanted) {
        for slot in self.sessions.set(now, &wanted.sessions) {
            if let Some(path) = self.sessions.path(slot).copied() {
                let index = self.lines.open(slot, path);
                self.sessions.set_interface_index(slot, index);
            }
        }
        if wanted.number != self.wanted.number.wrapping_add(1) {
            // A session that was briefly unwanted is unchanged, but the core has lost its state.
            self.sessions.tell_again(now);
        }
        self.wanted = wanted.clone();
        self.want_sockets(now);
    }

    /// Opens the sockets that the sessions need, including those of sessions that are being removed.
    fn want_sockets(&mut self, now: Instant) {
        let place = |path: &BfdPath, port| {
            let (vrf, is_ipv4) = (path.vrf, path.remote.is_ipv4());
            Place { vrf, is_ipv4, port, link: None }
        };
        let control = self
            .lines
            .paths()
            .map(|path| place(path, if path.multihop { Port::Multihop } else { Port::SingleHop }));
        let mut places: BTreeSet<Place> = control.collect();
        let has_echo = |(path, settings): &(&BfdPath, &BfdSettings)| {
            settings.echo_interval.is_some() && !path.multihop
        };
        let with_echo = || self.wanted.sessions.iter().filter(has_echo).map(|(path, _)| path);
        let over_ipv4: BTreeSet<_> = with_echo().filter_map(link_echo::key).collect();
        self.has_link_echo = !over_ipv4.is_empty();
        self.neighbours.look(&over_ipv4);
        for path in with_echo() {
            let place = place(path, Port::Echo);
            places.insert(place);
            if let Some(neighbour) = self.neighbours.of(path) {
                places.insert(Place { link: Some(neighbour.index), ..place });
            }
        }
        self.sockets.want(now, &places);
        self.plan_look(now);
    }

    fn plan_look(&mut self, now: Instant) {
        let is_needed = self.sockets.needs_look() || self.lines.needs_look() || self.has_link_echo;
        // Orders may be more frequent than that, and must not postpone it.
        self.look_at = is_needed.then(|| self.look_at.unwrap_or(now + LOOK_INTERVAL));
    }

    fn look(&mut self, now: Instant) {
        self.look_at = None;
        self.sockets.look(now);
        for (slot, index) in self.lines.look() {
            self.sessions.set_interface_index(slot, index);
        }
        if self.has_link_echo {
            self.want_sockets(now);
        } else {
            self.plan_look(now);
        }
    }

    fn drain(&mut self) -> Drained {
        let Self { sessions, sockets, clock, .. } = self;
        let drained = sockets.drain(*clock, |now, arrival| {
            // Dropped packets are counted there.
            matches!(sessions.receive(now, arrival), Ok(Received::LoopBack))
        });
        if drained.is_incomplete {
            sessions.note_unheard();
        }
        drained
    }

    fn transmit(&mut self) {
        let now = self.clock.now();
        let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
        while let Some(transmit) = self.sessions.poll_transmit(now, &mut bytes) {
            let slot = transmit.slot;
            let bytes = bytes.get(..transmit.length).unwrap_or_default();
            let outcome = if transmit.echo {
                self.send_echo(slot, bytes)
            } else {
                self.lines.send(slot, now, self.sessions.is_up(slot), bytes)
            };
            if outcome.is_err() {
                self.sessions.transmit_failed(slot);
            }
        }
        if let Some(answer) = self.leaving.take() {
            // The requester may be gone.
            let _ = answer.send(());
        }
    }

    fn send_echo(&self, slot: SlotId, bytes: &[u8]) -> Result<(), Errno> {
        let path = self.sessions.path(slot).ok_or(Errno::ENOENT)?;
        let (vrf, is_ipv4, port) = (path.vrf, path.remote.is_ipv4(), Port::Echo);
        let number = self.endpoint.remote_number(port);
        let place = Place { vrf, is_ipv4, port, link: None };
        if let Some(neighbour) = self.neighbours.of(path)
            && let Some(IpAddr::V4(own)) = self.lines.local(slot)
            && let Some(link) = self.sockets.get(Place { link: Some(neighbour.index), ..place })
        {
            return link_echo::send(link, neighbour, own, number, bytes);
        }
        let socket = self.sockets.get(place).ok_or(Errno::ENOTCONN)?;
        let scope = self.lines.interface_index(slot).unwrap_or(0);
        echo::send(socket, path.remote, number, scope, bytes)
    }

    fn tell(&mut self, now: Instant) {
        while let Some(event) = self.sessions.poll_event() {
            self.handover.tell(event);
        }
        let mut has_closed = false;
        while let Some(slot) = self.sessions.poll_closed() {
            self.lines.close(slot);
            has_closed = true;
        }
        if has_closed {
            self.want_sockets(now);
        }
        self.handover.retry();
        self.retry_at = self.handover.is_behind().then(|| now + RETRY_INTERVAL);
    }

    fn view(&self, now: Instant) -> BfdView {
        let sessions = self.sessions.view(now);
        let rates = sessions.iter().map(|it| {
            let interval_micros = it.receive_interval.as_micros().max(1);
            u64::try_from(1_000_000 / interval_micros).unwrap_or(0)
        });
        let heard = self.sockets.troubles(rates.sum());
        let mut trouble: Vec<String> =
            heard.chain(self.lines.troubles()).take(TROUBLES_MAX).collect();
        if trouble.len() == TROUBLES_MAX {
            trouble.push("further problems are not listed".to_owned());
        }
        BfdView {
            sessions,
            realtime: self.realtime.clone(),
            drops: self.sessions.drops().clone(),
            trouble,
            ..BfdView::default()
        }
    }
}

impl Load {
    fn note(&mut self, now: Instant, count: usize) {
        let is_soon = now.since(self.heard_at) < BUSY_GAP;
        self.is_busy = count > 1 || (count == 1 && is_soon);
        if count > 0 {
            self.heard_at = now;
        }
    }
}

/// Sleeps until the next tick. Packets do not end it, and so cost no wake-up.
#[allow(clippy::disallowed_methods, reason = "a timer at the edge")]
fn rest(now: Instant) {
    let since_tick = now.as_micros() % TICK_MICROSECONDS;
    std::thread::sleep(Duration::from_micros(TICK_MICROSECONDS - since_tick));
}

/// How long to wait for `due_at`, in the kernel's milliseconds, rounded up.
fn timeout(now: Instant, due_at: Option<Instant>) -> EpollTimeout {
    let Some(due_at) = due_at else { return EpollTimeout::NONE };
    let wait = due_at.since(now).as_micros().div_ceil(1_000);
    EpollTimeout::try_from(wait).unwrap_or(EpollTimeout::MAX)
}
