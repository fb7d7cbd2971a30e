//! The error of parsers that expect one value.

/// A value that its text does not describe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseError {
    /// What was given.
    pub text: String,
    /// What would have been right, as in "an AS number from 1 to 4294967295".
    pub expected: &'static str,
}
