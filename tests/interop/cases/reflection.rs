//! What do clients of a route reflector and of a route server receive? A second router of the same kind, on a cable of its
//! own. Rows of the matrix.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};

use super::scene::{Cell, NODE_AS, ROUTER_AS, expect_equal};
use super::transit::{Transit, with_communities};
use crate::speaker::SpeakerKind;
use lab::Family;
use lab::resources::{Allowed, Peer};
use lab::routers::{Origination, RouterRoute};
use lab::wait::PATIENCE;

const PREFIX: &str = "10.90.1.0/24";
const SECOND_AS: u32 = 65003;
const CLUSTER: &str = "192.0.2.8";

/// All routes pass, in both directions.
fn open_to_all(peer: Peer) -> Peer {
    Peer { to_receive: Some(Allowed::All), to_advertise: Some(Allowed::All), ..peer }
}

/// The one path of the second router, whether or not it can reach the next hop.
fn arrives(transit: &mut Transit) -> Result<RouterRoute> {
    transit.wait(&format!("the second router has a path to {PREFIX}"), 2 * PATIENCE, |it| {
        let paths = it.second.paths(PREFIX)?;
        ensure!(paths.len() == 1, "it has {paths:?}");
        paths.into_iter().next().context("a path")
    })
}

/// Topology: router --- node --- second router, all in AS 65001; the router is a client of the node, and `clusterID` of the
/// second is 192.0.2.8.
/// Proves: the second router gets what the router originates as it is, with the router as its originator and our cluster;
/// when the router is a client no more, it goes.
//+ RFC 4456 §8: a reflector puts its CLUSTER_ID in front of CLUSTER_LIST, or creates one.
//+ RFC 4456 §10: a reflector changes NEXT_HOP, AS_PATH, LOCAL_PREF or MED.
pub(super) fn a_reflected_route_names_its_originator_and_our_cluster(cell: &Cell) -> Result<()> {
    let mut transit = Transit::open_with(cell, NODE_AS, |router| {
        router.local_as = NODE_AS;
        router.families = vec![Family::Ipv4];
        router.originated = vec![with_communities(PREFIX, &["65001:7"])];
    })?;
    let mut router = open_to_all(transit.scene.peer());
    let second = open_to_all(transit.second_peer());
    router.is_client = true;
    let second = Peer { cluster_id: Some(CLUSTER), ..second };
    if cell.speaker != SpeakerKind::Fairway {
        // FRR has one for all.
        router.cluster_id = Some(CLUSTER);
    }
    transit.join(&router, &second, PATIENCE)?;
    let route = arrives(&mut transit)?;
    expect_equal("next hops", &route.next_hops, &vec![transit.scene.spec.local_address])?;
    expect_equal("AS path", &route.as_path, &Vec::new())?;
    expect_equal("MED", &route.med, &Some(50))?;
    expect_equal("local preference", &route.local_preference, &Some(100))?;
    ensure!(route.communities.contains("65001:7"), "it has {route:?}");
    expect_equal("originator", &route.originator, &Some(Ipv4Addr::new(10, 0, 0, 2)))?;
    expect_equal("clusters", &route.clusters, &vec![CLUSTER.parse()?])?;
    router.is_client = false;
    transit.scene.apply_peer(&router)?;
    transit.leaves(PREFIX)
}

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65003); both routers are clients of the node as a
/// route server.
/// Proves: the second router gets what the router announced with its AS path, next hop and MED.
//+ RFC 7947 §2.2.1: NEXT_HOP is passed on unchanged to clients of a route server.
//+ RFC 7947 §2.2.2.1: a route server puts its AS into the path.
//+ RFC 7947 §2.2.3: MULTI_EXIT_DISC is passed on unchanged to clients of a route server.
pub(super) fn a_client_of_a_route_server_receives_what_another_announced(
    cell: &Cell,
) -> Result<()> {
    let mut transit = Transit::open_with(cell, SECOND_AS, |router| {
        router.families = vec![Family::Ipv4];
        router.of_route_server = true;
        // Of members of one exchange a next hop is on the network of all; here it is behind the node.
        router.multihop = true;
        router.originated = vec![Origination { med: Some(50), ..Origination::plain(PREFIX) }];
    })?;
    let served = |peer| Peer { is_client: true, ..open_to_all(peer) };
    let (router, second) = (served(transit.scene.peer()), served(transit.second_peer()));
    transit.join(&router, &second, PATIENCE)?;
    let route = arrives(&mut transit)?;
    expect_equal("next hops", &route.next_hops, &vec![transit.scene.spec.local_address])?;
    expect_equal("AS path", &route.as_path, &vec![ROUTER_AS])?;
    expect_equal("MED", &route.med, &Some(50))
}
