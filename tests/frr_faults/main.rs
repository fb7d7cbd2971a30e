//! Does Fairway keep its promises when FRR speaks for it, and something breaks? Daemons that hang, die
//! or come late, configuration that FRR refuses, operators who edit it by hand, a full disk, restarts
//! of Fairway. Each story is a FRR in one network namespace and a router in another. Run as root by
//! `make test-frr`: `cargo test --test frr_faults -- [WORD...] [--list]`.

#![allow(dead_code)] // Only a part of the lab and of the routers is used here.

mod breakage;
mod configuration;
mod restarts;
mod scene;
mod speaker;

#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../interop/routers/mod.rs"]
mod routers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use lab::make_directory;
use lab::process::tail;
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};
use routers::{Release, RouterKind};

const USAGE: &str = "\
usage: frr_faults [WORD...] [--list]
  WORD    run only the stories with one of these words in their name; frr8 and frr10 choose the
          release of FRR that speaks for Fairway
  --list  print the stories that would run, and run none
The program under test is FAIRWAY_BIN, else the one that cargo has built.";

/// How much of each log a broken promise shows.
const TAIL_LINES: usize = 30;

/// Stories at a time.
const JOBS: usize = 4;

const BOTH: &[Release] = &[Release::Bookworm, Release::Trixie];
const OLD: &[Release] = &[Release::Bookworm];

/// What a story is told when it runs.
pub(crate) struct Cell {
    number: usize,
    release: Release,
    directory: PathBuf,
}

/// A story, and with which releases of FRR it is told.
struct Story {
    name: &'static str,
    releases: &'static [Release],
    run: fn(&Cell) -> Result<()>,
}

macro_rules! stories {
    ($($releases:ident $module:ident::$name:ident,)*) => {
        &[$(Story { name: stringify!($name), releases: $releases, run: $module::$name },)*]
    };
}

const STORIES: &[Story] = stories![
    BOTH breakage::frr_that_comes_later_is_told_all,
    BOTH breakage::bgpd_killed_amid_five_hundred_changes_is_told_all_again,
    OLD breakage::bgpd_killed_while_it_hangs_is_told_all_again,
    BOTH breakage::a_daemon_that_hangs_is_named_and_told_later,
    OLD breakage::a_full_disk_delays_no_route_and_is_said,
    BOTH configuration::broken_extras_leave_the_last_good_state,
    OLD configuration::broken_extras_delay_no_route,
    BOTH configuration::a_hand_edit_is_healed,
    BOTH configuration::what_others_configured_stays,
    BOTH restarts::fairway_killed_leaves_frr_speaking,
    OLD restarts::fairway_ended_leaves_frr_speaking,
    OLD restarts::what_went_meanwhile_is_withdrawn_and_nothing_else,
    OLD restarts::a_node_goes_over_to_frr_and_back,
];

fn main() -> ExitCode {
    lab::probe::other_role().unwrap_or_else(|| exit_code("frr_faults", run()))
}

/// Whether every promise was kept.
fn run() -> Result<bool> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return Ok(true);
    }
    let is_list = words.iter().any(|word| word == "--list");
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| *word != "--list").collect();
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        bail!("there is no option {option}\n{USAGE}");
    }
    let cells = select(&words);
    ensure!(!cells.is_empty(), "no story matches {words:?}; see --list");
    if is_list {
        cells.iter().for_each(|(story, release)| println!("{}", title(story, *release)));
        return Ok(true);
    }
    ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    for release in BOTH {
        let kind = RouterKind::Frr(*release);
        println!("{} {}", kind.word(), kind.version()?);
    }
    end_on_signals()?;
    let folder = std::env::temp_dir().join(format!("fairway-frr-faults-{}", std::process::id()));
    make_directory(&folder)?;
    let start = now();
    let all_kept = tell_all(cells, &folder)?;
    println!("frr_faults: {:.0} s", start.elapsed().as_secs_f64());
    // Only empty when no promise was broken; a broken one keeps its own directory.
    let _ = std::fs::remove_dir(&folder);
    Ok(all_kept)
}

fn title(story: &Story, release: Release) -> String {
    format!("{}: {}", RouterKind::Frr(release).word(), story.name.replace('_', " "))
}

/// Words that name a release choose among releases, all others among stories.
fn select(words: &[&str]) -> Vec<(&'static Story, Release)> {
    let is_release = |word: &&&str| matches!(**word, "frr8" | "frr10");
    let releases: Vec<&str> = words.iter().filter(is_release).copied().collect();
    let names: Vec<&str> = words.iter().filter(|word| !is_release(word)).copied().collect();
    let all = STORIES.iter().flat_map(|story| story.releases.iter().map(move |one| (story, *one)));
    all.filter(|(story, release)| {
        let is_named = |word: &&str| title(story, *release).contains(*word);
        (names.is_empty() || names.iter().any(is_named))
            && (releases.is_empty() || releases.contains(&RouterKind::Frr(*release).word()))
    })
    .collect()
}

/// Whether all promises were kept. Several stories at a time: they mostly wait.
fn tell_all(cells: Vec<(&'static Story, Release)>, folder: &Path) -> Result<bool> {
    let waiting = Mutex::new(cells.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        let mut all_kept = true;
        while let Some((number, (story, release))) = next().filter(|_| !is_interrupted()) {
            let directory = folder.join(number.to_string());
            make_directory(&directory)?;
            all_kept &= tell(story, &Cell { number, release, directory })?;
        }
        Ok(all_kept && !is_interrupted())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..JOBS).map(|_| scope.spawn(worker)).collect();
        let ended = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| bail!("a story has panicked")));
        // Each to its end, whatever became of the others.
        ended.collect::<Vec<Result<bool>>>().into_iter().try_fold(true, |all, one| Ok(all & one?))
    })
}

/// Whether the promise of the story was kept.
fn tell(story: &Story, cell: &Cell) -> Result<bool> {
    let start = now();
    let outcome = (story.run)(cell);
    let seconds = start.elapsed().as_secs_f64();
    let title = title(story, cell.release);
    match outcome {
        Ok(()) => {
            println!("{title}: kept, {seconds:.1} s");
            std::fs::remove_dir_all(&cell.directory).context("removing a story's directory")?;
            Ok(true)
        }
        Err(_) if is_interrupted() => Ok(false),
        Err(error) => {
            println!("{title}: BROKEN after {seconds:.1} s: {error:#}");
            show_logs(&cell.directory);
            Ok(false)
        }
    }
}

fn show_logs(directory: &Path) {
    for name in ["fairway.log", "router.log", "node/frr/daemons.log"] {
        let log = directory.join(name);
        println!("  the end of {}:\n{}", log.display(), tail(&log, TAIL_LINES));
    }
}
