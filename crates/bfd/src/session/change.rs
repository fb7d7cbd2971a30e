//! Changes of a session that are reported to its users.

use crate::{Diagnostic, DownCause};

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BfdChange {
    /// Both systems receive packets.
    Up,
    /// They do not. Also reported for a session that was never up, if the remote system is administratively
    /// down, or became silent before the session came up.
    Down {
        /// Whether it failed.
        cause: DownCause,
        /// Our diagnostic.
        diagnostic: Diagnostic,
        /// BFD of the remote system does not share fate with its control plane.
        remote_control_plane_independent: bool,
        /// It was up before. Otherwise nothing was lost.
        was_up: bool,
    },
}

/// Changes that are not reported yet: at most one down and one up. A down is never lost, however quickly the
/// session comes up again; an up that did not last need not be reported. Of several downs the most severe
/// counts: the failure of a session that was up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Untold {
    down: Option<BfdChange>,
    up: bool,
}

impl Untold {
    /// Whether there is a change to report.
    pub fn is_some(&self) -> bool {
        self.first().is_some()
    }

    /// Adds a change.
    pub fn add(&mut self, change: BfdChange) {
        self.up = change == BfdChange::Up;
        if !self.up && self.down.is_none_or(|before| !before.outweighs(change)) {
            self.down = Some(change);
        }
    }

    /// The next change to report.
    pub fn first(&self) -> Option<BfdChange> {
        self.down.or_else(|| self.up.then_some(BfdChange::Up))
    }

    /// Removes and returns the next change to report.
    pub fn take(&mut self) -> Option<BfdChange> {
        self.down.take().or_else(|| std::mem::take(&mut self.up).then_some(BfdChange::Up))
    }
}

impl BfdChange {
    /// Whether it is more severe than `later`.
    fn outweighs(self, later: Self) -> bool {
        match (self, later) {
            (
                Self::Down { was_up: true, cause, .. },
                Self::Down { was_up, cause: later_cause, .. },
            ) => !was_up || (cause == DownCause::Failed && later_cause != DownCause::Failed),
            _ => false,
        }
    }
}
