//! Why something is not announced, and which fact prevents it.
//!
//! Knows no rule; the other parts of the plan decide, `show services` and the log print.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, InterfaceName, PeerKey, Prefix, Remote, RpkiServer};
use fairway_model::{NodeName, ObjectName};

/// Why a Service, one of its addresses or one of its prefixes is not announced from a node. The
/// text begins with MetalLB's word, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It has no address; the text says why.
    #[error("notAllocated: {0}")]
    NotAllocated(String),
    /// Its address is in no pool.
    #[error("ipNotAllowed: {0} is in no IPAddressPool")]
    AddressInNoPool(IpAddr),
    /// The network of the node does not work.
    #[error("nodeNetworkUnavailable: condition NetworkUnavailable of node {0} is True")]
    NodeNetworkUnavailable(String),
    /// The node is excluded.
    #[error(
        "nodeLabeledExcludeBalancers: node {0} has the label \
         node.kubernetes.io/exclude-from-external-load-balancers"
    )]
    NodeExcluded(String),
    /// Traffic policy Local, and this node has no ready endpoint.
    #[error("noLocalEndpoints: externalTrafficPolicy is Local and no ready endpoint is on {0}")]
    NoLocalEndpoints(String),
    /// No node has a ready endpoint.
    #[error("noEndpoints: no endpoint is ready")]
    NoEndpoints,
    /// What the node has found out about itself keeps it from announcing.
    #[error("{word}: {0}", word = .0.word())]
    Obstructed(Obstacle),
    /// No advertisement of its pool is for this node.
    #[error("notOwner: no BGPAdvertisement that covers pool {pool} selects node {node}")]
    NoAdvertisementHere {
        /// The pool of the address.
        pool: String,
        /// The node.
        node: String,
    },
    /// Advertisements exist, but for other Services.
    #[error(
        "noMatchingAdvertisement: no BGPAdvertisement that covers pool {pool} on node {node} selects \
         the labels of the Service"
    )]
    NoMatchingAdvertisement {
        /// The pool of the address.
        pool: String,
        /// The node.
        node: String,
    },
    /// No candidate is a member that owns addresses.
    #[error(
        "notOwner: no candidate is an active member; {0} has just started, is drained, cannot receive \
         heartbeats, or has no interface to answer on (fairway show members)"
    )]
    NotMember(String),
    /// L2Advertisements exist, but none for this node.
    #[error(
        "noMatchingAdvertisement: no L2Advertisement selects pool {pool}, node {node} and the \
         labels of the Service at once"
    )]
    NoMatchingLayer2Advertisement {
        /// The pool of the first address.
        pool: String,
        /// The node.
        node: String,
    },
    /// Another node answers for it on the local segment.
    #[error("notOwner: node {owner} answers for {address}, since {because}")]
    NotOwner {
        /// That node.
        owner: NodeName,
        /// The address that decides.
        address: IpAddr,
        /// Why it is that node.
        because: Because,
        /// This node answers if that one is gone.
        next: Option<NextOwner>,
    },
    /// Labels might assign one address to two nodes.
    #[error(
        "sharedIPWithServiceSelector: the Service may share its address (allow-shared-ip), and \
         L2Advertisement {0} has serviceSelectors, which may select different nodes for the \
         Services that share it"
    )]
    SharedAddressWithServiceSelectors(ObjectName),
    /// Two advertisements conflict about one prefix to one peer.
    #[error(
        "conflictingAdvertisements: {first} and {second} give peer {peer} the same prefix with \
         different {field}"
    )]
    ConflictingAdvertisements {
        /// One advertisement.
        first: ObjectName,
        /// The other.
        second: ObjectName,
        /// The field in which they differ.
        field: &'static str,
        /// A peer of both.
        peer: Box<PeerKey>,
    },
    /// Advertisements exist, but none selects a peer of this node.
    #[error(
        "noPeers: no BGPPeer both selects node {0} and is selected by the matching \
         BGPAdvertisements"
    )]
    NoPeers(String),
}

impl Reason {
    /// Whether another node answers for the address, so that nothing is missing.
    pub fn is_for_another_node(&self) -> bool {
        matches!(self, Self::NotOwner { .. })
    }

    /// The word alone, as in MetalLB's logs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotAllocated(_) => "notAllocated",
            Self::AddressInNoPool(_) => "ipNotAllowed",
            Self::NodeNetworkUnavailable(_) => "nodeNetworkUnavailable",
            Self::NodeExcluded(_) => "nodeLabeledExcludeBalancers",
            Self::NoLocalEndpoints(_) => "noLocalEndpoints",
            Self::NoEndpoints => "noEndpoints",
            Self::Obstructed(obstacle) => obstacle.word(),
            Self::NoMatchingAdvertisement { .. } | Self::NoMatchingLayer2Advertisement { .. } => {
                "noMatchingAdvertisement"
            }
            Self::NotOwner { .. } | Self::NotMember(_) | Self::NoAdvertisementHere { .. } => {
                "notOwner"
            }
            Self::SharedAddressWithServiceSelectors(_) => "sharedIPWithServiceSelector",
            Self::ConflictingAdvertisements { .. } => "conflictingAdvertisements",
            Self::NoPeers(_) => "noPeers",
        }
    }
}

