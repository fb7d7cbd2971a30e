//! The parts of the page, each a text of its own, so that a viewer is sent those alone that changed.

mod pool;
mod rows;
mod segment;

use fairway_show::overview::{EventLog, Overview};
use serde::Serialize;

use crate::TemplateError;
use crate::templates::render;
use crate::transitions::Transitions;

/// A part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// What node this is, and sums.
    Head,
    /// Sessions.
    Neighbors,
    /// Services, and who has their routes.
    Services,
    /// Who answers for which address on the local segment.
    Segment,
    /// Addresses in use.
    Pools,
    /// Prefixes that belong to no Service.
    Prefixes,
    /// What happened.
    Events,
}

impl Part {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 7] = [
        Self::Head,
        Self::Neighbors,
        Self::Services,
        Self::Segment,
        Self::Pools,
        Self::Prefixes,
        Self::Events,
    ];

    /// The `id` of its element, and the name of its event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Neighbors => "neighbors",
            Self::Services => "services",
            Self::Pools => "pools",
            Self::Segment => "segment",
            Self::Prefixes => "prefixes",
            Self::Events => "events",
        }
    }
}

/// A part as HTML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// Which one.
    pub part: Part,
    /// What is inside its element.
    pub html: String,
}

/// All parts, in the order of [`Part::ALL`].
pub(crate) fn all(
    overview: &Overview,
    transitions: &Transitions,
    events: &EventLog,
) -> Result<Vec<Fragment>, TemplateError> {
    let html = |part| match part {
        Part::Head => render("head.html", &rows::Head::of(overview)),
        Part::Neighbors => render("neighbors.html", &rows::Neighbors::of(overview, transitions)),
        Part::Services => render("services.html", &rows::Services::of(overview)),
        Part::Pools => render("pools.html", &pool::Pools::of(overview)),
        Part::Segment => render("segment.html", &segment::Segment::of(overview)),
        Part::Prefixes => render("prefixes.html", &rows::Prefixes::of(overview)),
        Part::Events => render("events.html", &rows::Events::of(events)),
    };
    Part::ALL.into_iter().map(|part| Ok(Fragment { part, html: html(part)? })).collect()
}
