//! Does `docs/peers.md` work, letter by letter? Each of its sections is set up as it is printed:
//! our YAML, FRR's or BIRD's configuration, the commands at the prompts, and their output.
//! Run as root by `cargo test --test walk -- [WORD...] [--vm]`.

mod document;
mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;

use document::{Section, Walk};
use lab::suite::{self, Case, Suite};
use stage::{RouterKind, Stage};

/// Sections mostly wait for routers.
const THREADS: usize = 4;

/// docs/peers.md, section by section, as it is printed.
///
/// Words: frr and bird choose routers, all others must occur in the heading.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// The sections that need a kernel with VRFs and TCP-AO, and only those
    #[arg(long)]
    vm: bool,
}

fn main() -> ExitCode {
    suite::main("walk", run)
}

/// Whether every section worked as it is written.
fn run(options: Options) -> Result<bool> {
    let page = lab::checkout().join("docs/peers.md");
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let walk = Arc::new(Walk::parse(&text).with_context(|| page.display().to_string())?);
    // An emulated machine is slow: one section at a time.
    let threads = if options.vm { 1 } else { THREADS };
    let mut suite = Suite::new("walk", options.suite).as_root().threads(threads);
    for (place, section) in walk.sections.iter().enumerate() {
        if section.needs_vm() != options.vm {
            continue;
        }
        for router in RouterKind::ALL.into_iter().filter(|router| section.mentions(*router)) {
            let walk = Arc::clone(&walk);
            let run = move |cell: &suite::Cell| {
                go(&walk, walk.sections.get(place).context("a section")?, router, cell)
            };
            suite.add(Case::new(section.heading.clone(), run).at(&[&router.to_string()]));
        }
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

/// One section with one router.
fn go(walk: &Walk, section: &Section, router: RouterKind, cell: &suite::Cell) -> Result<()> {
    let mut stage = Stage::set_up(walk, section, router, cell.number, &cell.directory)?;
    let prompts = section.prompts.iter().filter(|it| it.is_for(router));
    prompts.into_iter().try_for_each(|prompt| stage.follow(prompt))
}
