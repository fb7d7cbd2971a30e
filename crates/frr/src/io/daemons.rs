//! FRR's daemons on this machine: reads and writes their configuration.
//!
//! Keeps a connection open to each that is up: its end is the first sign of a restart. Decides nothing:
//! [`crate::application`] decides what to send, and receives the outcome. Driven by [`super::backend`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::dialogue::{self, Dialogue, Transactions};
use super::vty::{Connection, Reply, Status, VtyError};
use crate::application::{Broken, Orders, Running, Said};
use crate::configuration::{Configuration, without_secrets};
use crate::daemon::Daemon;
use crate::difference::{Batch, Step};

/// How long a daemon may take for one line: changes take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Attempts on a locked daemon after which it is connected to again: 10.3's mgmtd may keep the lock of a commit that it
/// dropped for as long as the connection lasts.
const LOCKED_MAX: u8 = 4;

/// The timers of a daemon, as 10.x and as 8.4 call them.
const TIMERS: [&str; 2] = ["show event timers", "show thread timers"];
/// bgpd's timer while it is in a configuration, of 10.x and of 8.4. It starts no new neighbor until this timer ends.
const LOAD_TIMERS: [&str; 2] = ["bgp_config_end_timeout", "bgp_config_finish"];
/// More than what bgpd sets it to at the end of one.
const LOAD_END_SECONDS: u64 = 9;
/// How long bgpd collects changes of route maps, in seconds.
const ROUTE_MAP_DELAY: &str = "bgp route-map delay-timer ";

/// How long bgpd puts off the start of neighbors after a mark: for a second, or for as long as it collects changes of
/// route maps, 5 s unless somebody set more.
const MARK_MAX: Duration = Duration::from_secs(6);
/// Interval between two looks meanwhile.
const MARK_INTERVAL: Duration = Duration::from_millis(100);

/// FRR.
#[derive(Debug)]
pub(super) struct Daemons {
    socket_dir: PathBuf,
    connections: BTreeMap<Daemon, Connection>,
    version: Option<(u8, u8)>,
    /// When marks were sent to bgpd, after which it puts off the start of neighbors.
    marked_at: Option<Instant>,
    /// For many lines to bgpd at once.
    transactions: Option<Transactions>,
    /// How often in a row each daemon was locked.
    locked: BTreeMap<Daemon, u8>,
    /// bgpd is in a configuration that has not ended.
    is_loading: bool,
    /// It may be ours: the connection broke between its marks.
    is_open: bool,
}

/// The result of reading all daemons.
pub(super) struct Look {
    pub(super) running: Running,
    /// Daemons with a new connection.
    pub(super) new: Vec<Daemon>,
}

/// The answer of one daemon.
struct Answer {
    connection: Connection,
    configuration: Configuration,
    version: Option<(u8, u8)>,
    is_loading: bool,
}

impl Daemons {
    pub(super) fn new(socket_dir: &Path) -> Self {
        Self {
            socket_dir: socket_dir.to_owned(),
            connections: BTreeMap::new(),
            version: None,
            marked_at: None,
            transactions: None,
            locked: BTreeMap::new(),
            is_loading: false,
            is_open: false,
        }
    }

    /// FRR's version, as bgpd last reported it.
    pub(super) fn version(&self) -> Option<(u8, u8)> {
        self.version
    }

    /// Reads the running configuration of all daemons. Reconnects to those that were down.
    pub(super) async fn look(&mut self) -> Look {
        let mut asked = JoinSet::new();
        let mut new = Vec::new();
        for daemon in Daemon::ALL {
            let connection = self.connections.remove(&daemon);
            if connection.is_none() {
                if daemon == Daemon::Bgpd {
                    self.transactions = None;
                }
                new.push(daemon);
            }
            let path = self.socket(daemon);
            asked.spawn(async move { (daemon, ask(daemon, connection, path).await) });
        }
        let mut running = Running::default();
        while let Some(Ok((daemon, answer))) = asked.join_next().await {
            match answer {
                Ok(Answer { connection, configuration, version, is_loading }) => {
                    if daemon == Daemon::Bgpd {
                        self.version = version.or(self.version);
                        running.bgpd_age = self.age(daemon);
                        running.is_loading = is_loading && !self.is_open;
                        self.is_loading = is_loading;
                    }
                    self.connections.insert(daemon, connection);
                    running.daemons.insert(daemon, configuration);
                }
                Err(error) => {
                    running.away.insert(daemon, error.to_string());
                }
            }
        }
        new.retain(|it| running.daemons.contains_key(it));
        if self.connections.contains_key(&Daemon::Bgpd)
            && std::mem::take(&mut self.is_open)
            && self.is_loading
        {
            self.end_load().await;
        }
        Look { running, new }
    }

