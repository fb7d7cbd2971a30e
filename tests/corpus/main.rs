//! What becomes of every malformed and malicious input that we know of? Each entry of the corpus
//! goes to a fairway of its own, from an external and from an internal peer, and, as an oracle, to
//! a real BIRD: `cargo test --test corpus -- [WORD...] [--list] [--jobs N] [--bird] [--document]`.
//! Needs no root: every speaker has a loopback address of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a builder that cannot build is a fault of the corpus, and ends it"
)]

mod bird;
mod bytes;
mod daemon;
mod document;
mod entries;
mod entry;
mod looks;
mod observer;
mod runner;
mod speaker;
mod trial;
#[allow(dead_code, reason = "shared with the interop suite, which waits in more ways")]
#[path = "../interop/lab/wait.rs"]
mod wait;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use entry::Entry;
use runner::{Runner, Subject};

const USAGE: &str = "\
usage: corpus [WORD...] [--list] [--jobs N] [--bird] [--document]
  WORD        run only entries whose name, or whose source, has each of these words in it
  --list      print the entries that would run, and run none
  --jobs N    trials at a time (default 2)
  --bird      send the bytes to BIRD instead, and compare
  --document  write docs/corpus.md anew
The program under test is FAIRWAY_BIN, else the one that cargo has built.";

const DEFAULT_JOBS: usize = 2;

struct Options {
    words: Vec<String>,
    list: bool,
    bird: bool,
    document: bool,
    jobs: usize,
}

fn main() -> ExitCode {
    wait::exit_code("corpus", run())
}

/// Whether all is as it must be.
fn run() -> Result<bool> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(true);
    };
    if options.document {
        document::write()?;
        return Ok(true);
    }
    let all = entries::all();
    check_names(&all)?;
    let chosen: Vec<_> = all.into_iter().filter(|it| is_chosen(it, &options.words)).collect();
    ensure!(!chosen.is_empty(), "no entry matches {:?}; see --list", options.words);
    if options.list {
        for entry in &chosen {
            println!("{} ({}), {}", entry.name, entry.source, entry.moment.name());
        }
        return Ok(true);
    }
    let subject = if options.bird { Subject::Bird } else { Subject::Fairway };
    let passed = Runner { subject, jobs: options.jobs }.run(&chosen)?;
    if options.words.is_empty() {
        document::check()?;
    }
    Ok(passed)
}

fn is_chosen(entry: &Entry, words: &[String]) -> bool {
    words.iter().all(|word| entry.name.contains(word) || entry.source.contains(word))
}

/// The corpus only grows, and every name means one entry.
fn check_names(entries: &[Entry]) -> Result<()> {
    let mut names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
    ensure!(names.len() >= 120, "the corpus has only {} entries", names.len());
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    ensure!(twice.is_none(), "two entries of one name: {twice:?}");
    Ok(())
}

/// None when help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options {
        words: Vec::new(),
        list: false,
        bird: false,
        document: false,
        jobs: DEFAULT_JOBS,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--list" => options.list = true,
            "--bird" => options.bird = true,
            "--document" => options.document = true,
            "--jobs" => {
                let jobs = arguments.next().and_then(|text| text.parse().ok());
                options.jobs =
                    jobs.filter(|jobs| *jobs > 0).context("--jobs: expected 1 or more")?;
            }
            other if other.starts_with('-') => bail!("unknown option {other}\n{USAGE}"),
            word => options.words.push(word.to_owned()),
        }
    }
    Ok(Some(options))
}
