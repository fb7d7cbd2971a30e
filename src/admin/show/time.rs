//! Durations as FRR writes them.

use std::time::Duration;

/// `hh:mm:ss` within a day, then `1d02h03m`, and from a week on `03w2d05h`.
pub(super) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let (minute, hour) = (minutes % 60, hours % 24);
    match days {
        0 => format!("{hour:02}:{minute:02}:{:02}", seconds % 60),
        1..7 => format!("{days}d{hour:02}h{minute:02}m"),
        _ => format!("{:02}w{}d{hour:02}h", days / 7, days % 7),
    }
}

/// As [`clock`], or `never`.
pub(super) fn clock_or_never(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "never".to_owned(), clock)
}

/// Whole milliseconds; saturates.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_span_has_the_form_that_routers_give_it() {
        let of = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!(of(0), "00:00:00");
        assert_eq!(of(22), "00:00:22");
        assert_eq!(of(86_399), "23:59:59");
        assert_eq!(of(86_400 + 2 * 3_600 + 3 * 60), "1d02h03m");
        assert_eq!(of(7 * 86_400 - 1), "6d23h59m");
        assert_eq!(of(7 * 86_400), "01w0d00h");
        assert_eq!(of(23 * 86_400 + 5 * 3_600), "03w2d05h");
        assert_eq!(of(400 * 86_400), "57w1d00h");
        assert_eq!(clock_or_never(None), "never");
    }
}
