//! How often sessions, or what neighbours were told, changed: for whoever reports that elsewhere.
//!
//! Another part of [`CoreTask`]; what counts of one neighbour is [`Neighbour::note_changes`]'s.

use std::collections::BTreeSet;

use tokio::sync::watch;

use super::CoreTask;
use crate::io::neighbour::Neighbour;
use crate::types::PeerKey;

impl CoreTask {
    /// Where it is said.
    pub(in crate::io) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Those who `acted` are as they will be until something happens.
    pub(super) fn note_changes(&mut self, acted: &BTreeSet<PeerKey>) {
        for key in acted {
            let changes = self.neighbours.get_mut(key).map(Neighbour::note_changes);
            self.has_changed |= changes.unwrap_or(false);
        }
        if std::mem::take(&mut self.has_changed) {
            self.changed.send_modify(|number| *number = number.saturating_add(1));
        }
    }
}
