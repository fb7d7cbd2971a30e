//! The error of parsers that expect one value.

/// A text that is not a valid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseError {
    /// The given text.
    pub text: String,
    /// The expected form, as in "an AS number from 1 to 4294967295".
    pub expected: &'static str,
}
