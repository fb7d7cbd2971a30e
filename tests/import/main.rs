//! Does `fairway import` say the same as the configuration that it reads? FRR or BIRD runs a configuration, and routers note what it
//! tells them; then Fairway runs what became of it, in the same place, and tells them the same. keepalived runs its own, and
//! has the addresses that `fairway plan` names. For objects of Cilium, Calico and frr-k8s their BGP daemon runs, and tells what the
//! plan says. `cargo test --test import`, as root.

mod beside;
mod bird;
mod documents;
mod frr;
mod keepalived;
mod objects;
mod samples;
mod scene;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lab::suite::{self, Suite};

/// `fairway import`, beside what it translates.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("import", run)
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("import", options.suite).as_root();
    documents::add_to(&mut suite);
    bird::add_to(&mut suite);
    frr::add_to(&mut suite);
    objects::add_to(&mut suite);
    beside::add_to(&mut suite);
    keepalived::add_to(&mut suite);
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
