//! Accepting connections from neighbours, and only from them.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tracing::{debug, warn};

use super::addresses::LocalEnd;
use super::neighbour::{NetworkEvent, News};
use super::sockopt;
use crate::types::PeerKey;

/// Connections that wait to be accepted: a whole listen range may come back at once.
const BACKLOG: u32 = 4096;

/// Opens a listening socket.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    sockopt::set_ipv6_only(&socket, address)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts until the core is gone. A connection from anybody who is no peer is reset before a
/// byte is read. Cancel-safe: a connection is handed over whole or not at all.
pub(super) async fn accept_all(
    listener: Arc<TcpListener>,
    known: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
    events: mpsc::Sender<NetworkEvent>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
                if !known.borrow().contains(&remote.ip()) {
                    debug!(%remote, "connection from an address that is no peer: reset");
                    reset(&stream);
                    continue;
                }
                let key = PeerKey::from(remote.ip());
                let local = stream.local_addr().map(|local| local.ip().to_canonical());
                let end = local.map(LocalEnd::at).unwrap_or_default();
                let news = News::Accepted { stream, remote, end };
                if events.send(NetworkEvent { key, news }).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // Out of descriptors, most likely: give the others time to return some.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

fn reset(stream: &TcpStream) {
    if let Err(error) = sockopt::set_reset_on_drop(stream) {
        debug!(%error, "cannot reset a connection; closing it");
    }
}
