//! `fairway dump`: what was said on the sessions of a neighbor, and all routes.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use fairway_recording::DumpFormat;

use super::ask::SocketArguments;
use super::output;
use crate::admin::client::ClientError;
use crate::admin::{DumpRequest, RIB, client};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway dump 192.0.2.1                             the last messages and events, as JSON
  fairway dump tor-1 --format pcap | tcpdump -nvr -
  fairway dump tor-1 --format mrt -o tor-1.mrt       for bgpdump, bgpkit-parser or gobgp
  fairway dump rib --format mrt -o rib.mrt           all accepted paths and our own routes, as TABLE_DUMP_V2

The last 1000 messages and changes of state of each neighbor are kept, as far as they fit into its share of 4 MiB: 256 KiB with
up to 16 neighbors. A session that ends leaves them in recordings/ of the --state-dir, too, as MRT.
rib is no neighbor: a neighbor of this name is asked for by its address or its interface. In MRT peer 0, all zeros, is this node,
as in the dumps of FRR and BIRD, and the time of each route is the time of the dump.
Exit code 0: done. 1: there is no such neighbor, or nothing is recorded: with `--bgp frr` FRR speaks.")]
pub(super) struct DumpArguments {
    /// The neighbor: its address, its interface, or the name of its BGPPeer; or rib: all routes
    #[arg(value_name = "PEER|rib")]
    neighbor: String,

    /// mrt, pcap or json; of all routes mrt or json
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
    if neighbor == RIB {
        return run_rib(*format, file.as_deref(), socket);
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

fn run_rib(format: DumpFormat, file: Option<&Path>, socket: &SocketArguments) -> Result<ExitCode> {
    // Where no daemon is, or the dump ends early, an earlier file stays.
    let part = file.map(|file| {
        let mut name = file.as_os_str().to_owned();
        name.push(".part");
        PathBuf::from(name)
    });
    let mut to: Option<BufWriter<Box<dyn Write>>> = None;
    let asked = client::ask_rib(&socket.path()?, format.to_string(), |piece| {
        let to = match &mut to {
            Some(to) => to,
            None => to.insert(BufWriter::new(match &part {
                Some(part) => Box::new(File::create(part)?),
                None => Box::new(std::io::stdout().lock()),
            })),
        };
        to.write_all(piece)
    });
    let notes = match asked {
        Ok(notes) => notes,
        // A reader that closes the pipe early (`| head`) is not an error.
        Err(ClientError::Write(cause)) if cause.kind() == ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => {
            if let Some(part) = &part {
                // What is wrong is said already.
                let _ = std::fs::remove_file(part);
            }
            return Err(error.into());
        }
    };
    if let Some(mut to) = to {
        to.flush().context("cannot write the routes")?;
    }
    if let (Some(part), Some(file)) = (part, file) {
        std::fs::rename(part, file).with_context(|| file.display().to_string())?;
    }
    eprint!("{notes}");
    Ok(ExitCode::SUCCESS)
}
