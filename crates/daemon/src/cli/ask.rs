//! What commands have in common that ask the daemon: where it listens, and for whom the answer is.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_show::{Format, ShowCommand};

use super::{output, paths};
use crate::admin::{Request, client};

#[derive(Debug, Args)]
pub(super) struct SocketArguments {
    /// The daemon's socket [default: as for `fairway run`; when this user runs none, the one below
    /// /run]
    #[arg(long, value_name = "PATH", global = true, env = "FAIRWAY_SOCKET")]
    socket: Option<PathBuf>,
}

impl SocketArguments {
    pub(super) fn path(&self) -> Result<PathBuf> {
        paths::socket_of_daemon(self.socket.as_deref())
    }
}

#[derive(Debug, Args)]
pub(super) struct AnswerArguments {
    /// JSON for programs, in FRR's shape where FRR has the command
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    socket: SocketArguments,
}

impl AnswerArguments {
    /// Asks the daemon, and prints what it answers.
    pub(super) fn show(&self, what: ShowCommand) -> Result<ExitCode> {
        let format = if self.json { Format::Json } else { Format::Text };
        let request = Request::Show { what, format };
        output::print(&client::ask(&self.socket.path()?, &request)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
