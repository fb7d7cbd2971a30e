//! What comes in from the edge, and why it may not be heard.

use std::net::{IpAddr, SocketAddr};

use fairway_seam::bfd::DropReason;

use super::packet::PacketError;
use crate::time::Instant;
use crate::types::InterfaceName;

/// The port that a packet came to.
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
    /// Its number.
    pub const fn number(self) -> u16 {
        match self {
            Self::SingleHop => 3784,
            Self::Multihop => 4784,
            Self::Echo => 3785,
        }
    }
}

/// A packet as it came in.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// When it came in, by the kernel's time stamp: late reading is not late arrival. Packets of
    /// several sockets may come in any order.
    pub at: Instant,
    /// Who sent it.
    pub source: SocketAddr,
    /// To which address of ours, where that is known.
    pub destination: Option<IpAddr>,
    /// Where it came in; 0 where that is not known.
    pub interface_index: u32,
    /// The VRF of the socket.
    pub vrf: Option<InterfaceName>,
    /// The TTL or hop limit it had left, where that is known.
    pub ttl: Option<u8>,
    /// The port it came to.
    pub port: Port,
    /// The payload.
    pub bytes: &'a [u8],
}

/// What a packet was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A control packet that a session heard.
    Control,
    /// An echo packet of ours that came back.
    Echo,
    /// An echo packet of the other end: the edge sends the same bytes back to its source with a
    /// TTL of 254.
    LoopBack,
}

/// Why a packet was not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// Over one hop nobody but a neighbour can send 255 (RFC 5881 §5). Over several hops it is the
    /// session that says how far a packet may have come (RFC 5883).
    #[error("a TTL of {ttl:?}, expected {least} at least")]
    Ttl {
        /// What it had left.
        ttl: Option<u8>,
        /// What it must have.
        least: u8,
    },
    /// It is no control packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// No session has this discriminator.
    #[error("no session has the discriminator {0}")]
    UnknownDiscriminator(u32),
    /// Nobody wants a session with the sender.
    #[error("no session with {0}")]
    UnknownSender(IpAddr),
    /// The session is over the other kind of hops, or in another VRF, or at another interface.
    #[error("it came in where its session is not")]
    WrongWay,
    /// One of the two signs packets and the other does not.
    #[error("authentication is {}", if *.expected { "missing" } else { "not in use here" })]
    AuthenticationPresence {
        /// Whether the session has a key.
        expected: bool,
    },
    /// Of another type or length, or with another key.
    #[error("authentication of another type, length or key than configured")]
    AuthenticationSection,
    /// It was said before, or too long ago.
    #[error("an authentication sequence number of {received}, out of order after {last}")]
    AuthenticationSequence {
        /// What it says.
        received: u32,
        /// What was last heard.
        last: u32,
    },
    /// Somebody without the key made it, or changed it on the way.
    #[error("the authentication hash does not match")]
    AuthenticationHash,
    /// The session is switched off.
    #[error("the session is shut down")]
    AdminDown,
    /// An echo packet that nobody here sent, or that nobody here offered to send back.
    #[error("an echo packet that is not of a session here")]
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
