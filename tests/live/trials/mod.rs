//! The trials, kind by kind.

mod announced;
mod objects;
mod peers;
mod rules;
mod services;

use crate::trial::Trial;

/// All of them.
pub(crate) fn all() -> Vec<Trial> {
    [peers::all(), rules::all(), announced::all(), services::all(), objects::all()].concat()
}
