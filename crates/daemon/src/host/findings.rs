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
    /// Those that there was no line left for. They are logged later, if they are still there.
    unlogged: Vec<Finding>,
}

impl FindingLog {
    /// Nothing was logged.
    pub(crate) fn new() -> Self {
        Self {
            lines: Allowances::new(ALLOWANCE, Bound::LogLine),
            findings: Vec::new(),
            unlogged: Vec::new(),
        }
    }

    /// The findings of now.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Logs a finding once when it appears, and a fault once more when it is resolved.
    pub(crate) fn follow(&mut self, now: Instant, findings: Vec<Finding>) {
        let unlogged = std::mem::take(&mut self.unlogged);
        let gone = self.findings.iter().filter(|it| it.is_fault() && !findings.contains(it));
        for finding in gone.filter(|it| !unlogged.contains(it)) {
            let Some(left_out) = self.lines.take(now, cause(finding)) else { continue };
            info!(lines_left_out = nonzero(left_out), "resolved: {finding}");
        }
        let is_news = |it: &&Finding| !self.findings.contains(it) || unlogged.contains(it);
        for finding in findings.iter().filter(is_news) {
            let Some(left_out) = self.lines.take(now, cause(finding)) else {
                self.unlogged.push(finding.clone());
                continue;
            };
            let lines_left_out = nonzero(left_out);
            if finding.is_fault() {
                error!(lines_left_out, "{finding}");
            } else {
                warn!(lines_left_out, "{finding}");
            }
        }
        self.findings = findings;
    }
}

/// What shares an allowance.
fn cause(finding: &Finding) -> (String, String) {
    let object = finding.object.as_ref().map(|it| format!("{}/{}", it.kind, it.name));
    (finding.file.clone(), object.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use fairway_resources::Severity;

    use super::*;

    fn fault(file: &str, message: String) -> Finding {
        let file = file.to_owned();
        Finding { severity: Severity::Fault, file, line: None, object: None, field: None, message }
    }

    #[test]
    fn a_file_that_turns_faulty_again_and_again_does_not_fill_the_log() {
        let mut log = FindingLog::new();
        let written = |number: u32| fault("a.yaml", format!("fault {number}"));
        for number in 0..100 {
            log.follow(Instant::ZERO, vec![written(number)]);
        }
        assert_eq!(log.unlogged, [written(99)]);
        let other = fault("b.yaml", "fault".to_owned());
        log.follow(Instant::ZERO, vec![written(99), other]);
        assert_eq!(log.unlogged, [written(99)], "each file has lines of its own");
        log.follow(Instant::ZERO + ALLOWANCE.interval, vec![written(99)]);
        assert_eq!(log.unlogged, []);
    }
}
