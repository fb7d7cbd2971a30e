//! The hold time: off, or three seconds and more.

use std::time::Duration;

/// A hold time that RFC 4271 §4.2 forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hold time of {0} s is not allowed; expected 0 (off) or 3 to 65535 s")]
pub struct HoldTimeError(pub u64);

/// How long a peer may be silent before the session is closed (RFC 4271 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldTime(u16);

impl HoldTime {
    /// No hold timer and no keepalives.
    pub const OFF: Self = Self(0);
    /// 90 s, the default of MetalLB and common with FRR.
    pub const DEFAULT: Self = Self(90);

    /// 0 (off) or 3 to 65535 seconds.
    pub fn from_seconds(seconds: u64) -> Result<Self, HoldTimeError> {
        match u16::try_from(seconds) {
            Ok(seconds) if seconds == 0 || seconds >= 3 => Ok(Self(seconds)),
            _ => Err(HoldTimeError(seconds)),
        }
    }

    /// Seconds, 0 when off.
    pub fn seconds(self) -> u16 {
        self.0
    }

    /// `None` when off.
    pub fn duration(self) -> Option<Duration> {
        (self.0 > 0).then(|| Duration::from_secs(u64::from(self.0)))
    }

    /// The negotiated hold time: the smaller one, and off if either is (RFC 4271 §4.2).
    pub fn negotiate(self, other: Self) -> Self {
        self.min(other)
    }
}

impl Default for HoldTime {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 4271 §4.2 MUST: a hold time is zero or at least three seconds.
    //= RFC 4271 §4.2 MUST: the smaller of the two hold times is used.
    #[test]
    fn one_and_two_seconds_are_forbidden_and_zero_means_off() {
        assert!(HoldTime::from_seconds(1).is_err());
        assert!(HoldTime::from_seconds(2).is_err());
        assert!(HoldTime::from_seconds(65_536).is_err());
        assert_eq!(HoldTime::from_seconds(0).unwrap().duration(), None);
        let nine = HoldTime::from_seconds(9).unwrap();
        assert_eq!(nine.negotiate(HoldTime::OFF), HoldTime::OFF);
        assert_eq!(nine.negotiate(HoldTime::DEFAULT), nine);
    }
}
