//! How long routes outlive the session that they came from (RFC 4724, RFC 9494).

use std::time::Duration;

/// The operator's settings for restarts, ours and the neighbour's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GracefulRestart {
    restart_time_seconds: u16,
    long_lived_stale_time_seconds: u32,
}

impl GracefulRestart {
    /// Maximum of the capability, in seconds: twelve bits (RFC 4724 §3).
    pub const RESTART_TIME_SECONDS_MAX: u16 = 0x0FFF;
    /// Maximum of the long-lived capability, in seconds: 24 bits, half a year (RFC 9494 §3.1).
    pub const LONG_LIVED_STALE_TIME_SECONDS_MAX: u32 = 0x00FF_FFFF;

    /// How long routes stay stale that a restarted neighbour has not announced again, if it sends no
    /// End-of-RIB marker: FRR's stalepath-time and its default.
    pub const STALE_PATH_TIME: Duration = Duration::from_secs(360);

    /// `restart_time_seconds` is 1 to 4095, `long_lived_stale_time_seconds` 0 to 16,777,215; `None` for other
    /// values.
    pub fn new(restart_time_seconds: u16, long_lived_stale_time_seconds: u32) -> Option<Self> {
        let fits = (1..=Self::RESTART_TIME_SECONDS_MAX).contains(&restart_time_seconds)
            && long_lived_stale_time_seconds <= Self::LONG_LIVED_STALE_TIME_SECONDS_MAX;
        fits.then_some(Self { restart_time_seconds, long_lived_stale_time_seconds })
    }

    /// How long the neighbour should wait for our restart, in seconds.
    pub fn restart_time_seconds(self) -> u16 {
        self.restart_time_seconds
    }

    /// The same as a duration.
    pub fn restart_time(self) -> Duration {
        Duration::from_secs(self.restart_time_seconds.into())
    }

    /// Maximum time from our start to our End-of-RIB marker: half of the time for which the neighbour keeps
    /// the old routes.
    pub fn deferral_time(self) -> Duration {
        self.restart_time() / 2
    }

    /// How long the neighbour may use routes after that if it has no others, in seconds (RFC 9494). With 0
    /// the capability is not advertised.
    pub fn long_lived_stale_time_seconds(self) -> u32 {
        self.long_lived_stale_time_seconds
    }

    /// The same as a duration.
    pub fn long_lived_stale_time(self) -> Duration {
        Duration::from_secs(self.long_lived_stale_time_seconds.into())
    }
}

impl Default for GracefulRestart {
    /// 120 s, the default of FRR and BIRD, and nothing long-lived.
    fn default() -> Self {
        Self { restart_time_seconds: 120, long_lived_stale_time_seconds: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_capabilities_can_say_is_taken() {
        assert_eq!(GracefulRestart::new(120, 0), Some(GracefulRestart::default()));
        for (restart, stale) in [(0, 0), (4096, 0), (120, 1 << 24)] {
            assert_eq!(GracefulRestart::new(restart, stale), None);
        }
        let longest = GracefulRestart::new(4095, (1 << 24) - 1).unwrap();
        assert_eq!(longest.restart_time(), Duration::from_secs(4095));
        assert_eq!(GracefulRestart::default().deferral_time(), Duration::from_secs(60));
    }
}
