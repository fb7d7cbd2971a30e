//! What a snapshot holds beside links and addresses.
//!
//! A router with a full table has a million routes, and a large layer 2 domain has thousands of neighbours:
//! a reader that does not ask for them is not woken by them. Handed to [`crate::Watch::open`].

use std::collections::BTreeSet;

use crate::kind::{Kind, Kinds};
use crate::route::{Route, RouteMark};

/// What to follow. Links and addresses always are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Which routes; none unless asked for.
    pub routes: Option<RouteScope>,
    /// Whether neighbours are.
    pub neighbours: bool,
    /// How many bytes of events may wait in the socket, where the default is not enough or, in a test, too
    /// much.
    pub receive_buffer_bytes: Option<usize>,
}

/// Which routes of the main table and of VRFs to follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RouteScope {
    /// All.
    #[default]
    All,
    /// Those that these programs installed (`/etc/iproute2/rt_protos`).
    OfPrograms(BTreeSet<u8>),
    /// Those with this mark.
    Marked(RouteMark),
    /// Those without this mark; the kernel does not report the others.
    Unmarked(RouteMark),
    /// Default routes; the kernel does not report the others.
    Default,
}

impl RouteScope {
    /// Whether `route` is of them, as far as its own attributes say.
    pub(crate) fn covers(&self, route: &Route) -> bool {
        match self {
            Self::All => true,
            Self::OfPrograms(protocols) => protocols.contains(&route.protocol),
            Self::Marked(mark) => mark.is_of(route),
            Self::Unmarked(mark) => !mark.is_of(route),
            Self::Default => route.destination.prefix_len() == 0,
        }
    }
}

impl Scope {
    /// The tables that are followed.
    pub fn kinds(&self) -> Kinds {
        let is_wanted = |kind: &Kind| match kind {
            Kind::Link | Kind::Address => true,
            Kind::Route => self.routes.is_some(),
            Kind::Neighbour => self.neighbours,
        };
        Kind::ALL.into_iter().filter(is_wanted).collect()
    }
}
