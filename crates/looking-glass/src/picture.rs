//! What is remembered from one overview to the next, and the parts of the page that follow from it.

use fairway_show::overview::{EventLog, Overview};

use crate::TemplateError;
use crate::fragment::{self, Fragment};
use crate::transitions::Transitions;

/// The state of a page that many look at.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    transitions: Transitions,
    events: EventLog,
}

impl Picture {
    /// Rows of each table that grows with the cluster: more than anybody reads, and less than a megabyte.
    pub const ROWS_MAX: usize = 1_000;

    /// All parts of the page after `overview`, in their order. A part is the same text while nothing that it shows happens.
    pub fn follow(&mut self, overview: &Overview) -> Result<Vec<Fragment>, TemplateError> {
        self.transitions.follow(overview);
        self.events.follow(overview);
        fragment::all(overview, &self.transitions, &self.events)
    }
}
