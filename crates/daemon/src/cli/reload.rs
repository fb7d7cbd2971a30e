//! `fairway reload`: a running daemon reads its files again.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::ask::SocketArguments;
use super::output;
use crate::admin::{Request, client};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway reload            read all files again, as on SIGHUP
  fairway reload --empty    a folder without files is meant to be empty

Changed files are read at once without this command. A folder that had files, and turns out to be another one without
any, is held: most likely a volume is lost. Its last content stays in force until files are there again, or until
`fairway reload --empty`, which withdraws it. `fairway show config` names such folders.")]
pub(super) struct ReloadArguments {
    /// Take folders without files for empty, and withdraw what was in them
    #[arg(long)]
    empty: bool,

    #[command(flatten)]
    socket: SocketArguments,
}

pub(super) fn run(arguments: &ReloadArguments) -> Result<ExitCode> {
    let request = Request::Reload { accepts_empty: arguments.empty };
    output::print(&client::ask(&arguments.socket.path()?, &request)?)?;
    Ok(ExitCode::SUCCESS)
}
