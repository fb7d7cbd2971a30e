//! Does a change to a file reach the router, and only that change? Services that go, addresses that
//! move, peers that are removed. Rows of the matrix.

use anyhow::{Context, Result, ensure};

use super::scene::{Cell, Scene};
use lab::Family;
use lab::resources::service;
use lab::routers::Notification;
use lab::wait::PATIENCE;

/// Cease / Peer De-configured, RFC 4486.
const PEER_DECONFIGURED: Notification = Notification { code: 6, subcode: 3 };

/// Topology: node --- router, eBGP over IPv4, two services; the file of one is removed.
/// Proves: its route goes, the other one's stays, the session is not touched.
//= RFC 4271 §9.1.3 MUST: a route that is excluded after it was told is withdrawn.
pub(super) fn a_removed_service_is_withdrawn(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    scene.apply_peer(&scene.peer())?;
    scene.announce("203.0.113.10")?;
    scene.fairway.apply("mail", &service("mail", Some("203.0.113.11")))?;
    scene.start()?;
    let incarnation = scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.route_arrives("203.0.113.11/32")?;
    scene.fairway.remove("web")?;
    scene.route_leaves("203.0.113.10/32")?;
    scene.route_arrives("203.0.113.11/32")?;
    scene.expect_same_session(&incarnation)
}

/// Topology: node --- router, eBGP over IPv4, one service with an annotation
/// `metallb.io/loadBalancerIPs` is changed in its file.
/// Proves: the new route comes, the old one goes, the session is not reset.
pub(super) fn a_changed_address_moves_without_a_reset(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let incarnation = scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.fairway.apply("web", &service("web", Some("203.0.113.77")))?;
    scene.route_arrives("203.0.113.77/32")?;
    scene.route_leaves("203.0.113.10/32")?;
    scene.expect_same_session(&incarnation)
}

/// Topology: node --- router, eBGP over IPv4; the BGPPeer's file is removed.
/// Proves: the router sees the session end, with Cease / Peer De-configured as the reason, and has
/// no route any more.
//+ RFC 4486 §4: the session of a peer that is removed ends with Peer De-configured, 6/3.
pub(super) fn a_removed_peer_is_told_so(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.fairway.remove("peer")?;
    scene.wait("the router sees the session end", PATIENCE, |scene| {
        let session = scene.router.session()?;
        ensure!(!session.established, "it says {}", session.state);
        Ok(())
    })?;
    scene.wait("the router received Cease / Peer De-configured (6/3)", PATIENCE, |scene| {
        let received = scene.router.last_notification()?.context("it received no NOTIFICATION")?;
        ensure!(received == PEER_DECONFIGURED, "it received {received:?}");
        Ok(())
    })?;
    scene.route_leaves("203.0.113.10/32")
}
