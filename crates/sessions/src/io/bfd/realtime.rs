//! Real time for the BFD thread: before all other threads of the machine, and never paged out.

use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use tracing::warn;

use crate::bfd::Realtime;
use crate::io::sockopt;

/// Low among those in real time: what keeps a machine alive (threaded interrupts have 50) goes
/// first.
const PRIORITY: libc::c_int = 5;

/// Turns as short as the kernel gives them, for when real time is not wanted or refused: on a busy
/// machine the wait for one then is some milliseconds rather than tens.
const SLICE_NANOSECONDS: u64 = 100_000;

/// The number of the capability `IPC_LOCK`.
const CAP_IPC_LOCK: u32 = 14;

/// Asks for it, for the calling thread. What is refused is said once, here, and in the status.
pub(super) fn ask(is_wanted: bool) -> Realtime {
    // Before real time, which it does not matter to. It is a wish, and no kernel owes it.
    let _ = sockopt::set_slice(SLICE_NANOSECONDS);
    if !is_wanted {
        return Realtime::Off;
    }
    let mut refused = Vec::new();
    if let Err(error) = sockopt::set_realtime(PRIORITY) {
        refused.push(match error {
            Errno::EPERM => "SCHED_FIFO: not permitted; it needs the capability SYS_NICE, or \
                             LimitRTPRIO=5, and neither a sandbox (RestrictRealtime, \
                             SystemCallFilter) nor a control group that forbids it"
                .to_owned(),
            error => format!("SCHED_FIFO: {error}"),
        });
    }
    // A lock with a limit would make allocations of the whole process fail, once that is reached.
    if !may_lock_all() {
        refused.push(
            "mlockall: not permitted; it needs the capability IPC_LOCK, or LimitMEMLOCK=infinity"
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

/// Whether this process may lock as much memory as it likes.
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
