//! Which label names and values Kubernetes allows.
//!
//! Used for selectors and metadata, which share the rules. Knows neither.

use super::dns_name::is_subdomain;
use super::field_path::FieldPath;
use super::report::Report;

/// The most characters of the name of a label, and of its value.
const WORD_BYTES_MAX: usize = 63;

/// Notes an invalid label name.
pub(super) fn check_key(key: &str, path: &FieldPath, report: &mut Report<'_>) {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if !is_word(name) || !prefix.is_none_or(is_subdomain) {
        report.fault(
            path,
            format_args!(
                "{key:?} is not a label name; expected at most {WORD_BYTES_MAX} letters, digits, \
                 -, _ and ., beginning and ending with a letter or digit, after example.com/ where \
                 it has a prefix"
            ),
        );
    }
}

/// Notes an invalid label value.
pub(super) fn check_value(value: &str, path: &FieldPath, report: &mut Report<'_>) {
    if !value.is_empty() && !is_word(value) {
        report.fault(
            path,
            format_args!(
                "{value:?} is not a label value; expected nothing, or at most {WORD_BYTES_MAX} \
                 letters, digits, -, _ and ., beginning and ending with a letter or digit"
            ),
        );
    }
}

fn is_word(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= WORD_BYTES_MAX
        && bytes.iter().copied().all(is_inner)
        && is_end(bytes.first())
        && is_end(bytes.last())
}
