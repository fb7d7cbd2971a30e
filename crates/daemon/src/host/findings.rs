//! What the log says of what is wrong with the resources.

use fairway_resources::Finding;
use tracing::{error, info, warn};

/// A finding is said once when it comes, and a fault once more when it is gone.
pub(crate) fn log_findings(before: &[Finding], now: &[Finding]) {
    for finding in now.iter().filter(|finding| !before.contains(finding)) {
        if finding.is_fault() { error!("{finding}") } else { warn!("{finding}") }
    }
    for finding in before.iter().filter(|it| it.is_fault() && !now.contains(it)) {
        info!("no longer so: {finding}");
    }
}
