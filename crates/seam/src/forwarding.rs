//! Which routes this machine shall forward by: learned ones, and own ones whose packets it drops.
//!
//! Says which routers lead to a prefix, in BGP's words. How they are reached is for who installs the routes.

use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{InterfaceName, Prefix, Remote};

/// The most routers of one route and rank: those beyond are left out (FRR's limit).
pub const GATEWAYS_MAX: usize = 64;

/// A change of one of these routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingChange {
    /// The VRF that it is in.
    pub vrf: Option<InterfaceName>,
    /// Its destination.
    pub prefix: Prefix,
    /// What becomes of the packets.
    pub forward: Forward,
}

/// What becomes of packets to a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forward {
    /// They are shared among the first of these routers, sorted, that can be reached: those of one rank. Without any router
    /// there is no such route any more.
    By(Arc<[Gateway]>),
    /// They are dropped, unless another route is about a part of the prefix.
    Drop,
}

impl Forward {
    /// Whether there is no such route any more.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::By(gateways) if gateways.is_empty())
    }
}

/// A next hop of received routes that are installed, of which is told whether this machine can reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackedNextHop {
    /// The VRF of its neighbours.
    pub vrf: Option<InterfaceName>,
    /// See [`Gateway::address`].
    pub address: IpAddr,
    /// See [`Gateway::on_link_of`].
    pub on_link_of: Option<Remote>,
}

/// A router.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gateway {
    /// 0 for the best paths; routers of a higher rank are for packets only while none of a lower one can be reached.
    pub rank: u8,
    /// The next hop of the route, of either family.
    pub address: IpAddr,
    /// For an address that means nothing without a link: the neighbour on that link.
    pub on_link_of: Option<Remote>,
}
