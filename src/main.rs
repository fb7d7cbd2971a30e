//! The `fairway` binary: names its commit, and runs the command line.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A small process would take twice the memory: pages of 2 MiB for some kilobytes each. A kernel that refuses
    // leaves it so.
    let _ = nix::sys::prctl::set_thp_disable(true);
    fairway_daemon::cli::main(env!("FAIRWAY_COMMIT"))
}
