//! Seeded randomness for timer jitter (RFC 4271 §10).
//!
//! Jitter only has to keep peers from synchronising, so SplitMix64 is sufficient; what matters is that a seed
//! reproduces a run exactly. Not for secrets.

use std::time::Duration;

/// A small deterministic generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The same seed gives the same sequence.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// `interval` times a factor between 0.75 and 1.0 (RFC 4271 §10).
    pub fn jittered(&mut self, interval: Duration) -> Duration {
        let percent = 75_u32.saturating_add(u32::try_from(self.next_u64() % 26).unwrap_or(0));
        interval.saturating_mul(percent) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 4271 §10 MUST: jitter is a factor between 0.75 and 1.0.
    #[test]
    fn jitter_stays_between_three_quarters_and_the_whole() {
        let mut rng = Rng::seeded(7);
        let interval = Duration::from_secs(4);
        for _ in 0..10_000 {
            let jittered = rng.jittered(interval);
            assert!(jittered >= Duration::from_secs(3) && jittered <= interval);
        }
    }
}
