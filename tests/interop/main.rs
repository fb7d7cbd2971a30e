//! Does fairway get along with the routers that people run? The matrix of cases and routers, each
//! cell in network namespaces of its own, run by `cargo test --test interop` as root:
//! `cargo test --test interop -- [WORD...] [--bgp WHO] [--list] [--short] [--jobs N] [--table FILE]`.

mod cases;
#[allow(dead_code, reason = "asked in full by the stories of failures, which share it")]
#[path = "../frr_faults/speaker.rs"]
mod frr_beside;
mod lab;
mod matrix;
mod routers;
mod speaker;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use cases::CASES;
use lab::fairway;
use lab::wait::{end_on_signals, exit_code, is_interrupted};
use matrix::{Matrix, Square};
use routers::RouterKind;
use speaker::SpeakerKind;

const USAGE: &str = "\
usage: interop [WORD...] [--bgp WHO] [--list] [--short] [--jobs N] [--table FILE]
  WORD          run only these: frr8, frr10, bird2, bird3, gobgp, openbgpd choose routers, frr and
                bird two of them; every other word must occur in the name of the case
  --bgp WHO     who speaks BGP on the node: native (default), frr8 or frr10, which meet FRR and BIRD
                unless other routers are named
  --list        print the cells that would run, and run none
  --short       each case about BFD with one router, not with all; with --bgp frr8|frr10 a handful
  --jobs N      cells at a time (default 4)
  --table FILE  write the result as a Markdown table
The program under test is FAIRWAY_BIN, else the one that cargo has built.";

/// Cells mostly wait for timers: four at a time leave the clocks true on two cores, busy ones too.
const DEFAULT_JOBS: usize = 4;

struct Options {
    bgp: SpeakerKind,
    words: Vec<String>,
    list: bool,
    short: bool,
    jobs: usize,
    table: Option<PathBuf>,
}

fn main() -> ExitCode {
    lab::probe::other_role().unwrap_or_else(|| exit_code("interop", run()))
}

/// Whether every cell has passed.
fn run() -> Result<bool> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(true);
    };
    let speaker = options.bgp;
    let mut squares = select(&options.words, speaker);
    squares.retain(|square| !options.short || square.case.is_short(square.router, speaker));
    ensure!(!squares.is_empty(), "no case and router match {:?}; see --list", options.words);
    if options.list {
        for square in &squares {
            println!("{}: {}", square.router.word(), square.case.sentence());
        }
        return Ok(true);
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("network namespaces and port 179 need root; run this as root");
    }
    let program = fairway::program();
    ensure!(program.exists(), "the program under test, {}, does not exist", program.display());
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    end_on_signals()?;
    let matrix = Matrix::of(squares, speaker)?;
    let results = matrix.run(options.jobs)?;
    results.print_summary();
    if let (Some(file), false) = (&options.table, is_interrupted()) {
        std::fs::write(file, results.markdown())
            .with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(results.all_passed())
}

/// None when help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let (list, short) = (false, false);
    let (words, bgp) = (Vec::new(), SpeakerKind::Fairway);
    let mut options = Options { bgp, words, list, short, jobs: DEFAULT_JOBS, table: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--bgp" => {
                let word = value()?;
                options.bgp = SpeakerKind::called(&word)
                    .with_context(|| format!("--bgp {word}: expected native, frr8 or frr10"))?;
            }
            "--list" => options.list = true,
            "--short" => options.short = true,
            "--jobs" => {
                let text = value()?;
                let jobs = text.parse().ok().filter(|jobs| *jobs > 0);
                options.jobs =
                    jobs.with_context(|| format!("--jobs {text}: expected 1 or more"))?;
            }
            "--table" => options.table = Some(value()?.into()),
            other if other.starts_with('-') => bail!("unknown option {other}\n{USAGE}"),
            word => options.words.push(word.to_lowercase()),
        }
    }
    Ok(Some(options))
}

/// The cells that the words ask for, case by case.
fn select(words: &[String], speaker: SpeakerKind) -> Vec<Square> {
    let names_router =
        |word: &&String| RouterKind::ALL.into_iter().any(|kind| kind.is_called(word));
    let (routers, others): (Vec<_>, Vec<_>) = words.iter().partition(names_router);
    let mut squares = Vec::new();
    for case in CASES {
        if !others.iter().all(|word| case.sentence().contains(word.as_str())) {
            continue;
        }
        let wanted = RouterKind::ALL.into_iter().filter(|kind| match routers.as_slice() {
            [] => speaker.meets(*kind),
            words => words.iter().any(|word| kind.is_called(word)),
        });
        squares.extend(wanted.map(|router| Square { case, router }));
    }
    squares
}
