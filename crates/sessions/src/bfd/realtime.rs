//! Real-time priority for the BFD thread: before all other threads of the machine, and never paged out.

use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use tracing::warn;

use crate::sockopt;
use fairway_bfd::Realtime;

/// Low among real-time priorities: critical kernel threads (threaded interrupts have 50) take precedence.
const PRIORITY: libc::c_int = 5;

/// The shortest time slice of the kernel, for when real time is not requested or refused: on a busy machine
/// the thread then waits some milliseconds instead of tens.
const SLICE_NANOSECONDS: u64 = 100_000;

/// The number of the capability `IPC_LOCK`.
const CAP_IPC_LOCK: u32 = 14;

/// Requests real time for the calling thread. A refusal is logged once, here, and is part of the status.
pub(super) fn ask(is_wanted: bool) -> Realtime {
    // Set before real time, which it does not affect. Best effort: kernels may ignore it.
    let _ = sockopt::set_slice(SLICE_NANOSECONDS);
    if !is_wanted {
        return Realtime::Off;
    }
    let mut refused = Vec::new();
    if let Err(error) = sockopt::set_realtime(PRIORITY) {
        refused.push(match error {
            Errno::EPERM => "SCHED_FIFO: not permitted; requires the capability SYS_NICE, or \
                             LimitRTPRIO=5, and no sandbox (RestrictRealtime, \
                             SystemCallFilter) or control group that forbids it"
                .to_owned(),
            error => format!("SCHED_FIFO: {error}"),
        });
    }
    // With a limit on locked memory, allocations of the whole process would fail once it is reached.
    if !may_lock_all() {
        refused.push(
            "mlockall: not permitted; requires the capability IPC_LOCK, or LimitMEMLOCK=infinity"
                .to_owned(),
        );
    } else if let Err(error) = sockopt::lock_memory() {
        refused.push(format!("mlockall: {error}"));
    }
    if refused.is_empty() {
        return Realtime::Granted;
    }
    let reason = refused.join("; ");
    warn!(%reason, "BFD does not run in real time; sessions may go down when this machine is busy");
    Realtime::Refused(reason)
}

/// Whether this process may lock unlimited memory.
fn may_lock_all() -> bool {
    let is_unlimited =
        getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == libc::RLIM_INFINITY);
    let effective = || {
        let status = fs::read_to_string("/proc/thread-self/status").ok()?;
        let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(set.trim(), 16).ok()
    };
    is_unlimited || effective().is_some_and(|set| set & (1 << CAP_IPC_LOCK) != 0)
}
