//! Which learned routes this machine shall forward by.
//!
//! Says which routers lead to a prefix, in BGP's words. How they are reached is for who installs the routes.

use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{InterfaceName, Prefix, Remote};

/// The most routers of one route: those beyond are left out (FRR's limit).
pub const GATEWAYS_MAX: usize = 64;

/// A change of one of these routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingChange {
    /// The VRF that it is in.
    pub vrf: Option<InterfaceName>,
    /// Its destination.
    pub prefix: Prefix,
    /// The routers, sorted, among which packets are shared; without any there is no such route any more.
    pub gateways: Arc<[Gateway]>,
}

/// A router.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gateway {
    /// The next hop of the route, of either family.
    pub address: IpAddr,
    /// For an address that means nothing without a link: the neighbour on that link.
    pub on_link_of: Option<Remote>,
}
