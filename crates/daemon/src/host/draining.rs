//! Whether this node is in service: what neighbours are told of it, what is kept on disk, what the
//! log says, in that order.
//!
//! [`Drain`] decides; who tells the neighbours is the caller's.

use std::path::Path;

use fairway_ground::Instant;
use fairway_node::drain::{Drain, DrainStatus, DrainStep, Moment};
use fairway_seam::{DrainState, Leave};
use tracing::{error, info, warn};

use super::saver::{self, Saver};

/// See the module.
pub(crate) struct Draining(Drain);

impl Draining {
    /// Goes on with a drain of an earlier run, which nobody may remember by now.
    pub(crate) fn resume(directory: &Path, saver: &Saver, now: Moment) -> Self {
        let record = saver::restore_drain(directory).unwrap_or_else(|error| {
            error!("{error}; this node is in service, whether it was drained or not");
            None
        });
        let Some(record) = record else { return Self(Drain::default()) };
        let drain = Drain::resume(now, record);
        saver.save_drain(drain.record());
        if drain.state() != DrainState::InService {
            let end = match drain.record().command {
                DrainStatus::InService => "when the Node is not marked metallb.io/drain any more",
                _ => "with `fairway drain --undo`",
            };
            warn!("{}, since before this start; that ends {end}", drain.status());
        }
        Self(drain)
    }

    /// Does `act`. If neighbours should see the node otherwise after it, `tell` has to tell them.
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
        // A second one who wants the same changes nothing for neighbours, and counts after a restart.
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

    /// Neighbours of a node that was taken out of service need to keep nothing of it.
    pub(crate) fn how_to_leave(&self) -> Leave {
        match self.0.state() {
            DrainState::InService => Leave::ForRestart,
            DrainState::Draining | DrainState::Drained => Leave::ForGood,
        }
    }
}

/// What a step means.
fn log(step: DrainStep, status: DrainStatus) {
    match (step, status) {
        (DrainStep::None, _) => {}
        (DrainStep::Began | DrainStep::Moved, status) => {
            info!("{status}: neighbours are asked to prefer others (GRACEFUL_SHUTDOWN)");
        }
        (_, DrainStatus::Drained { .. }) => {
            info!("this node is drained: all routes are withdrawn, sessions stay up");
        }
        _ => info!("this node is in service again: all routes are announced"),
    }
}
