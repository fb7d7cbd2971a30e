//! What concerns the BGP speaker of a node and no single peer.

use std::collections::BTreeSet;

use fairway_ground::{BmpStation, RpkiServer};

use super::{LabelSelector, ObjectName};

/// A BGPConfiguration. All that select a node apply to it together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BgpConfiguration {
    /// Its name.
    pub name: ObjectName,
    /// The nodes that it is for; none: all.
    pub node_selectors: Vec<LabelSelector>,
    /// Paths through different neighbouring ASes are compared by their MULTI_EXIT_DISC.
    pub always_compare_med: bool,
    /// The RPKI caches that are asked.
    pub rpki_servers: BTreeSet<RpkiServer>,
    /// The BMP stations that are told of sessions and routes; no two at one place.
    pub bmp_stations: BTreeSet<BmpStation>,
}
