//! What the machine's devices and addresses mean for listeners, neighbours and BFD.
//!
//! Another part of [`CoreTask`]. Knows not where they come from, which is [`crate::io::addresses`]'s.

use std::time::Duration;

use super::CoreTask;
use crate::io::addresses::LocalEnd;
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
        self.speaker.follow_addresses(now, |local, vrf| {
            let LocalEnd { next_hops, networks } = addresses.end_at(local, vrf);
            (next_hops, networks)
        });
        self.carry_out(now);
        for key in self.keys() {
            self.guarded(now, key, |neighbour, _| neighbour.follow_rollover());
        }
        self.bfd.follow_addresses(addresses);
    }
}
