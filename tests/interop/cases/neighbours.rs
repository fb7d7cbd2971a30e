//! Which kinds of neighbour are there? Named by interface, by range, by address or as the default gateway; near or far; in
//! an AS that is known or not, towards an AS that is ours or put on. Rows of the matrix.

use std::fs;
use std::net::IpAddr;

use anyhow::{Context, Result, bail, ensure};

use super::scene::{Cell, NODE_AS, ROUTER_AS, Scene, expect_equal, expect_next_hop};
use super::shown::table_becomes;
use lab::resources::{Allowed, Password, Peer, PeerPlace};
use lab::routers::{Dialling, Origination, RouterKind, RouterSpec};
use lab::wait::PATIENCE;
use lab::{Family, NODE_IPV4, NODE_IPV6, ROUTER_INTERFACE, Wiring};

const BOTH: [Family; 2] = [Family::Ipv4, Family::Ipv6];
const PASSWORD: &str = "Correct-Horse-7";
/// The AS that is put on.
const OTHER_AS: u32 = 65100;

fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// The kernel of the router sends packets for `prefix` to an IPv6 address, if that router installs
/// routes at all.
fn expect_ipv6_in_the_kernel(cell: &Cell, scene: &mut Scene, prefix: &str) -> Result<()> {
    if matches!(cell.router, RouterKind::Gobgp | RouterKind::Openbgpd) {
        return Ok(());
    }
    scene.wait(&format!("{prefix} is in the router's kernel"), PATIENCE, |scene| {
        let hops = scene.kernel_next_hops(prefix)?.context("it is not")?;
        ensure!(!hops.is_empty() && hops.iter().all(IpAddr::is_ipv6), "its next hops are {hops:?}");
        Ok(())
    })
}

/// Topology: node --- router, eBGP, no address on the cable but the link-local ones; the BGPPeer has
/// `interface: to-router` and `dynamicASN: external`, the router is configured by interface, too.
/// Proves: both sides find each other by their router advertisements; routes of both families go
/// both ways over one session, and in the router's kernel the IPv4 route has an IPv6 next hop.
pub(super) fn an_unnumbered_session_carries_both_families(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv6, |router| {
        router.interface = Some(ROUTER_INTERFACE);
        router.families = BOTH.to_vec();
        router.extended_next_hop = true;
        router.dialling = Dialling::Dials;
        router.originated = ["10.90.1.0/24", "2001:db8:90::/48"].map(Origination::plain).to_vec();
        Ok(())
    })?;
    scene.lab.forget_addresses()?;
    let mut peer = scene.peer();
    peer.dynamic_as = Some("external");
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10,2001:db8:77::10")?;
    // GoBGP reads the kernel's neighbours when it starts, and only then.
    scene.start_fairway()?;
    scene.start_router()?;
    scene.established()?;
    for prefix in ["203.0.113.10/32", "2001:db8:77::10/128"] {
        let route = scene.route_arrives(prefix)?;
        ensure!(route.next_hops.iter().any(is_link_local), "{prefix}: {:?}", route.next_hops);
        expect_equal("AS path", &route.as_path, &vec![NODE_AS])?;
        expect_ipv6_in_the_kernel(cell, &mut scene, prefix)?;
    }
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "203.0.113.10/32"])?;
    table_becomes(&mut scene, Family::Ipv6, &["2001:db8:90::/48", "2001:db8:77::10/128"])
}

/// Topology: node --- router, eBGP over IPv6 for both families, `extendedNexthop: true`.
/// Proves: IPv4 routes go both ways with IPv6 next hops, into the router's kernel, too.
pub(super) fn an_extended_next_hop_carries_ipv4_over_ipv6(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv6, |router| {
        router.families = BOTH.to_vec();
        router.extended_next_hop = true;
        router.originated = vec![Origination::plain("10.90.1.0/24")];
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_next_hop(&route, NODE_IPV6)?;
    expect_ipv6_in_the_kernel(cell, &mut scene, "203.0.113.10/32")?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "203.0.113.10/32"])
}

/// Topology: node --- router, eBGP over IPv4; both sides want packets with a TTL of 255.
/// Proves: `ttlSecurityHops: 1` sends them, and takes the router's.
pub(super) fn ttl_security_joins_direct_neighbours(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.ttl_security_hops = Some(1);
        Ok(())
    })?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- middle --- router, eBGP over IPv4; both sides allow for two hops.
/// Proves: `ttlSecurityHops: 2` reaches over one that forwards, without `ebgpMultiHop`.
pub(super) fn ttl_security_counts_the_hops(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::MiddleHop, Family::Ipv4, |router| {
        router.ttl_security_hops = Some(2);
        router.multihop = false;
        Ok(())
    })?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- middle --- router, eBGP over IPv4; the router speaks over any number of hops
