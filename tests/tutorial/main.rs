//! Does the tutorial work, letter by letter? Its blocks are typed into one shell, in the order of the page, and each output is
//! what it prints. The shell has namespaces of its own, so that it finds the machine as empty as the reader does.
//! `cargo test --test tutorial`, as root.

mod lesson;
mod shell;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use lab::suite::{self, Case, Cell, Suite};

use lesson::{Lesson, Step};
use shell::Shell;

const PAGE: &str = "docs/tutorial.md";

/// docs/tutorial.md, typed as it is printed.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("tutorial", run)
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("tutorial", options.suite).as_root();
    suite.add(Case::new("the tutorial, from its beginning to its end", type_all));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

fn type_all(cell: &Cell) -> Result<()> {
    let lesson = Lesson::parse(&fs::read_to_string(lab::checkout().join(PAGE)).context(PAGE)?)?;
    let mut shell = Shell::start(&cell.directory)?;
    for step in &lesson.steps {
        match step {
            Step::Type { line, text } => {
                shell.succeeds(text).with_context(|| format!("{PAGE}:{line}"))?;
            }
            Step::Save { line, path, text } => {
                shell.save(path, text).with_context(|| format!("{PAGE}:{line}"))?;
            }
            Step::See { line, command, answer } => {
                shell.shows(command, answer).with_context(|| format!("{PAGE}:{line}"))?;
            }
        }
    }
    shell.is_clean()
}
