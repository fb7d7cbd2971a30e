//! What RPKI says about the origin of a route (RFC 6811).

use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// The state of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginValidation {
    /// A payload allows its origin and its length.
    Valid,
    /// Payloads cover its prefix, and none of them does.
    Invalid,
    /// No payload covers its prefix.
    NotFound,
}

impl OriginValidation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Valid, Self::Invalid, Self::NotFound];
}

impl fmt::Display for OriginValidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::NotFound => "notFound",
        })
    }
}

impl FromStr for OriginValidation {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::ALL.into_iter().find(|it| it.to_string() == text).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "a state of origin validation: valid, invalid or notFound",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_as_they_are_written() {
        for state in OriginValidation::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        let error = "unknown".parse::<OriginValidation>().unwrap_err().to_string();
        assert!(error.contains("notFound"), "{error}");
    }
}
