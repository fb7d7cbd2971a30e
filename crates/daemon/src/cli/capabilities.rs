//! Raises the permitted capabilities of this process before it does anything else.
//!
//! Kubernetes gives no ambient capabilities to a container that does not run as root, and a file capability
//! with the effective bit keeps the program from starting where the pod's bounding set lacks it. So the image
//! has them as permitted only, and those that the bounding set leaves are made effective here. Threads
//! inherit them, so this has to happen before the first thread starts.
//! here. Threads inherit it, so it has to be done before there are any.

use tracing::warn;

/// Makes the permitted capabilities effective. An empty set is not an error.
pub(super) fn raise() {
    let raised = rustix::thread::capabilities(None).and_then(|sets| {
        if sets.effective == sets.permitted {
            return Ok(());
        }
        let raised = rustix::thread::CapabilitySets { effective: sets.permitted, ..sets };
        rustix::thread::set_capabilities(None, raised)
    });
    if let Err(error) = raised {
        warn!(%error, "cannot raise the capabilities of this process: ports below 1024 may fail");
    }
}
