//! A BGP speaker of the test's own, whose bytes are written by hand: what no router would send, or no router can be
//! configured to send. Knows no Fairway.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket as new_socket,
};

/// Its AS.
pub const ASN: u16 = 65_010;

pub const OPEN: u8 = 1;
pub const UPDATE: u8 = 2;
pub const NOTIFICATION: u8 = 3;
pub const KEEPALIVE: u8 = 4;

/// Far less than a silent connection lives.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// From this address to the node.
pub fn connected_from(address: Ipv4Addr, node: Ipv4Addr) -> Result<TcpStream> {
    let socket = new_socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let at = |address: Ipv4Addr, port: u16| SockaddrIn::from(SocketAddrV4::new(address, port));
    bind(socket.as_raw_fd(), &at(address, 0)).context("binding the address")?;
    connect(socket.as_raw_fd(), &at(node, 179)).with_context(|| format!("from {address}"))?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let local: SocketAddr = stream.local_addr()?;
    ensure!(local.ip() == address, "it comes from {local}");
    Ok(stream)
}

/// Opens a session of [`ASN`].
pub fn open_session(stream: &mut TcpStream) -> Result<()> {
    open_session_as(stream, ASN, Ipv4Addr::new(10, 78, 0, 100))
}

/// Sends an OPEN, and waits for one and the KEEPALIVE that answers it. No capability is offered.
pub fn open_session_as(stream: &mut TcpStream, asn: u16, router_id: Ipv4Addr) -> Result<()> {
    let hold_time = 90_u16;
    let mut body = vec![4];
    body.extend(asn.to_be_bytes());
    body.extend(hold_time.to_be_bytes());
    body.extend(router_id.octets());
    body.push(0);
    send(stream, OPEN, &body)?;
    for expected in [OPEN, KEEPALIVE] {
        let (kind, _) = receive(stream)?;
        ensure!(kind == expected, "expected a message of type {expected}, it is {kind}");
        send(stream, KEEPALIVE, &[])?;
    }
    Ok(())
}

pub fn send(stream: &mut TcpStream, kind: u8, body: &[u8]) -> Result<()> {
    let length = u16::try_from(19 + body.len()).context("a short message")?;
    let header = [&[0xFF; 16][..], &length.to_be_bytes(), &[kind]].concat();
    stream.write_all(&[&header, body].concat()).context("sending")
}

/// The next message: its type and its body.
pub fn receive(stream: &mut TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut header = [0; 19];
    stream.read_exact(&mut header).context("receiving")?;
    let [.., high, low, kind] = header;
    let mut body = vec![0; usize::from(u16::from_be_bytes([high, low])).saturating_sub(19)];
    stream.read_exact(&mut body).context("receiving")?;
    Ok((kind, body))
}
