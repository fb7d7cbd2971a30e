//! The meaning of an unquoted YAML word: the core schema of YAML 1.2.
//!
//! Also marks the words that kubectl reads as booleans, so that a boolean field accepts them and every
//! other field still sees text. Knows nothing of fields.

/// What a scalar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    /// Absent, `~` or `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number of any size.
    Integer,
    /// A number with a fraction or an exponent, infinity, or not a number.
    Float,
    /// Text.
    Text,
    /// Unquoted `yes`, `no`, `on` or `off`: text, but a boolean where one is wanted.
    SwitchWord,
}

/// The kind of an unquoted scalar (YAML 1.2.2 §10.3.2).
pub(crate) fn plain_kind(text: &str) -> ScalarKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ScalarKind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => ScalarKind::Boolean,
        "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "on" | "On" | "ON" | "off" | "Off" | "OFF" => {
            ScalarKind::SwitchWord
        }
        _ if integer(text).is_some() || is_digits(unsigned(text)) => ScalarKind::Integer,
        _ if is_float(text) => ScalarKind::Float,
        _ => ScalarKind::Text,
    }
}

/// The value of a boolean, or of a word that stands for one.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The value of a whole number; `None` if it is not one or does not fit.
pub(crate) fn integer(text: &str) -> Option<i128> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if is_digits(unsigned(text)) { text.parse().ok() } else { None }
}

/// Whether a whole number is octal in YAML 1.1, as for kubectl, and decimal in YAML 1.2.
pub(crate) fn is_octal_to_some(text: &str) -> bool {
    let digits = unsigned(text);
    digits.len() > 1 && digits.starts_with('0') && is_digits(digits)
}

/// The value of a number with a fraction, or of a whole one that is too large for [`integer`].
pub(crate) fn float(text: &str) -> Option<f64> {
    match unsigned(text) {
        ".inf" | ".Inf" | ".INF" if text.starts_with('-') => Some(f64::NEG_INFINITY),
        ".inf" | ".Inf" | ".INF" => Some(f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => text.parse().ok(),
    }
}

fn radix(digits: &str, radix: u32) -> Option<i128> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { i128::from_str_radix(digits, radix).ok() } else { None }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_float(text: &str) -> bool {
    let number = unsigned(text);
    if matches!(number, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    mantissa && exponent.is_none_or(|exponent| is_digits(unsigned(exponent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_kinds_of_the_core_schema() {
        for (text, kind) in [
            ("", ScalarKind::Null),
            ("~", ScalarKind::Null),
            ("True", ScalarKind::Boolean),
            ("on", ScalarKind::SwitchWord),
            ("0x1F", ScalarKind::Integer),
            ("0o17", ScalarKind::Integer),
            ("-12", ScalarKind::Integer),
            ("340282366920938463463374607431768211456", ScalarKind::Integer),
            ("1.5", ScalarKind::Float),
            ("1e3", ScalarKind::Float),
            (".5", ScalarKind::Float),
            ("-.inf", ScalarKind::Float),
            (".", ScalarKind::Text),
            ("e3", ScalarKind::Text),
            ("65001:100", ScalarKind::Text),
            ("192.0.2.1", ScalarKind::Text),
            ("1_000", ScalarKind::Text),
            ("90s", ScalarKind::Text),
            ("0x", ScalarKind::Text),
            ("0x-1", ScalarKind::Text),
        ] {
            assert_eq!(plain_kind(text), kind, "{text:?}");
        }
        assert_eq!(integer("0x1F"), Some(31));
        assert_eq!(boolean("Off"), Some(false));
    }
}