    /// How long ago a daemon started: it made its socket then.
    fn age(&self, daemon: Daemon) -> Option<Duration> {
        let made = std::fs::metadata(self.socket(daemon)).and_then(|it| it.modified()).ok()?;
        // A clock that was set back knows nothing.
        made.elapsed().ok()
    }

    fn socket(&self, daemon: Daemon) -> PathBuf {
        self.socket_dir.join(format!("{}.vty", daemon.name()))
    }

    /// Sends all lines, until one is rejected or a daemon disconnects.
    pub(super) async fn say(&mut self, orders: &Orders) -> Said {
        let mut said = Said::default();
        let additions = orders.batches.iter().map(|(daemon, batch)| (*daemon, &batch.additions));
        let removals =
            orders.batches.iter().rev().map(|(daemon, batch)| (*daemon, &batch.removals));
        for (daemon, steps) in additions.chain(removals).filter(|(_, steps)| !steps.is_empty()) {
            if let Err(broken) = self.say_to(daemon, steps, orders.are_many, &mut said).await {
                said.broken = Some(broken);
                return said;
            }
        }
        for (daemon, Batch { refreshes, .. }) in &orders.batches {
            if let Err(broken) = self.refresh(*daemon, refreshes).await {
                said.broken = Some(broken);
            }
        }
        said
    }

    async fn say_to(
        &mut self,
        daemon: Daemon,
        steps: &[Step],
        are_many: bool,
        said: &mut Said,
    ) -> Result<(), Broken> {
        let Some(mut connection) = self.connections.remove(&daemon) else {
            return Err(Broken::Lost(daemon, "not connected".to_owned()));
        };
        let outcome = self.configure(daemon, &mut connection, steps, are_many, said).await;
        let times = self.locked.remove(&daemon).unwrap_or_default().saturating_add(1);
        if matches!(outcome, Err(Broken::Lost(..))) {
            self.transactions = None;
        } else if !said.locked.contains_key(&daemon) {
            self.connections.insert(daemon, connection);
        } else if times < LOCKED_MAX {
            self.locked.insert(daemon, times);
            self.connections.insert(daemon, connection);
        }
        outcome
    }

    async fn configure(
        &mut self,
        daemon: Daemon,
        connection: &mut Connection,
        steps: &[Step],
        are_many: bool,
        said: &mut Said,
    ) -> Result<(), Broken> {
        let lost = |error: VtyError| Broken::Lost(daemon, error.to_string());
        let mut transactions = None;
        if daemon == Daemon::Bgpd {
            // To begin them ends the configuration of somebody else.
            if self.transactions.is_none() && are_many && !self.is_loading {
                self.is_open = true;
                let begun = Transactions::begin(connection).await;
                self.transactions = begun.map_err(lost)?;
                self.is_open = false;
                self.marked_at = Some(Instant::now());
            }
            if steps.iter().any(is_bfd_of_neighbor) {
                self.let_the_mark_pass(connection).await.map_err(lost)?;
            }
            transactions = self.transactions.as_mut();
        }
        Dialogue::new(daemon, connection, transactions).configure(steps, said).await
    }

    /// Waits until bgpd starts neighbors at once again. 10.3 may leave one down for good whose start it put off and that
    /// has BFD.
    async fn let_the_mark_pass(&mut self, connection: &mut Connection) -> Result<(), VtyError> {
        let Some(marked_at) = self.marked_at.take() else { return Ok(()) };
        while marked_at.elapsed() < MARK_MAX && timers(connection).await?.is_some_and(has_mark) {
            sleep(MARK_INTERVAL).await;
        }
        Ok(())
    }

    /// Ends the configuration that bgpd is in.
    pub(super) async fn end_load(&mut self) {
        let Some(connection) = self.connections.get_mut(&Daemon::Bgpd) else { return };
        match dialogue::end_load(connection).await {
            Ok(()) => self.is_loading = false,
            // The next look connects again.
            Err(_) => drop(self.connections.remove(&Daemon::Bgpd)),
        }
    }

