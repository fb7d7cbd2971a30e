//! `fairway run`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::host::{HostArguments, run_daemon};
use super::members::Role;
use crate::standalone::{self, Options};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway run --config examples/quickstart
  fairway run --config peers.yaml --config services/ --bgp-listen none
  fairway run --config /etc/fairway --vty-dir /run/fairway/vty
  fairway run --config /etc/fairway --bgp frr
  kill -HUP PID                              read all files again")]
pub(super) struct RunArguments {
    /// A file, or a folder of *.yaml, *.yml and *.json; may be given more than once, or as a list separated
    /// by commas
    #[arg(
        long,
        required = true,
        value_name = "PATH",
        env = "FAIRWAY_CONFIG",
        value_delimiter = ','
    )]
    config: Vec<PathBuf>,

    #[command(flatten)]
    host: HostArguments,
}

pub(super) fn run(RunArguments { config, host }: RunArguments) -> Result<ExitCode> {
    run_daemon(standalone::run(Options { host: host.options(Role::Standalone)?, config }))
}
