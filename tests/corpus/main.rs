//! What becomes of every malformed and malicious input that we know of? Each entry of the corpus
//! goes to a fairway of its own, from an external and from an internal peer, and, as an oracle, to
//! a real BIRD: `cargo test --test corpus -- [WORD...] [--bird] [--document]`.
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

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Parser;

use entry::{Entry, Kind};
use lab::suite::{self, Case, Suite};
use runner::Subject;
use trial::Trial;

/// Each has a daemon of its own, and mostly waits.
const THREADS: usize = 2;

/// Malformed and malicious input, entry by entry.
///
/// Words: the entries with each of them in their name or source.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Send the bytes to BIRD instead, and compare
    #[arg(long)]
    bird: bool,
    /// Write docs/corpus.md again
    #[arg(long)]
    document: bool,
}

fn main() -> ExitCode {
    suite::main("corpus", run)
}

/// Whether all is as it must be.
fn run(options: Options) -> Result<bool> {
    if options.document {
        document::write()?;
        return Ok(true);
    }
    let subject = if options.bird { Subject::Bird } else { Subject::Fairway };
    let entries = Arc::new(entries::all());
    check_names(&entries)?;
    let mut suite = Suite::new("corpus", options.suite).threads(THREADS);
    for (place, entry) in entries.iter().enumerate() {
        for kind in Kind::ALL {
            let entries = Arc::clone(&entries);
            let run = move |cell: &suite::Cell| {
                let trial = Trial { entry: &entries[place], kind, number: cell.number };
                runner::run(&trial, subject, &cell.directory)
            };
            let name = Trial { entry, kind, number: 0 }.name();
            let source = format!("{}, {}", entry.source, entry.moment.name());
            suite.add(Case::new(name, run).from_source(&source));
        }
    }
    suite.add(Case::new("docs/corpus.md is current", |_| document::check()));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    match subject {
        Subject::Fairway => lab::fairway::existing_program().map(drop)?,
        Subject::Bird => bird::check_program()?,
    }
    Ok(chosen.run()?.all_passed())
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
