//! What others are to be told of a session.

use crate::bfd::packet::Diagnostic;

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BfdChange {
    /// Both ends hear each other.
    Up,
    /// They do not. Also told of a session that was never up, when the other end says that an
    /// operator switched it off, or was about to come up and is silent.
    Down {
        /// Why we say so.
        diagnostic: Diagnostic,
        /// Why the other end last changed.
        remote_diagnostic: Diagnostic,
        /// An operator switched the other end off: that is no failure (RFC 5882 §3.2).
        remote_admin_down: bool,
        /// BFD of the other end does not share fate with its control plane.
        remote_control_plane_independent: bool,
        /// It was up before. If not, nothing was lost.
        was_up: bool,
    },
}

/// What was not told yet: at most that it went down, and that it is up. No going down is lost,
/// however quickly it comes up again; a coming up that did not last need not be told.
#[derive(Debug, Default)]
pub(super) struct Untold {
    down: Option<BfdChange>,
    up: bool,
}

impl Untold {
    pub(super) fn is_some(&self) -> bool {
        self.up || self.down.is_some()
    }

    pub(super) fn up(&mut self) {
        self.up = true;
    }

    pub(super) fn down(&mut self, mut change: BfdChange) {
        if let (Some(BfdChange::Down { was_up: true, .. }), BfdChange::Down { was_up, .. }) =
            (self.down, &mut change)
        {
            *was_up = true; // The earlier one is still to be told, and this one tells it, too.
        }
        self.up = false;
        self.down = Some(change);
    }

    pub(super) fn take(&mut self) -> Option<BfdChange> {
        self.down.take().or_else(|| std::mem::take(&mut self.up).then_some(BfdChange::Up))
    }
}
