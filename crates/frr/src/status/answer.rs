//! Is the answer to a `json` command valid, and which values does it have?
//!
//! A field that is missing or has another type counts as absent: releases of FRR differ in fields, and one of
//! them must not hide all others. Knows no field.

use std::time::Duration;

use serde_json::{Map, Value};

/// Maximum length of an answer that is read, in bytes: a table of some ten thousand routes.
pub const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How much of an answer an error quotes, in characters.
const QUOTED_LENGTH_MAX: usize = 120;

/// Why an answer is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is not JSON.
    #[error("expected JSON in answer to `{question}`, got {quoted:?}: {fault}")]
    NotJson {
        /// The command.
        question: String,
        /// The beginning of the answer.
        quoted: String,
        /// The position of the error.
        fault: String,
    },
    /// It is JSON of another shape.
    #[error("expected {expected} in answer to `{question}`, got {quoted:?}")]
    Shape {
        /// The command.
        question: String,
        /// The expected shape.
        expected: &'static str,
        /// The beginning of the answer.
        quoted: String,
    },
    /// It is longer than any answer needs to be.
    #[error("the answer to `{question}` has {length} bytes; at most {ANSWER_BYTES_MAX} are read")]
    TooLong {
        /// The command.
        question: String,
        /// Its length, in bytes.
        length: usize,
    },
    /// FRR reports why it has no answer.
    #[error("FRR answers `{question}` with: {warning}")]
    Refused {
        /// The command.
        question: String,
        /// FRR's words.
        warning: String,
    },
}

fn quoted(text: &str) -> String {
    text.trim().chars().take(QUOTED_LENGTH_MAX).collect()
}

fn parse(question: &str, text: &str) -> Result<Value, AnswerError> {
    let question = || question.to_owned();
    if text.len() > ANSWER_BYTES_MAX {
        return Err(AnswerError::TooLong { question: question(), length: text.len() });
    }
    serde_json::from_str(text).map_err(|fault| AnswerError::NotJson {
        question: question(),
        quoted: quoted(text),
        fault: fault.to_string(),
    })
}

/// Parses `text` as an object. An object that is only a warning is an error.
pub(super) fn object(question: &str, text: &str) -> Result<Map<String, Value>, AnswerError> {
    let question_owned = || question.to_owned();
    match parse(question, text)? {
        Value::Object(object) => match object.get("warning").and_then(Value::as_str) {
            Some(warning) => {
                Err(AnswerError::Refused { question: question_owned(), warning: quoted(warning) })
            }
            None => Ok(object),
        },
        _ => Err(AnswerError::Shape {
            question: question_owned(),
            expected: "an object",
            quoted: quoted(text),
        }),
    }
}

/// Parses `text` as a list.
pub(super) fn list(question: &str, text: &str) -> Result<Vec<Value>, AnswerError> {
    match parse(question, text)? {
        Value::Array(list) => Ok(list),
        _ => Err(AnswerError::Shape {
            question: question.to_owned(),
            expected: "a list",
            quoted: quoted(text),
        }),
    }
}

/// An object, or its absence.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> From<&'a Map<String, Value>> for Fields<'a> {
    fn from(object: &'a Map<String, Value>) -> Self {
        Self(Some(object))
    }
}

impl<'a> From<&'a Value> for Fields<'a> {
    fn from(value: &'a Value) -> Self {
        Self(value.as_object())
    }
}

impl<'a> Fields<'a> {
    pub(super) fn value(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name)
    }

    /// The object in field `name`.
    pub(super) fn below(self, name: &str) -> Self {
        Self(self.value(name).and_then(Value::as_object))
    }

    /// Names and values.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    /// The list in field `name`.
    pub(super) fn list(self, name: &str) -> &'a [Value] {
        self.value(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.value(name)?.as_str()
    }

    /// A text that represents a value.
    pub(super) fn parsed<T: std::str::FromStr>(self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// A number in range; FRR writes -1 for none.
    pub(super) fn number<T: TryFrom<u64>>(self, name: &str) -> Option<T> {
        T::try_from(self.value(name)?.as_u64()?).ok()
    }

    /// Whether the field is present and true.
    pub(super) fn is(self, name: &str) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn milliseconds(self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }

    pub(super) fn seconds(self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_secs)
    }

    pub(super) fn exists(self) -> bool {
        self.0.is_some()
    }
}
