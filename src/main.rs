//! The `fairway` binary: names its commit, and runs the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairway_daemon::cli::main(env!("FAIRWAY_COMMIT"))
}