/// and dials, the BGPPeer has `ttlSecurityHops: 1`.
/// Proves: no session, whichever side dials: what has crossed a hop is not from a direct neighbour.
pub(super) fn ttl_security_refuses_a_router_further_away(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::MiddleHop, Family::Ipv4, |router| {
        router.dialling = Dialling::Dials;
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.multihop = false;
    peer.ttl_security_hops = Some(1);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    count_connections(&scene)?;
    scene.start()?;
    scene.wait("the router has dialled", 3 * PATIENCE, |scene| {
        ensure!(connections_seen(scene, "dialled-by-router")? > 0, "it has not");
        Ok(())
    })?;
    scene.expect_no_session()
}

/// Counters on the node for the first packets of connections to port 179.
fn count_connections(scene: &Scene) -> Result<()> {
    let script = "add table inet dialling; \
        add counter inet dialling dialled-by-router; \
        add counter inet dialling dialled-by-node; \
        add chain inet dialling input { type filter hook input priority 0; }; \
        add chain inet dialling output { type filter hook output priority 0; }; \
        add rule inet dialling input tcp dport 179 tcp flags & (syn | ack) == syn \
          counter name dialled-by-router; \
        add rule inet dialling output tcp dport 179 tcp flags & (syn | ack) == syn \
          counter name dialled-by-node";
    scene.lab.node.run("nft", &[script]).map(drop)
}

fn connections_seen(scene: &Scene, counter: &str) -> Result<u64> {
    let text =
        scene.lab.node.run("nft", &["-j", "list", "counter", "inet", "dialling", counter])?;
    let answer: serde_json::Value = serde_json::from_str(&text).context("nft's counter")?;
    let entries = answer.get("nftables").and_then(serde_json::Value::as_array);
    let mut packets =
        entries.into_iter().flatten().filter_map(|one| one.pointer("/counter/packets")?.as_u64());
    packets.next().with_context(|| format!("expected a counter from nft: {text}"))
}

/// Topology: node --- router, eBGP over IPv4, `passive: true`; the router dials.
/// Proves: the session comes up by the router's connection, and fairway has sent no SYN of its own.
pub(super) fn a_passive_peer_waits_for_the_router(cell: &Cell) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    let mut peer = scene.peer();
    peer.passive = true;
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    count_connections(&scene)?;
    // The router comes later, so that there was time to dial it.
    scene.start_fairway()?;
    scene.start_router()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    expect_equal("connections dialled", &connections_seen(&scene, "dialled-by-node")?, &0)
}

/// The range that the lab's routers are in, in the place of their addresses.
fn ranged(scene: &Scene, limit: Option<u32>) -> Peer {
    let mut peer = scene.peer();
    peer.place = Some(PeerPlace::ListenRange("10.72.0.0/13", limit));
    peer
}

/// Topology: node --- router, eBGP over IPv4; the BGPPeer has `listenRange: 10.72.0.0/13` and
/// `dynamicASN: external`, the router dials.
/// Proves: a neighbour that is not configured by address is accepted, gets the routes, and gives its own.
pub(super) fn a_listen_range_accepts_a_router_that_nobody_named(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.dialling = Dialling::Dials;
        router.originated = vec![Origination::plain("10.90.1.0/24")];
        Ok(())
    })?;
    let mut peer = ranged(&scene, None);
    peer.dynamic_as = Some("external");
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "203.0.113.10/32"])
}

/// Topology: node --- router, eBGP over IPv4; range and router have the same password, then the
/// range has another one.
/// Proves: a password holds for every neighbour of a range, and keeps out those without it.
pub(super) fn a_listen_range_demands_its_password(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.dialling = Dialling::Dials;
        router.password = Some(PASSWORD.to_owned());
        Ok(())
    })?;
    let right = ranged(&scene, None);
    let mut wrong = right.clone();
    wrong.password = Password::Plain("Wrong-Horse-7".to_owned());
    scene.apply_peer(&wrong)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.wait("fairway's kernel refuses the router", 3 * PATIENCE, |scene| {
        let count = scene.lab.node.tcp_counter("TCPMD5Failure")?;
        ensure!(count > 0, "TCPMD5Failure is 0");
        Ok(())
    })?;
    ensure!(!scene.router.session()?.established, "the router reports it as established");
    scene.apply_peer(&right)?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: router --- node --- second router, eBGP over IPv4; the range holds both of them, its
