//! What a command prints on stdout and stderr. Text of others does nothing to a terminal.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use fairway_ground::{printable_json, printable_lines};

/// Writes lines for people, unless the reader closes the pipe.
pub(super) fn print(output: &str) -> Result<()> {
    write(&printable_lines(output))
}

/// The same for JSON.
pub(super) fn print_json(output: &str) -> Result<()> {
    write(&printable_json(output))
}

/// The same for text that another program reads, which gets it exactly.
pub(super) fn print_for_programs(output: &str) -> Result<()> {
    if std::io::stdout().is_terminal() { print(output) } else { write(output) }
}

/// Writes some of the lines for people; returns whether the reader wants more.
pub(super) fn print_part(part: &str) -> std::io::Result<bool> {
    write_part(&printable_lines(part))
}

/// The same for JSON.
pub(super) fn print_part_of_json(part: &str) -> std::io::Result<bool> {
    write_part(&printable_json(part))
}

fn write(output: &str) -> Result<()> {
    write_part(output).map(drop).context("stdout")
}

fn write_part(part: &str) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(part.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        // A reader that closes the pipe early (`| head`) is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes lines to stderr.
pub(super) fn say(lines: &str) {
    eprintln!("{}", printable_lines(lines));
}
