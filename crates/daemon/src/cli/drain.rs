//! `fairway drain`: requests a drain, and waits until it is complete.

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use fairway_model::Node;
use fairway_node::drain::{DrainStatus, DrainStep};
use fairway_show::DrainReport;
use tokio::time::sleep;

use super::ask::SocketArguments;
use super::{duration, output};
use crate::admin::client;
use crate::admin::drain::DrainRequest;

/// How often the daemon is polled for progress.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
First every route gets the community GRACEFUL_SHUTDOWN (RFC 8326), and LOCAL_PREF 0 inside the AS, \
so that routers prefer other nodes while this one still serves; after the wait all routes are \
withdrawn. The sessions and the daemon stay up. A drained node stays drained when the daemon starts \
again.

The command ends when the withdrawal has been sent to every neighbor with a session. Ctrl-C ends \
only the command: the drain goes on, and `fairway show bgp summary` shows its progress.

Examples:
  fairway drain                     out of service in 30 seconds
  fairway drain --wait 5m           give slow routers more time
  fairway drain --wait 0s           withdraw at once, also in the middle of another wait
  fairway drain --undo              announce everything again, at once
  fairway drain && systemctl stop fairway")]
pub(super) struct DrainArguments {
    /// How long routers have to move to other paths before all routes are withdrawn, 0s to 24h; replaces a
    /// wait in progress
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    #[arg(conflicts_with = "undo")]
    wait: Duration,

    /// Bring the node back into service
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    socket: SocketArguments,
}

pub(super) fn run(arguments: &DrainArguments) -> Result<ExitCode> {
    let socket = arguments.socket.path()?;
    let ask = async |request| Ok(client::ask_drain(&socket, request)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let outcome = runtime.context("cannot start")?.block_on(async {
        if arguments.undo {
            undo(ask).await
        } else {
            drain(ask, arguments.wait, LOOK_INTERVAL).await
        }
    })?;
    output::print(&outcome.text)?;
    Ok(ExitCode::SUCCESS)
}

/// What came of it.
pub(super) struct Drained {
    /// For people.
    pub(super) text: String,
    /// The last one.
    pub(super) report: DrainReport,
}

/// Brings a node back into service. `ask` asks its daemon.
pub(super) async fn undo(
    ask: impl AsyncFn(DrainRequest) -> Result<DrainReport>,
) -> Result<Drained> {
    let report = ask(DrainRequest::Undo).await?;
    warn_if_forgotten(&report);
    let text = match report.step {
        _ if report.is_marked => format!(
            "{}: its Node is marked {}; it returns to service when that mark is removed\n",
            report.status,
            Node::DRAIN_MARK
        ),
        DrainStep::None => "this node is in service already\n".to_owned(),
        _ => "this node is in service again: all its routes are announced\n".to_owned(),
    };
    Ok(Drained { text, report })
}

/// Takes a node out of service, and waits until that is complete. `ask` asks its daemon, for progress in this interval.
pub(super) async fn drain(
    ask: impl AsyncFn(DrainRequest) -> Result<DrainReport>,
    wait: Duration,
    look_interval: Duration,
) -> Result<Drained> {
    let wait_milliseconds = u64::try_from(wait.as_millis())?;
    let mut report = ask(DrainRequest::Begin { wait_milliseconds }).await?;
    warn_if_forgotten(&report);
    let was_drained = report.step == DrainStep::None;
    let mut progress = Progress::default();
    loop {
        match report.status {
            DrainStatus::InService => bail!("the drain was undone by another command"),
            DrainStatus::Drained { .. } if report.untold.is_empty() => break,
            _ => progress.show(&report),
        }
        sleep(look_interval).await;
        report = ask(DrainRequest::Look).await?;
    }
    progress.end();
    let told = match report.told {
        0 => "no neighbor has a session".to_owned(),
        1 => "the withdrawal of all routes was sent to 1 neighbor; its session stays up".to_owned(),
        told => format!(
            "the withdrawal of all routes was sent to {told} neighbors; their sessions stay up"
        ),
    };
    let already = if was_drained { "nothing to do: " } else { "" };
    let away = match report.away.as_slice() {
        [] => String::new(),
        away => format!("; not sent, because there is no session: {}", away.join(", ")),
    };
    let text = format!("{already}{}; {told}{away}\n", report.status);
    Ok(Drained { text, report })
}

fn warn_if_forgotten(report: &DrainReport) {
    if !report.is_kept {
        // A failure to print the warning does not stop the command.
        let _ = writeln!(
            stderr(),
            "warning: the daemon cannot save this to its state directory (see its log): the change \
             is in effect, but may be lost when the daemon restarts"
        );
    }
}

/// Progress on stderr: one line that is rewritten on a terminal, and otherwise one line per step.
#[derive(Default)]
struct Progress {
    /// The last line printed.
    said: Option<String>,
}

impl Progress {
    fn show(&mut self, report: &DrainReport) {
        let is_watched = stderr().is_terminal();
        let (said, line) = match report.status {
            DrainStatus::Draining { until_epoch_seconds, .. } => {
                let left = until_epoch_seconds.saturating_sub(report.now_epoch_seconds);
                let until = format!("draining until {until_epoch_seconds}");
                let line = format!(
                    "neighbors are asked to prefer other paths; {left} s until all routes are \
                     withdrawn (Ctrl-C does not stop the drain)"
                );
                (if is_watched { line.clone() } else { until }, line)
            }
            _ => {
                let line = format!("withdrawal not yet sent to: {}", report.untold.join(", "));
                (line.clone(), line)
            }
        };
        if self.said.as_ref() != Some(&said) {
            // A failure to print progress does not stop the command.
            let _ = match is_watched {
                true => write!(stderr(), "\r\x1b[K{line}"),
                false => writeln!(stderr(), "{line}"),
            };
            self.said = Some(said);
        }
    }

    fn end(&self) {
        if self.said.is_some() && stderr().is_terminal() {
            let _ = writeln!(stderr());
        }
    }
}
