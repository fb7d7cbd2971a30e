//! BGPPeer: a router that some nodes peer with.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{
    AddPath, AoAlgorithm, Asn, ChosenNextHops, ClientKind, ClusterId, GracefulRestart, HoldTime,
    ImportPolicy, InterfaceName, Password, PeerKey, PrefixFilter, Remote, RemoteAs, Role,
    RouteRule, RouterId, ShutdownMessage,
};

use super::{LabelSelector, ObjectName};

/// Where the TCP-MD5 key of a peer comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerPassword {
    /// No key.
    None,
    /// Written in the peer.
    Text(Password),
    /// In a Secret of type `kubernetes.io/basic-auth`, key `password`.
    Secret(ObjectName),
}

/// A key of TCP-AO, and where its secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AoKeyReference {
    /// The KeyID of packets that we sign with it.
    pub send_id: u8,
    /// The KeyID of packets that the neighbour signs with it.
    pub recv_id: u8,
    /// The algorithm.
    pub algorithm: AoAlgorithm,
    /// The Secret.
    pub secret: ObjectName,
    /// The key of the Secret.
    pub key: String,
}

/// The parts of a BGPPeer that a session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name, which advertisements refer to.
    pub name: ObjectName,
    /// Our AS.
    pub my_asn: Asn,
    /// Our AS towards this neighbour, if it differs.
    pub local_asn: Option<Asn>,
    /// Its AS.
    pub remote_as: RemoteAs,
    /// The router, the range of routers, or how the router is found.
    pub remote: Remote,
    /// The maximum number of neighbours of a range.
    pub listen_limit: u32,
    /// The VRF of the session.
    pub vrf: Option<InterfaceName>,
    /// Never connects.
    pub passive: bool,
    /// Administratively down, with the message for the neighbour.
    pub shutdown: Option<ShutdownMessage>,
    /// The remote port.
    pub port: u16,
    /// The local address.
    pub source_address: Option<IpAddr>,
    /// The hold time in OPEN.
    pub hold_time: HoldTime,
    /// Our keepalive interval, if configured.
    pub keepalive_interval: Option<Duration>,
    /// Time between connection attempts, if configured.
    pub connect_interval: Option<Duration>,
    /// Our BGP identifier towards it.
    pub router_id: Option<RouterId>,
    /// Which nodes peer with it.
    pub node_selectors: Vec<LabelSelector>,
    /// TCP-MD5.
    pub password: PeerPassword,
    /// TCP-AO; none where it is not used.
    pub tcp_ao: Vec<AoKeyReference>,
    /// More than one hop away.
    pub ebgp_multihop: bool,
    /// The maximum number of hops (GTSM).
    pub ttl_security_hops: Option<NonZeroU8>,
    /// Both families over this session.
    pub dual_stack: bool,
    /// IPv6 next hops for IPv4 routes.
    pub extended_next_hop: bool,
    /// Several paths to a prefix.
    pub add_path: AddPath,
    /// It is a client of our route reflector or route server.
    pub client: Option<ClientKind>,
    /// Our cluster, if that is not our BGP identifier.
    pub cluster_id: Option<ClusterId>,
    /// Our role towards it.
    pub role: Option<Role>,
    /// A neighbour that does not send its role is refused.
    pub role_strict: bool,
    /// Routes outlive a session, ours and its own, if it supports that, too.
    pub graceful_restart: Option<GracefulRestart>,
    /// The BFDProfile of the session; `None` without BFD.
    pub bfd_profile: Option<String>,
    /// No BGP before BFD is up.
    pub bfd_strict: bool,
    /// What is accepted from it.
    pub import: ImportPolicy,
    /// Which learned routes are advertised to it.
    pub pass_on: PrefixFilter,
    /// What happens to these, in order.
    pub pass_on_rules: Arc<[RouteRule]>,
    /// The next hops that are advertised to it, where they are not our own.
    pub next_hops: ChosenNextHops,
    /// Nodes forward by the routes that are accepted from it.
    pub install_routes: bool,
}

impl Peer {
    /// The key of its sessions and routes. No node has two peers with one key.
    pub fn key(&self) -> PeerKey {
        PeerKey { remote: self.remote, vrf: self.vrf }
    }

    /// Whether it is the default gateway of each node.
    pub fn is_default_gateway(&self) -> bool {
        matches!(self.remote, Remote::DefaultGateway(_))
    }
}
