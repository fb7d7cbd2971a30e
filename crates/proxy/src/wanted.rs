//! What the kernel of a node shall have.
//!
//! Values only; `planner` makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairway_ground::Prefix;
use fairway_model::{IpvsScheduler, ObjectName, TransportProtocol};

/// The address, port and protocol by which clients reach a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualAddress {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: TransportProtocol,
}

impl fmt::Display for VirtualAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}/{}", SocketAddr::new(self.address, self.port), self.protocol);
        f.pad(&text)
    }
}

/// The address and port of an endpoint. Its weight is 1, as kube-proxy has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RealServer {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

impl fmt::Display for RealServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&SocketAddr::new(self.address, self.port).to_string())
    }
}

/// A virtual server of IPVS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualServer {
    /// How it chooses a real server.
    pub scheduler: IpvsScheduler,
    /// How long a client stays with its real server; `None` if each connection is scheduled by itself.
    pub persistence: Option<Duration>,
    /// Where its connections go, in order, each once.
    pub real_servers: Vec<RealServer>,
}

/// What becomes of a new connection that no endpoint may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoEndpoints {
    /// No endpoint anywhere: the client fails at once.
    Reject,
    /// None on this node, whose policy is Local: the client tries again, and a balancer may send it elsewhere.
    Drop,
}

/// Whose source address is replaced by the node's, so that the answer comes back through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Masquerade {
    /// Everybody's.
    Always,
    /// That of clients which are no Pods.
    OffCluster,
    /// Nobody's but that of a virtual address itself.
    Never,
}

/// What the packet filter does with packets to a virtual address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterRule {
    /// Who may use it; `None` for everybody. No network is within another one.
    pub allowed_sources: Option<Vec<Prefix>>,
    /// The node itself may, too, whose packets to the address come from the address.
    pub allows_node: bool,
    /// What becomes of a new connection if no endpoint may take it.
    pub no_endpoints: Option<NoEndpoints>,
    /// Pods of this node, and the node itself, reach the real servers nevertheless.
    pub serves_pods: bool,
    /// Whose source address is replaced.
    pub masquerade: Masquerade,
}

/// A Pod of this node that may be sent its own connections: its source address is replaced, else it would answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hairpin {
    /// Where it serves.
    pub real_server: RealServer,
    /// By which protocol.
    pub protocol: TransportProtocol,
}

/// All about one virtual address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The Service that has it.
    pub service: ObjectName,
    /// Its virtual server.
    pub server: VirtualServer,
    /// Its rule in the packet filter.
    pub rule: FilterRule,
    /// Whether the address has to be on the node, since it is no node's own.
    pub is_bound: bool,
    /// It is a load balancer's address: routers or the local segment are told of it.
    pub is_of_balancer: bool,
}

/// Everything that a node shall have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// All virtual addresses.
    pub entries: BTreeMap<VirtualAddress, Entry>,
    /// The addresses that have to be on the node.
    pub bound_addresses: BTreeSet<IpAddr>,
    /// The Pods of this node that Services send connections to, ready or not.
    pub hairpins: BTreeSet<Hairpin>,
    /// Ports on which the health of a Service is answered, and how many local endpoints it has that are ready.
    pub health_checks: BTreeMap<u16, (ObjectName, usize)>,
}
