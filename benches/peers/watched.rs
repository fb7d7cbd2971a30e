//! What does `fairway top` cost beside all these sessions, and how long after the end of one does its screen show it?

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::latencies::Latencies;
use lab::namespace::Namespace;
use lab::terminal::Terminal;
use lab::usage::Usage;
use lab::wait::{PATIENCE, wait_until};

use crate::neighbours::{self, Neighbours};
use crate::speaker::{self, Speaker, SpeakerKind};
use crate::{LIMIT, Way, add_addresses};

/// For so long the processor time is counted.
const SPAN: Duration = Duration::from_secs(10);
/// Sessions that end, one after the other.
const ENDS: u32 = 30;
/// How often the screen is read.
const GLANCE: Duration = Duration::from_millis(2);
/// As with most terminals over ssh.
const SIZE: (u16, u16) = (24, 80);

/// Prints what it finds.
pub(crate) fn print(cell: usize, place: &Path, peers: u32) -> Result<()> {
    let middle = Namespace::create(cell, "speaker")?;
    let around = Namespace::create(cell, "neighbors")?;
    middle.connect("eth0", &around, "eth0")?;
    add_addresses(&middle, place, (0..peers).map(speaker::address))?;
    add_addresses(&around, place, (0..peers).map(neighbours::address))?;
    let mut speaker = Speaker::prepare(SpeakerKind::Fairway, place)?;
    let neighbours = Neighbours::start(&around, place, Way::Configured, peers)?;
    speaker.start(&middle, Way::Configured, peers)?;
    neighbours.wait_for_all(peers, LIMIT)?;
    let daemon = speaker.process_id()?;
    let alone = cores(&[daemon])?;

    let mut command = Command::new(lab::fairway::program());
    command.arg("top").arg("--socket").arg(speaker.socket()).env("TERM", "xterm");
    let terminal = Terminal::start(&mut command, SIZE)?;
    let all = format!("{peers}/{peers} sessions");
    terminal.wait_for_screen("all sessions", &[&all])?;
    let watched = cores(&[daemon, terminal.process_id()])?;
    let top = cores(&[terminal.process_id()])?;

    let one_less = format!("{}/{peers} sessions", peers.saturating_sub(1));
    let mut shown = Latencies::default();
    for number in 0..ENDS {
        let name = format!("r{}", number % peers);
        let began = Instant::now();
        neighbours.birdc(&["disable", &name])?;
        shown.push(until(&terminal, &one_less, began)?);
        neighbours.birdc(&["enable", &name])?;
        wait_until("the session", PATIENCE, || {
            let screen = terminal.screen();
            ensure!(screen.contains(&all), "{screen}");
            Ok(())
        })?;
    }
    println!();
    println!(
        "| {peers} sessions | cores of the daemon alone | with top: daemon and top | top | an end is shown, p50 / p99 ms |"
    );
    println!("|---|---|---|---|---|");
    println!(
        "| fairway top | {alone:.3} | {watched:.3} | {top:.3} | {:.0} / {:.0} |",
        shown.percentile(50),
        shown.percentile(99)
    );
    speaker.stop()
}

/// How many cores these processes use.
fn cores(processes: &[u32]) -> Result<f64> {
    let usage = || -> Result<Usage> {
        let all = processes.iter().map(|it| Usage::of(*it)).collect::<Result<Vec<_>>>()?;
        all.into_iter().reduce(Usage::and).context("no process")
    };
    let before = usage()?;
    sleep(SPAN);
    Ok(usage()?.cores_since(&before))
}

/// How long after `began` the screen has `wanted`. Includes what birdc and BIRD need.
fn until(terminal: &Terminal, wanted: &str, began: Instant) -> Result<Duration> {
    while !terminal.screen().contains(wanted) {
        ensure!(began.elapsed() < PATIENCE, "no {wanted:?} on the screen:\n{}", terminal.screen());
        sleep(GLANCE);
    }
    Ok(began.elapsed())
}
