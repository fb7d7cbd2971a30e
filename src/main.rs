//! The `fairway` binary: parses the command line, runs a command, sets the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairway::cli::main()
}
