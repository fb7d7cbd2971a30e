//! `fairway clear`: resets a session, or refreshes its routes in both directions.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use fairway_seam::Clear;

use super::ask::SocketArguments;
use super::output;
use crate::admin::{Request, client};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway clear bgp 192.0.2.1
  fairway clear bgp tor-1 soft in
  fairway clear bgp '*' soft")]
pub(super) struct ClearArguments {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    socket: SocketArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Reset a session, or with `soft` refresh its routes
    #[command(after_help = "Examples:
  fairway clear bgp 192.0.2.1            reset the session with Cease 6/4
  fairway clear bgp 192.0.2.1 soft in    ask the neighbor for all its routes again
  fairway clear bgp 192.0.2.1 soft out   send it all routes again
  fairway clear bgp 192.0.2.1 soft       refresh in both directions")]
    Bgp {
        /// Its address, the name of its BGPPeer, or * for all
        peer: String,
        /// Refresh routes without a reset
        #[command(subcommand)]
        soft: Option<Soft>,
    },
}

#[derive(Debug, Clone, Subcommand)]
enum Soft {
    /// Refresh routes, keep the session
    #[command(after_help = "Example: fairway clear bgp 192.0.2.1 soft in")]
    Soft {
        /// Only one direction
        #[command(subcommand)]
        direction: Option<Direction>,
    },
}

#[derive(Debug, Clone, Subcommand)]
enum Direction {
    /// Ask the neighbor for all its routes again (RFC 2918)
    #[command(after_help = "Example: fairway clear bgp 192.0.2.1 soft in")]
    In,
    /// Send it all routes again
    #[command(after_help = "Example: fairway clear bgp 192.0.2.1 soft out")]
    Out,
}

pub(super) fn run(arguments: &ClearArguments) -> Result<ExitCode> {
    let What::Bgp { peer, soft } = arguments.what.clone();
    let how = match soft {
        None => Clear::Hard,
        Some(Soft::Soft { direction: None }) => Clear::Soft,
        Some(Soft::Soft { direction: Some(Direction::In) }) => Clear::SoftIn,
        Some(Soft::Soft { direction: Some(Direction::Out) }) => Clear::SoftOut,
    };
    let answer = client::ask(&arguments.socket.path()?, &Request::Clear { peer, how })?;
    output::print(&answer)?;
    Ok(ExitCode::SUCCESS)
}
