//! The cases: each is a function that is given a number of its own and a directory.

mod layer2;
mod proxy;
mod tcp_ao;
mod vrf;

use std::path::Path;

use anyhow::Result;

/// One case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(usize, &Path) -> Result<()>,
    /// It needs an API server outside: `tests/vm/with_api_server.sh`.
    pub(crate) needs_api_server: bool,
}

const fn case(name: &'static str, run: fn(usize, &Path) -> Result<()>) -> Case {
    Case { name, run, needs_api_server: false }
}

const fn with_api_server(name: &'static str, run: fn(usize, &Path) -> Result<()>) -> Case {
    Case { name, run, needs_api_server: true }
}

/// The benchmark of the service proxy beside kube-proxy.
pub(crate) fn bench() -> anyhow::Result<()> {
    proxy::bench()
}

/// Whether there is an API server.
pub(crate) fn has_api_server() -> bool {
    proxy::Api::given().is_some()
}

/// All cases, in the order in which they run.
pub(crate) const CASES: &[Case] = &[
    case("layer 2: on a VLAN, a bond and in a VRF", layer2::answers_stay_on_their_segments),
    case("proxy: packets reach the right Pods", proxy::packets_reach_the_right_pods),
    case(
        "proxy: what is removed comes back, and what is not ours stays",
        proxy::what_is_removed_comes_back_and_what_is_not_ours_stays,
    ),
    case(
        "proxy: an address is announced while it is delivered",
        proxy::an_address_is_announced_while_it_is_delivered,
    ),
    case(
        "proxy: three nodes serve clients near and far",
        proxy::three_nodes_serve_clients_near_and_far,
    ),
    case("proxy: one process does all", proxy::one_process_does_all),
    case("proxy: nothing is left after a cleanup", proxy::nothing_is_left_after_a_cleanup),
    with_api_server(
        "kube-proxy: Fairway does what it does",
        proxy::fairway_does_what_kube_proxy_does,
    ),
    with_api_server(
        "kube-proxy: a reboot needs no API server",
        proxy::a_reboot_needs_no_api_server,
    ),
    with_api_server(
        "kube-proxy: connections outlive every change of hands",
        proxy::connections_outlive_every_change_of_hands,
    ),
    case("vrf: two with the same addresses", vrf::two_with_the_same_addresses),
    case("vrf: the main table takes no session of another", vrf::the_main_table_is_another),
    case("vrf: routes in the table of their own", vrf::routes_are_in_the_table_of_their_vrf),
    case("vrf: the default gateway is the peer", vrf::the_default_gateway_is_the_peer),
    case("tcp-ao: two of ours, and keys that change", tcp_ao::keys_change_between_two_of_ours),
    case("tcp-ao: a wrong secret never comes up", tcp_ao::a_wrong_secret_never_comes_up),
    case("tcp-ao: BIRD 3, and keys that change", tcp_ao::keys_change_with_bird),
];
