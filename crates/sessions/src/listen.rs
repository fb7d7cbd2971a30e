//! Accepts connections from neighbours, and rejects all others.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use nix::net::if_::if_indextoname;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tracing::{debug, warn};

use super::addresses::LocalEnd;
use super::news::{NetworkEvent, News};
use super::sockopt;
use fairway_bgp::speaker::{Admission, Admitted};
use fairway_ground::InterfaceName;

/// Connections that wait to be accepted: a whole listen range may reconnect at once.
const BACKLOG: u32 = 4096;

/// Where connections are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listen {
    /// The addresses and ports; none: only dial.
    pub addresses: Vec<SocketAddr>,
    /// Only while a neighbour can come no other way, because it is passive for us or in a listen range:
    /// another daemon may own the port meanwhile.
    pub only_when_needed: bool,
}

impl Listen {
    /// At these addresses, from the start to the end.
    pub fn at(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self { addresses: addresses.into_iter().collect(), only_when_needed: false }
    }

    /// Nowhere.
    pub fn nowhere() -> Self {
        Self::default()
    }
}

/// A socket that will listen at `address`, only in `vrf`, once it has its keys.
///
/// Its packets have a TTL of 255, including the reset of a rejected connection: a directly connected
/// neighbour with GTSM must receive both (RFC 5082 §3), and others do not mind. A session sets its own TTL
/// before it sends anything.
pub(super) fn bound(address: SocketAddr, vrf: Option<InterfaceName>) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    sockopt::set_ipv6_only(&socket, address)?;
    sockopt::set_network(&socket, address.ip(), u8::MAX)?;
    sockopt::keep_syn(&socket)?;
    if let Some(vrf) = vrf {
        sockopt::set_device(&socket, vrf)?;
    }
    socket.bind(address)?;
    Ok(socket)
}

/// Starts listening.
pub(super) fn listen(socket: TcpSocket) -> io::Result<TcpListener> {
    socket.listen(BACKLOG)
}

/// Accepts until the core ends. A connection from an address that is not a peer is reset before a byte is
/// read. Cancel-safe: a connection is handed over completely or not at all.
pub(super) async fn accept_all(
    listener: Arc<TcpListener>,
    vrf: Option<InterfaceName>,
    admission: watch::Receiver<Arc<Admission>>,
    events: mpsc::Sender<NetworkEvent>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let interface = interface_of(remote);
                let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
                let admitted = admission.borrow().find(vrf, remote.ip(), interface);
                let Some(Admitted { key, ttl_min }) = admitted else {
                    debug!(%remote, "connection from an address that is not a peer: reset");
                    reset(&stream);
                    continue;
                };
                if ttl_min.is_some_and(|least| comes_from_afar(&stream, least)) {
                    debug!(%remote, "connection of a peer from more than ttlSecurityHops hops away: reset");
                    reset(&stream);
                    continue;
                }
                let end =
                    stream.local_addr().map(|local| LocalEnd::at(local, vrf)).unwrap_or_default();
                let news = News::Accepted { stream, remote, end };
                if events.send(NetworkEvent { key, news }).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // Probably out of descriptors: allow time for others to be closed.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

/// The interface of a link-local address.
fn interface_of(remote: SocketAddr) -> Option<InterfaceName> {
    match remote {
        SocketAddr::V6(remote) if remote.scope_id() != 0 => {
            if_indextoname(remote.scope_id()).ok()?.to_str().ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Whether the TTL of the SYN was less than `least`. The kernel does not keep it with SYN cookies: then later
/// packets are dropped, since the session has a minimum TTL.
fn comes_from_afar(stream: &TcpStream, least: u8) -> bool {
    sockopt::syn_ttl(stream).is_ok_and(|ttl| ttl < least)
}

/// Resets a connection, without lingering state.
pub(super) fn reset(stream: &TcpStream) {
    if let Err(error) = sockopt::set_reset_on_drop(stream) {
        debug!(%error, "cannot reset a connection; closing it");
    }
}
