//! What do the cases about BFD have in common? One cable with many pairs of addresses, programs that
//! monitor it, and a capture of the packets themselves. Figures come from the packets and the kernel,
//! not from what a program reports about itself.

pub(crate) mod cable;
pub(crate) mod capture;
pub(crate) mod frr;
pub(crate) mod pinned;
pub(crate) mod spread;
pub(crate) mod watcher;

use std::time::Duration;

/// How BFD is set at both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    pub(crate) interval: Duration,
    pub(crate) multiplier: u8,
}

impl Timers {
    pub(crate) const fn every(milliseconds: u64, multiplier: u8) -> Self {
        Self { interval: Duration::from_millis(milliseconds), multiplier }
    }

    pub(crate) fn milliseconds(self) -> u128 {
        self.interval.as_millis()
    }

    /// The BFDProfile `watch`, with these settings for fairway.
    pub(crate) fn profile(self) -> String {
        let (interval, multiplier) = (self.milliseconds(), self.multiplier);
        format!(
            "apiVersion: metallb.io/v1beta1\nkind: BFDProfile\nmetadata:\n  name: watch\nspec:\n  \
             transmitInterval: {interval}\n  receiveInterval: {interval}\n  \
             detectMultiplier: {multiplier}\n"
        )
    }
}

impl std::fmt::Display for Timers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ms x {}", self.milliseconds(), self.multiplier)
    }
}
