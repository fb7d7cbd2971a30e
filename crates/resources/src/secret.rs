//! Secret (v1): keys that sign sessions.
//!
//! Answers which keys a Secret holds. Only a Secret of type `kubernetes.io/basic-auth` is validated,
//! since it can only be a password; from others, the values that can be keys are taken, and one
//! without any makes no object. No fault repeats the content of a Secret. Knows no peer.

use std::collections::BTreeMap;

use fairway_ground::Password;
use fairway_model::{Object, Secret};
use serde::Deserialize;

use super::field_path::FieldPath;
use super::hidden::{HiddenMapping, HiddenText};
use super::metadata::Metadata;
use super::report::Report;
use super::yaml::node::Node;

const TYPE: &str = "kubernetes.io/basic-auth";
/// The key of a Secret of type basic-auth.
pub(crate) const PASSWORD_KEY: &str = "password";

/// The content of a Secret, by name.
type Keys = BTreeMap<String, HiddenText>;

#[derive(Deserialize)]
struct RawType {
    #[serde(rename = "type")]
    secret_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSecret {
    #[serde(default)]
    data: Option<HiddenMapping<Keys>>,
    #[serde(default)]
    string_data: Option<HiddenMapping<Keys>>,
}

/// Parses the object; `None` if it has a fault, and for Secrets without keys.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let kind: Option<RawType> = report.read(&FieldPath::default());
    let is_password = kind.and_then(|raw| raw.secret_type).as_deref() == Some(TYPE);
    let password = if is_password { Some(password(report)?) } else { None };
    let values = values(report.root());
    let secret = Secret { name: metadata.name, password, values };
    (is_password || !secret.values.is_empty()).then_some(Object::Secret(secret))
}

/// Every value that can be a key.
fn values(root: &Node) -> BTreeMap<String, Password> {
    let entries = |field: &str| root.get(field).map(Node::entries).unwrap_or_default().iter();
    let encoded = entries("data").filter_map(|entry| {
        let bytes = decode_base64(entry.value.text()?)?;
        Some((&entry.key, bytes))
    });
    let plain = entries("stringData")
        .filter_map(|entry| Some((&entry.key, entry.value.text()?.as_bytes().to_vec())));
    // The API server writes stringData over data.
    let all = encoded.chain(plain);
    all.filter_map(|(key, bytes)| Some((key.to_string(), Password::new(bytes).ok()?))).collect()
}

/// The password of a Secret of type basic-auth.
fn password(report: &mut Report<'_>) -> Option<Password> {
    let raw: RawSecret = report.read(&FieldPath::default())?;
    let take = |keys: Option<HiddenMapping<Keys>>| {
        keys.and_then(|HiddenMapping(mut keys)| keys.remove(PASSWORD_KEY))
    };
    let (path, bytes) = match (take(raw.string_data), take(raw.data)) {
        // The API server writes stringData over data.
        (Some(HiddenText(text)), _) => {
            (FieldPath::of("stringData").key(PASSWORD_KEY), text.into_bytes())
        }
        (None, Some(HiddenText(text))) => {
            let path = FieldPath::of("data").key(PASSWORD_KEY);
            match decode_base64(&text) {
                Some(bytes) => (path, bytes),
                None => {
                    report.fault(
                        &path,
                        "is not base64; expected base64, or plain text in stringData",
                    );
                    return None;
                }
            }
        }
        (None, None) => {
            if !report.is_faulty(&FieldPath::of("stringData").key(PASSWORD_KEY)) {
                report.missing(
                    &FieldPath::of("data").key(PASSWORD_KEY),
                    "the password, 1 to 80 bytes",
                );
            }
            return None;
        }
    };
    if bytes.ends_with(b"\n") {
        report.warning(&path, "ends with a line break, which is part of the password");
    }
    match Password::new(bytes) {
        Ok(password) => Some(password),
        Err(error) => {
            report.fault(&path, error);
            None
        }
    }
}

/// Standard base64 (RFC 4648 §4); line breaks are skipped, padding is required as in Kubernetes.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3);
    let (groups, rest) = symbols.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    for (position, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|symbol| **symbol == b'=').count();
        if padding > 2 || (padding > 0 && position + 1 < groups.len()) {
            return None;
        }
        let mut bits: u32 = 0;
        for (place, symbol) in group.iter().enumerate() {
            let value = if place + padding >= 4 { 0 } else { symbol_value(*symbol)? };
            bits = bits << 6 | u32::from(value);
        }
        let [_, decoded @ ..] = bits.to_be_bytes();
        bytes.extend(decoded.iter().take(3 - padding));
    }
    Some(bytes)
}

fn symbol_value(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_decodes_as_the_rfc_says() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9v\nYmE=\n", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for text in ["Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v!", "Zm9-", "Z=g="] {
            assert_eq!(decode_base64(text), None, "{text}");
        }
    }
}
