//! `fairway explain`: why is it so? A question to the daemon, and its answer to stdout.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::{paths, show};
use crate::admin::show::{Format, ShowCommand};
use crate::admin::{Request, client};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway explain service shop/web
  fairway explain service web --json")]
pub(super) struct ExplainArguments {
    #[command(subcommand)]
    what: What,

    /// JSON for programs
    #[arg(long, global = true)]
    json: bool,

    /// The daemon's socket [default: as for `fairway run`; when this user runs none, the one below
    /// /run]
    #[arg(long, value_name = "PATH", global = true, env = "FAIRWAY_SOCKET")]
    socket: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Which pool and why, whether this node announces it, what each router was told, what is
    /// missing
    #[command(after_help = "Examples:
  fairway explain service shop/web
  fairway explain service web         where only one is called so, or the one in default")]
    Service {
        /// Its name, with its namespace where several have the name
        #[arg(value_name = "[NAMESPACE/]NAME")]
        service: String,
    },
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<ExitCode> {
    let What::Service { service } = arguments.what.clone();
    let what = ShowCommand::ExplainService { service };
    let format = if arguments.json { Format::Json } else { Format::Text };
    let socket = paths::socket_of_daemon(arguments.socket.as_deref())?;
    show::print(&client::ask(&socket, &Request::Show { what, format })?)?;
    Ok(ExitCode::SUCCESS)
}
