//! Why do our answers differ from FRR's? A row for each reason; `compare` sees to it that each is
//! true and none is missing.

use crate::compare::Way;

/// A reason, and what it explains.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) way: Way,
    /// The last keys of paths.
    pub(crate) keys: &'static [&'static str],
    /// Words that the command has.
    pub(crate) command: &'static str,
    pub(crate) why: &'static str,
}

pub(crate) const REASONS: &[Reason] = &[];
