//! A fault or warning in the configuration: one line for people, fields for programs.
//!
//! Answers where and what, in the form that `fairway check` prints. Decides nothing: the catalog
//! makes findings, commands and logs show them.

use std::fmt;

use fairway_ground::printable;
use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// What it is about cannot be used.
    Fault,
    /// Legal, but probably not what was intended.
    Warning,
}

/// The object that a finding is about, as far as it can be named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FindingObject {
    /// `kind` as written.
    pub kind: String,
    /// `metadata.name`; empty when it is missing.
    pub name: String,
}

/// One finding. Shown as `FILE:LINE: Kind/name: field.path: message`, without the parts that are
/// absent; a warning has `warning: ` in front of its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file or folder, as the user named it; empty for what comes from an API server.
    pub file: String,
    /// The line, counted from 1; `None` when the file as a whole is meant.
    pub line: Option<usize>,
    /// The object.
    pub object: Option<FindingObject>,
    /// The field, as in `spec.communities[2]`.
    pub field: Option<String>,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Finding {
    /// Whether it is a fault.
    pub fn is_fault(&self) -> bool {
        self.severity == Severity::Fault
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            f.write_str(&printable(&self.file))?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        match &self.object {
            Some(object) if object.name.is_empty() => write!(f, "{}: ", printable(&object.kind))?,
            Some(object) => {
                write!(f, "{}/{}: ", printable(&object.kind), printable(&object.name))?;
            }
            None => {}
        }
        if let Some(field) = &self.field {
            write!(f, "{}: ", printable(&field.to_string()))?;
        }
        let mark = if self.is_fault() { "" } else { "warning: " };
        write!(f, "{mark}{}", printable(&self.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_parts_are_left_out() {
        let mut finding = Finding {
            severity: Severity::Fault,
            file: "a.yaml".to_owned(),
            line: Some(7),
            object: Some(FindingObject { kind: "BGPPeer".to_owned(), name: "tor".to_owned() }),
            field: Some("spec.peerPort".to_owned()),
            message: "70000 is not allowed".to_owned(),
        };
        let full = "a.yaml:7: BGPPeer/tor: spec.peerPort: 70000 is not allowed";
        assert_eq!(finding.to_string(), full);
        finding.severity = Severity::Warning;
        let full = "a.yaml:7: BGPPeer/tor: spec.peerPort: warning: 70000 is not allowed";
        assert_eq!(finding.to_string(), full);
        finding.line = None;
        finding.object = None;
        finding.field = None;
        assert_eq!(finding.to_string(), "a.yaml: warning: 70000 is not allowed");
    }
}
