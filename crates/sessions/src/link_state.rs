//! What is known of the link of an unnumbered neighbour: the router at its other end, or why there can be none.
//!
//! Knows no socket. Written by [`super::link`], read by dials and the core task.

use std::net::{Ipv6Addr, SocketAddrV6};

use fairway_ground::InterfaceName;

/// Why no router can be discovered on a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LinkTrouble {
    #[error("there is no interface {0}")]
    NoInterface(InterfaceName),
    #[error("interface {0} has no link-local address (is it up?)")]
    NoAddress(InterfaceName),
    #[error(
        "router discovery on {0} needs the capability NET_RAW; without it only a neighbor that dials \
         first is found"
    )]
    NotPermitted(InterfaceName),
    #[error("router advertisements on {0}: {1}")]
    Socket(InterfaceName, String),
    #[error("interface {0}: cannot read the interfaces of this machine (rtnetlink): {1}")]
    Interfaces(InterfaceName, String),
}

impl LinkTrouble {
    /// Whether nothing can run over the link any more.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::NoInterface(_) | Self::NoAddress(_))
    }
}

/// What is known of a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LinkState {
    /// The router at its other end: its address, with the link as its scope.
    pub(super) router: Option<(Ipv6Addr, u32)>,
    /// Why there can be none.
    pub(super) trouble: Option<LinkTrouble>,
}

impl LinkState {
    /// Where the router takes connections at `port`.
    pub(super) fn remote(&self, port: u16) -> Option<SocketAddrV6> {
        self.router.map(|(address, scope)| SocketAddrV6::new(address, port, 0, scope))
    }
}
