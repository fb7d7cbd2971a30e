//! Spans of time as people type them: `0s`, `500ms`, `1m30s`, `1h`.

use std::time::Duration;

/// The longest one: more than a day is taken for a typing mistake.
const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a text is not a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DurationError {
    /// Not numbers with units.
    #[error("expected numbers with units (ms, s, m, h), as in 0s, 30s, 1m30s or 1h")]
    Format,
    /// More than a day.
    #[error("expected 0s to 24h")]
    TooLong,
}

/// Numbers with units, one after the other, which are added.
pub(super) fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() || text.is_empty() {
        let (number, after) = split_where(rest, |it| !it.is_ascii_digit());
        let (unit, after) = split_where(after, |it| it.is_ascii_digit());
        let milliseconds: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(DurationError::Format),
        };
        if number.is_empty() {
            return Err(DurationError::Format);
        }
        // A number that overflows is too long as well.
        let number: u64 = number.parse().unwrap_or(u64::MAX);
        total = total.saturating_add(Duration::from_millis(number.saturating_mul(milliseconds)));
        rest = after;
    }
    if total > DURATION_MAX { Err(DurationError::TooLong) } else { Ok(total) }
}

/// The text before the first character that `is_end`, and the rest.
fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.find(is_end).and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_added() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("24h", 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "30", "s", "1d", "1.5s", "-1s", "+1s", "1 s", "s30", "1s30", "1S", "é"] {
            assert_eq!(parse(text), Err(DurationError::Format), "{text}");
        }
        for text in ["86401s", "24h1ms", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse(text), Err(DurationError::TooLong), "{text}");
        }
    }
}
