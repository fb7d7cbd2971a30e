//! `kubectl fairway drain`: as `fairway drain` on that node.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use fairway_node::drain::DrainOrder;
use fairway_show::DrainReport;
use tokio::time::{Instant, sleep};

use super::{Options, print_value};
use crate::admin::drain::DrainRequest;
use crate::cli::drain::{Drained, drain, undo};
use crate::cli::{duration, output};
use crate::kubernetes::User;

/// How often the node is asked for progress, through the API server.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long it may fail to answer meanwhile.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
#[command(after_help = "\
The same as `fairway drain` on that node: GRACEFUL_SHUTDOWN first, a wait, then withdrawal; the sessions stay up. Pods \
are not moved: that is `kubectl drain`. Ctrl-C ends only the command, not the drain.

Examples:
  kubectl fairway drain worker-1 --wait 1m
  kubectl fairway drain worker-1 --undo")]
pub(super) struct DrainArguments {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,

    /// How long routers have to move to other paths before all routes are withdrawn, 0s to 24h, in whole seconds
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    #[arg(conflicts_with = "undo")]
    wait: Duration,

    /// Bring the node back into service
    #[arg(long)]
    undo: bool,
}

pub(super) async fn run(arguments: &DrainArguments, options: &Options) -> Result<ExitCode> {
    ensure!(arguments.wait.subsec_nanos() == 0, "--wait: expected whole seconds, as in 30s or 1m");
    let user = User::connect(&options.user()).await?;
    let ask = async |request| {
        let order = match request {
            DrainRequest::Begin { wait_milliseconds } => {
                Some(DrainOrder::Begin { wait: Duration::from_millis(wait_milliseconds) })
            }
            DrainRequest::Undo => Some(DrainOrder::Undo),
            DrainRequest::Look => None,
        };
        let asked = Instant::now();
        let status = loop {
            match user.drain(&arguments.node, order).await {
                Ok(status) => break status,
                // The drain goes on while a controller or the API server is restarted; an order is given once.
                Err(error) if order.is_some() || asked.elapsed() > LOOK_PATIENCE => {
                    return Err(error.into());
                }
                Err(_) => sleep(LOOK_INTERVAL).await,
            }
        };
        let report: DrainReport = serde_json::from_value(status).context("an unexpected answer")?;
        Ok(report)
    };
    let Drained { text, report } = match arguments.undo {
        true => undo(ask).await?,
        false => drain(ask, arguments.wait, LOOK_INTERVAL).await?,
    };
    match options.output {
        None => output::print(&format!("{}: {text}", arguments.node))?,
        Some(format) => print_value(&serde_json::to_value(&report)?, format)?,
    }
    Ok(ExitCode::SUCCESS)
}
