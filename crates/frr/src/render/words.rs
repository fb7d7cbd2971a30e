//! What may stand in a line of FRR's configuration?
//!
//! FRR takes a line apart at blanks, takes `| ` for a pipe into a filter, and what begins with `!` or
//! `#` for a comment; nothing can be quoted. Words that would be read otherwise than they were meant
//! are refused here, and everything that a user wrote comes through here. Knows no resource. Called
//! by the rest of `render`.

use serde::Serialize;

/// The most bytes of one text: what FRR has room for in a line, less the words before it.
const LENGTH_BYTES_MAX: usize = 1024;

/// Why FRR's configuration cannot say a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordError {
    /// There is nothing to say.
    #[error("is empty")]
    Empty,
    /// No line has room for it.
    #[error("has {0} bytes; a line of FRR's configuration has room for {LENGTH_BYTES_MAX}")]
    TooLong(usize),
    /// It is no text.
    #[error("is not UTF-8; FRR's configuration is text")]
    NotText,
    /// It would end the line, or worse.
    #[error("has a control character, which no line of FRR's configuration can hold")]
    Control,
    /// FRR would take it for several words.
    #[error("has a blank, and FRR reads one word here")]
    Blank,
    /// FRR would drop some of them.
    #[error("has blanks that FRR's configuration does not keep: at an end, or several in a row")]
    LostBlank,
    /// FRR would read a pipe.
    #[error("has a | at the end of a word, which FRR reads as a pipe")]
    Pipe,
}

/// One word, which FRR reads as it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(super) struct Word(String);

/// Words with single blanks in between, at the end of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Words(String);

impl Word {
    /// Refuses what FRR would read otherwise.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, WordError> {
        let Words(text) = Words::new(bytes)?;
        if text.contains(' ') { Err(WordError::Blank) } else { Ok(Self(text)) }
    }

    /// What stands where a secret does that is not to be shown.
    pub(super) fn hidden() -> Self {
        Self("<hidden>".to_owned())
    }
}

impl Words {
    /// Refuses what FRR would read otherwise.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, WordError> {
        let text = std::str::from_utf8(bytes).map_err(|_| WordError::NotText)?;
        if text.is_empty() {
            return Err(WordError::Empty);
        }
        if text.len() > LENGTH_BYTES_MAX {
            return Err(WordError::TooLong(text.len()));
        }
        // Those of Unicode that begin a new line for some reader, too.
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
