//! Passes events to the core: at once if there is room, or later, and then only the latest of each session.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use fairway_bfd::{BfdEvent, Untold};
use fairway_ground::BfdPath;

/// Events on their way to the core. Holds at most two for each session.
#[derive(Debug)]
pub(super) struct Handover {
    events: mpsc::Sender<BfdEvent>,
    waiting: BTreeMap<BfdPath, Untold>,
}

impl Handover {
    pub(super) fn to(events: mpsc::Sender<BfdEvent>) -> Self {
        Self { events, waiting: BTreeMap::new() }
    }

    /// Sends the event to the core, or keeps it for [`Handover::retry`].
    pub(super) fn tell(&mut self, event: BfdEvent) {
        if self.waiting.is_empty() {
            match self.events.try_send(event) {
                // The receiver is gone.
                Ok(()) | Err(TrySendError::Closed(_)) => return,
                Err(TrySendError::Full(_)) => {}
            }
        }
        self.waiting.entry(event.path).or_default().add(event.change);
    }

    /// Whether an event is pending.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends pending events as far as there is room.
    pub(super) fn retry(&mut self) {
        while let Some(mut entry) = self.waiting.first_entry() {
            let path = *entry.key();
            while let Some(change) = entry.get().first() {
                if let Err(TrySendError::Full(_)) = self.events.try_send(BfdEvent { path, change })
                {
                    return;
                }
                entry.get_mut().take();
            }
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_bfd::{BfdChange, Diagnostic, DownCause};

    fn path(last: u8) -> BfdPath {
        let remote = [192, 0, 2, last].into();
        BfdPath { remote, vrf: None, multihop: false, interface: None, local: None }
    }

    fn down(was_up: bool) -> BfdChange {
        BfdChange::Down {
            cause: DownCause::Failed,
            diagnostic: Diagnostic::NONE,
            remote_control_plane_independent: false,
            was_up,
        }
    }

    #[test]
    fn a_core_without_room_is_told_the_latest_of_each_session_later() {
        let (sender, mut core) = mpsc::channel(1);
        let mut handover = Handover::to(sender);
        let tell = |handover: &mut Handover, last, change| {
            handover.tell(BfdEvent { path: path(last), change });
        };
        tell(&mut handover, 9, BfdChange::Up);
        assert!(!handover.is_behind());
        for _ in 0..1_000 {
            tell(&mut handover, 1, BfdChange::Up);
            tell(&mut handover, 1, down(true));
            tell(&mut handover, 1, down(false));
            tell(&mut handover, 2, down(false));
            tell(&mut handover, 2, BfdChange::Up);
        }
        let mut heard = Vec::new();
        while let Ok(event) = core.try_recv() {
            heard.push((event.path, event.change));
            handover.retry();
        }
        let expected = [
            (path(9), BfdChange::Up),
            (path(1), down(true)),
            (path(2), down(false)),
            (path(2), BfdChange::Up),
        ];
        assert_eq!(heard, expected);
        assert!(!handover.is_behind());
    }

    #[test]
    fn a_core_that_is_gone_leaves_nothing_waiting() {
        let (sender, core) = mpsc::channel(1);
        let mut handover = Handover::to(sender);
        for last in [1, 2] {
            handover.tell(BfdEvent { path: path(last), change: BfdChange::Up });
        }
        assert!(handover.is_behind());
        drop(core);
        handover.retry();
        assert!(!handover.is_behind());
    }
}
