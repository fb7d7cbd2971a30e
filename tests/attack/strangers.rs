//! What if strangers fill a listen range and never speak? A true neighbor comes in all the same.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::Scene;
use lab::outsider::{KEEPALIVE, connected_from, open_session, send};
use lab::wait::{PATIENCE, now};
use lab::{NODE_INTERFACE, ROUTER_INTERFACE};

/// A BGPPeer that accepts up to four.
const RANGE: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: rack}\n\
                     spec: {myASN: 65001, peerASN: 65010, listenRange: 10.78.0.0/24, listenLimit: 4}\n";

/// An address of the node in it.
const NODE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);
const STRANGERS: u8 = 8;
const NEIGHBOR: u8 = 100;

/// Far less than a silent connection lives.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

// This is the requirement: the ones that have sent no OPEN make room. It was written while as many silent strangers as
// the limit kept a true neighbor out until their hold timers expired.
pub(crate) fn silent_strangers_keep_no_neighbor_out_of_a_listen_range(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let before = scene.session()?;
    scene.lab.node.add_address(NODE_INTERFACE, &format!("{NODE}/24"))?;
    let router = &scene.lab.router.namespace;
    for number in (1..=STRANGERS).chain([NEIGHBOR]) {
        router.add_address(ROUTER_INTERFACE, &format!("10.78.0.{number}/24"))?;
    }
    scene.apply("rack", RANGE)?;
    scene.wait("Fairway accepts connections of the range", PATIENCE, |scene| {
        let text = scene.fairway.show_text(&["bgp", "summary"])?;
        ensure!(text.contains("10.78.0.0/24"), "it says:\n{text}");
        Ok(())
    })?;
    let connect_as = |scene: &Scene, number| {
        scene.lab.router.namespace.enter(|| connected_from(Ipv4Addr::new(10, 78, 0, number), NODE))
    };
    let mut silent =
        (1..=4).map(|number| connect_as(&scene, number)).collect::<Result<Vec<TcpStream>>>()?;
    let start = now();
    let mut neighbor = connect_as(&scene, NEIGHBOR)?;
    let is_up = open_session(&mut neighbor).context("the session of the neighbor");
    let lines = scene.fairway.show_text(&["bgp", "summary"])?;
    is_up.with_context(|| lines)?;
    ensure!(start.elapsed() < ANSWER_LIMIT, "it took {:?}", start.elapsed());

    // More of them end no session.
    for number in 5..=STRANGERS {
        silent.push(connect_as(&scene, number)?);
    }
    send(&mut neighbor, KEEPALIVE, &[])?;
    scene.wait("the neighbor has a session", PATIENCE, |scene| {
        let neighbour = scene.fairway.neighbour(&format!("10.78.0.{NEIGHBOR}"))?;
        ensure!(neighbour.is_established(), "it is {}", neighbour.state);
        Ok(())
    })?;
    let log = scene.log()?;
    let told = log.matches("connections that sent no OPEN make room").count();
    ensure!(told == 1, "the log tells of them {told} times");
    scene.bound_was_reached("listen-range")?;
    drop(silent);
    scene.expect_same_session(before)
}
