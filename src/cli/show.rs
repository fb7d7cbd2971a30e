//! `fairway show`: words to a question, the answer to stdout.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use fairway_sessions::types::AddressFamily;

use super::paths;
use crate::admin::show::{Format, ShowCommand};
use crate::admin::{Request, client};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway show bgp summary
  fairway show bgp neighbors 192.0.2.1 advertised-routes --json
  fairway show bgp ipv4 unicast 198.51.100.10/32
  fairway show services")]
pub(super) struct ShowArguments {
    #[command(subcommand)]
    what: What,

    /// JSON for programs, in FRR's shape where FRR has the command
    #[arg(long, global = true)]
    json: bool,

    /// The daemon's socket [default: as for `fairway run`]
    #[arg(long, value_name = "PATH", global = true, env = "FAIRWAY_SOCKET")]
    socket: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Sessions and routes
    #[command(after_help = "Example: fairway show bgp summary")]
    Bgp {
        #[command(subcommand)]
        what: Bgp,
    },
    /// Services: their addresses, and what is announced for them
    #[command(after_help = "Example: fairway show services --json")]
    Services,
    /// Pools and how full they are
    #[command(after_help = "Example: fairway show pools")]
    Pools,
    /// What was read, and what is wrong with it
    #[command(after_help = "Example: fairway show config --json")]
    Config,
}

#[derive(Debug, Clone, Subcommand)]
enum Bgp {
    /// A line for each neighbor
    #[command(after_help = "Example: fairway show bgp summary --json")]
    Summary,
    /// Everything about each neighbor, or about one
    #[command(after_help = "Examples:
  fairway show bgp neighbors
  fairway show bgp neighbors 192.0.2.1 advertised-routes")]
    Neighbors {
        /// Its address, or the name of its BGPPeer
        peer: Option<String>,
        /// Only its routes
        #[command(subcommand)]
        routes: Option<NeighborRoutes>,
    },
    /// IPv4 routes
    #[command(after_help = "Example: fairway show bgp ipv4 unicast 198.51.100.10/32")]
    Ipv4 {
        #[command(subcommand)]
        safi: Safi,
    },
    /// IPv6 routes
    #[command(after_help = "Example: fairway show bgp ipv6 unicast")]
    Ipv6 {
        #[command(subcommand)]
        safi: Safi,
    },
}

#[derive(Debug, Clone, Subcommand)]
enum NeighborRoutes {
    /// What it was told
    #[command(after_help = "Example: fairway show bgp neighbors 192.0.2.1 advertised-routes")]
    AdvertisedRoutes,
    /// What it announces and toReceive lets in
    #[command(after_help = "Example: fairway show bgp neighbors 192.0.2.1 received-routes")]
    ReceivedRoutes,
}

#[derive(Debug, Clone, Subcommand)]
enum Safi {
    /// The table, or one prefix with all its attributes
    #[command(after_help = "Example: fairway show bgp ipv4 unicast 198.51.100.10/32")]
    Unicast {
        /// A prefix, or an address inside one
        prefix: Option<String>,
    },
}

impl What {
    fn command(&self) -> Option<ShowCommand> {
        Some(match self.clone() {
            Self::Bgp { what: Bgp::Summary } => ShowCommand::BgpSummary,
            Self::Bgp { what: Bgp::Neighbors { peer, routes: None } } => {
                ShowCommand::BgpNeighbors { peer }
            }
            Self::Bgp { what: Bgp::Neighbors { peer, routes: Some(routes) } } => match routes {
                NeighborRoutes::AdvertisedRoutes => {
                    ShowCommand::BgpAdvertisedRoutes { peer: peer? }
                }
                NeighborRoutes::ReceivedRoutes => ShowCommand::BgpReceivedRoutes { peer: peer? },
            },
            Self::Bgp { what: Bgp::Ipv4 { safi: Safi::Unicast { prefix } } } => {
                ShowCommand::BgpUnicast { family: AddressFamily::Ipv4Unicast, prefix }
            }
            Self::Bgp { what: Bgp::Ipv6 { safi: Safi::Unicast { prefix } } } => {
                ShowCommand::BgpUnicast { family: AddressFamily::Ipv6Unicast, prefix }
            }
            Self::Services => ShowCommand::Services,
            Self::Pools => ShowCommand::Pools,
            Self::Config => ShowCommand::Config,
        })
    }
}

pub(super) fn run(arguments: &ShowArguments) -> Result<ExitCode> {
    let Some(what) = arguments.what.command() else {
        eprintln!(
            "fairway: advertised-routes and received-routes need a neighbor: its address or its \
             name"
        );
        return Ok(ExitCode::from(2));
    };
    let format = if arguments.json { Format::Json } else { Format::Text };
    let socket = arguments.socket.clone().map_or_else(paths::default_socket, Ok)?;
    print(&client::ask(&socket, &Request::Show { what, format })?)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes an answer of the daemon to stdout.
pub(super) fn print(output: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(output.as_bytes()).and_then(|()| stdout.flush()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("stdout"),
        _ => Ok(()),
    }
}
