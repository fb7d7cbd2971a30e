//! Why a route is not announced to one peer.

use std::net::IpAddr;

use fairway_ground::AddressFamily;

/// Why a route is not announced to a peer that it is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ineligible {
    /// The session does not carry the family.
    #[error("the session does not carry {0}")]
    Family(AddressFamily),
    /// This end has no address that the peer could send to.
    #[error("the interface of the session has no global address to be the next hop for {0}")]
    NextHop(AddressFamily),
    /// The operator chose an address of the peer as next hop: what is for us would not leave it
    /// (RFC 4271 §5.1.3).
    #[error("the next hop that was chosen, {0}, is the peer itself")]
    PeerAsNextHop(IpAddr),
    /// The operator took this node out of service.
    #[error("the node is drained")]
    Drained,
    /// The attributes do not fit a message.
    #[error("the attributes do not fit a message of {0} bytes")]
    TooLong(usize),
}