    async fn refresh(&mut self, daemon: Daemon, commands: &[String]) -> Result<(), Broken> {
        for command in commands {
            let Some(connection) = self.connections.get_mut(&daemon) else { return Ok(()) };
            // It has no session then, and receives all routes when it has one.
            if let Err(error) = connection.command(command).await {
                self.connections.remove(&daemon);
                return Err(Broken::Lost(daemon, error.to_string()));
            }
        }
        Ok(())
    }

    /// Resolves when a daemon closes a connection while no command is pending. Cancel-safe.
    pub(super) async fn left(&mut self) -> Daemon {
        let daemon = std::future::poll_fn(|context| {
            let mut connections = self.connections.iter();
            let left = connections.find(|(_, it)| it.poll_ended(context).is_ready());
            left.map_or(Poll::Pending, |(daemon, _)| Poll::Ready(*daemon))
        })
        .await;
        self.connections.remove(&daemon);
        daemon
    }
}

/// Reads the configuration of a daemon over its connection, or a new one.
async fn ask(
    daemon: Daemon,
    connection: Option<Connection>,
    path: PathBuf,
) -> Result<Answer, VtyError> {
    let (mut connection, mut version) = (connection, None);
    let mut connection = match connection.take() {
        Some(connection) => connection,
        None => {
            let mut new = Connection::connect_with_timeout(path, ANSWER_TIMEOUT).await?;
            new.command("enable").await?;
            version = version_in(&new.command("show version").await?.text);
            new
        }
    };
    let text = connection.command("show running-config").await?.text;
    let mut is_loading = false;
    if daemon == Daemon::Bgpd
        && let Some(timers) = timers(&mut connection).await?
    {
        is_loading = is_loading_in(&timers, &text);
    }
    Ok(Answer { connection, configuration: Configuration::parse(&text), version, is_loading })
}

/// What a daemon says of its timers, if it does.
async fn timers(connection: &mut Connection) -> Result<Option<String>, VtyError> {
    for question in TIMERS {
        let reply = connection.command(question).await?;
        if reply.status == Status::Success {
            return Ok(Some(reply.text));
        }
    }
    Ok(None)
}

/// Whether bgpd puts off the start of neighbors.
fn has_mark(timers: String) -> bool {
    LOAD_TIMERS.iter().any(|it| timers.contains(it))
}

fn is_bfd_of_neighbor(step: &Step) -> bool {
    step.line.starts_with("neighbor ") && step.line.contains(" bfd")
}

/// Whether bgpd is in a configuration, by its timers: `bgp_config_finish  00:09:53.997`. After the end of one, the timer of
/// 8.4 runs for as long as the one of the route maps, or for a second.
fn is_loading_in(timers: &str, configuration: &str) -> bool {
    let delay = configuration.lines().find_map(|it| it.strip_prefix(ROUTE_MAP_DELAY));
    let delay = delay.and_then(|it| it.trim().parse::<u64>().ok()).unwrap_or_default();
    let mut lines = timers.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let left = lines.find_map(|it| match it.as_slice() {
        [.., timer, left] if LOAD_TIMERS.contains(timer) => seconds(left),
        _ => None,
    });
    left.is_some_and(|it| it > delay.max(LOAD_END_SECONDS))
}

/// Hours, minutes and seconds, as in `00:09:53.997`.
fn seconds(clock: &str) -> Option<u64> {
    let whole = clock.split('.').next()?;
    whole.split(':').try_fold(0_u64, |sum, it| sum.checked_mul(60)?.checked_add(it.parse().ok()?))
}

/// `FRRouting 8.4.4 (node) on Linux(6.1)`.
fn version_in(text: &str) -> Option<(u8, u8)> {
    let mut words = text.split_whitespace().skip_while(|it| *it != "FRRouting").skip(1);
    let mut numbers = words.next()?.split(['.', '-', '_']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A reply of a daemon, on one line and without secrets: it may repeat the line it was sent.
pub(super) fn words(reply: &Reply) -> String {
    let text = without_secrets(&reply.text.split_whitespace().collect::<Vec<_>>().join(" "));
    if text.is_empty() { format!("{:?}", reply.status) } else { text }
}
