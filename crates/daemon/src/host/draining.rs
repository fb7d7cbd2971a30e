//! The drain state of this node: what neighbours are sent, what is kept on disk, what is logged, in that
//! order.
//!
//! [`Drain`] decides; the caller sends the routes.

use std::path::Path;

use fairway_ground::Instant;
use fairway_node::drain::{Drain, DrainStatus, DrainStep, Moment};
use fairway_seam::{DrainState, Leave};
use tracing::{error, info, warn};

use super::saver::{self, Saver};

/// See the module.
pub(crate) struct Draining(Drain);

impl Draining {
    /// Continues a drain of an earlier run, which the operator may have forgotten.
    pub(crate) fn resume(directory: &Path, saver: &Saver, now: Moment) -> Self {
        let record = saver::restore_drain(directory).unwrap_or_else(|error| {
            error!("{error}; this node is in service now, even if it was drained before");
            None
        });
        let Some(record) = record else { return Self(Drain::default()) };
        let drain = Drain::resume(now, record);
        saver.save_drain(drain.record());
        if drain.state() != DrainState::InService {
            let end = match drain.record().command {
                DrainStatus::InService => "remove the mark metallb.io/drain from the Node",
                _ => "run `fairway drain --undo`",
            };
            warn!("{}, since before this start; to end the drain, {end}", drain.status());
        }
        Self(drain)
    }

    /// Does `act`. If the routes change as a result, calls `tell`, which has to send them.
    pub(crate) fn change(
        &mut self,
        saver: &Saver,
        act: impl FnOnce(&mut Drain) -> DrainStep,
        tell: impl FnOnce(DrainState),
    ) -> DrainStep {
        let before = self.0.record();
        let step = act(&mut self.0);
        if step != DrainStep::None {
            tell(self.0.state());
        }
        // A second order for the same state changes no route, but has to survive a restart.
        if self.0.record() != before {
            saver.save_drain(self.0.record());
        }
        log(step, self.0.status());
        step
    }

    pub(crate) fn state(&self) -> DrainState {
        self.0.state()
    }

    pub(crate) fn status(&self) -> DrainStatus {
        self.0.status()
    }

    /// When [`Drain::tick`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.0.next_deadline()
    }

    /// Leaves for good once the node is out of service: neighbours need not keep its routes.
    pub(crate) fn how_to_leave(&self) -> Leave {
        match self.0.state() {
            DrainState::InService => Leave::ForRestart,
            DrainState::Draining | DrainState::Drained => Leave::ForGood,
        }
    }
}

/// Logs a step.
fn log(step: DrainStep, status: DrainStatus) {
    match (step, status) {
        (DrainStep::None, _) => {}
        (DrainStep::Began | DrainStep::Moved, status) => {
            info!("{status}: neighbors are asked to prefer other paths (GRACEFUL_SHUTDOWN)");
        }
        (_, DrainStatus::Drained { .. }) => {
            info!("this node is drained: all routes are withdrawn, sessions stay up");
        }
        _ => info!("this node is in service again: all routes are announced"),
    }
}
