//! `fairway ipam`: addresses for Pods.

mod replay;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam replay --json < case.json     what a case of operations comes to")]
pub(super) struct IpamArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a case of operations on blocks in memory
    Replay(replay::ReplayArguments),
}

pub(super) fn run(arguments: &IpamArguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Replay(arguments) => replay::run(arguments),
    }
}
