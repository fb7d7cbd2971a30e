//! Does the looking glass show what a node does? Viewers and programs ask over HTTP, in the node's namespace, while a router
//! with BIRD announces routes, goes down and comes back: beside Fairway's own sessions, and beside FRR as the speaker.
//! `cargo test --test looking_glass`, as root. With `--browser` the page is used in a browser without a screen instead; with
//! `--pictures DIR` this browser photographs it; with `--bench` the delay of a change is measured beside 200 viewers.

#![allow(clippy::indexing_slicing, reason = "what fails here fails the test")]

mod bench;
mod browser;
mod cases;
mod client;
mod pictures;
mod readers;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lab::suite::{self, Suite};

/// The looking glass.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,

    /// Use the page in Chromium (scripts/setup.sh browser)
    #[arg(long)]
    browser: bool,

    /// Write pictures of the page to this folder; needs Chromium (scripts/setup.sh browser)
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
}

fn main() -> ExitCode {
    suite::main("looking_glass", run)
}

fn run(options: Options) -> Result<bool> {
    lab::fairway::existing_program()?;
    if let Some(folder) = options.pictures {
        return pictures::take(&folder).map(|()| true);
    }
    if options.suite.is_bench() {
        return bench::run().map(|()| true);
    }
    let mut suite = Suite::new("looking_glass", options.suite).as_root();
    if options.browser {
        readers::add_to(&mut suite)
    } else {
        cases::add_to(&mut suite)
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}
