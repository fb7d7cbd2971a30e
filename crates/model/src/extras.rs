//! FRR configuration lines that the operator adds.

use super::ObjectName;

/// The ConfigMap `bgpextras`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrrExtras {
    /// Its name.
    pub name: ObjectName,
    /// Lines of FRR's configuration.
    pub text: String,
}
