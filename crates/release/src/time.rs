//! The time of a release as documents have it. `image` and `bill_of_materials` call it.

use anyhow::{Context, Result};

/// RFC 3339, in UTC, of seconds since 1970.
pub(crate) fn timestamp(seconds: u64) -> Result<String> {
    let time = i64::try_from(seconds).ok().and_then(|it| jiff::Timestamp::from_second(it).ok());
    let time = time.with_context(|| format!("{seconds} s after 1970 is after the year 9999"))?;
    Ok(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn seconds_become_a_time_of_day_in_utc() {
        assert_eq!(timestamp(1_700_000_000).unwrap(), "2023-11-14T22:13:20Z");
        assert!(timestamp(u64::MAX).is_err());
    }
}