/// `listenLimit` is 1.
/// Proves: the first is accepted and stays, the second is not.
pub(super) fn a_listen_range_accepts_no_more_than_its_limit(cell: &Cell) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    scene.apply_peer(&ranged(&scene, Some(1)))?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;

    let site = scene.lab.add_second_router(cell.number)?;
    let spec = RouterSpec {
        dialling: Dialling::Dials,
        ..RouterSpec::between(
            lab::SECOND[0].parse().context("the second router's address")?,
            lab::SECOND[1].parse().context("the second router's IPv6 address")?,
            lab::NODE_TO_SECOND[0].parse().context("the node's address")?,
        )
    };
    let mut second = cell.router.prepare(&site, &spec)?;
    count_connections(&scene)?;
    second.start(&site)?;
    scene.wait("the second router has dialled", 3 * PATIENCE, |scene| {
        ensure!(connections_seen(scene, "dialled-by-router")? > 0, "it has not");
        Ok(())
    })?;
    lab::wait::holds_for("one session", std::time::Duration::from_secs(3), || {
        second.check_running()?;
        scene.check_running()?;
        let session = second.session()?;
        ensure!(!session.established, "the second router says {}", session.state);
        ensure!(scene.router.session()?.established, "the first router has lost its session");
        Ok(())
    })?;
    drop(second);
    drop(site);
    Ok(())
}

/// Topology: router --- node --- second router, eBGP over IPv4; the BGPPeer has `autoDiscovery: {mode: DefaultGateway}`.
/// Proves: without a default route there is no session, and the daemon says so; the default gateway is the peer, and the
/// next one after it, of which the first is told that it is a peer no more.
pub(super) fn the_default_gateway_is_the_peer(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let mut peer = scene.peer();
    peer.place = Some(PeerPlace::DefaultGateway("ipv4"));
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.wait("the missing default route is told", PATIENCE, |_| {
        let log = fs::read_to_string(lab::fairway::log_in(&cell.directory))?;
        ensure!(log.contains("is left out: this node has no IPv4 default route"), "it is not");
        Ok(())
    })?;
    let first = Wiring::Direct.router_address(Family::Ipv4)?.to_string();
    scene.lab.node.ip(&["route", "add", "default", "via", &first])?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;

    let site = scene.lab.add_second_router(cell.number)?;
    let spec = RouterSpec::between(
        lab::SECOND[0].parse().context("the second router's address")?,
        lab::SECOND[1].parse().context("the second router's IPv6 address")?,
        lab::NODE_TO_SECOND[0].parse().context("the node's address")?,
    );
    let mut second = cell.router.prepare(&site, &spec)?;
    second.start(&site)?;
    scene.lab.node.ip(&["route", "replace", "default", "via", lab::SECOND[0]])?;
    scene.wait("the second router has the session", 3 * PATIENCE, |scene| {
        second.check_running()?;
        let session = second.session()?;
        ensure!(session.established, "the second router says {}", session.state);
        ensure!(!scene.router.session()?.established, "the first router has its session still");
        Ok(())
    })?;
    drop(second);
    drop(site);
    Ok(())
}

/// Topology: node --- router, eBGP over IPv4, `dynamicASN: external`; then `internal`.
/// Proves: a router in another AS is accepted without its number, and is refused where it should be in
/// ours.
pub(super) fn a_dynamic_as_is_any_as_but_ours(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let mut peer = scene.peer();
    peer.dynamic_as = Some("external");
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_equal("AS path", &route.as_path, &vec![NODE_AS])?;
    let summary = scene.fairway.show(&["bgp", "summary"])?;
    let remote = summary.pointer("/ipv4Unicast/peers/10.77.0.2/remoteAs");
    expect_equal("remoteAs", &remote, &Some(&ROUTER_AS.into()))?;

    peer.dynamic_as = Some("internal");
    scene.apply_peer(&peer)?;
    scene.route_leaves("203.0.113.10/32")?;
    scene.expect_no_session()
}

/// Topology: node --- router, eBGP over IPv4, `localASN: 65100` for a node in AS 65001; the router
/// is configured with the AS 65100 alone.
/// Proves: our own AS stands in no path that the router gets.
pub(super) fn a_local_as_stands_in_for_our_own(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.peer_as = OTHER_AS;
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.my_as = NODE_AS;
    peer.local_as = Some(OTHER_AS);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_equal("AS path", &route.as_path, &vec![OTHER_AS])?;
    expect_next_hop(&route, NODE_IPV4)
}

/// Topology: node --- router, eBGP over IPv4, `toAdvertise: {nextHop: {ipv4: 10.77.0.99}}`.
/// Proves: the router receives this next hop and not our address; without the field it receives ours
/// again, over the same session.
pub(super) fn a_chosen_next_hop_is_announced(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let plain = scene.peer();
    let mut chosen = plain.clone();
    chosen.next_hop = Some("10.77.0.99");
    scene.apply_peer(&chosen)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    let incarnation = scene.established()?;
    next_hop_becomes(&mut scene, "10.77.0.99")?;
    scene.apply_peer(&plain)?;
    next_hop_becomes(&mut scene, NODE_IPV4)?;
    scene.expect_same_session(&incarnation)
}

fn next_hop_becomes(scene: &mut Scene, expected: &str) -> Result<()> {
    scene.wait(&format!("the next hop is {expected}"), PATIENCE, |scene| {
        match scene.router.route("203.0.113.10/32")? {
            Some(route) => expect_next_hop(&route, expected),
            None => bail!("there is no route"),
        }
    })
}
