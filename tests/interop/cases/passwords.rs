//! Do TCP MD5 passwords keep out peers without the password, and no others? Rows of the matrix.

use anyhow::{Result, ensure};

use super::scene::{Cell, Scene};
use lab::resources::{Password, secret};
use lab::wait::PATIENCE;
use lab::{Family, Wiring};

const PASSWORD: &str = "Correct-Horse-7";

/// A scene with a router that demands `PASSWORD`.
fn guarded(cell: &Cell, family: Family) -> Result<Scene> {
    Scene::open(cell, Wiring::Direct, family, |router| {
        router.password = Some(PASSWORD.to_owned());
        Ok(())
    })
}

/// Waits until the router's kernel has refused a segment for its MD5 option, so that a session
/// which does not come up is known to have been tried.
fn refused_by_the_kernel(scene: &mut Scene, counter: &str) -> Result<()> {
    let expected = format!("the router's kernel counts {counter}");
    scene.wait(&expected, PATIENCE, |scene| {
        let count = scene.lab.router.namespace.tcp_counter(counter)?;
        ensure!(count > 0, "it is 0");
        Ok(())
    })
}

/// Topology: node --- router, eBGP over IPv4, the same password on both sides, in the field
/// `password`.
/// Proves: the session comes up and carries a route.
//= RFC 2385 §2.0 MUST: the same key on both sides signs and validates every segment.
//+ RFC 4271 §E: TCP MD5 is supported.
pub(super) fn the_same_password_over_ipv4(cell: &Cell) -> Result<()> {
    let mut scene = guarded(cell, Family::Ipv4)?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- router, eBGP over IPv6, the same password on both sides, by
/// `passwordSecret` and a Secret of type basic-auth.
/// Proves: the session comes up and carries a route.
pub(super) fn the_same_password_from_a_secret_over_ipv6(cell: &Cell) -> Result<()> {
    let mut scene = guarded(cell, Family::Ipv6)?;
    scene.fairway.apply("secret", &secret("router-password", PASSWORD))?;
    let mut peer = scene.peer();
    peer.password = Password::Secret("router-password".to_owned());
    scene.apply_peer(&peer)?;
    scene.announce("2001:db8:77::10")?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives("2001:db8:77::10/128").map(drop)
}

/// Topology: node --- router, eBGP over IPv4, a different password on each side.
/// Proves: fairway dials, the router's kernel refuses, no session comes up, and fairway lives on.
//= RFC 2385 §2.0 MUST: a segment whose digest is wrong is dropped, and nothing comes of it.
pub(super) fn a_wrong_password_never_establishes(cell: &Cell) -> Result<()> {
    let mut scene = guarded(cell, Family::Ipv4)?;
    let mut peer = scene.peer();
    peer.password = Password::Plain("Wrong-Horse-7".to_owned());
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    refused_by_the_kernel(&mut scene, "TCPMD5Failure")?;
    scene.expect_no_session()
}

/// Topology: node --- router, eBGP over IPv4, the password on the router's side alone; then the
/// BGPPeer's file is corrected while fairway runs.
/// Proves: no session without it, and a session soon after the correction.
//= RFC 2385 §2.0 MUST: whether segments are signed is decided by our configuration alone.
pub(super) fn a_missing_password_is_added_live(cell: &Cell) -> Result<()> {
    let mut scene = guarded(cell, Family::Ipv4)?;
    let mut peer = scene.peer();
    peer.password = Password::None;
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    refused_by_the_kernel(&mut scene, "TCPMD5NotFound")?;
    scene.expect_no_session()?;
    scene.apply_peer(&scene.peer())?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}
