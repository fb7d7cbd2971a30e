//! Why a route is not announced to one peer.

use std::net::IpAddr;

use fairway_ground::AddressFamily;

/// Why a route is not advertised to one of its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ineligible {
    /// The session does not carry the family.
    #[error("the session does not carry {0}")]
    Family(AddressFamily),
    /// This end has no address for the next hop.
    #[error("the interface of the session has no global address for the next hop of {0} routes")]
    NextHop(AddressFamily),
    /// The configured next hop is the peer itself: its traffic for us would not leave it (RFC 4271 §5.1.3).
    #[error("the configured next hop {0} is the address of the peer itself")]
    PeerAsNextHop(IpAddr),
    /// The operator drained this node.
    #[error("the node is drained")]
    Drained,
    /// The attributes do not fit a message.
    #[error("the attributes do not fit a message of {0} bytes")]
    TooLong(usize),
}
