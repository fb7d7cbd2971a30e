//! Unix time as people read it, and as Kubernetes writes it. The calendar is jiff's.

use std::fmt;

use jiff::Timestamp;

/// Seconds since 1970, shown as `2026-11-21 22:40:01 UTC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc(
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub u64,
);

impl Utc {
    /// Reads what [`Self::rfc3339`] writes, with or without a fraction and in any time zone; `None` if it is something else,
    /// or before 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp: Timestamp = text.parse().ok()?;
        u64::try_from(timestamp.as_second()).ok().map(Self)
    }

    /// `2026-11-21T22:40:01Z` (RFC 3339 §5.6), as in `metav1.Time`.
    pub fn rfc3339(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// As [`Self::rfc3339`] with a fraction, as in `metav1.MicroTime`.
    pub fn rfc3339_micros(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
    }

    /// A clock beyond the year 9999 is shown as the last moment before it.
    fn timestamp(self) -> Timestamp {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.timestamp().strftime("%Y-%m-%d %H:%M:%S UTC"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_795_192_683, "2026-11-20 16:38:03 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(Utc(seconds).to_string(), text);
        }
    }

    #[test]
    fn kubernetes_gets_what_it_parses() {
        let time = Utc(1_795_192_683);
        assert_eq!(time.rfc3339(), "2026-11-20T16:38:03Z");
        assert_eq!(Utc::parse("2026-11-20T17:38:03.5+01:00"), Some(time));
        assert_eq!(Utc::parse("yesterday"), None);
        assert_eq!(time.rfc3339_micros(), "2026-11-20T16:38:03.000000Z");
    }

    /// Each day of 1,100 years, counted one by one.
    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..400_000 {
            let expected = format!("{year:04}-{month:02}-{day:02} 00:00:00 UTC");
            assert_eq!(Utc(days * 86_400).to_string(), expected);
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn the_end_of_time_is_a_date_too() {
        assert_eq!(Utc(u64::MAX).to_string(), "9999-12-30 22:00:00 UTC");
    }
}
