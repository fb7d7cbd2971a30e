//! Logs faults and warnings of the resources, each file and object within an allowance: one that is written many times
//! a second is not to fill a disk.

use std::time::Duration;

use fairway_ground::{Allowance, Allowances, Bound, Instant, nonzero};
use fairway_resources::Finding;
use tracing::{error, info, warn};

/// Of each file and object.
const ALLOWANCE: Allowance = Allowance { burst: 20, interval: Duration::from_secs(10) };

/// What was logged already.
#[derive(Debug)]
pub(crate) struct FindingLog {
    lines: Allowances<(String, String)>,
    findings: Vec<Finding>,
}

impl FindingLog {
    /// Nothing was logged.
    pub(crate) fn new() -> Self {
        Self { lines: Allowances::new(ALLOWANCE, Bound::LogLine), findings: Vec::new() }
    }

    /// The findings of now.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Logs a finding once when it appears, and a fault once more when it is resolved.
    pub(crate) fn follow(&mut self, now: Instant, findings: Vec<Finding>) {
        for finding in findings.iter().filter(|it| !self.findings.contains(it)) {
            let Some(left_out) = self.lines.take(now, cause(finding)) else { continue };
            let lines_left_out = nonzero(left_out);
            if finding.is_fault() {
                error!(lines_left_out, "{finding}");
            } else {
                warn!(lines_left_out, "{finding}");
            }
        }
        for finding in self.findings.iter().filter(|it| it.is_fault() && !findings.contains(it)) {
            let Some(left_out) = self.lines.take(now, cause(finding)) else { continue };
            info!(lines_left_out = nonzero(left_out), "resolved: {finding}");
        }
        self.findings = findings;
    }
}

/// What shares an allowance.
fn cause(finding: &Finding) -> (String, String) {
    let object = finding.object.as_ref().map(|it| format!("{}/{}", it.kind, it.name));
    (finding.file.clone(), object.unwrap_or_default())
}