/// An object that is left out of a plan. The rest of the plan is unaffected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A peer with a missing key.
    #[error("BGPPeer {peer} is left out: its Secret {secret} is missing or has no {key}")]
    MissingSecret {
        /// The peer.
        peer: ObjectName,
        /// The Secret it names.
        secret: ObjectName,
        /// The missing key of the Secret.
        key: String,
    },
    /// A peer that is the default gateway, which this machine does not have.
    #[error(
        "BGPPeer {peer} is left out: this node has no {} default route{} with a gateway that has an address (ip {}route show default)",
        family.ip_version(),
        vrf.map(|vrf| format!(" in VRF {vrf}")).unwrap_or_default(),
        if *family == AddressFamily::Ipv6Unicast { "-6 " } else { "" }
    )]
    NoGateway {
        /// The peer.
        peer: ObjectName,
        /// The family of the gateway.
        family: AddressFamily,
        /// Where it is looked for.
        vrf: Option<InterfaceName>,
    },
    /// Likewise, with an address that means nothing without its interface.
    #[error(
        "BGPPeer {peer} is left out: the default gateway {address} of this node is link-local; expected a BGPPeer with interface in place of autoDiscovery"
    )]
    LinkLocalGateway {
        /// The peer.
        peer: ObjectName,
        /// The address.
        address: IpAddr,
    },
    /// A peer with the address, interface or range of another, in the same VRF.
    #[error(
        "BGPPeer {peer} is left out: {key} is already the {} of BGPPeer {other}",
        noun(key.remote)
    )]
    SameRemote {
        /// The peer that is left out.
        peer: ObjectName,
        /// The peer that is used.
        other: ObjectName,
        /// The key that both have.
        key: Box<PeerKey>,
    },
    /// A server that is one too many.
    #[error(
        "RPKI server {server} of BGPConfiguration {configuration} is left out: one node asks at most {}",
        RpkiServer::COUNT_MAX
    )]
    TooManyRpkiServers {
        /// The object.
        configuration: ObjectName,
        /// The server.
        server: RpkiServer,
    },
    /// A station that is one too many, or has other settings elsewhere.
    #[error("BMP station {station} of BGPConfiguration {configuration} is left out: {why}")]
    BmpStationLeftOut {
        /// The object.
        configuration: ObjectName,
        /// The station.
        station: String,
        /// The reason.
        why: &'static str,
    },
    /// An advertisement with an undefined community.
    #[error("BGPAdvertisement {advertisement} is left out: no Community defines {alias:?}")]
    UnknownCommunity {
        /// The advertisement.
        advertisement: ObjectName,
        /// The alias.
        alias: String,
    },
    /// Prefixes that an advertisement originates itself.
    #[error("BGPAdvertisement {advertisement} cannot originate {prefix}: {reason}")]
    PrefixNotOriginated {
        /// The advertisement.
        advertisement: ObjectName,
        /// The prefix.
        prefix: Prefix,
        /// The reason.
        reason: Reason,
    },
}

/// What the node that comes second would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextOwner {
    /// The interfaces that it would answer on; all when `None`.
    pub interfaces: Option<BTreeSet<String>>,
}

/// What a node finds out about itself that keeps it from announcing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The health check of the Service fails, with this failure.
    #[error("the health check of the Service fails on this node: {0}")]
    HealthCheckFails(String),
    /// The health check of the Service has not ended yet.
    #[error("the first health check of the Service has not ended yet on this node")]
    NotCheckedYet,
    /// Its service proxy cannot deliver packets to the address, for this reason.
    #[error("the service proxy of this node does not deliver to it: {0} (fairway show proxy)")]
    NotDelivered(String),
    /// Its service proxy has not said that it delivers packets to the address.
    #[error("the service proxy of this node does not serve it, or not yet (fairway show proxy)")]
    NotDeliveredYet,
    /// It cannot answer on the interfaces of the L2Advertisements that select it, of which this is one.
    #[error("this node can answer on no interface of L2Advertisement {0} (fairway show l2)")]
    NoUsableInterface(ObjectName),
}

impl Obstacle {
    fn word(&self) -> &'static str {
        match self {
            Self::HealthCheckFails(_) | Self::NotCheckedYet => "noEndpoints",
            Self::NotDelivered(_) | Self::NotDeliveredYet => "notDelivered",
            Self::NoUsableInterface(_) => "notOwner",
        }
    }
}

/// Why another node comes before this one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Because {
    /// It has the lowest hash.
    #[error("its hash with that address is the lowest among the eligible nodes")]
    Hash,
    /// It is preferred.
    #[error("its preference weight is {owner}, and that of this node {ours}")]
    Preference {
        /// The sum of its weights.
        owner: u32,
        /// The sum of those of this node.
        ours: u32,
    },
    /// This node has [`fairway_model::Node::OUT_OF_SERVICE_TAINT`].
    #[error("this node has the taint node.kubernetes.io/out-of-service")]
    OutOfService,
    /// Kubernetes does not take this node for ready.
    #[error("condition Ready of this node is not True")]
    Unready,
    /// What this node has found out about itself.
    #[error(transparent)]
    Obstructed(Obstacle),
    /// This node is none of the members that own addresses.
    #[error("this node is no active member (fairway show members)")]
    NotMember,
}

/// The term for the identity of a neighbour.
fn noun(remote: Remote) -> &'static str {
    match remote {
        Remote::Address(_) => "address",
        Remote::Interface(_) => "interface",
        Remote::Range(_) => "range",
        Remote::DefaultGateway(_) => "default gateway",
    }
}
