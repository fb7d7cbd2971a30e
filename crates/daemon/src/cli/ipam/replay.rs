//! `fairway ipam replay`: what a case of operations comes to, on blocks in memory.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use fairway_ipam::replay;

use crate::cli::output;

/// The most that is read of a case: that of a cluster with 100,000 Pods has less.
const CASE_BYTES_MAX: u64 = 256 << 20;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam replay --json < case.json
  echo '{\"state\": {\"pools\": [{\"cidr\": \"10.0.0.0/24\"}], \"nodes\": [{\"name\": \"a\"}]},
    \"ops\": [{\"op\": \"autoAssign\", \"host\": \"a\", \"n4\": 1, \"handle\": \"web\"}]}' | fairway ipam replay --json

The case has a state (pools, nodes, namespaces, pods, reservations, config, blocks, affinities, handles) and
operations (autoAssign, assignIP, releaseIPs, gc, cni and others). Printed are the result of each operation and the
state at the end. Time is virtual, and nothing of this machine or a cluster is read or changed.
Exit code 0: done, whatever the operations came to. 1: the case cannot be read.")]
pub(super) struct ReplayArguments {
    /// Print JSON; there is no other form
    #[arg(long)]
    json: bool,
}

pub(super) fn run(_: &ReplayArguments) -> Result<ExitCode> {
    let mut case = String::new();
    let read = std::io::stdin().lock().take(CASE_BYTES_MAX).read_to_string(&mut case);
    let read = read.context("standard input cannot be read")?;
    ensure!((read as u64) < CASE_BYTES_MAX, "the case is larger than {CASE_BYTES_MAX} bytes");
    output::print(&(replay(&case)? + "\n"))?;
    Ok(ExitCode::SUCCESS)
}
