//! What the machine's devices and addresses mean for listeners, neighbours and BFD.
//!
//! Another part of [`CoreTask`]. Where they come from is [`crate::addresses`]'s.

use std::time::Duration;

use super::CoreTask;
use crate::addresses::LocalEnd;
use fairway_ground::Instant;

/// How often keys and devices are checked if no address changes.
const ADDRESSES_INTERVAL: Duration = Duration::from_secs(2);
/// The shortest time between two checks: interfaces change in bursts, and each check concerns every
/// neighbour.
const ADDRESSES_GAP: Duration = Duration::from_millis(50);

impl CoreTask {
    /// Checks whether the machine's devices and addresses have changed, when the kernel reports it and
    /// periodically: sessions come up before the last address does, and addresses go while sessions stay.
    pub(super) fn look_around(&mut self, now: Instant) {
        if self.addresses_due > now {
            return;
        }
        self.addresses_due = now + ADDRESSES_INTERVAL;
        self.addresses_next = now + ADDRESSES_GAP;
        self.listeners.follow_devices();
        // Treated as unchanged: an error withdraws nothing.
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
