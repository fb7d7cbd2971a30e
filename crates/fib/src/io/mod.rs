//! The thread that carries out the orders of [`Fib`], and follows what it needs of the machine.
//!
//! A thread and not a task: the kernel takes a millisecond for a few hundred routes, in which no session may wait.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_ground::{Allowance, Allowances, Bound, Instant, nonzero};
use fairway_netlink::{Requests, Route, RouteScope, Scope, Watch, read};
use fairway_seam::{ForwardingChange, TrackedNextHop};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant as Clock, sleep, sleep_until};
use tracing::{error, info, warn};

use super::fib::{Fib, Note};
use super::order::{Order, Outcome, Refused};
use super::surroundings::{MARK, Surroundings};

/// Messages that may wait, of a few thousand routes each.
const INPUTS_MAX: usize = 16;
/// Orders of one batch: a millisecond of the kernel's time.
const ORDERS_MAX: usize = 256;
/// How often the kernel's routes of ours are read again: as often as BIRD does.
const AUDIT_INTERVAL: Duration = Duration::from_secs(60);
/// Until a kernel that could not be read is read again.
const REOPEN_WAIT: Duration = Duration::from_secs(2);
/// Between two reports about next hops, each of which makes the RIB look at all its routes: ten times a second, however fast a
/// neighbor announces next hops that cannot be reached. The first one does not wait.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// How long the last orders of a process may take.
const LEAVE_WAIT: Duration = Duration::from_secs(10);

/// What the thread is told.
#[derive(Debug)]
pub enum Input {
    /// What this machine forwards by has changed.
    Want(Vec<ForwardingChange>),
    /// These next hops need not be followed any more.
    Untrack(Vec<TrackedNextHop>),
    /// All of it is known.
    Complete,
    /// The process ends. With `removes` all routes of ours go first; answered when that is done.
    Leave {
        /// Whether they go.
        removes: bool,
        /// Answered at the end.
        done: oneshot::Sender<()>,
    },
}

/// The thread. It ends when this is dropped, and leaves the routes where they are.
#[derive(Debug)]
pub struct Installer {
    inputs: mpsc::Sender<Input>,
    next_hops: Arc<NextHops>,
}

/// What the thread tells of next hops, each once, until it is taken.
#[derive(Debug, Default)]
struct NextHops {
    report: Mutex<Report>,
    is_any: Notify,
}

#[derive(Debug, Default)]
struct Report {
    untold: BTreeMap<TrackedNextHop, bool>,
    not_before: Option<Clock>,
}

impl NextHops {
    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, next_hops: BTreeMap<TrackedNextHop, bool>) {
        if !next_hops.is_empty() {
            self.report().untold.extend(next_hops);
            self.is_any.notify_one();
        }
    }

    async fn next_report(&self) -> Vec<(TrackedNextHop, bool)> {
        let not_before = self.report().not_before;
        if let Some(not_before) = not_before {
            sleep_until(not_before).await;
        }
        self.is_any.notified().await;
        let mut report = self.report();
        report.not_before = Some(Clock::now() + REPORT_INTERVAL);
        std::mem::take(&mut report.untold).into_iter().collect()
    }
}

