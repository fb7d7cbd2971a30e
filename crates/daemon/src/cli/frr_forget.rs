//! `fairway frr-forget`: takes Fairway's configuration out of FRR and its files, without a daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_frr::io::forget::{ForgetError, Forgotten, forget, forget_files};
use fairway_frr::owner::Owner;

use super::host::{FrrSockets, node_name, run_daemon};
use super::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway frr-forget                       after the daemon of this node has ended
  fairway frr-forget --node node-a         of a node that had another name
  fairway frr-forget --owner eda95917      of the owner that `fairway show config` names
  fairway frr-forget --frr-socket-dir /var/run/frr/tenant

Removes everything that this owner configured in FRR's running configuration, and puts back the lines that it
replaced; everything else stays. Sessions of its neighbors end, and its routes are withdrawn. The same in FRR's
files, if its lines were saved there with `write memory`: FILE.before-frr-forget is the file as it was.
Exit code 0: nothing of this owner is left. 1: FRR is down, or refused a line; stderr says which. The files are
changed all the same.")]
pub(super) struct FrrForgetArguments {
    #[command(flatten)]
    frr: FrrSockets,

    /// The node whose configuration it is [default: the host name]
    #[arg(long, value_name = "NAME", env = "FAIRWAY_NODE", conflicts_with = "owner")]
    node: Option<String>,

    /// The owner, as in the names of FRR's objects (`fairway-OWNER-...`)
    #[arg(long, value_name = "ID")]
    owner: Option<Owner>,

    /// Where FRR has its files (frr.conf, bgpd.conf and others)
    #[arg(long, value_name = "DIR", default_value = "/etc/frr", env = "FAIRWAY_FRR_CONFIG_DIR")]
    frr_config_dir: PathBuf,

    /// Not used: the record of what was replaced is in FRR
    #[arg(long, value_name = "PATH", hide = true)]
    state_dir: Option<PathBuf>,
}

pub(super) fn run(arguments: FrrForgetArguments) -> Result<ExitCode> {
    let FrrForgetArguments { frr, node, owner, frr_config_dir, state_dir: _ } = arguments;
    let frr_socket_dir = frr.frr_socket_dir;
    let owner = match owner {
        Some(owner) => owner,
        None => Owner::of_node(&node_name(node.as_deref())?),
    };
    // First: an FRR that starts meanwhile does not load them.
    for file in forget_files(&frr_config_dir, owner)? {
        eprintln!("{}: lines of owner {owner} removed", file.display());
    }
    let mut forgotten = Forgotten::default();
    let code = run_daemon(async {
        forgotten = forget(&frr_socket_dir, owner).await?;
        Ok::<(), ForgetError>(())
    })?;
    let (count, place) = (forgotten.commands.len(), frr_socket_dir.display());
    eprintln!("{count} commands; nothing of owner {owner} is left in {place}");
    let lines = forgotten.commands.into_iter().map(|it| it + "\n");
    output::print(&lines.collect::<String>())?;
    Ok(code)
}
