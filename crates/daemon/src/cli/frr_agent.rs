//! `fairway frr-agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::host::{FrrSockets, run_daemon};
use crate::admin::SocketMode;
use crate::frr_agent;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway frr-agent --socket-dir /run/fairway-frr      beside FRR, in its container
  fairway run --config /etc/fairway --bgp frr --frr-socket-dir /run/fairway-frr
                                                       in the other container, which shares it")]
pub(super) struct FrrAgentArguments {
    /// Where to open sockets with the names of FRR's sockets: a folder that is shared with Fairway
    #[arg(long, value_name = "DIR", env = "FAIRWAY_SOCKET_DIR")]
    socket_dir: PathBuf,

    #[command(flatten)]
    frr: FrrSockets,

    /// The mode of the sockets: 0600 for the agent's user, 0660 for its group as well; access to them allows
    /// configuring FRR
    #[arg(long, value_name = "MODE", default_value = "0660", env = "FAIRWAY_SOCKET_MODE")]
    socket_mode: SocketMode,
}

pub(super) fn run(arguments: FrrAgentArguments) -> Result<ExitCode> {
    let FrrAgentArguments { socket_dir, frr, socket_mode } = arguments;
    let frr_socket_dir = frr.frr_socket_dir;
    run_daemon(frr_agent::run(frr_agent::Options { frr_socket_dir, socket_dir, socket_mode }))
}
