//! Which text is allowed in a line of FRR configuration?
//!
//! FRR splits a line at blanks, reads `| ` as a pipe into a filter, and a beginning of `!` or `#` as a
//! comment; quoting is impossible. Words that FRR would misread are rejected here, and all text of users
//! passes through here. Knows no resource. Called by the rest of `render`.

use serde::Serialize;

/// Maximum length of one text, in bytes: FRR's limit for a line, less the words before the text.
const LENGTH_BYTES_MAX: usize = 1024;

/// Why a text cannot be part of FRR's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordError {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It does not fit into a line.
    #[error(
        "has {0} bytes; expected at most {LENGTH_BYTES_MAX}, which fit into a line of FRR's configuration"
    )]
    TooLong(usize),
    /// It is not text.
    #[error("is not UTF-8; FRR's configuration is text")]
    NotText,
    /// It would end the line, or worse.
    #[error("has a control character, which a line of FRR's configuration cannot contain")]
    Control,
    /// FRR would read several words.
    #[error("has a blank; FRR expects one word here")]
    Blank,
    /// FRR would drop some of the blanks.
    #[error(
        "has blanks at its start or end, or several in a row, which FRR's configuration does not keep"
    )]
    LostBlank,
    /// FRR would read a pipe.
    #[error("has a | at the end of a word, which FRR reads as a pipe")]
    Pipe,
}

/// One word that FRR reads unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(super) struct Word(String);

/// Words separated by single blanks, at the end of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Words(String);

impl Word {
    /// Rejects what FRR would misread.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, WordError> {
        let Words(text) = Words::new(bytes)?;
        if text.contains(' ') { Err(WordError::Blank) } else { Ok(Self(text)) }
    }

    /// The placeholder for a masked secret.
    pub(super) fn hidden() -> Self {
        Self("<hidden>".to_owned())
    }
}

impl Words {
    /// Rejects what FRR would misread.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, WordError> {
        let text = std::str::from_utf8(bytes).map_err(|_| WordError::NotText)?;
        if text.is_empty() {
            return Err(WordError::Empty);
        }
        if text.len() > LENGTH_BYTES_MAX {
            return Err(WordError::TooLong(text.len()));
        }
        // Includes the characters of Unicode that some readers treat as line breaks.
        if text.contains(|it: char| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')) {
            return Err(WordError::Control);
        }
        if text.split(' ').any(str::is_empty) {
            return Err(WordError::LostBlank);
        }
        if text.split(' ').any(|word| word.ends_with('|')) {
            return Err(WordError::Pipe);
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frr_reads_as_it_stands_is_a_word() {
        for text in ["secret", "a!b#c?d\"e'f\\g", "!x", "#x", "über", "{{x}}", "a|b", "no"] {
            assert_eq!(Word::new(text.as_bytes()).unwrap().0, text);
        }
        let longest = "x".repeat(80);
        assert_eq!(Word::new(longest.as_bytes()).unwrap().0, longest);
        assert!(Words::new("Wartung über Nacht ! # ?".as_bytes()).is_ok());
    }

    #[test]
    fn nothing_that_would_be_read_otherwise_is() {
        let refused = |text: &[u8]| Word::new(text).unwrap_err();
        for text in ["a\nno router bgp", "a\r", "\ta", "a\0", "\u{1b}[A", "a\u{85}b", "a\u{2028}b"]
        {
            assert_eq!(refused(text.as_bytes()), WordError::Control, "{text:?}");
        }
        assert_eq!(refused(b"a b"), WordError::Blank);
        assert_eq!(refused(b" a"), WordError::LostBlank);
        assert_eq!(refused(b"a  b"), WordError::LostBlank);
        assert_eq!(Words::new(b"a "), Err(WordError::LostBlank));
        assert_eq!(refused(b"a|"), WordError::Pipe);
        assert_eq!(Words::new(b"a | include x"), Err(WordError::Pipe));
        assert_eq!(refused(b""), WordError::Empty);
        assert_eq!(refused(b"\xff"), WordError::NotText);
        assert_eq!(refused(&[b'x'; 1025]), WordError::TooLong(1025));
    }
}
