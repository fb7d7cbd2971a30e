//! Durations as FRR writes them.

use std::time::Duration;

/// `hh:mm:ss` within a day, then `1d02h03m`, and from a week on `03w2d05h`.
pub fn clock(duration: Duration) -> String {
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

/// `1 day(s), 2 hour(s), 3 minute(s), 4 second(s)`, without leading zero parts.
pub(super) fn spelled(duration: Duration) -> String {
    const UNITS: [(u64, &str); 5] = [
        (360 * 86_400, "year(s)"),
        (30 * 86_400, "month(s)"),
        (86_400, "day(s)"),
        (3_600, "hour(s)"),
        (60, "minute(s)"),
    ];
    let mut rest = duration.as_secs();
    let mut text = String::new();
    for (seconds, unit) in UNITS {
        if rest >= seconds {
            text.push_str(&format!("{} {unit}, ", rest / seconds));
            rest %= seconds;
        }
    }
    text + &format!("{rest} second(s)")
}

/// `0:00:00:21`: days, hours, minutes and seconds.
pub(super) fn clock_with_days(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    format!("{days}:{:02}:{:02}:{:02}", hours % 24, minutes % 60, seconds % 60)
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

    #[test]
    fn bfd_has_two_more() {
        let of = |seconds| {
            (spelled(Duration::from_secs(seconds)), clock_with_days(Duration::from_secs(seconds)))
        };
        assert_eq!(of(21), ("21 second(s)".to_owned(), "0:00:00:21".to_owned()));
        assert_eq!(of(3_600), ("1 hour(s), 0 second(s)".to_owned(), "0:01:00:00".to_owned()));
        let long = 400 * 86_400 + 7_325;
        let words = "1 year(s), 1 month(s), 10 day(s), 2 hour(s), 2 minute(s), 5 second(s)";
        assert_eq!(of(long), (words.to_owned(), "400:02:02:05".to_owned()));
    }
}
