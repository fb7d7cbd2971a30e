//! `fairway dump`: what was said on the sessions of a neighbor.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use fairway_recording::DumpFormat;

use super::ask::SocketArguments;
use super::output;
use crate::admin::{DumpRequest, client};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway dump 192.0.2.1                             the last messages and events, as JSON
  fairway dump tor-1 --format pcap | tcpdump -nvr -
  fairway dump tor-1 --format mrt -o tor-1.mrt       for bgpdump, bgpkit-parser or gobgp

The last 1000 messages and changes of state of each neighbor are kept, as far as they fit into its share of 8 MiB: 256 KiB with
up to 32 neighbors. A session that ends leaves them in recordings/ of the --state-dir, too, as MRT.
Exit code 0: done. 1: there is no such neighbor, or nothing is recorded: with `--bgp frr` FRR speaks.")]
pub(super) struct DumpArguments {
    /// The neighbor: its address, its interface, or the name of its BGPPeer
    #[arg(value_name = "PEER")]
    neighbor: String,

    /// mrt, pcap or json
    #[arg(long, default_value = "json", value_name = "FORMAT")]
    format: DumpFormat,

    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    socket: SocketArguments,
}

pub(super) fn run(arguments: &DumpArguments) -> Result<ExitCode> {
    let DumpArguments { neighbor, format, output: file, socket } = arguments;
    if file.is_none() && *format != DumpFormat::Json && std::io::stdout().is_terminal() {
        bail!("{format} is not text: name a file with -o, or redirect stdout");
    }
    let request = DumpRequest { neighbor: neighbor.clone(), format: format.to_string() };
    let bytes = client::ask_dump(&socket.path()?, request)?;
    match file {
        Some(file) => std::fs::write(file, bytes).with_context(|| file.display().to_string())?,
        None if *format == DumpFormat::Json => {
            output::print_json(&String::from_utf8_lossy(&bytes))?
        }
        None => std::io::stdout().write_all(&bytes).context("stdout")?,
    }
    Ok(ExitCode::SUCCESS)
}
