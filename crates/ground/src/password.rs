//! A TCP-MD5 key, which is never printed.

use std::fmt;

/// Why a text cannot be a TCP-MD5 key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// The kernel holds at most 80 bytes.
    #[error("the password has {0} bytes; TCP-MD5 allows 1 to 80")]
    TooLong(usize),
    /// An empty key would mean no key at all.
    #[error("the password is empty; TCP-MD5 needs 1 to 80 bytes, or leave the field out")]
    Empty,
}

/// A TCP-MD5 key, 1 to 80 bytes (RFC 2385; the limit is Linux's `TCP_MD5SIG_MAXKEYLEN`).
/// Its `Debug` form hides the text, and it has no `Display`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Password(Vec<u8>);

impl Password {
    /// The maximum length that Linux accepts.
    pub const LENGTH_BYTES_MAX: usize = 80;

    /// Rejects a key that the kernel would reject.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, PasswordError> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(PasswordError::Empty),
            length if length > Self::LENGTH_BYTES_MAX => Err(PasswordError::TooLong(length)),
            _ => Ok(Self(bytes)),
        }
    }

    /// The key: only for the socket option.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_key() {
        let password = Password::new("canary").unwrap();
        assert!(!format!("{password:?}").contains("canary"));
    }

    //= RFC 2385 §4.5 SHOULD: a key has up to 80 octets.
    #[test]
    fn lengths_are_those_of_the_kernel() {
        assert_eq!(Password::new(""), Err(PasswordError::Empty));
        assert!(Password::new([b'x'; 80]).is_ok());
        assert_eq!(Password::new([b'x'; 81]), Err(PasswordError::TooLong(81)));
    }
}
