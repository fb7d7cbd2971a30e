//! How long does it take to render a node with many routes?
//!
//! `cargo test --release -p fairway-frr --test speed -- --ignored --nocapture` prints it.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)] // It measures.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_frr::render::{Settings, render};
use fairway_ground::{Asn, PeerKey, Prefix, RemoteAs, RouterId};
use fairway_seam::{Desired, DesiredRoute, PeerConfig, RouteAttributes};

/// A node with `routes` routes in `classes` classes for `neighbours` neighbours.
fn node(routes: u32, neighbours: u8, classes: u32) -> Desired {
    let asn = |number| Asn::new(number).unwrap();
    let peer = |last| {
        let key = PeerKey::from(IpAddr::from([192, 0, 2, last]));
        let router_id = RouterId::new(1).unwrap();
        PeerConfig::new(key, asn(65_001), RemoteAs::Asn(asn(65_010)), router_id)
    };
    let peers: Vec<PeerConfig> = (1..=neighbours).map(peer).collect();
    let keys: Arc<BTreeSet<PeerKey>> = Arc::new(peers.iter().map(|peer| peer.key).collect());
    let route = |number: u32| DesiredRoute {
        prefix: Prefix::host(Ipv4Addr::from(0xCB00_0000 + number).into()),
        peers: Arc::clone(&keys),
        attributes: Arc::new(RouteAttributes {
            med: Some(number % classes),
            ..RouteAttributes::default()
        }),
    };
    Desired { peers, routes: (0..routes).map(route).collect(), ..Desired::default() }
}

#[test]
#[ignore = "measures: for a release build"]
fn a_thousand_routes_for_ten_neighbours_are_rendered_in_a_few_milliseconds() {
    for (routes, neighbours, classes) in
        [(1000, 10, 1), (1000, 10, 10), (1000, 10, 1000), (10_000, 10, 10)]
    {
        let desired = node(routes, neighbours, classes);
        let settings = Settings::default();
        let mut times: Vec<Duration> = (0..50)
            .map(|_| {
                let began = Instant::now();
                let rendered = render(&desired, &settings).unwrap();
                assert!(rendered.text.lines().count() > 1000);
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!(
            "{routes} routes, {neighbours} neighbors, {classes} classes: median {:?}, worst {:?}",
            times[25], times[49]
        );
        if classes <= 10 && routes == 1000 {
            assert!(times[25] < Duration::from_millis(10), "{:?}", times[25]);
        }
    }
}
