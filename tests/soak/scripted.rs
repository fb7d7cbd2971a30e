//! What can a scripted neighbour do? Dial fairway from an address of its own, come up, reset.
//! Used by the cases, each of which lets it misbehave in its own way.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::message::{self, KEEPALIVE, OPEN};
use crate::stage::PEER_AS;

/// How long fairway may take with its part of opening a session.
const OPENING_LIMIT: Duration = Duration::from_secs(10);

/// Dials `fairway` from `address`.
pub(crate) async fn dial(address: Ipv4Addr, fairway: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((address, 0).into()).with_context(|| format!("binding {address}"))?;
    let stream = socket.connect(fairway).await.with_context(|| format!("dialling {fairway}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// OPEN and KEEPALIVE both ways.
pub(crate) async fn establish(
    stream: &mut TcpStream,
    address: Ipv4Addr,
    hold_time_seconds: u16,
) -> Result<()> {
    let opening = async {
        stream.write_all(&message::open(PEER_AS, hold_time_seconds, address)).await?;
        for expected in [OPEN, KEEPALIVE] {
            let message = message::read_message(stream).await?;
            ensure!(message.kind == expected, "expected message {expected}, got {message:?}");
            if expected == OPEN {
                stream.write_all(&message::keepalive()).await?;
            }
        }
        Ok(())
    };
    timeout(OPENING_LIMIT, opening).await.context("opening the session")?
}

/// Ends a connection with a RST.
pub(crate) fn reset(stream: &TcpStream) {
    // Where it fails the connection is closed instead, which is a way to end it too.
    let _ = stream.set_zero_linger();
}
