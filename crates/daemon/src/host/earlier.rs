//! What this run leaves to the next one, and what the previous run left: the routes that routers may still
//! keep.

use std::path::Path;

use fairway_node::announced::{ANNOUNCED_FILE, LastAnnounced};
use fairway_seam::{DesiredRoute, EarlierRun};
use tracing::error;

use super::machine;
use super::saver;

/// What the next run needs to know about this one.
pub(crate) fn announced(routes: Vec<DesiredRoute>) -> LastAnnounced {
    LastAnnounced { boot_id: machine::boot_id(), routes }
}

/// What the previous run announced. Without it, neighbours are not notified that this is a restart.
pub(crate) fn earlier_run(directory: &Path) -> Option<EarlierRun> {
    const CONSEQUENCE: &str = "cannot signal a restart to neighbors, which may drop the \
                               routes of this node until it announces them again";
    match saver::restore_announced(directory) {
        Ok(Some(announced)) => Some(announced.into_earlier_run(machine::boot_id().as_deref())),
        Ok(None) => {
            if saver::has_run(directory) {
                let path = directory.join(ANNOUNCED_FILE);
                error!("{} is missing; {CONSEQUENCE}", path.display());
            }
            None
        }
        Err(error) => {
            error!("{error}; {CONSEQUENCE}");
            None
        }
    }
}
