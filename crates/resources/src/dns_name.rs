//! Names as DNS allows them (RFC 1123), which most objects and prefixes of labels must have.

/// The longest name and the longest namespace, in bytes (RFC 1123).
pub(super) const NAME_BYTES_MAX: usize = 253;
pub(super) const NAMESPACE_BYTES_MAX: usize = 63;

/// Whether it is a DNS subdomain.
pub(super) fn is_subdomain(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_word)
}

/// Whether it is a DNS label.
pub(super) fn is_label(name: &str) -> bool {
    name.len() <= NAMESPACE_BYTES_MAX && is_word(name)
}

fn is_word(word: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !word.is_empty() && word.bytes().all(is_inner) && !word.starts_with('-') && !word.ends_with('-')
}
