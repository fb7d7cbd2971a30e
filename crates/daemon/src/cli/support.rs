//! `fairway support`: what somebody needs who is to find out what is wrong with a node, in one file.
//!
//! Asks the daemon what its own commands ask, so that nothing is in the file that they would not print.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use fairway_show::language::{self, Question, Vocabulary};
use fairway_show::{Format, Query};
use tar::{Builder, Header};

use super::ask::SocketArguments;
use super::output::say;
use crate::admin::{DumpRequest, Request, client};
use crate::build_info;
use crate::host::{epoch_seconds, host_name};

/// What is asked of each daemon, as text and as JSON.
const QUESTIONS: &[(&str, &[&str])] = &[
    ("version", &["show", "version"]),
    ("config", &["show", "config"]),
    ("services", &["show", "services"]),
    ("pools", &["show", "pools"]),
    ("bgp-summary", &["show", "bgp", "summary"]),
    ("bgp-neighbors", &["show", "bgp", "neighbors"]),
    ("bgp-router", &["show", "bgp", "router"]),
    ("bgp-nexthop", &["show", "bgp", "nexthop"]),
    ("bgp-ipv4-statistics", &["show", "bgp", "ipv4", "unicast", "statistics"]),
    ("bgp-ipv6-statistics", &["show", "bgp", "ipv6", "unicast", "statistics"]),
    ("bfd-peers", &["show", "bfd", "peers"]),
    ("bfd-counters", &["show", "bfd", "peers", "counters"]),
    ("bmp", &["show", "bmp"]),
    ("rpki", &["show", "rpki"]),
    ("l2", &["show", "l2"]),
    ("members", &["show", "members"]),
];
/// With `--routes`, too.
const TABLES: &[(&str, &[&str])] = &[
    ("bgp-ipv4", &["show", "bgp", "ipv4", "unicast"]),
    ("bgp-ipv6", &["show", "bgp", "ipv6", "unicast"]),
];
/// What the kernel says of the machine.
const OF_THE_MACHINE: &[&str] =
    &["/proc/version", "/proc/loadavg", "/proc/meminfo", "/proc/net/dev", "/etc/os-release"];
/// The longest of these that is taken.
const FILE_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway support                             fairway-support-HOST-TIME.tar in this folder
  fairway support -o /tmp/node-a.tar --routes
  tar -tf node-a.tar                          what is in it

In the file are the answers of the daemon's own commands as text and JSON, the last messages of each neighbor (MRT), and the
versions of Fairway and of the kernel. Keys and passwords are in none of them; addresses, names and routes are. The log is
not: add what `journalctl -u fairway` or `kubectl logs` prints. Only its owner can read the file.
Exit code 0: done. 1: no daemon answers, or the file cannot be written. What one of the commands did not answer is in
errors.txt.")]
pub(super) struct SupportArguments {
    /// The file to write; it must not exist
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Take the routing tables, too
    #[arg(long)]
    routes: bool,

    #[command(flatten)]
    socket: SocketArguments,
}

pub(super) fn run(arguments: &SupportArguments) -> Result<ExitCode> {
    let socket = arguments.socket.path()?;
    // A file without an answer helps nobody.
    ask(&socket, &["show", "version"], Format::Text)?;
    let host = host_name().unwrap_or_else(|| "node".to_owned());
    let name = || PathBuf::from(format!("fairway-support-{host}-{}.tar", epoch_seconds()));
    let path = arguments.output.clone().unwrap_or_else(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file = file.with_context(|| path.display().to_string())?;
    let mut bundle = Bundle { tar: Builder::new(file), files: 0, errors: String::new() };
    bundle.add("fairway.txt", build_info::version().as_bytes())?;
    for place in OF_THE_MACHINE {
        let name = format!("machine/{}", place.trim_start_matches('/').replace('/', "-"));
        bundle.add_or_note(&name, start_of(Path::new(place)).map_err(|it| it.to_string()))?;
    }
    let tables = if arguments.routes { TABLES } else { &[] };
    for (name, words) in QUESTIONS.iter().chain(tables) {
        for (format, extension) in [(Format::Text, "txt"), (Format::Json, "json")] {
            let answer = ask(&socket, words, format).map(String::into_bytes);
            bundle
                .add_or_note(&format!("{name}.{extension}"), answer.map_err(|it| it.to_string()))?;
        }
    }
    for neighbor in neighbors(&socket) {
        let request = DumpRequest { neighbor: neighbor.clone(), format: "mrt".to_owned() };
        let name = format!("recordings/{}.mrt", neighbor.replace(['/', ':', '%'], "_"));
        let dump = client::ask_dump(&socket, request);
        bundle.add_or_note(&name, dump.map_err(|it| it.to_string()))?;
    }
    let files = bundle.finish()?;
    say(&format!("{}: {files} files; look at them before you send it", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// The answer to the words of a command.
fn ask(socket: &Path, words: &[&str], format: Format) -> Result<String> {
    match language::understand(Vocabulary::CommandLine, words) {
        Ok(Question::Show(query)) => {
            let query = Query { format, ..query };
            Ok(client::ask(socket, &Request::Show(query))?)
        }
        _ => anyhow::bail!("{words:?} is not a question"),
    }
}

/// All neighbors, by what `fairway dump` takes.
fn neighbors(socket: &Path) -> Vec<String> {
    let answer = ask(socket, &["show", "bgp", "neighbors"], Format::Json).unwrap_or_default();
    let all: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    let keys = all.as_object().into_iter().flatten();
    let is_neighbor = |(_, value): &(&String, &serde_json::Value)| value.get("bgpState").is_some();
    keys.filter(is_neighbor).map(|(key, _)| key.clone()).collect()
}

/// The file, up to a bound.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    bytes.truncate(FILE_BYTES_MAX);
    Ok(bytes)
}

/// The file that is written.
struct Bundle {
    tar: Builder<File>,
    files: usize,
    errors: String,
}

impl Bundle {
    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_size(u64::try_from(bytes.len())?);
        header.set_mode(0o600);
        header.set_mtime(epoch_seconds());
        self.tar.append_data(&mut header, Path::new("fairway-support").join(name), bytes)?;
        self.files = self.files.saturating_add(1);
        Ok(())
    }

    fn add_or_note(&mut self, name: &str, content: Result<Vec<u8>, String>) -> Result<()> {
        match content {
            Ok(bytes) => self.add(name, &bytes),
            Err(why) => {
                self.errors.push_str(&format!("{name}: {why}\n"));
                Ok(())
            }
        }
    }

    /// The number of files.
    fn finish(mut self) -> Result<usize> {
        if !self.errors.is_empty() {
            let errors = std::mem::take(&mut self.errors);
            self.add("errors.txt", errors.as_bytes())?;
        }
        self.tar.into_inner()?.flush()?;
        Ok(self.files)
    }
}
