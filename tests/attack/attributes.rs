//! What if a neighbor announces few prefixes with long attributes, or more than there is memory for? Its session ends,
//! and nobody else notices.

use std::net::{Ipv4Addr, TcpStream};

use anyhow::{Context, Result, bail, ensure};

use crate::Cell;
use crate::scene::{SERVICES, Scene};
use lab::frr_speaker::resident_kib;
use lab::outsider::{
    ASN, KEEPALIVE, NOTIFICATION, UPDATE, connected_from, open_session, receive, send,
};
use lab::wait::PATIENCE;
use lab::{NODE_INTERFACE, ROUTER_INTERFACE};

const NEIGHBOR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 100);
/// An address of the node beside it.
const NODE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);

/// The neighbor, with a bound for its routes.
fn peer(bound: &str) -> String {
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: greedy}}\n\
         spec: {{myASN: 65001, peerASN: 65010, peerAddress: {NEIGHBOR}, passive: true, \
         toReceive: {{allowed: {{mode: all}}{bound}}}}}\n"
    )
}

/// Of each UPDATE: nearly as many as fit.
const COMMUNITIES: u16 = 900;
/// Far less than the limit, and with far more bytes than allowed.
const UPDATES: u16 = 1000;
/// With far more bytes than the process may take.
const UPDATES_OF_A_FLOOD: u16 = 60_000;

/// Cease, Out of Resources (RFC 4486).
const OUT_OF_RESOURCES: [u8; 2] = [6, 8];

// This is the requirement: a limit of prefixes bounds memory, too. It was written while ten thousand routes, which were
// allowed, took 621 MiB with their attributes.
pub(crate) fn long_attributes_end_the_session_of_the_neighbor_that_sends_them(
    cell: &Cell,
) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let bound = ", maxPrefixes: {limit: 10000, attributeBytes: 1048576}";
    let text = is_ended(&mut scene, bound, UPDATES)?;
    ensure!(text.contains("toReceive.maxPrefixes.attributeBytes"), "it says:\n{text}");
    let page = scene.http("metrics")?;
    let line =
        format!("fairway_bgp_received_attribute_bytes{{peer=\"{NEIGHBOR}:179\",vrf=\"\"}} 0");
    ensure!(page.lines().any(|it| it == line), "the metrics do not have {line}:\n{page}");
    Ok(())
}

// This is the requirement: a process that takes too much memory gives up the neighbor that causes it. It was written while
// the process was ended for all of them.
pub(crate) fn memory_that_runs_short_ends_the_session_of_one_neighbor(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.restart_with(&["--memory-limit", "128Mi"])?;
    let text = is_ended(&mut scene, "", UPDATES_OF_A_FLOOD)?;
    ensure!(text.contains("--memory-limit"), "it says:\n{text}");
    let memory = resident_kib(scene.fairway.process_id()?)?;
    ensure!(memory < 160 << 10, "it takes {memory} KiB");
    Ok(())
}

/// The neighbor announces so much that its session ends with Cease 6/8. Returns what `show bgp neighbors` says of it.
fn is_ended(scene: &mut Scene, bound: &str, updates: u16) -> Result<String> {
    let before = scene.session()?;
    scene.lab.node.add_address(NODE_INTERFACE, &format!("{NODE}/24"))?;
    let router = &scene.lab.router.namespace;
    router.add_address(ROUTER_INTERFACE, &format!("{NEIGHBOR}/24"))?;
    scene.apply("greedy", &peer(bound))?;
    let mut neighbor = scene.wait("the neighbor has a session", PATIENCE, |scene| {
        let connect = || connected_from(NEIGHBOR, NODE);
        let mut stream = scene.lab.router.namespace.enter(connect)?;
        open_session(&mut stream)?;
        Ok(stream)
    })?;

    let mut sent = 0;
    for number in 0..updates {
        // The node may close the connection meanwhile; its NOTIFICATION is there all the same.
        if send(&mut neighbor, UPDATE, &announcement(number)).is_err() {
            break;
        }
        sent = number;
    }
    let end = notification(&mut neighbor).with_context(|| format!("after {sent} UPDATEs"))?;
    ensure!(end == OUT_OF_RESOURCES, "the NOTIFICATION is {end:?}");
    scene.add_quickly(SERVICES)?;
    scene.expect_same_session(before)?;
    scene.fairway.show_text(&["bgp", "neighbors", &NEIGHBOR.to_string()])
}

/// One prefix, with communities that no other has.
fn announcement(number: u16) -> Vec<u8> {
    let [high, low] = ASN.to_be_bytes();
    let [number_high, number_low] = number.to_be_bytes();
    let mut attributes = vec![0x40, 1, 1, 0];
    attributes.extend([0x40, 2, 4, 2, 1, high, low]);
    attributes.extend([0x40, 3, 4, 10, 78, 0, 100]);
    let [length_high, length_low] = (COMMUNITIES * 4).to_be_bytes();
    attributes.extend([0xD0, 8, length_high, length_low]);
    for community in 0..COMMUNITIES {
        attributes.extend([number_high, number_low]);
        attributes.extend(community.to_be_bytes());
    }
    let length = u16::try_from(attributes.len()).unwrap_or(u16::MAX);
    let prefix = [24, 10, number_high, number_low];
    [&[0, 0], &length.to_be_bytes()[..], &attributes, &prefix].concat()
}

/// The code and subcode of the NOTIFICATION that comes next, behind KEEPALIVEs and UPDATEs.
fn notification(stream: &mut TcpStream) -> Result<[u8; 2]> {
    loop {
        match receive(stream)? {
            (KEEPALIVE | UPDATE, _) => {}
            (NOTIFICATION, body) => {
                let code = body.first_chunk::<2>().context("a NOTIFICATION without a code")?;
                return Ok(*code);
            }
            (other, _) => bail!("there is a message of type {other}"),
        }
    }
}
