//! `fairway clear`: resets sessions, or refreshes their routes in one direction or both.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use fairway_show::language::Question;

use super::ask::SocketArguments;
use super::output;
use super::words::{self, Read};
use crate::admin::{Request, client};

const EXAMPLES: &str = "  fairway clear bgp 192.0.2.1            reset the session with Cease 6/4
  fairway clear bgp tor-1 soft in        ask the neighbor for all its routes again
  fairway clear bgp 192.0.2.1 soft out   send it all routes again
  fairway clear bgp 65010                reset the sessions with the routers of an AS
  fairway clear bgp '*' soft             refresh all sessions in both directions";

#[derive(Debug, Args)]
#[command(after_help = words::help("clear", EXAMPLES))]
pub(super) struct ClearArguments {
    /// The words of the command, as below
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    #[command(flatten)]
    socket: SocketArguments,
}

pub(super) fn run(arguments: &ClearArguments) -> Result<ExitCode> {
    let order = match words::read("clear", &arguments.words)? {
        Read::Question(Question::Clear(order)) => order,
        Read::Question(_) => bail!("the words of another command"),
        Read::Done(code) => return Ok(code),
    };
    let answer = client::ask(&arguments.socket.path()?, &Request::Clear(order))?;
    output::print(&answer)?;
    Ok(ExitCode::SUCCESS)
}
