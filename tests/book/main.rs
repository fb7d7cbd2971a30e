//! Does the book hold together? Each page of `docs/` is in its table of contents, each link leads somewhere, the daemon takes
//! each resource and knows each command that is printed. `cargo test --test book`; needs no root.

mod book;
mod commands;
mod page;
mod resources;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lab::suite::{self, Case, Suite};

/// The pages of the documentation.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("book", run)
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("book", options.suite);
    suite.add(Case::new("each page is in the table of contents, once", |_| book::contents()));
    suite.add(Case::new("each link leads somewhere", |_| book::links()));
    suite.add(Case::new("what users read says neighbor", |_| book::spelling()));
    suite.add(Case::new("each metric that a page names exists", |_| book::metrics()));
    suite.add(Case::new("each resource that is printed is taken", resources::are_taken));
    suite.add(Case::new("each command that is printed is known", commands::are_known));
    let missing = book::without_mdbook();
    suite.add(Case::new("mdBook builds it", book::is_built).not_applicable(missing));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
