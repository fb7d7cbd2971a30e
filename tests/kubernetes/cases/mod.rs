//! What is shown? Each case is a story with a name. Used by main.

mod announcing;
mod nodes;

use anyhow::Result;

use crate::stage::{Kind, Stage};

/// A story.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// On which API servers.
    pub(crate) on: &'static [Kind],
    pub(crate) run: fn(&mut Stage) -> Result<()>,
}

const REAL: &[Kind] = &[Kind::Real];
const BOTH: &[Kind] = &[Kind::Real, Kind::Model];

macro_rules! cases {
    ($($on:ident $module:ident::$name:ident,)*) => {
        vec![$(Case { name: stringify!($name), on: $on, run: $module::$name }),*]
    };
}

/// All of them, in the order in which they are told.
pub(crate) fn all() -> Vec<Case> {
    cases![
        REAL announcing::what_is_applied_gets_an_address_and_routes,
        BOTH announcing::a_service_is_announced_edited_and_deleted,
        BOTH announcing::local_routes_follow_their_endpoints,
        BOTH announcing::advertisements_and_pools_are_edited,
        BOTH announcing::a_service_without_room_says_so,
        BOTH nodes::routes_follow_labels_of_nodes,
        BOTH nodes::an_excluded_node_announces_nothing,
        BOTH nodes::a_node_without_network_announces_nothing,
    ]
}
