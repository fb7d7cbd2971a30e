//! `fairway demo`: two daemons on loopback, no root, nothing to install.
//!
//! Both are real daemons: this binary's own `run`, with files in a temporary folder. One announces, the other
//! is its router and logs what it receives; the demo prints that log, and measures from the rename of a file
//! to the log line.

mod router;
mod stage;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use super::program;
use stage::Stage;

/// Prints a line. A reader that closes the pipe early (`| head`) ends the demo, and is not an error.
macro_rules! say {
    ($($line:tt)*) => {
        writeln!(std::io::stdout(), $($line)*).context("cannot write to stdout")?
    };
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway demo              runs until Ctrl-C
  fairway demo --once       ends by itself, for tests")]
pub(super) struct DemoArguments {
    /// End when everything has been shown
    #[arg(long)]
    once: bool,
}

pub(super) fn run(arguments: &DemoArguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        tokio::select! {
            outcome = show(arguments.once) => outcome,
            _ = tokio::signal::ctrl_c() => {
                say!("\nLeaving.");
                Ok(())
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn show(once: bool) -> Result<()> {
    let mut stage = Stage::set()?;
    say!(
        "Two daemons on loopback: `announcer` (AS 65001) and `router` (AS 65002).\n\
         Files of the announcer: {}\n",
        stage.announcer_files().display()
    );
    let took = stage.session_up().await?;
    say!("session up                                   {}", milliseconds(took));
    for service in ["web", "dns"] {
        let (prefix, took) = stage.add_service(service).await?;
        say!("{service}.yaml written: {prefix:<18} announced {}", milliseconds(took));
    }
    let (prefix, took) = stage.remove_service("dns").await?;
    say!("dns.yaml removed: {prefix:<18} withdrawn {}", milliseconds(took));
    if once {
        return Ok(());
    }
    say!(
        "\nStill running. Edit or add files, or ask (Ctrl-C ends it):\n  \
         {fairway} show bgp summary --socket {socket}\n  \
         {fairway} show services --socket {socket}\n",
        fairway = program::as_typed(),
        socket = program::quoted(&stage.announcer_socket().to_string_lossy())
    );
    loop {
        say!("{}", stage.next_event().await?);
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("after {:.1} ms", duration.as_secs_f64() * 1000.0)
}
