//! What if strangers fill a listen range and never speak? A true neighbor comes in all the same.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket as new_socket,
};

use crate::Cell;
use crate::scene::Scene;
use lab::wait::{PATIENCE, now};
use lab::{NODE_INTERFACE, ROUTER_INTERFACE};

/// A BGPPeer that accepts up to four.
const RANGE: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: rack}\n\
                     spec: {myASN: 65001, peerASN: 65010, listenRange: 10.78.0.0/24, listenLimit: 4}\n";

const NODE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);
const STRANGERS: u8 = 8;
const NEIGHBOR: u8 = 100;

/// Far less than a silent connection lives.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

const OPEN: u8 = 1;
const KEEPALIVE: u8 = 4;

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
        scene.lab.router.namespace.enter(|| connected_from(Ipv4Addr::new(10, 78, 0, number)))
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
    drop(silent);
    scene.expect_same_session(before)
}

/// From this address to the node.
fn connected_from(address: Ipv4Addr) -> Result<TcpStream> {
    let socket = new_socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let at = |address: Ipv4Addr, port: u16| SockaddrIn::from(SocketAddrV4::new(address, port));
    bind(socket.as_raw_fd(), &at(address, 0)).context("binding the address")?;
    connect(socket.as_raw_fd(), &at(NODE, 179)).with_context(|| format!("from {address}"))?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    let local: SocketAddr = stream.local_addr()?;
    ensure!(local.ip() == address, "it comes from {local}");
    Ok(stream)
}

/// Sends an OPEN, and waits for one and the KEEPALIVE that answers it.
fn open_session(stream: &mut TcpStream) -> Result<()> {
    let [high, low] = 65_010_u16.to_be_bytes();
    send(stream, OPEN, &[4, high, low, 0, 90, 10, 78, 0, NEIGHBOR, 0])?;
    for expected in [OPEN, KEEPALIVE] {
        let kind = receive(stream)?;
        ensure!(kind == expected, "expected a message of type {expected}, it is {kind}");
        send(stream, KEEPALIVE, &[])?;
    }
    Ok(())
}

fn send(stream: &mut TcpStream, kind: u8, body: &[u8]) -> Result<()> {
    let length = u16::try_from(19 + body.len()).context("a short message")?;
    let header = [&[0xFF; 16][..], &length.to_be_bytes(), &[kind]].concat();
    stream.write_all(&[&header, body].concat()).context("sending")
}

/// The type of the next message.
fn receive(stream: &mut TcpStream) -> Result<u8> {
    let mut header = [0; 19];
    stream.read_exact(&mut header).context("receiving")?;
    let [.., high, low, kind] = header;
    let mut body = vec![0; usize::from(u16::from_be_bytes([high, low])).saturating_sub(19)];
    stream.read_exact(&mut body).context("receiving")?;
    Ok(kind)
}