impl Installer {
    /// Starts it, in the network namespace of this thread.
    ///
    /// # Errors
    /// There is no thread, or no runtime for it.
    pub fn start() -> io::Result<Self> {
        let (inputs, received) = mpsc::channel(INPUTS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let next_hops = Arc::new(NextHops::default());
        let told = Arc::clone(&next_hops);
        let work = move || runtime.block_on(run(received, &told));
        std::thread::Builder::new().name("forwarding".to_owned()).spawn(work)?;
        Ok(Self { inputs, next_hops })
    }

    /// Waits until the reachability of next hops changes: those of routes that are installed, each with whether it can be
    /// reached. Cancel-safe.
    pub async fn next_hops(&self) -> Vec<(TrackedNextHop, bool)> {
        self.next_hops.next_report().await
    }

    /// Where it is told something. Messages wait while it is busy.
    pub fn inputs(&self) -> &mpsc::Sender<Input> {
        &self.inputs
    }
}

/// The kernel's side of it.
struct Kernel {
    watch: Watch,
    requests: Requests,
}

impl Kernel {
    fn open() -> io::Result<Self> {
        let scope = Scope { routes: Some(RouteScope::Unmarked(MARK)), ..Scope::default() };
        Ok(Self { watch: Watch::open(scope)?, requests: Requests::open()? })
    }
}

/// The routes of ours that the kernel has.
fn ours() -> io::Result<Vec<Route>> {
    let scope = Scope { routes: Some(RouteScope::Marked(MARK)), ..Scope::default() };
    Ok(read(scope)?.routes().cloned().collect())
}

/// The loop, with a clock that starts with it.
struct Driver {
    started: Clock,
    fib: Fib,
    kernel: Kernel,
    audit_at: Clock,
    link_losses: u64,
    lines: Allowances<Line>,
}

/// Between two messages nothing of ours is in the kernel, and no socket is open.
async fn run(mut inputs: mpsc::Receiver<Input>, next_hops: &NextHops) {
    let mut is_complete = false;
    while let Some(input) = inputs.recv().await {
        let is_nothing = matches!(input, Input::Complete) && ours().is_ok_and(|it| it.is_empty());
        if is_nothing {
            is_complete = true;
            continue;
        }
        let Some(mut driver) = Driver::open(&mut inputs).await else { return };
        if is_complete {
            driver.fib.complete();
        }
        if driver.take(input) == Next::End || driver.run(&mut inputs, next_hops).await == Next::End
        {
            return;
        }
        is_complete = true;
    }
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// More work, or more messages.
    Continue,
    /// The thread ends.
    End,
}

impl Driver {
    /// Reads what the kernel has, and tries again as long as that fails: `None` if nobody waits for it any more.
    async fn open(inputs: &mut mpsc::Receiver<Input>) -> Option<Self> {
        let mut has_failed = false;
        loop {
            match Kernel::open().and_then(|kernel| Ok((kernel, ours()?))) {
                Ok((kernel, ours)) => {
                    if !ours.is_empty() {
                        info!(routes = ours.len(), "found routes of an earlier run in the kernel");
                    }
                    let machine = kernel.watch.snapshot();
                    let (started, link_losses) = (Clock::now(), machine.link_losses());
                    let fib = Fib::new(Surroundings::of(machine), ours);
                    let audit_at = started + AUDIT_INTERVAL;
                    let lines = Allowances::new(Line::ALLOWANCE, Bound::LogLine);
                    return Some(Self { started, fib, kernel, audit_at, link_losses, lines });
                }
                Err(error) if !has_failed => {
                    has_failed = true;
                    warn!(%error, "cannot read the routes of the kernel: none is installed; trying again every two seconds");
                }
                Err(_) => {}
            }
            if inputs.is_closed() {
                return None;
            }
            sleep(REOPEN_WAIT).await;
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    fn deadline(&self) -> Clock {
        let retry = self.fib.next_deadline().map(|at| self.started + at.since(Instant::ZERO));
        // With nothing of ours in the kernel there is nothing to look at.
        let audit = (!self.fib.is_empty()).then_some(self.audit_at);
        let busy = self.fib.has_orders().then(Clock::now);
        let far = Clock::now() + AUDIT_INTERVAL;
        [retry, audit, busy].into_iter().flatten().fold(far, Clock::min)
    }

    /// Until nothing of ours is wanted, or in the kernel.
    async fn run(&mut self, inputs: &mut mpsc::Receiver<Input>, next_hops: &NextHops) -> Next {
        loop {
            // Between two batches there is time for what came meanwhile.
            self.write();
            self.report();
            next_hops.tell(self.fib.take_next_hops());
            if self.fib.is_over() && inputs.is_empty() {
                return Next::Continue;
            }
            let deadline = self.deadline();
            tokio::select! {
                input = inputs.recv() => {
                    let Some(input) = input else { return Next::End };
                    if self.take(input) == Next::End {
                        return Next::End;
                    }
                }
                _ = self.kernel.watch.changed() => self.look_around(),
                () = sleep_until(deadline) => self.tick(),
            }
        }
    }

    fn look_around(&mut self) {
        let machine = self.kernel.watch.snapshot();
        if self.link_losses != machine.link_losses() {
            // The kernel has removed what led over the interface, and does not say what that was.
            self.link_losses = machine.link_losses();
            self.audit_at = Clock::now();
        }
        self.fib.set_surroundings(Surroundings::of(machine));
    }

    fn take(&mut self, input: Input) -> Next {
        match input {
            Input::Want(changes) => self.fib.want(changes),
            Input::Untrack(next_hops) => self.fib.untrack(next_hops),
            Input::Complete => self.fib.complete(),
            Input::Leave { removes, done } => {
                self.leave(removes);
                // The process does not wait any more if nobody is there.
                let _ = done.send(());
                return Next::End;
            }
        }
        Next::Continue
    }

    fn tick(&mut self) {
        self.fib.tick(self.now());
        if self.audit_at > Clock::now() || self.fib.has_orders() {
            return;
        }
        self.audit_at = Clock::now() + AUDIT_INTERVAL;
        // A list that could not be read says nothing.
        if let Ok(ours) = ours() {
            self.fib.audit(ours);
        }
    }

    /// Carries out one batch.
    fn write(&mut self) {
        let orders = self.fib.poll_orders(ORDERS_MAX);
        if orders.is_empty() {
            return;
        }
        let outcomes = self.carry_out(&orders);
        self.fib.answered(self.now(), outcomes);
    }

    fn carry_out(&mut self, orders: &[Order]) -> Vec<Outcome> {
        let in_kernel: Vec<_> = orders.iter().map(Order::in_kernel).collect();
        match self.kernel.requests.change_routes(&in_kernel) {
            Ok(outcomes) => outcomes.into_iter().map(outcome).collect(),
            Err(error) => {
                warn!(%error, "the kernel takes no changes of routes");
                Vec::new()
            }
        }
    }

    fn leave(&mut self, removes: bool) {
        if !removes {
            return;
        }
        self.fib.give_up();
        let end = Clock::now() + LEAVE_WAIT;
        while self.fib.has_orders() && Clock::now() < end {
            self.write();
        }
        if self.fib.has_orders() {
            let routes = self.fib.installed();
            warn!(routes, "routes stay in the kernel: there was no time to remove all of them");
        }
        self.report();
    }

    fn report(&mut self) {
        while let Some(note) = self.fib.poll_note() {
            // Neighbours decide how many next hops there are that lead nowhere.
            if let Some(left_out) = self.lines.take(self.now(), Line::of(&note)) {
                log(&note, nonzero(left_out));
            }
        }
    }
}

/// The kinds of lines, each with an allowance of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Foreign,
    Unreachable,
    Reachable,
    Refused,
    NotPermitted,
}

impl Line {
    /// Some about each kind, and then one a minute.
    const ALLOWANCE: Allowance = Allowance { burst: 10, interval: Duration::from_secs(60) };

