//! Unix time for people, and as Kubernetes writes it.

use std::fmt;

/// `2026-11-21 22:40:01 UTC`, from seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Utc(pub(crate) u64);

struct Parts {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

const SECONDS_OF_DAY: u64 = 86_400;
/// The calendar repeats after this many days, 400 years.
const DAYS_OF_ERA: u64 = 146_097;
/// From 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the end.
const DAYS_TO_1970: u64 = 719_468;

impl Utc {
    /// `2026-11-21T22:40:01Z` (RFC 3339 §5.6), as in `metav1.Time`.
    pub(crate) fn rfc3339(self) -> String {
        let Parts { year, month, day, hour, minute, second } = self.parts();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// As [`Self::rfc3339`] with a fraction, as in `metav1.MicroTime`.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code))] // The edge stamps with it.
    pub(crate) fn rfc3339_micros(self) -> String {
        self.rfc3339().replace('Z', ".000000Z")
    }

    fn parts(self) -> Parts {
        let (days, seconds) = (self.0 / SECONDS_OF_DAY, self.0 % SECONDS_OF_DAY);
        let days = days + DAYS_TO_1970;
        let (era, day) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
        // Without the leap days before it: one in 4 years, but not in 100, but in 400.
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        // From March on, months of 31, 30, 31, 30, 31 days, twice and once more in part.
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year + next;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        Parts { year, month, day, hour, minute, second }
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { year, month, day, hour, minute, second } = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
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
        assert_eq!(time.rfc3339_micros(), "2026-11-20T16:38:03.000000Z");
    }

    /// Each day of 1,100 years, counted one by one.
    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..400_000 {
            let expected = format!("{year:04}-{month:02}-{day:02} 00:00:00 UTC");
            assert_eq!(Utc(days * SECONDS_OF_DAY).to_string(), expected);
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
        assert!(Utc(u64::MAX).to_string().ends_with(" UTC"));
    }
}
