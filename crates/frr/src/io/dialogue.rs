//! Lines of configuration, sent to one daemon.
//!
//! One by one, so that a line that FRR rejects is named. Many lines of route maps are sent as one transaction first:
//! FRR commits each such line on its own, which takes longer the more there are (2 s of bgpd's time for 2,000), and
//! commits a transaction at once. Knows no order. Called by [`super::daemons`].

use std::sync::Arc;

use super::daemons::words;
use super::vty::{Connection, Reply, Status, VtyError};
use crate::application::{Broken, Said};
use crate::configuration::{is_extra, leads_into_context};
use crate::daemon::{Daemon, Takes};
use crate::difference::{MANY_LINES, Purpose, Step, is_of_route_map};

/// The marks around a configuration, as `vtysh -f` sends them.
const BEGIN: &str = "XFRR_start_configuration";
const END: &str = "XFRR_end_configuration";
/// What a reply has where another client holds the configuration.
const LOCKED: [&str; 2] = ["could not lock", "is locked by"];
/// Anything that is not configuration: FRR commits before it, and its reply begins with what was rejected.
const COMMIT: &str = "do show version";

/// A connection on which FRR commits what it was sent when something else follows.
///
/// FRR takes what is between two marks for one transaction. bgpd starts no new neighbor between them, or for some
/// seconds after the second mark. It knows of the marks of all connections together, but each connection has its own
/// transactions. So the second mark is sent at once, on another connection: this one stays as it is, and no neighbor
/// has to wait for it. It never leaves the configuration mode: that would end its transactions in 10.3.
#[derive(Debug)]
pub(super) struct Transactions(Connection);

impl Transactions {
    /// Makes one, with the help of another connection to the same daemon. None if there is no room for it: lines can be
    /// sent one by one.
    pub(super) async fn begin(other: &mut Connection) -> Result<Option<Self>, VtyError> {
        let Ok(mut connection) = other.another().await else { return Ok(None) };
        for line in ["enable", "configure terminal", BEGIN] {
            connection.command(line).await?;
        }
        end_load(other).await?;
        Ok(Some(Self(connection)))
    }

    /// Sends lines of route maps as one transaction. Returns whether FRR accepted all of them.
    async fn send(&mut self, steps: &[Step]) -> Result<bool, VtyError> {
        let mut is_all = true;
        let mut inside: Option<&Arc<str>> = None;
        for step in steps {
            let around = step.context.first();
            // `exit` would commit what there is. A route map can be opened from inside another one.
            let opener = around.filter(|it| inside != Some(*it));
            for line in opener.into_iter().chain([&step.line]) {
                is_all &= is_clean(&self.0.command(line).await?);
            }
            if !is_all {
                break;
            }
            inside = around.or(Some(&step.line));
        }
        let committed = self.0.command(COMMIT).await?;
        Ok(is_all && is_clean(&committed))
    }
}

/// Ends the configuration that a daemon is in, of any connection.
pub(super) async fn end_load(connection: &mut Connection) -> Result<(), VtyError> {
    for line in ["configure terminal", END, "end"] {
        connection.command(line).await?;
    }
    Ok(())
}

/// A daemon that is being configured.
pub(super) struct Dialogue<'a> {
    daemon: Daemon,
    connection: &'a mut Connection,
    transactions: Option<&'a mut Transactions>,
    /// The context that it is in.
    context: Vec<Arc<str>>,
}

impl<'a> Dialogue<'a> {
    pub(super) fn new(
        daemon: Daemon,
        connection: &'a mut Connection,
        transactions: Option<&'a mut Transactions>,
    ) -> Self {
        Self { daemon, connection, transactions, context: Vec::new() }
    }

    /// Sends `steps` until one is rejected, or the daemon is lost.
    pub(super) async fn configure(
        &mut self,
        steps: &[Step],
        said: &mut Said,
    ) -> Result<(), Broken> {
        let reply = self.command("configure terminal").await?;
        if is_locked(&reply) {
            said.locked.insert(self.daemon, words(&reply));
            return Ok(());
        }
        if reply.status != Status::Success {
            return Err(Broken::Lost(self.daemon, words(&reply)));
        }
        let mut outcome = Ok(());
        for run in steps.chunk_by(|a, b| is_of_map(a) == is_of_map(b)) {
            outcome = self.run(run, said).await;
            if outcome.is_err() {
                break;
            }
        }
        if !matches!(outcome, Err(Broken::Lost(..))) {
            self.command("end").await?;
        }
        outcome
    }

    async fn run(&mut self, steps: &[Step], said: &mut Said) -> Result<(), Broken> {
        let are_many = steps.len() >= MANY_LINES;
        if are_many
            && steps.first().is_some_and(is_of_map)
            && let Some(transactions) = &mut self.transactions
        {
            let daemon = self.daemon;
            let sent = transactions.send(steps).await;
            if sent.map_err(|error| Broken::Lost(daemon, error.to_string()))? {
                said.taken.extend(steps.iter().map(|step| (daemon, step.clone())));
                return Ok(());
            }
            // FRR rejected a line, and does not always say which one: they can all be sent again.
        }
        for step in steps {
            if said.locked.contains_key(&self.daemon) {
                break;
            }
            self.step(step, said).await?;
        }
        Ok(())
    }

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
                if !is_clean(&reply) {
                    said.remarks.push((self.daemon, step.clone(), words(&reply)));
                }
                said.taken.push((self.daemon, step.clone()));
                Ok(())
            }
            _ if is_locked(&reply) => {
                said.locked.insert(self.daemon, words(&reply));
                Ok(())
            }
            _ if may_be_unknown => {
                said.unknown.push((self.daemon, step.clone(), words(&reply)));
                Ok(())
            }
            _ if is_extra(step.origin.as_ref()) => {
                said.rejected.push((self.daemon, step.clone(), words(&reply)));
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
        self.leave_to(same.count()).await?;
        for opener in step.context.iter().skip(self.context.len()) {
            let reply = self.command(opener).await?;
            if !matches!(reply.status, Status::Success | Status::Warning) {
                return Ok(Err(reply));
            }
            self.context.push(opener.clone());
        }
        Ok(Ok(()))
    }

    /// Leaves contexts until it is in this many.
    async fn leave_to(&mut self, depth: usize) -> Result<(), Broken> {
        while self.context.len() > depth {
            self.command("exit").await?;
            self.context.pop();
        }
        Ok(())
    }

    async fn command(&mut self, line: &str) -> Result<Reply, Broken> {
        let reply = self.connection.command(line).await;
        reply.map_err(|error| Broken::Lost(self.daemon, error.to_string()))
    }
}

/// Whether a line was accepted without a warning.
fn is_clean(reply: &Reply) -> bool {
    reply.status == Status::Success && !reply.text.trim_start().starts_with('%')
}

/// Whether a line was not taken because another client holds the configuration: mgmtd does for each commit of a client, and
/// while it starts other daemons.
fn is_locked(reply: &Reply) -> bool {
    let is_taken = matches!(reply.status, Status::Success | Status::Warning);
    !is_taken && LOCKED.iter().any(|it| reply.text.contains(it))
}

fn is_of_map(step: &Step) -> bool {
    is_of_route_map(&step.context, &step.line)
}
