//! BGPPeer: a router that some nodes peer with.

use std::net::IpAddr;
use std::time::Duration;

use fairway_sessions::types::{Asn, HoldTime, ImportPolicy, Password, PrefixFilter, RouterId};

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

/// The parts of a BGPPeer that a session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name, which advertisements refer to.
    pub name: ObjectName,
    /// Our AS.
    pub my_asn: Asn,
    /// The router's AS.
    pub peer_asn: Asn,
    /// The router.
    pub address: IpAddr,
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
    /// More than one hop away.
    pub ebgp_multihop: bool,
    /// Both families over this session.
    pub dual_stack: bool,
    /// What is accepted from it.
    pub import: ImportPolicy,
    /// Which learned routes it is told.
    pub pass_on: PrefixFilter,
}
