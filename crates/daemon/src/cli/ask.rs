//! What the commands that query the daemon have in common: its socket, and the output format.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_show::{Format, Query};

use super::{output, paths};
use crate::admin::{ProxyQuery, Request, client};
use crate::proxy::SOCKET;

/// The default of `fairway proxy --run-dir`.
pub(super) const RUN_DIR: &str = "/run/fairway";

#[derive(Debug, Args)]
pub(super) struct SocketArguments {
    /// The daemon's socket [default: as for `fairway run`; if this user runs no daemon, the one in /run]
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
    /// Print JSON, in FRR's format where FRR has the command
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    socket: SocketArguments,
}

impl AnswerArguments {
    /// Asks the service proxy, and prints the answer.
    pub(super) fn show_proxy(&self, service: Option<String>, json: bool) -> Result<ExitCode> {
        let json = json || self.json;
        let socket = self.socket.socket.clone();
        let socket = socket.unwrap_or_else(|| Path::new(RUN_DIR).join(SOCKET));
        let answer = client::ask(&socket, &Request::Proxy(ProxyQuery { service, json }))?;
        if json {
            output::print_json(&answer)?
        } else {
            output::print(&answer)?
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Sends the query to the daemon and prints the answer.
    pub(super) fn show(&self, mut query: Query) -> Result<ExitCode> {
        if self.json {
            query.format = Format::Json;
        }
        let format = query.format;
        client::ask_in_parts(&self.socket.path()?, &Request::Show(query), |part| match format {
            Format::Json => output::print_part_of_json(part),
            Format::Text => output::print_part(part),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
