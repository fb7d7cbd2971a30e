//! Which cases are there? The list that the matrix runs, each named by its function's sentence, with what
//! covers it where the short form leaves it out. A case is written once, for every router.

mod bfd;
mod bfd_failures;
mod capabilities;
mod changes;
mod decisions;
mod draining;
mod failures;
mod faults;
mod installing;
mod neighbours;
mod passwords;
mod receiving;
mod reflection;
mod restarts;
mod routes;
mod ruling;
pub(crate) mod scene;
mod sessions;
mod shown;
mod transit;
mod validating;

use anyhow::Result;

use crate::speaker::SpeakerKind;
use lab::routers::{Release, RouterKind};
use lab::rpki;
use scene::Cell;

/// A row of the matrix.
pub(crate) struct Case {
    /// The name of the function, with underscores.
    name: &'static str,
    /// With FRR as the speaker, the case or the stage that covers it where the short form leaves it out.
    covered_with_frr: &'static str,
    pub(crate) run: fn(&Cell) -> Result<()>,
}

impl Case {
    pub(crate) fn sentence(&self) -> String {
        self.name.replace('_', " ")
    }

    /// Why a router cannot take part, said in its cell instead of a result.
    pub(crate) fn not_applicable(
        &self,
        router: RouterKind,
        speaker: SpeakerKind,
    ) -> Option<&'static str> {
        let lack =
            |(routers, names, _): &&Lack| routers.contains(&router) && names.contains(&self.name);
        let of_router = LACKS.iter().find(lack).map(|(_, _, reason)| *reason);
        let needs_cache = self.name.starts_with("rpki_decides_over_");
        let no_cache = (needs_cache && rpki::program().is_none())
            .then_some("there is no routinator here (scripts/routinator.sh)");
        speaker.not_applicable(self.name, router).or(of_router).or(no_cache)
    }

    /// Whether the short form has it with this router. Of BFD it has each case once: with the newest BIRD,
    /// and with the newest FRR what only that supports.
    pub(crate) fn is_short(&self, router: RouterKind, speaker: SpeakerKind) -> bool {
        if speaker != SpeakerKind::Fairway {
            return SHORT_WITH_FRR.contains(&(self.name, router));
        }
        match router {
            _ if !BFD.contains(&self.name) => true,
            RouterKind::Frr(Release::Trixie) => BFD_OF_FRR.contains(&self.name),
            RouterKind::Bird(Release::Trixie) => true,
            _ => false,
        }
    }

    /// What covers it in `make test` with a router with which the short form lacks it.
    pub(crate) fn covered_by(&self, speaker: SpeakerKind) -> String {
        match speaker {
            // By itself, with another router.
            SpeakerKind::Fairway => self.sentence(),
            SpeakerKind::Frr(_) => self.covered_with_frr.to_owned(),
        }
    }
}

