//! Bytes as hexadecimal text.

use std::fmt::Write;

/// Two digits for each byte, nothing between.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
