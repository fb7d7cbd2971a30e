//! Received packets as the edge passes them on, and the reasons to drop one.

use std::net::{IpAddr, SocketAddr};

use fairway_seam::bfd::DropReason;

use super::packet::PacketError;
use fairway_ground::{Instant, InterfaceName};

/// The port that a packet was received on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// 3784: control packets over one hop (RFC 5881 §4).
    SingleHop,
    /// 4784: control packets over several hops (RFC 5883 §5).
    Multihop,
    /// 3785: echo packets (RFC 5881 §4).
    Echo,
}

impl Port {
    /// The port number.
    pub const fn number(self) -> u16 {
        match self {
            Self::SingleHop => 3784,
            Self::Multihop => 4784,
            Self::Echo => 3785,
        }
    }
}

/// A received packet.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// When it was received, by the kernel's time stamp: a delayed read is not a delayed arrival. Packets of
    /// several sockets may be in any order.
    pub at: Instant,
    /// The source address and port.
    pub source: SocketAddr,
    /// The destination address, if known.
    pub destination: Option<IpAddr>,
    /// The index of the receiving interface, 0 if unknown.
    pub interface_index: u32,
    /// The VRF of the socket.
    pub vrf: Option<InterfaceName>,
    /// The received TTL or hop limit, if known.
    pub ttl: Option<u8>,
    /// The port that it was received on.
    pub port: Port,
    /// The payload.
    pub bytes: &'a [u8],
}

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A control packet that a session accepted.
    Control,
    /// One of our echo packets, returned.
    Echo,
    /// An echo packet of the remote system: the edge returns the same bytes to its source with a TTL of 254.
    LoopBack,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// Over a single hop only a neighbour can send 255 (RFC 5881 §5). For a multihop session, its settings
    /// determine the minimum (RFC 5883).
    #[error("TTL {ttl:?}, expected at least {least}")]
    Ttl {
        /// The received TTL.
        ttl: Option<u8>,
        /// The required minimum.
        least: u8,
    },
    /// It is not a control packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// No session has this discriminator.
    #[error("no session has the discriminator {0}")]
    UnknownDiscriminator(u32),
    /// No session with the sender is configured.
    #[error("no session with {0}")]
    UnknownSender(IpAddr),
    /// The session is of the other kind (single-hop or multihop), or in another VRF, or on another interface.
    #[error("received on another path than its session: another interface, VRF or port")]
    WrongWay,
    /// Only one of the two sides uses authentication.
    #[error("authentication is {}", if *.expected { "missing" } else { "not configured here" })]
    AuthenticationPresence {
        /// Whether the session has a key.
        expected: bool,
    },
    /// The type, length or key of the authentication section is wrong.
    #[error("authentication type, length or key ID differs from the configuration")]
    AuthenticationSection,
    /// It is a duplicate, or too old.
    #[error("authentication sequence number {received} is out of order after {last}")]
    AuthenticationSequence {
        /// The received sequence number.
        received: u32,
        /// The last accepted sequence number.
        last: u32,
    },
    /// It was created or modified without the key.
    #[error("the authentication hash does not match")]
    AuthenticationHash,
    /// The session is shut down.
    #[error("the session is shut down")]
    AdminDown,
    /// An echo packet that we did not send, or that we do not support returning.
    #[error("echo packet without a session")]
    Echo,
}

impl Dropped {
    /// The reason alone, as counters have it.
    pub const fn reason(self) -> DropReason {
        match self {
            Self::Ttl { .. } => DropReason::Ttl,
            Self::Packet(_) => DropReason::Malformed,
            Self::UnknownDiscriminator(_) => DropReason::UnknownDiscriminator,
            Self::UnknownSender(_) => DropReason::UnknownSender,
            Self::WrongWay => DropReason::WrongWay,
            Self::AuthenticationPresence { .. } => DropReason::AuthenticationPresence,
            Self::AuthenticationSection => DropReason::AuthenticationSection,
            Self::AuthenticationSequence { .. } => DropReason::AuthenticationSequence,
            Self::AuthenticationHash => DropReason::AuthenticationHash,
            Self::AdminDown => DropReason::AdminDown,
            Self::Echo => DropReason::Echo,
        }
    }
}