/// What some routers lack, and the cases that need it.
type Lack = (&'static [RouterKind], &'static [&'static str], &'static str);

/// They need a router that uses two next hops at once.
const SHARED_TRAFFIC: &[&str] = &[
    "a_node_that_is_drained_leaves_its_traffic_to_another",
    "a_node_that_is_drained_leaves_its_traffic_to_another_inside_the_as",
];

/// They need a router with BFD.
const BFD: &[&str] = &[
    "bfd_guards_a_direct_session",
    "bfd_guards_a_session_over_ipv6",
    "bfd_crosses_a_middle_hop",
    "bfd_guards_an_internal_session",
    "bfd_guards_an_unnumbered_session",
    "bfd_echo_packets_come_back",
    "bfd_packets_are_signed",
    "bfd_packets_are_signed_meticulously",
    "bfd_packets_with_a_wrong_key_are_not_heard",
    "bfd_timers_change_without_a_flap",
    "bfd_that_is_passive_waits_for_the_router",
    "bfd_speaks_to_a_router_that_waits",
    "bfd_that_is_taken_down_ends_no_session",
    "bfd_in_strict_mode_comes_before_the_session",
    "bfd_notices_a_cut_cable",
    "bfd_notices_a_cable_cut_towards_the_node",
    "bfd_notices_a_cable_cut_towards_the_router",
    "bfd_notices_a_frozen_router",
    "bfd_finds_a_killed_router_again",
    "bfd_leaves_the_routes_of_a_crashed_router",
    "bfd_leaves_the_routes_of_a_frozen_router",
    "bfd_that_would_outlive_bgp_ends_its_routes",
    "bfd_lets_a_planned_restart_of_ours_pass",
    "bfd_lets_a_crash_of_ours_pass_where_the_router_is_told_so",
    "bfd_that_we_take_away_ends_no_session",
];

/// What the short form has where FRR speaks: one of each kind.
const SHORT_WITH_FRR: &[(&str, RouterKind)] = &[
    ("one_ipv4_session_carries_both_families", RouterKind::Bird(Release::Trixie)),
    ("a_changed_address_moves_without_a_reset", RouterKind::Bird(Release::Trixie)),
    ("a_removed_peer_is_told_so", RouterKind::Frr(Release::Trixie)),
    (
        "communities_arrive_as_numbers_well_known_large_and_alias",
        RouterKind::Bird(Release::Bookworm),
    ),
    ("received_routes_are_those_that_the_filter_lists", RouterKind::Frr(Release::Bookworm)),
    ("a_cleared_session_comes_back_and_receives_again", RouterKind::Bird(Release::Trixie)),
    ("bfd_notices_a_cut_cable", RouterKind::Bird(Release::Trixie)),
];

/// What only FRR has of BFD, or where it is unlike BIRD.
const BFD_OF_FRR: &[&str] = &[
    "bfd_guards_a_direct_session",
    "bfd_guards_an_internal_session",
    "bfd_echo_packets_come_back",
    "bfd_that_is_taken_down_ends_no_session",
    "bfd_notices_a_cut_cable",
    "bfd_that_would_outlive_bgp_ends_its_routes",
    "bfd_lets_a_planned_restart_of_ours_pass",
];

const LACKS: &[Lack] = &[
    (&[RouterKind::Gobgp, RouterKind::Openbgpd], BFD, "has no BFD here"),
    (
        &[RouterKind::Bird(Release::Bookworm), RouterKind::Bird(Release::Trixie)],
        &["bfd_echo_packets_come_back"],
        "has no echo function",
    ),
    (
        &[RouterKind::Bird(Release::Bookworm), RouterKind::Bird(Release::Trixie)],
        &["bfd_guards_an_internal_session"],
        "watches over several hops inside an AS",
    ),
    (
        &[RouterKind::Bird(Release::Bookworm), RouterKind::Bird(Release::Trixie)],
        &["bfd_that_is_taken_down_ends_no_session"],
        "ends its session itself when its own BFD is taken down",
    ),
    (
        &[RouterKind::Bird(Release::Bookworm), RouterKind::Bird(Release::Trixie)],
        &["bfd_that_would_outlive_bgp_ends_its_routes"],
        "never says that its BFD would outlive its BGP",
    ),
    (
        &[
            RouterKind::Frr(Release::Bookworm),
            RouterKind::Frr(Release::Trixie),
            RouterKind::Bird(Release::Bookworm),
        ],
        &["bfd_that_we_take_away_ends_no_session"],
        "takes AdminDown for Down, and ends its session",
    ),
    (
        &[RouterKind::Frr(Release::Bookworm), RouterKind::Frr(Release::Trixie)],
        &[
            "bfd_packets_are_signed",
            "bfd_packets_are_signed_meticulously",
            "bfd_packets_with_a_wrong_key_are_not_heard",
        ],
        "its BFD signs nothing",
    ),
    // It logs `route refresh: AID IPv4 unicast not negotiated`, although it was: towards BIRD, too.
    (
        &[RouterKind::Openbgpd],
        &[
            "received_routes_follow_a_live_change_of_the_filter",
            "a_softly_cleared_session_receives_again_without_a_reset",
            "an_enhanced_refresh_keeps_what_is_said_again",
            "a_path_with_our_own_as_is_accepted_where_that_is_allowed",
            "rules_decide_what_is_received_and_passed_on",
        ],
        "7.7 answers no ROUTE-REFRESH, whoever asks",
    ),
    (
        &[RouterKind::Gobgp],
        &["a_path_with_our_own_as_is_accepted_where_that_is_allowed"],
        "3.10 sends a neighbor no path with the neighbor's AS",
    ),
    (
        &[RouterKind::Gobgp, RouterKind::Openbgpd],
        &["sixty_decisions_have_the_winner_of_the_router"],
        "has no more neighbors in the lab",
    ),
    // Of five paths it then shows another one as the best of its AS.
    (
        &[RouterKind::Frr(Release::Trixie)],
        &["sixty_decisions_have_the_winner_of_the_router"],
        "10.3 with deterministic-med chooses one that has a higher MED than another of its AS, now and then",
    ),
    (
        &[RouterKind::Gobgp],
        &["a_killed_fairway_leaves_its_routes_for_the_next_one"],
        "3.10 sends no End-of-RIB without graceful restart",
    ),
    (
        &[RouterKind::Gobgp],
        &["an_enhanced_refresh_keeps_what_is_said_again"],
        "3.10 does not offer enhanced route refresh",
    ),
    (
        &[RouterKind::Openbgpd],
        &["an_unnumbered_session_carries_both_families"],
        "7.7 knows neighbors by address only",
    ),
    (
        &[RouterKind::Openbgpd],
        &["an_extended_next_hop_carries_ipv4_over_ipv6"],
        "7.7 has no extended next hop",
    ),
    // It offers graceful restart without a restart time, for the markers alone.
    (
        &[RouterKind::Openbgpd],
        &[
            "a_crashed_router_finds_its_routes_when_it_is_back",
            "a_crashed_router_that_stays_away_loses_its_routes_in_time",
        ],
        "7.7 asks nobody to keep its routes",
    ),
    // It lets our routes go when the restart time is over, and offers no capability 71.
    (
        &[RouterKind::Openbgpd],
        &[
            "a_fairway_that_stays_away_is_the_last_resort",
            "a_router_that_stays_away_is_the_last_resort",
        ],
        "7.7 has no long-lived graceful restart",
    ),
    (
        &[
            RouterKind::Bird(Release::Bookworm),
            RouterKind::Bird(Release::Trixie),
            RouterKind::Openbgpd,
        ],
        &["a_cleared_session_keeps_the_routes_of_both_sides"],
        "it has no N bit",
    ),
    (
        &[RouterKind::Gobgp],
        &["an_extended_next_hop_carries_ipv4_over_ipv6"],
        "3.10 offers it on unnumbered sessions only",
    ),
    (&[RouterKind::Gobgp, RouterKind::Openbgpd], SHARED_TRAFFIC, "forwards nothing in the lab"),
    (
        &[RouterKind::Bird(Release::Bookworm), RouterKind::Bird(Release::Trixie)],
        SHARED_TRAFFIC,
        "shares no traffic in the lab",
    ),
    (
        &[RouterKind::Gobgp],
        &[
            "roles_that_agree_mark_routes_as_for_customers_only",
            "a_route_server_and_its_client_agree",
            "roles_that_disagree_never_establish",
        ],
        "3.10 has no roles",
    ),
];

// What covers a case with FRR as the speaker, where the short form leaves it out: cases that it has,
const SESSION: &str = "one ipv4 session carries both families";
const MOVE: &str = "a changed address moves without a reset";
const REMOVAL: &str = "a removed peer is told so";
const COMMUNITIES: &str = "communities arrive as numbers well known large and alias";
const FILTER: &str = "received routes are those that the filter lists";
const CLEAR: &str = "a cleared session comes back and receives again";
const CUT: &str = "bfd notices a cut cable";
// and stages of `make test`: the lines of each setting in both FRRs, FRR or Fairway that fails, FRR's answers as
// they were recorded, and the same case where nothing of it depends on the speaker.
const SETTING: &str = "frr";
const FAULT: &str = "frr-faults";
const STATUS: &str = "unit";
const NATIVE: &str = "interop-short";

macro_rules! cases {
    ($($cover:ident $module:ident :: $name:ident,)*) => {
        &[$(Case { name: stringify!($name), covered_with_frr: $cover, run: $module::$name }),*]
    };
}

pub(crate) const CASES: &[Case] = cases![
    SESSION sessions::an_ipv4_session_carries_an_ipv4_route,
    SESSION sessions::an_ipv6_session_carries_an_ipv6_route,
    SESSION sessions::one_ipv4_session_carries_both_families,
    SETTING sessions::both_sides_dial_and_one_session_remains,
    SETTING sessions::only_the_router_dials,
    SETTING sessions::another_port_and_another_source_address,
    SETTING sessions::an_external_session_crosses_a_middle_hop,
    COMMUNITIES routes::communities_arrive_as_numbers_well_known_large_and_alias,
    SETTING routes::an_internal_session_carries_the_local_preference,
    FAULT routes::two_thousand_prefixes_arrive_and_leave,
    SETTING passwords::the_same_password_over_ipv4,
    SETTING passwords::the_same_password_from_a_secret_over_ipv6,
    SETTING passwords::a_wrong_password_never_establishes,
    SETTING passwords::a_missing_password_is_added_live,
    MOVE changes::a_removed_service_is_withdrawn,
    MOVE changes::a_changed_address_moves_without_a_reset,
    REMOVAL changes::a_removed_peer_is_told_so,
    SETTING failures::a_silent_router_runs_into_the_hold_timer,
    CLEAR failures::a_restarted_router_gets_its_routes_again,
    FAULT failures::a_restarted_fairway_keeps_its_addresses,
    FAULT failures::a_killed_fairway_keeps_its_addresses,
    SETTING restarts::a_crashed_router_finds_its_routes_when_it_is_back,
    SETTING restarts::a_crashed_router_that_stays_away_loses_its_routes_in_time,
    FAULT restarts::a_restarted_fairway_finds_its_routes_when_it_is_back,
    FAULT restarts::a_fairway_that_stays_away_is_the_last_resort,
    SETTING restarts::a_router_that_stays_away_is_the_last_resort,
    CLEAR restarts::a_cleared_session_keeps_the_routes_of_both_sides,
    REMOVAL restarts::a_removed_peer_leaves_no_stale_route,
    NATIVE faults::broken_files_are_named_and_change_nothing,
    FILTER receiving::received_routes_are_those_that_the_filter_lists,
    FILTER receiving::received_routes_need_no_address_of_our_own_in_their_family,
    FILTER receiving::received_routes_follow_a_live_change_of_the_filter,
    SETTING receiving::too_many_received_prefixes_end_the_session_for_a_while,
    CLEAR receiving::a_cleared_session_comes_back_and_receives_again,
    CLEAR receiving::a_softly_cleared_session_receives_again_without_a_reset,
    SETTING transit::received_routes_travel_on_to_a_second_router,
    SETTING transit::received_routes_keep_their_next_hop_on_the_way_to_an_internal_router,
    SETTING transit::received_routes_marked_no_export_stay_in_the_as,
    SETTING transit::received_routes_of_an_internal_router_reach_no_other_internal_one,
    SETTING neighbours::an_unnumbered_session_carries_both_families,
    SETTING neighbours::an_extended_next_hop_carries_ipv4_over_ipv6,
    SETTING neighbours::ttl_security_joins_direct_neighbours,
    SETTING neighbours::ttl_security_counts_the_hops,
    SETTING neighbours::ttl_security_refuses_a_router_further_away,
    SETTING neighbours::a_passive_peer_waits_for_the_router,
    SETTING neighbours::a_listen_range_accepts_a_router_that_nobody_named,
    SETTING neighbours::a_listen_range_demands_its_password,
    SETTING neighbours::a_listen_range_accepts_no_more_than_its_limit,
    SETTING neighbours::the_default_gateway_is_the_peer,
    SETTING neighbours::a_dynamic_as_is_any_as_but_ours,
    SETTING neighbours::a_local_as_stands_in_for_our_own,
    SETTING neighbours::a_chosen_next_hop_is_announced,
    SETTING capabilities::several_paths_of_a_router_are_received,
    SETTING capabilities::several_paths_are_sent_to_a_router,
    SETTING capabilities::a_path_with_our_own_as_is_accepted_where_that_is_allowed,
    SETTING reflection::a_reflected_route_names_its_originator_and_our_cluster,
    SETTING reflection::a_client_of_a_route_server_receives_what_another_announced,
    SETTING ruling::rules_decide_what_is_received_and_passed_on,
    SETTING validating::rpki_decides_over_received_routes,
    SETTING validating::rpki_decides_over_advertised_routes,
    SETTING decisions::sixty_decisions_have_the_winner_of_the_router,
    SETTING installing::learned_routes_are_in_the_kernel,
    SETTING installing::a_route_moves_when_an_interface_goes_down,
    SETTING installing::the_routes_of_one_neighbour_are_installed_alone,
    SETTING installing::what_nobody_takes_of_an_aggregate_is_dropped,
    SETTING installing::a_killed_fairway_leaves_its_routes_for_the_next_one,
    CLEAR capabilities::an_enhanced_refresh_keeps_what_is_said_again,
    SETTING capabilities::roles_that_agree_mark_routes_as_for_customers_only,
    SETTING capabilities::a_route_server_and_its_client_agree,
    SETTING capabilities::roles_that_disagree_never_establish,
    SETTING capabilities::a_strict_role_refuses_a_router_that_says_none,
    SETTING capabilities::a_shut_down_peer_is_told_why,
    STATUS capabilities::a_router_that_shuts_down_says_why,
    STATUS capabilities::a_router_that_takes_no_more_prefixes_says_so,
    SETTING draining::a_drained_node_says_so_then_withdraws_and_comes_back,
    SETTING draining::a_node_that_is_drained_leaves_its_traffic_to_another,
    SETTING draining::a_node_that_is_drained_leaves_its_traffic_to_another_inside_the_as,
    SETTING capabilities::an_advertisement_sets_med_prepends_and_link_bandwidth,
    CUT bfd::bfd_guards_a_direct_session,
    CUT bfd::bfd_guards_a_session_over_ipv6,
    SETTING bfd::bfd_crosses_a_middle_hop,
    SETTING bfd::bfd_guards_an_internal_session,
    SETTING bfd::bfd_guards_an_unnumbered_session,
    SETTING bfd::bfd_echo_packets_come_back,
    SETTING bfd::bfd_packets_are_signed,
    SETTING bfd::bfd_packets_are_signed_meticulously,
    SETTING bfd::bfd_packets_with_a_wrong_key_are_not_heard,
    SETTING bfd::bfd_timers_change_without_a_flap,
    SETTING bfd::bfd_that_is_passive_waits_for_the_router,
    SETTING bfd::bfd_speaks_to_a_router_that_waits,
    CUT bfd::bfd_that_is_taken_down_ends_no_session,
    SETTING bfd::bfd_in_strict_mode_comes_before_the_session,
    CUT bfd_failures::bfd_notices_a_cut_cable,
    CUT bfd_failures::bfd_notices_a_cable_cut_towards_the_node,
    CUT bfd_failures::bfd_notices_a_cable_cut_towards_the_router,
    CUT bfd_failures::bfd_notices_a_frozen_router,
    CUT bfd_failures::bfd_finds_a_killed_router_again,
    CUT bfd_failures::bfd_leaves_the_routes_of_a_crashed_router,
    CUT bfd_failures::bfd_leaves_the_routes_of_a_frozen_router,
    CUT bfd_failures::bfd_that_would_outlive_bgp_ends_its_routes,
    FAULT bfd_failures::bfd_lets_a_planned_restart_of_ours_pass,
    FAULT bfd_failures::bfd_lets_a_crash_of_ours_pass_where_the_router_is_told_so,
    CUT bfd_failures::bfd_that_we_take_away_ends_no_session,
];
