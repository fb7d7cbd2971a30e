//! What this run leaves to the next one, and has of the one before it: the routes that routers may
//! still keep.

use std::path::Path;

use fairway_node::announced::{ANNOUNCED_FILE, Announced};
use fairway_seam::{DesiredRoute, EarlierRun};
use tracing::error;

use super::machine;
use super::saver;

/// What the next run should know of this one.
pub(crate) fn announced(routes: Vec<DesiredRoute>) -> Announced {
    Announced { boot_id: machine::boot_id(), routes }
}

/// What the run before this one announced. Without that, routers are not told that this is a
/// restart.
pub(crate) fn earlier_run(directory: &Path) -> Option<EarlierRun> {
    const CONSEQUENCE: &str = "neighbours are not told that this is a restart, and may drop the \
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