    fn of(note: &Note) -> Self {
        match note {
            Note::Foreign(..) => Self::Foreign,
            Note::Unreachable(_) => Self::Unreachable,
            Note::Reachable(_) => Self::Reachable,
            Note::Refused(..) => Self::Refused,
            Note::NotPermitted => Self::NotPermitted,
        }
    }
}

/// `left_out` is how many lines of its kind were not written before it.
fn log(note: &Note, left_out: Option<u64>) {
    match note {
        Note::Foreign(place, route) => warn!(
            prefix = %place, protocol = route.protocol, metric = route.metric, left_out,
            "not installed: the kernel has a route of another program to the prefix, which stays"
        ),
        Note::Unreachable(TrackedNextHop { vrf, address, .. }) => {
            let vrf = vrf.map(|it| it.to_string());
            warn!(
                vrf,
                next_hop = %address,
                left_out,
                "next hop unreachable: its routes are not used; no interface that is up leads to it, or only the default route \
                 does"
            );
        }
        Note::Reachable(TrackedNextHop { vrf, address, .. }) => {
            let vrf = vrf.map(|it| it.to_string());
            info!(vrf, next_hop = %address, left_out, "next hop reachable again: its routes may be used");
        }
        Note::Refused(place, refused) => {
            let error = words(*refused);
            warn!(prefix = %place, error, left_out, "the kernel refuses the route; trying again");
        }
        Note::NotPermitted => error!(
            "no routes are installed: this process may not change the kernel's routes; it needs the \
             capability NET_ADMIN"
        ),
    }
}

fn words(refused: Refused) -> String {
    match refused {
        Refused::Exists => "there is another route with its destination and metric".to_owned(),
        Refused::NotThere => "its interface is gone".to_owned(),
        Refused::NotPermitted => "this process may not change routes".to_owned(),
        Refused::Other(0) => "it was not answered".to_owned(),
        Refused::Other(code) => io::Error::from_raw_os_error(code).to_string(),
    }
}

fn outcome(outcome: io::Result<()>) -> Outcome {
    outcome.map_err(|error| match error.raw_os_error() {
        Some(EEXIST) => Refused::Exists,
        // No such route, or no such interface any more.
        Some(ESRCH | ENODEV) => Refused::NotThere,
        Some(EPERM | EACCES) => Refused::NotPermitted,
        code => Refused::Other(code.unwrap_or(0)),
    })
}

/// The kernel's numbers.
const EPERM: i32 = 1;
const ESRCH: i32 = 3;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENODEV: i32 = 19;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(numbers: &[u8]) -> BTreeMap<TrackedNextHop, bool> {
        let address = |number: &u8| std::net::Ipv4Addr::new(192, 0, 2, *number).into();
        let tracked =
            |number| TrackedNextHop { vrf: None, address: address(number), on_link_of: None };
        numbers.iter().map(|number| (tracked(number), false)).collect()
    }

    #[test]
    fn a_flood_of_next_hops_is_reported_ten_times_a_second() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let next_hops = NextHops::default();
            next_hops.tell(told(&[1]));
            assert_eq!(next_hops.next_report().await, Vec::from_iter(told(&[1])));
            let first = Clock::now();
            next_hops.tell(told(&[2]));
            let at_once = tokio::time::timeout(Duration::ZERO, next_hops.next_report()).await;
            assert!(at_once.is_err(), "{at_once:?} comes too early");
            next_hops.tell(told(&[3]));
            assert_eq!(next_hops.next_report().await, Vec::from_iter(told(&[2, 3])));
            assert!(first.elapsed() >= REPORT_INTERVAL - Duration::from_millis(10));
        });
    }
}
