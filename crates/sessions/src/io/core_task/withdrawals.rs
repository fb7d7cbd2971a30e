//! Up to which generation of the desired state everybody knows what is gone.
//!
//! Another part of [`CoreTask`]; what one neighbour knows is [`crate::bgp::WithdrawnUpTo`]'s.

use std::collections::BTreeSet;

use tokio::sync::watch;

use super::CoreTask;
use crate::io::neighbour::Neighbour;
use crate::time::Instant;
use crate::types::PeerKey;

impl CoreTask {
    /// Where it is said.
    pub(in crate::io) fn withdrawn(&self) -> watch::Receiver<u64> {
        self.withdrawn.subscribe()
    }

    /// Those who `acted` have been given what there was room for.
    pub(super) fn note_withdrawals(&mut self, now: Instant, acted: &BTreeSet<PeerKey>) {
        // What an earlier run announced is not gone, whatever is desired.
        let generation = if self.startup.keeps_earlier() { 0 } else { self.desired.generation };
        let before = *self.withdrawn.borrow();
        let mut knows_more = self.neighbours.is_empty();
        for key in acted {
            self.run_guarded(now, *key, |neighbour, _| {
                knows_more |= neighbour.note_withdrawals(now, generation, before);
            });
        }
        if knows_more && generation > before {
            let known = self.neighbours.values().map(Neighbour::withdrawn_up_to).min();
            self.withdrawn.send_replace(known.unwrap_or(generation).max(before));
        }
    }
}
