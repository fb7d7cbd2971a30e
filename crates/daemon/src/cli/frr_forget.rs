//! `fairway frr-forget`: takes Fairway's configuration out of FRR and its files, without a daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_frr::io::forget::{Forgotten, Locked, forget};
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
Exit code 0: nothing of this owner is left. 1: another Fairway runs and nothing was changed; or FRR is down, refused
a line, or a file cannot be changed: stderr says which, and everything else was done.")]
pub(super) struct FrrForgetArguments {
    #[command(flatten)]
    frr: FrrSockets,

    /// The node whose configuration it is [default: the host name]
    #[arg(long, value_name = "NAME", env = "FAIRWAY_NODE", conflicts_with = "owner")]
    node: Option<String>,

    /// The owner, as in the names of FRR's objects (`fairway-OWNER-...`)
    #[arg(long, value_name = "ID")]
    owner: Option<Owner>,

    /// Where this FRR has its files (frr.conf, bgpd.conf and others) [default: /etc/frr for /var/run/frr, and
    /// /etc/frr/NAME for /var/run/frr/NAME]
    #[arg(long, value_name = "DIR", env = "FAIRWAY_FRR_CONFIG_DIR")]
    frr_config_dir: Option<PathBuf>,

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
    let config_dir = frr_config_dir.or_else(|| config_dir_of(&frr_socket_dir));
    if config_dir.is_none() {
        eprintln!("FRR's files are not looked at: name their folder with --frr-config-dir");
    }
    let mut forgotten = Forgotten::default();
    let code = run_daemon(async {
        forgotten = forget(&frr_socket_dir, config_dir.as_deref(), owner).await?;
        Ok::<(), Locked>(())
    })?;
    for file in &forgotten.files {
        eprintln!("{}: lines of owner {owner} removed", file.display());
    }
    let (count, place) = (forgotten.commands.len(), frr_socket_dir.display());
    let lines = forgotten.commands.into_iter().map(|it| it + "\n");
    output::print(&lines.collect::<String>())?;
    if forgotten.left.is_empty() {
        eprintln!("{count} commands; nothing of owner {owner} is left in {place}");
        return Ok(code);
    }
    for left in &forgotten.left {
        output::say(&format!("error: configuration of owner {owner} may be left: {left}"));
    }
    Ok(ExitCode::FAILURE)
}

/// The folder of the files that belongs to a folder of sockets, as FRR's pathspaces have them.
fn config_dir_of(socket_dir: &Path) -> Option<PathBuf> {
    let mut folders = ["/var/run/frr", "/run/frr"].iter();
    folders.find_map(|it| Some(Path::new("/etc/frr").join(socket_dir.strip_prefix(it).ok()?)))
}
