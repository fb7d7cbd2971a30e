//! AS numbers and durations as Calico writes them.
//!
//! Knows no object.

use fairway_ground::Asn;

/// An AS number, also as two numbers with a dot (RFC 5396).
pub(super) fn as_number(text: &str) -> Option<Asn> {
    match text.contains('.') {
        true => Asn::plain(text).and_then(Asn::new),
        false => text.parse().ok(),
    }
}

/// The seconds of a duration such as `90s` or `1m30s`, if they are whole.
pub(super) fn seconds_of(text: &str) -> Option<u64> {
    let mut seconds: u64 = 0;
    let mut number = String::new();
    for letter in text.chars() {
        let factor = match letter {
            '0'..='9' => {
                number.push(letter);
                continue;
            }
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let part: u64 = std::mem::take(&mut number).parse().ok()?;
        seconds = seconds.checked_add(part.checked_mul(factor)?)?;
    }
    (number.is_empty() && !text.is_empty()).then_some(seconds)
}
