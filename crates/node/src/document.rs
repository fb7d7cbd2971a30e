//! A file of the state directory as text: a JSON object with a format version.
//!
//! Pure; the daemon reads and writes the files.

use fairway_model::ObjectName;
use serde::Serialize;
use serde_json::Value;

/// Why a text is not a valid state file.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Not JSON, or not of the expected shape.
    #[error("damaged: {0}")]
    Json(#[from] serde_json::Error),
    /// Not an object with a number `version`.
    #[error("damaged: not a JSON object with a \"version\"")]
    NoVersion,
    /// Written by another, probably newer, Fairway.
    #[error("format version {found} is not supported; this Fairway reads version {supported}")]
    Version {
        /// The version in the file.
        found: u64,
        /// The version that this build reads.
        supported: u64,
    },
    /// The content is well formed, and its owner cannot use it.
    #[error("{0}")]
    Content(String),
    /// A Service is in it more than once.
    #[error("damaged: it lists Service {0} twice")]
    Duplicate(ObjectName),
}

/// The text of a document of which this module knows only the version. `body` is the rest of the document; a
/// `version` in it is overwritten.
pub fn encode_document(version: u64, body: serde_json::Map<String, Value>) -> String {
    let mut document = serde_json::Map::from_iter([("version".to_owned(), Value::from(version))]);
    document.extend(body.into_iter().filter(|(key, _)| key != "version"));
    text(&document)
}

/// The document in `text`, if it has this version.
pub fn decode_document(text: &str, supported: u64) -> Result<Value, FormatError> {
    let document: Value = serde_json::from_str(text)?;
    match document.get("version").and_then(Value::as_u64) {
        None => Err(FormatError::NoVersion),
        Some(found) if found != supported => Err(FormatError::Version { found, supported }),
        Some(_) => Ok(document),
    }
}

/// A document as text.
pub(crate) fn text(document: &impl Serialize) -> String {
    // Strings, numbers and lists always have a JSON form; if that ever fails, an empty file
    // is detected and moved aside at the next start.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
