//! What a command prints on stdout.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes all of `output`, unless the reader closes the pipe.
pub(super) fn print(output: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(output.as_bytes()).and_then(|()| stdout.flush()) {
        // A reader that closes the pipe early (`| head`) is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("stdout"),
        _ => Ok(()),
    }
}
