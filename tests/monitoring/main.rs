//! What do BMP stations hear of a node between real machines? A node with Fairway, a router with FRR that announces routes,
//! and stations on the node that read with bgpkit-parser, or read nothing. `cargo test --test monitoring`, as root.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "what fails here fails the test")]

mod cases;
mod scene;
mod station;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lab::suite::{self, Suite};

/// BMP stations beside a node.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("monitoring", run)
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("monitoring", options.suite).as_root();
    cases::add_to(&mut suite);
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
