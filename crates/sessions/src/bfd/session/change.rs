//! What others are to be told of a session.

use crate::bfd::{Diagnostic, DownCause};

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BfdChange {
    /// Both ends hear each other.
    Up,
    /// They do not. Also told of a session that was never up, when the other end says that an
    /// operator switched it off, or was about to come up and is silent.
    Down {
        /// Whether anything has failed.
        cause: DownCause,
        /// Why we say so.
        diagnostic: Diagnostic,
        /// BFD of the other end does not share fate with its control plane.
        remote_control_plane_independent: bool,
        /// It was up before. If not, nothing was lost.
        was_up: bool,
    },
}

/// What was not told yet: at most that it went down, and that it is up. No going down is lost,
/// however quickly it comes up again; a coming up that did not last need not be told. Of several
/// that it went down by, the one counts that ends most: a failure of what was up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Untold {
    down: Option<BfdChange>,
    up: bool,
}

impl Untold {
    pub(crate) fn is_some(&self) -> bool {
        self.first().is_some()
    }

    /// Takes note of one more.
    pub(crate) fn add(&mut self, change: BfdChange) {
        self.up = change == BfdChange::Up;
        if !self.up && self.down.is_none_or(|before| !before.outweighs(change)) {
            self.down = Some(change);
        }
    }

    /// What is to be told next.
    pub(crate) fn first(&self) -> Option<BfdChange> {
        self.down.or_else(|| self.up.then_some(BfdChange::Up))
    }

    /// The same, which is told by that.
    pub(crate) fn take(&mut self) -> Option<BfdChange> {
        self.down.take().or_else(|| std::mem::take(&mut self.up).then_some(BfdChange::Up))
    }
}

impl BfdChange {
    /// Whether more follows from it than from `later`.
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
