//! A file of the state directory as text: a JSON object with a format version.
//!
//! Pure; the daemon reads and writes the files.

use fairway_model::ObjectName;
use serde::Serialize;
use serde_json::Value;

/// Why a text is not what a file of the state directory should hold.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Not JSON, or not of the expected shape.
    #[error("damaged: {0}")]
    Json(#[from] serde_json::Error),
    /// No object with a number `version`.
    #[error("damaged: it is no JSON object with a \"version\"")]
    NoVersion,
    /// Written by another, probably newer, Fairway.
    #[error("it has format version {found}, and this Fairway reads version {supported}")]
    Version {
        /// What the file says.
        found: u64,
        /// What is understood here.
        supported: u64,
    },
    /// Whoever it belongs to cannot use it.
    #[error("{0}")]
    Content(String),
    /// A Service is in it more than once.
    #[error("damaged: it lists Service {0} twice")]
    Duplicate(ObjectName),
}

/// The text of a document that this module knows nothing of but its version. `body` is what the
/// document holds besides; a `version` in it gives way.
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
    // Strings, numbers and lists always have a JSON form; were that ever to fail, an empty file
    // would be noticed and set aside at the next start.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
