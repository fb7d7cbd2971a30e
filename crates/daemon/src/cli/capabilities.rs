//! What this process is allowed beyond other users, put to use before it does anything.
//!
//! Kubernetes gives a container that is not root no ambient capabilities, and a file capability
//! that is effective keeps the program from starting where the pod may not have it. So the image
//! has them as permitted only, and whatever is left of them after the pod's own bounds is raised
//! here. Threads inherit it, so it has to be done before there are any.

use tracing::warn;

/// Makes effective what is permitted. To have nothing is no fault.
pub(super) fn raise() {
    let raised = rustix::thread::capabilities(None).and_then(|sets| {
        if sets.effective == sets.permitted {
            return Ok(());
        }
        let raised = rustix::thread::CapabilitySets { effective: sets.permitted, ..sets };
        rustix::thread::set_capabilities(None, raised)
    });
    if let Err(error) = raised {
        warn!(%error, "cannot use the capabilities of this process; ports below 1024 may be closed");
    }
}
