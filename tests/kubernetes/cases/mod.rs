//! What is tested? Each case is a story with a name. Used by main.

mod announcing;
mod faults;
mod layer2;
mod leaders;
mod leaving;
mod metallb;
mod metrics;
mod migration;
pub(crate) mod node_api;
mod nodes;
mod outages;
mod rights;
mod shown;
mod webhook;

use anyhow::Result;

use crate::stage::{Kind, Stage};

/// A story.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// On which API servers; where there is little time, on the first that there is.
    pub(crate) on: &'static [Kind],
    /// What covers it in `make test` on an API server where it does not run there: itself, on another one, or
    /// the case or stage that its row names.
    pub(crate) covered_by: &'static str,
    pub(crate) run: fn(&mut Stage) -> Result<()>,
}

const REAL: &[Kind] = &[Kind::Real];
const MODEL: &[Kind] = &[Kind::Model];
const BARE: &[Kind] = &[Kind::Bare];
const BOTH: &[Kind] = &[Kind::Real, Kind::Model];
/// Those that wait long: there is more time on the model.
const EITHER: &[Kind] = &[Kind::Model, Kind::Real];

// What needs a real API server names what covers it on a machine without one.
macro_rules! cases {
    ($($on:ident $module:ident::$name:ident $(or $cover:literal)?,)*) => {
        vec![$(Case {
            name: stringify!($name),
            on: $on,
            covered_by: [$($cover,)? stringify!($name)][0],
            run: $module::$name,
        }),*]
    };
}

/// All of them, in the order in which they run.
pub(crate) fn all() -> Vec<Case> {
    cases![
        REAL announcing::what_is_applied_gets_an_address_and_routes or "a_service_is_announced_edited_and_deleted",
        BOTH announcing::a_service_is_announced_edited_and_deleted,
        BOTH announcing::local_routes_follow_their_endpoints,
        BOTH announcing::advertisements_and_pools_are_edited,
        EITHER announcing::a_service_without_room_says_so,
        BOTH nodes::routes_follow_labels_of_nodes,
        BOTH nodes::an_excluded_node_announces_nothing,
        BOTH nodes::networks_of_pods_are_announced_by_their_nodes,
        BOTH nodes::a_node_without_network_announces_nothing,
        REAL shown::kubectl_prints_what_an_operator_needs or "unit",
        BOTH shown::statuses_follow_the_sessions,
        BOTH shown::a_broken_object_is_named_and_stops_nobody,
        BOTH layer2::one_node_answers_on_the_segment,
        REAL layer2::an_address_is_there_while_the_api_server_is_alive or "layer2",
        BOTH leaving::a_marked_node_is_drained,
        BOTH leaving::a_restarted_speaker_loses_nothing,
        BOTH leaving::a_removed_speaker_leaves_for_good,
        EITHER leaders::another_controller_takes_over,
        EITHER leaders::a_restarted_controller_assigns_at_once,
        BOTH outages::an_outage_withdraws_nothing,
        REAL outages::a_wrong_clock_is_named or "unit",
        REAL outages::definitions_that_are_removed_withdraw_nothing or "unit",
        MODEL faults::watches_that_are_cut_go_on,
        MODEL faults::a_watch_that_is_gone_lists_again,
        MODEL faults::writes_that_fail_are_repeated,
        MODEL faults::a_slow_api_server_is_followed,
        MODEL faults::an_api_server_without_storage_changes_nothing,
        REAL rights::what_is_granted_is_used or "unit",
        // It has rights that are granted with it alone.
        REAL webhook::what_is_wrong_is_refused or "unit",
        REAL node_api::kubectl_asks_all_nodes or "unit",
        REAL metrics::clients_with_a_role_read_metrics_with_tls or "unit",
        BARE migration::a_cluster_of_metallb_is_taken_over_and_given_back or "unit",
    ]
}
