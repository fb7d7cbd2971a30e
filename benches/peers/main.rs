//! How long do 500 sessions take to come up, and how much memory does each need? Fairway, BIRD and FRR take
//! turns as the speaker in the middle; 500 neighbours with addresses of their own, all of them sessions of
//! one BIRD, are the same for each.
//!
//! Two ways: neighbours that dial a speaker with a listen range, and neighbours that wait for a speaker in
//! which each is configured. The time is measured until the neighbours' side reports all sessions as
//! established.
//!
//! And what it costs to watch them with `fairway top`.
//!
//! `cargo bench --bench peers -- [--peers N] [--watched]`, as root; with `--watched` the last alone.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

mod neighbours;
mod speaker;
mod watched;

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use lab::namespace::Namespace;
use neighbours::Neighbours;
use speaker::{Speaker, SpeakerKind};

/// Number of sessions without `--peers`.
const PEERS: u32 = 500;
/// Timeout for all of them.
const LIMIT: Duration = Duration::from_secs(120);

/// Which side opens the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The neighbours, into a range.
    Range,
    /// The speaker, to each address.
    Configured,
}

/// The result of one run.
struct Outcome {
    time: Duration,
    /// Memory of the speaker per session, KiB.
    memory_kib: f64,
}

fn main() -> Result<()> {
    ensure!(nix::unistd::Uid::effective().is_root(), "this needs root: network namespaces");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    let peers = peers_from_arguments()?;
    let folder = std::env::temp_dir().join(format!("fairway-peers-{}", std::process::id()));
    let mut rows = Vec::new();
    let mut cell = 0;
    let only_watched = std::env::args().any(|argument| argument == "--watched");
    for way in [Way::Configured, Way::Range] {
        for kind in SpeakerKind::ALL {
            if only_watched {
                continue;
            }
            eprintln!("{kind}, {peers} peers, {way:?}");
            let place = folder.join(cell.to_string());
            lab::make_directory(&place)?;
            let outcome = measure(cell, &place, kind, way, peers)
                .with_context(|| format!("{kind}, {way:?}; see {}", place.display()))?;
            rows.push((way, kind, outcome));
            cell += 1;
        }
    }
    if !only_watched {
        print(&rows, peers);
    }
    let place = folder.join("watched");
    lab::make_directory(&place)?;
    watched::print(cell, &place, peers)?;
    std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark")
}

fn peers_from_arguments() -> Result<u32> {
    let mut arguments = std::env::args();
    match arguments.find(|argument| argument == "--peers") {
        None => Ok(PEERS),
        Some(_) => arguments
            .next()
            .and_then(|value| value.parse().ok())
            .filter(|peers| (1..=5000).contains(peers))
            .context("--peers needs a number from 1 to 5000"),
    }
}

/// Starts both sides, the one that dials last; the time starts then.
fn measure(cell: usize, place: &Path, kind: SpeakerKind, way: Way, peers: u32) -> Result<Outcome> {
    let middle = Namespace::create(cell, "speaker")?;
    let around = Namespace::create(cell, "neighbors")?;
    middle.connect("eth0", &around, "eth0")?;
    add_addresses(&middle, place, (0..peers).map(speaker::address))?;
    add_addresses(&around, place, (0..peers).map(neighbours::address))?;
    let mut speaker = Speaker::prepare(kind, place)?;
    let (neighbours, start, empty_kib) = match way {
        Way::Range => {
            speaker.start(&middle, way, peers)?;
            let empty = speaker.memory_kib()?;
            let start = Instant::now();
            (Neighbours::start(&around, place, way, peers)?, start, empty)
        }
        Way::Configured => {
            // Its memory without sessions is measured separately: they come up at once.
            speaker.start(&middle, Way::Range, peers)?;
            let empty = speaker.memory_kib()?;
            speaker.stop()?;
            let neighbours = Neighbours::start(&around, place, way, peers)?;
            let start = Instant::now();
            speaker.start(&middle, way, peers)?;
            (neighbours, start, empty)
        }
    };
    neighbours.wait_for_all(peers, LIMIT)?;
    let time = start.elapsed();
    let memory_kib = (speaker.memory_kib()? - empty_kib) / f64::from(peers);
    speaker.stop()?;
    Ok(Outcome { time, memory_kib })
}

/// Adds all addresses to the interface at once.
fn add_addresses(
    namespace: &Namespace,
    place: &Path,
    addresses: impl Iterator<Item = Ipv4Addr>,
) -> Result<()> {
    let file = place.join("addresses");
    let lines = addresses.map(|address| format!("address add {address}/15 dev eth0\n"));
    std::fs::write(&file, lines.collect::<String>()).context("a list of addresses")?;
    namespace.ip(&["-batch", &file.to_string_lossy()]).map(drop)
}

/// A table that can be pasted into a page.
fn print(rows: &[(Way, SpeakerKind, Outcome)], peers: u32) {
    println!("| {peers} sessions | speaker | all up, s | beside BIRD | memory per session, KiB |");
    println!("|---|---|---|---|---|");
    for (way, kind, outcome) in rows {
        let rival = rows.iter().find(|(of, it, _)| of == way && *it == SpeakerKind::Bird);
        let ratio = rival
            .map(|(_, _, rival)| outcome.time.as_secs_f64() / rival.time.as_secs_f64())
            .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        println!(
            "| {} | {kind} | {:.2} | {ratio} | {:.1} |",
            match way {
                Way::Range => "dial into a listen range",
                Way::Configured => "are dialled, each configured",
            },
            outcome.time.as_secs_f64(),
            outcome.memory_kib,
        );
    }
}
