//! FRR's daemons on this machine: reads and writes their configuration.
//!
//! Keeps a connection open to each that is up: its end is the first sign of a restart. Decides nothing:
//! [`crate::application`] decides what to send, and receives the outcome. Driven by [`super::backend`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;

use super::vty::{Connection, Reply, Status, VtyError};
use crate::application::{Broken, Orders, Running, Said};
use crate::configuration::{Configuration, leads_into_context, without_secrets};
use crate::daemon::{Daemon, Takes};
use crate::difference::{Batch, Purpose, Step};

/// How long a daemon may take for one line: changes take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// FRR.
#[derive(Debug)]
pub(super) struct Daemons {
    socket_dir: PathBuf,
    connections: BTreeMap<Daemon, Connection>,
    version: Option<(u8, u8)>,
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
}

impl Daemons {
    pub(super) fn new(socket_dir: &Path) -> Self {
        Self { socket_dir: socket_dir.to_owned(), connections: BTreeMap::new(), version: None }
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
                new.push(daemon);
            }
            let path = self.socket(daemon);
            asked.spawn(async move { (daemon, ask(connection, path).await) });
        }
        let mut running = Running::default();
        while let Some(Ok((daemon, answer))) = asked.join_next().await {
            match answer {
                Ok(Answer { connection, configuration, version }) => {
                    if daemon == Daemon::Bgpd {
                        self.version = version.or(self.version);
                        running.bgpd_age = self.age(daemon);
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
            if let Err(broken) = self.say_to(daemon, steps, &mut said).await {
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
        said: &mut Said,
    ) -> Result<(), Broken> {
        let lost = |error: VtyError| Broken::Lost(daemon, error.to_string());
        let Some(connection) = self.connections.remove(&daemon) else {
            return Err(Broken::Lost(daemon, "not connected".to_owned()));
        };
        let mut session = Session { daemon, connection, context: Vec::new() };
        let reply = session.connection.command("configure terminal").await.map_err(lost)?;
        if reply.status != Status::Success {
            return Err(Broken::Lost(daemon, words(&reply)));
        }
        let mut outcome = Ok(());
        for step in steps {
            outcome = session.step(step, said).await;
            if outcome.is_err() {
                break;
            }
        }
        if !matches!(outcome, Err(Broken::Lost(..))) {
            session.connection.command("end").await.map_err(lost)?;
            self.connections.insert(daemon, session.connection);
        }
        outcome
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
async fn ask(connection: Option<Connection>, path: PathBuf) -> Result<Answer, VtyError> {
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
    Ok(Answer { connection, configuration: Configuration::parse(&text), version })
}

/// `FRRouting 8.4.4 (node) on Linux(6.1)`.
fn version_in(text: &str) -> Option<(u8, u8)> {
    let mut words = text.split_whitespace().skip_while(|it| *it != "FRRouting").skip(1);
    let mut numbers = words.next()?.split(['.', '-', '_']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A reply of a daemon, on one line and without secrets: it may repeat the line it was sent.
fn words(reply: &Reply) -> String {
    let text = without_secrets(&reply.text.split_whitespace().collect::<Vec<_>>().join(" "));
    if text.is_empty() { format!("{:?}", reply.status) } else { text }
}

/// A daemon that is being configured.
struct Session {
    daemon: Daemon,
    connection: Connection,
    /// The context that it is in.
    context: Vec<Arc<str>>,
}

impl Session {
    async fn step(&mut self, step: &Step, said: &mut Said) -> Result<(), Broken> {
        let may_be_unknown = step.purpose == Purpose::Add && self.takes(step) == Takes::May;
        let reply = match self.enter(step).await? {
            Ok(()) => self.command(&step.line).await?,
            // The line could mean something else in the wrong context.
            Err(reply) => reply,
        };
        match reply.status {
            Status::Success | Status::Warning => {
                if leads_into_context(&self.context, &step.line) && step.purpose == Purpose::Add {
                    self.context.push(step.line.clone());
                }
                if reply.status == Status::Warning || reply.text.trim_start().starts_with('%') {
                    said.remarks.push((self.daemon, step.clone(), words(&reply)));
                }
                said.taken.push((self.daemon, step.clone()));
                Ok(())
            }
            _ if may_be_unknown => {
                said.unknown.push((self.daemon, step.clone(), words(&reply)));
                Ok(())
            }
            _ => Err(Broken::Refused(self.daemon, step.clone(), words(&reply))),
        }
    }

    fn takes(&self, step: &Step) -> Takes {
        self.daemon.takes_line(&step.context, &step.line)
    }

    /// Enters the context of the step, or returns why that is not possible.
    async fn enter(&mut self, step: &Step) -> Result<Result<(), Reply>, Broken> {
        let same = self.context.iter().zip(step.context.iter()).take_while(|(is, to)| is == to);
        let same = same.count();
        while self.context.len() > same {
            self.command("exit").await?;
            self.context.pop();
        }
        for opener in step.context.iter().skip(same) {
            let reply = self.command(opener).await?;
            if !matches!(reply.status, Status::Success | Status::Warning) {
                return Ok(Err(reply));
            }
            self.context.push(opener.clone());
        }
        Ok(Ok(()))
    }

    async fn command(&mut self, line: &str) -> Result<Reply, Broken> {
        let reply = self.connection.command(line).await;
        reply.map_err(|error| Broken::Lost(self.daemon, error.to_string()))
    }
}
