//! What a command prints on stdout and stderr. Text of others does nothing to a terminal.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use fairway_ground::printable_lines;

/// Writes all of `output`, unless the reader closes the pipe.
pub(super) fn print(output: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let output = printable_lines(output);
    match stdout.write_all(output.as_bytes()).and_then(|()| stdout.flush()) {
        // A reader that closes the pipe early (`| head`) is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("stdout"),
        _ => Ok(()),
    }
}

/// Writes lines to stderr.
pub(super) fn say(lines: &str) {
    eprintln!("{}", printable_lines(lines));
}
