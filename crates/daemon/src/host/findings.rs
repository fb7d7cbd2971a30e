//! Logs faults and warnings of the resources.

use fairway_resources::Finding;
use tracing::{error, info, warn};

/// Logs a finding once when it appears, and a fault once more when it is resolved.
pub(crate) fn log_findings(before: &[Finding], now: &[Finding]) {
    for finding in now.iter().filter(|finding| !before.contains(finding)) {
        if finding.is_fault() { error!("{finding}") } else { warn!("{finding}") }
    }
    for finding in before.iter().filter(|it| it.is_fault() && !now.contains(it)) {
        info!("resolved: {finding}");
    }
}
