//! What tasks report to the core task: of a neighbour's link, dials and connections.
//!
//! Sent by [`super::connection`], [`super::link`], [`super::listen`] and dials; read by the core task alone.

use std::net::SocketAddr;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::addresses::LocalEnd;
use super::link_state::LinkState;
use fairway_bgp::session::ConnectionId;
use fairway_ground::PeerKey;

/// What connections, dials and listeners report about a neighbour.
#[derive(Debug)]
pub(super) struct NetworkEvent {
    /// The neighbour.
    pub(super) key: PeerKey,
    /// What they report.
    pub(super) news: News,
}

/// See [`NetworkEvent`].
#[derive(Debug)]
pub(super) enum News {
    /// The state of an unnumbered neighbour's link has changed.
    Link(LinkState),
    /// The neighbour dialled us.
    Accepted { stream: TcpStream, remote: SocketAddr, end: LocalEnd },
    /// A dial succeeded.
    Connected { id: ConnectionId, stream: TcpStream, end: LocalEnd },
    /// A dial failed.
    ConnectFailed { id: ConnectionId, why: String },
    /// Bytes were received. The next are read when the permit is dropped.
    Received { id: ConnectionId, bytes: Bytes, permit: OwnedSemaphorePermit },
    /// What was given to the writer has been written.
    Written { id: ConnectionId },
    /// The connection ended, in order or with an error.
    Closed { id: ConnectionId, why: Option<String> },
}

impl News {
    /// Whether a connection has ended.
    pub(super) fn is_end(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}
