//! Does `fairway explain` name what is wrong, between real machines? Each case breaks one thing between a node and a router
//! with BIRD, waits for the cause in the first line, mends what the answer says is to be mended, and waits until the answer
//! names no cause any more. What was said before is recorded, and can be watched. `cargo test --test explain`, as root.

mod found;
mod recorded;
mod scene;
mod services;
mod sessions;
mod watched;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lab::suite::{self, Suite};

/// `fairway explain`, on things that are broken.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("explain", run)
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("explain", options.suite).as_root();
    sessions::add_to(&mut suite);
    services::add_to(&mut suite);
    found::add_to(&mut suite);
    recorded::add_to(&mut suite);
    watched::add_to(&mut suite);
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
