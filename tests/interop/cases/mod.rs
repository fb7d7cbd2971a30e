//! Which cases are there? The list that the matrix runs, each named by its function's sentence.
//! A case is written once, for every router.

mod changes;
mod failures;
mod faults;
mod passwords;
mod receiving;
mod routes;
pub(crate) mod scene;
mod sessions;
mod transit;

use anyhow::Result;

use crate::routers::RouterKind;
use scene::Cell;

/// A row of the matrix.
pub(crate) struct Case {
    /// The name of the function, with underscores.
    name: &'static str,
    pub(crate) run: fn(&Cell) -> Result<()>,
}

impl Case {
    pub(crate) fn sentence(&self) -> String {
        self.name.replace('_', " ")
    }

    /// Why a router cannot take part, said in its cell instead of a result.
    pub(crate) fn not_applicable(&self, router: RouterKind) -> Option<&'static str> {
        (router == RouterKind::Openbgpd && NEED_ROUTE_REFRESH.contains(&self.name))
            .then_some("7.7 answers no ROUTE-REFRESH, whoever asks")
    }
}

/// The cases in which the router must say its routes again. OpenBGPD 7.7 logs `route refresh: AID
/// IPv4 unicast not negotiated` instead, although it was: towards BIRD, too.
const NEED_ROUTE_REFRESH: &[&str] = &[
    "received_routes_follow_a_live_change_of_the_filter",
    "a_softly_cleared_session_receives_again_without_a_reset",
];

macro_rules! cases {
    ($($module:ident :: $name:ident,)*) => {
        &[$(Case { name: stringify!($name), run: $module::$name }),*]
    };
}

pub(crate) const CASES: &[Case] = cases![
    sessions::an_ipv4_session_carries_an_ipv4_route,
    sessions::an_ipv6_session_carries_an_ipv6_route,
    sessions::one_ipv4_session_carries_both_families,
    sessions::both_sides_dial_and_one_session_remains,
    sessions::only_the_router_dials,
    sessions::another_port_and_another_source_address,
    sessions::an_external_session_crosses_a_middle_hop,
    routes::communities_arrive_as_numbers_well_known_large_and_alias,
    routes::an_internal_session_carries_the_local_preference,
    routes::two_thousand_prefixes_arrive_and_leave,
    passwords::the_same_password_over_ipv4,
    passwords::the_same_password_from_a_secret_over_ipv6,
    passwords::a_wrong_password_never_establishes,
    passwords::a_missing_password_is_added_live,
    changes::a_removed_service_is_withdrawn,
    changes::a_changed_address_moves_without_a_reset,
    changes::a_removed_peer_is_told_so,
    failures::a_silent_router_runs_into_the_hold_timer,
    failures::a_restarted_router_gets_its_routes_again,
    failures::a_restarted_fairway_keeps_its_addresses,
    failures::a_killed_fairway_keeps_its_addresses,
    faults::broken_files_are_named_and_change_nothing,
    receiving::received_routes_are_those_that_the_filter_lists,
    receiving::received_routes_need_no_address_of_our_own_in_their_family,
    receiving::received_routes_follow_a_live_change_of_the_filter,
    receiving::too_many_received_prefixes_end_the_session_for_a_while,
    receiving::a_cleared_session_comes_back_and_receives_again,
    receiving::a_softly_cleared_session_receives_again_without_a_reset,
    transit::received_routes_travel_on_to_a_second_router,
    transit::received_routes_keep_their_next_hop_on_the_way_to_an_internal_router,
    transit::received_routes_marked_no_export_stay_in_the_as,
    transit::received_routes_of_an_internal_router_reach_no_other_internal_one,
];
