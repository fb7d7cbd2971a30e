//! Do the pages about neighbors work, letter by letter? Each of their sections is set up as it is printed:
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

/// The pages that have such sections.
const PAGES: [&str; 6] = [
    "docs/peers.md",
    "docs/routers.md",
    "docs/troubleshooting.md",
    "docs/failures.md",
    "docs/tasks/originate.md",
    "docs/tasks/route-server.md",
];

/// Sections mostly wait for routers.
const THREADS: usize = 4;

/// Pages about neighbors, section by section, as they are printed.
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
    // An emulated machine is slow: one section at a time.
    let threads = if options.vm { 1 } else { THREADS };
    let mut suite = Suite::new("walk", options.suite).as_root().threads(threads);
    for page in PAGES {
        add_page(&mut suite, page, options.vm)?;
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

/// Its sections, of which some need another kernel than that of every machine.
fn add_page(suite: &mut Suite, page: &str, has_vm: bool) -> Result<()> {
    let text =
        std::fs::read_to_string(lab::checkout().join(page)).with_context(|| page.to_owned())?;
    let walk = Arc::new(Walk::parse(&text).with_context(|| page.to_owned())?);
    for (place, section) in walk.sections.iter().enumerate() {
        if section.needs_vm() != has_vm {
            continue;
        }
        for router in RouterKind::ALL.into_iter().filter(|router| section.mentions(*router)) {
            let walk = Arc::clone(&walk);
            let run = move |cell: &suite::Cell| {
                go(&walk, walk.sections.get(place).context("a section")?, router, cell)
            };
            let case = Case::new(section.heading.clone(), run).at(&[&router.to_string()]);
            suite.add(case.from_source(page));
        }
    }
    Ok(())
}

/// One section with one router.
fn go(walk: &Walk, section: &Section, router: RouterKind, cell: &suite::Cell) -> Result<()> {
    let mut stage = Stage::set_up(walk, section, router, cell.number, &cell.directory)?;
    let prompts = section.prompts.iter().filter(|it| it.is_for(router));
    prompts.into_iter().try_for_each(|prompt| stage.follow(prompt))
}
