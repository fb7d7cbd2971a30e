//! BGPPeer: a router that some nodes peer with.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use fairway_ground::{
    AddPath, AoAlgorithm, Asn, ChosenNextHops, GracefulRestart, HoldTime, ImportPolicy,
    InterfaceName, Password, PeerKey, PrefixFilter, Remote, RemoteAs, Role, RouterId,
    ShutdownMessage,
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
    /// The KeyID of what we sign with it.
    pub send_id: u8,
    /// The KeyID of what the neighbour signs with it.
    pub recv_id: u8,
    /// How it signs.
    pub algorithm: AoAlgorithm,
    /// The Secret.
    pub secret: ObjectName,
    /// Which value of the Secret.
    pub key: String,
}

/// The parts of a BGPPeer that a session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name, which advertisements refer to.
    pub name: ObjectName,
    /// Our AS.
    pub my_asn: Asn,
    /// Our AS towards this neighbour, where it is another.
    pub local_asn: Option<Asn>,
    /// Its AS.
    pub remote_as: RemoteAs,
    /// The router, or where routers come from.
    pub remote: Remote,
    /// How many of a range there may be at a time.
    pub listen_limit: u32,
    /// The VRF of the session.
    pub vrf: Option<InterfaceName>,
    /// Never dialled.
    pub passive: bool,
    /// Administratively down, and what the neighbour is told.
    pub shutdown: Option<ShutdownMessage>,
    /// The port to dial.
    pub port: u16,
    /// The address to dial from.
    pub source_address: Option<IpAddr>,
    /// What OPEN offers.
    pub hold_time: HoldTime,
    /// Our keepalive interval, if the user chose one.
    pub keepalive_interval: Option<Duration>,
    /// Time between attempts to connect, if the user chose one.
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
    /// At most so many hops away (GTSM).
    pub ttl_security_hops: Option<NonZeroU8>,
    /// Both families over this session.
    pub dual_stack: bool,
    /// IPv6 next hops for IPv4 routes.
    pub extended_next_hop: bool,
    /// Several paths to a prefix.
    pub add_path: AddPath,
    /// What we are to it.
    pub role: Option<Role>,
    /// A neighbour that does not say its role is refused.
    pub role_strict: bool,
    /// Routes outlive a session, ours and its, where it can do that, too.
    pub graceful_restart: Option<GracefulRestart>,
    /// The BFDProfile of the session; `None` where BFD does not watch it.
    pub bfd_profile: Option<String>,
    /// No BGP before BFD is up.
    pub bfd_strict: bool,
    /// What is accepted from it.
    pub import: ImportPolicy,
    /// Which learned routes it is told.
    pub pass_on: PrefixFilter,
    /// The next hops that it is told, where they are not our own.
    pub next_hops: ChosenNextHops,
}

impl Peer {
    /// How sessions and routes name it. No node has two peers of one key.
    pub fn key(&self) -> PeerKey {
        PeerKey { remote: self.remote, vrf: self.vrf }
    }
}
