//! The message that a neighbour is sent when its session is shut down (RFC 9003).

use std::fmt;

/// The most bytes that the length octet can count (RFC 9003 §2).
const LENGTH_BYTES_MAX: usize = 255;

/// Why a text cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message has {0} bytes of UTF-8; RFC 9003 allows up to 255")]
pub struct ShutdownMessageError(usize);

/// The operator's text in a Cease: up to 255 bytes of UTF-8, possibly none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ShutdownMessage(String);

impl ShutdownMessage {
    /// Rejects a text that does not fit.
    pub fn new(text: impl Into<String>) -> Result<Self, ShutdownMessageError> {
        let text = text.into();
        if text.len() > LENGTH_BYTES_MAX {
            return Err(ShutdownMessageError(text.len()));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShutdownMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_and_not_letters() {
        assert!(ShutdownMessage::new("x".repeat(255)).is_ok());
        assert_eq!(ShutdownMessage::new("ü".repeat(128)), Err(ShutdownMessageError(256)));
    }
}
