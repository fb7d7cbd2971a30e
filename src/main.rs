//! The `fairway` binary: names its commit, and runs the command line.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A small process would take twice the memory: pages of 2 MiB for some kilobytes each. A kernel that refuses
    // leaves it so.
    let _ = nix::sys::prctl::set_thp_disable(true);
    fairway_daemon::cli::main(env!("FAIRWAY_COMMIT"), allocator::give_back)
}
