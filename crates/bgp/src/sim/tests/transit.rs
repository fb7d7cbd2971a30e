//! Several speakers in transit, under faults: no route outlives its neighbour's announcement, and in the
//! end all tables are those of a plain computation.

use super::super::transit::Network;
use super::seeds;

/// Worlds of the ordinary test.
const SEEDS_DEFAULT: u64 = 60;

/// Lives through one world; returns its events, its routes in the end, and panics on the way.
fn live_through(seed: u64) -> [u64; 3] {
    let mut network = Network::seeded(seed);
    network.live_through();
    [network.events, network.routes() as u64, network.panics()]
}

#[test]
fn speakers_in_transit_keep_no_route_that_is_gone_and_agree_in_the_end() {
    let (count, [events, routes, panics]) =
        seeds::tell("transit", seeds::asked(SEEDS_DEFAULT), live_through);
    println!("{count} worlds, {events} events, {routes} routes in the end, {panics} panics");
    // What never happens is not tested.
    assert!(count < 50 || routes > count * 5 && panics > count / 5, "too little happens");
}
