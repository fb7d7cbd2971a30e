//! Which sessions come up, and what do they carry? Families, ports, source addresses, which side dials,
//! hops in between. Rows of the matrix.

use anyhow::{Context, Result};

use super::scene::{Cell, NODE_AS, Scene, expect_equal, expect_next_hop};
use lab::wait::holds_for;
use lab::{Family, NODE_IPV4, NODE_IPV6, NODE_SECOND_IPV4, Wiring};

/// Topology: node --- router, eBGP over IPv4, fairway dials.
/// Proves: the session is established on both sides, and a service's address arrives as a host
/// route with the node as its next hop and the node's AS as its only AS.
//+ RFC 4271 §5.1.2: the originator is the only AS in the path that an external peer is told.
//+ RFC 4271 §5.1.3: the next hop of our own routes is our address on the interface of the session.
pub(super) fn an_ipv4_session_carries_an_ipv4_route(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    scene.bring_up("203.0.113.10")?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_next_hop(&route, NODE_IPV4)?;
    expect_equal("AS path", &route.as_path, &vec![NODE_AS])?;
    expect_equal("communities", &route.communities, &<_>::default())
}

/// Topology: node --- router, eBGP over IPv6, fairway dials.
/// Proves: the same for a session between IPv6 addresses and an IPv6 service.
//= RFC 2545 §3 MUST: the next hop of an IPv6 route is a global address.
pub(super) fn an_ipv6_session_carries_an_ipv6_route(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv6)?;
    scene.bring_up("2001:db8:77::10")?;
    let route = scene.route_arrives("2001:db8:77::10/128")?;
    expect_next_hop(&route, NODE_IPV6)?;
    expect_equal("AS path", &route.as_path, &vec![NODE_AS])
}

/// Topology: node --- router, eBGP over IPv4, both families negotiated
/// (`dualStackAddressFamily: true`), a service with an address of each family.
/// Proves: both routes arrive over the one session, and the IPv6 route's next hop is the node's
/// global IPv6 address on the session's interface, not a mapped IPv4 one.
//= RFC 4760 §8 MUST: routes of a family are exchanged when both sides offered it.
pub(super) fn one_ipv4_session_carries_both_families(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.families = vec![Family::Ipv4, Family::Ipv6];
        Ok(())
    })?;
    scene.bring_up("203.0.113.10,2001:db8:77::10")?;
    for (prefix, next_hop) in [("203.0.113.10/32", NODE_IPV4), ("2001:db8:77::10/128", NODE_IPV6)] {
        let route = scene.route_arrives(prefix)?;
        expect_next_hop(&route, next_hop).with_context(|| format!("route to {prefix}"))?;
        expect_equal("AS path", &route.as_path, &vec![NODE_AS])?;
    }
    Ok(())
}

/// Topology: node --- router, eBGP over IPv4, fairway and the router both dial and both accept.
/// Proves: whichever connections collide, one session remains and stays.
//+ RFC 4271 §6.8: when two connections collide, one of them is closed.
pub(super) fn both_sides_dial_and_one_session_remains(cell: &Cell) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32")?;
    // A late collision would show within the router's connect timer, which is 1 s.
    let incarnation = scene.established()?;
    let period = std::time::Duration::from_secs(3);
    holds_for("the session stays the same", period, || {
        scene.check_running()?;
        scene.expect_same_session(&incarnation)
    })
}

/// Topology: node --- router, eBGP over IPv4. Fairway listens (`--bgp-listen 0.0.0.0:179`); what it
/// dials is dropped on the way out, so only the router's connection can come about.
/// Proves: fairway accepts, also while a connection attempt of its own hangs.
//= RFC 4271 §8.2.2 MUST: while we dial, a connection that the neighbour opens is accepted.
pub(super) fn only_the_router_dials(cell: &Cell) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    scene.lab.node.run(
        "nft",
        &["add table inet dialling; \
           add chain inet dialling output { type filter hook output priority 0; }; \
           add rule inet dialling output tcp dport 179 tcp flags & (syn | ack) == syn drop"],
    )?;
    if scene.speaker.is_none() {
        let listen = ["--bgp-listen", "0.0.0.0:179"].map(str::to_owned);
        scene.fairway.extra_arguments.extend(listen);
    }
    scene.bring_up("203.0.113.10")?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_next_hop(&route, NODE_IPV4)
}

/// Topology: node --- router, eBGP over IPv4. The router listens on port 1179 and knows only the
/// node's second address as its neighbour.
/// Proves: `peerPort` and `sourceAddress`, and that the next hop is the session's address.
pub(super) fn another_port_and_another_source_address(cell: &Cell) -> Result<()> {
    let second = NODE_SECOND_IPV4.parse().context("the node's second address")?;
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.port = 1179;
        router.peer_address = second;
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.source_address = Some(second);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_next_hop(&route, NODE_SECOND_IPV4)
}

/// Topology: node --- middle --- router, eBGP over IPv4 with `ebgpMultiHop: true`.
/// Proves: the session's packets live longer than one hop, and the next hop is the node, which the
/// router reaches by way of the middle.
//= RFC 4271 §5.1.3 SHOULD: over several hops the next hop of our own routes is our address of the session.
pub(super) fn an_external_session_crosses_a_middle_hop(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::MiddleHop, Family::Ipv4, |_| Ok(()))?;
    scene.bring_up("203.0.113.10")?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_next_hop(&route, NODE_IPV4)?;
    expect_equal("AS path", &route.as_path, &vec![NODE_AS])
}
