//! What an operator wrote for FRR in its own words.

use super::ObjectName;

/// The ConfigMap `bgpextras`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrrExtras {
    /// Its name.
    pub name: ObjectName,
    /// Lines of FRR's configuration.
    pub text: String,
}
