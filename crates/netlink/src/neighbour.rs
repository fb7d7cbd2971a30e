//! An entry of the neighbour table: the hardware address of an address on a link.
//!
//! Knows its own attributes only. Made by [`crate::decode`].

use std::net::IpAddr;

/// An entry, as the kernel last reported it.
///
/// The kernel reports neither each step between [`NeighbourState::Reachable`], [`NeighbourState::Stale`] and
/// [`NeighbourState::Delay`] nor entries that it is still resolving. The hardware address and the router
/// flag are exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The number of the interface.
    pub index: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its hardware address, where that is of Ethernet's kind and known.
    pub mac: Option<[u8; 6]>,
    /// The kernel's state of it.
    pub state: NeighbourState,
    /// Whether it announced itself as a router in neighbour discovery.
    pub is_router: bool,
}

/// How sure the kernel is that a neighbour has the hardware address of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeighbourState {
    /// The administrator configured it.
    Permanent,
    /// It answered a moment ago.
    Reachable,
    /// It answered once.
    Stale,
    /// It is about to be probed.
    Delay,
    /// It is being probed.
    Probe,
    /// It did not answer.
    Failed,
}

impl NeighbourState {
    /// Whether packets are sent to it.
    pub fn is_valid(self) -> bool {
        self != Self::Failed
    }
}
