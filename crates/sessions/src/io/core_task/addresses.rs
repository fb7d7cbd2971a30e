//! What the machine's devices and addresses mean for listeners, neighbours and BFD.
//!
//! Another part of [`CoreTask`]. Knows not where they come from, which is [`crate::io::addresses`]'s.

use std::time::Duration;

use super::CoreTask;
use crate::time::Instant;

/// How often keys and devices are looked at, if no address changes.
const ADDRESSES_INTERVAL: Duration = Duration::from_secs(2);
/// How soon after one look the next may follow: interfaces change in bursts, and each look concerns every
/// neighbour.
const ADDRESSES_GAP: Duration = Duration::from_millis(50);

impl CoreTask {
    /// Looks whether the machine's devices and addresses are others, as soon as the kernel says so and now
    /// and then: sessions come up before the last address does, and addresses go while sessions stay.
    pub(super) fn look_around(&mut self, now: Instant) {
        if self.addresses_due > now {
            return;
        }
        self.addresses_due = now + ADDRESSES_INTERVAL;
        self.addresses_next = now + ADDRESSES_GAP;
        self.listeners.follow_devices();
        // The same as before, for all we know: nothing is withdrawn for an error.
        let Ok(addresses) = self.addresses.addresses() else { return };
        // Every session each time: one that came up since may have looked before the others.
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.follow_addresses(now, &addresses, &surroundings.rib);
                neighbour.follow_rollover();
            });
        }
        self.bfd.follow_addresses(addresses);
    }
}
