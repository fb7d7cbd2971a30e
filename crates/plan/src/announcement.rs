//! The part of a plan about one Service, for `show services`.
//!
//! Holds results only; made by the planner.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{PeerKey, Prefix};
use fairway_model::{Node, ObjectName};

use super::combination::Combination;
use super::{Answer, Layer2Verdict, Obstacle, Reason};

/// How one Service is announced from one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Why nothing of it is announced, if the reason does not concern a single address.
    pub reason: Option<Reason>,
    /// Its addresses, in the order of the status.
    pub addresses: Vec<AddressAnnouncement>,
    /// What the service proxy of this node says of each address, if it does not deliver packets to it; empty where none is
    /// followed.
    pub data_path: Vec<(IpAddr, Option<Obstacle>)>,
    /// Whether this node answers for them on layer 2, for each pool they come from; empty without a
    /// matching L2Advertisement.
    pub layer2: Vec<Layer2Verdict>,
}

/// How one address of a Service is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressAnnouncement {
    /// The address.
    pub address: IpAddr,
    /// Why no prefix is announced for it, if the reason does not concern a single prefix.
    pub reason: Option<Reason>,
    /// The prefixes that its advertisements derive from it, sorted.
    pub prefixes: Vec<PrefixAnnouncement>,
}

/// How one prefix is announced on behalf of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixAnnouncement {
    /// The prefix.
    pub prefix: Prefix,
    /// The advertisements that announce it, sorted.
    pub advertisements: Arc<[ObjectName]>,
    /// The peers that receive it; empty with a reason.
    pub peers: Arc<BTreeSet<PeerKey>>,
    /// Why no peer receives it.
    pub reason: Option<Reason>,
}

impl PrefixAnnouncement {
    /// As if no other Service had the prefix.
    pub(super) fn new(prefix: Prefix, combination: &Combination, node: &Node) -> Self {
        let peers = Arc::clone(&combination.peers);
        let reason = peers.is_empty().then(|| Reason::NoPeers(node.name.clone()));
        let advertisements = Arc::clone(&combination.advertisements);
        Self { prefix, advertisements, peers, reason }
    }

    /// Another Service conflicts with this one.
    pub(super) fn silence(&mut self, reason: Reason) {
        self.peers = Arc::default();
        self.reason = Some(reason);
    }
}

/// An address that a node answers for on the local segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2Announcement {
    /// The address.
    pub address: IpAddr,
    /// On which interfaces; all when `None`.
    pub interfaces: Option<BTreeSet<String>>,
    /// The address is to be on one of them, too.
    pub bind: bool,
    /// The Services behind it.
    pub services: BTreeSet<ObjectName>,
}

impl Announcement {
    /// A Service of which nothing is announced.
    pub(super) fn none(reason: Reason) -> Self {
        Self {
            reason: Some(reason),
            addresses: Vec::new(),
            data_path: Vec::new(),
            layer2: Vec::new(),
        }
    }

    /// Whether some address is announced to some peer.
    pub fn is_announced(&self) -> bool {
        self.told().next().is_some()
    }

    /// Every announced prefix, with the peers that receive it.
    pub fn told(&self) -> impl Iterator<Item = (Prefix, &BTreeSet<PeerKey>)> {
        let prefixes = self.addresses.iter().flat_map(|address| &address.prefixes);
        let told = prefixes.filter(|it| it.reason.is_none() && !it.peers.is_empty());
        told.map(|it| (it.prefix, it.peers.as_ref()))
    }

    /// Every prefix of its advertisements, whether or not it is announced.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = Prefix> + '_ {
        self.addresses.iter().flat_map(|it| &it.prefixes).map(|it| it.prefix)
    }

    /// How this node answers for `address`; `None` if it does not.
    pub(super) fn layer2_answer(&self, address: IpAddr) -> Option<&Answer> {
        self.layer2_verdict(address)?.answer.as_ref().ok()
    }

    /// What this node does for `address` on layer 2; `None` where no L2Advertisement selects it.
    pub fn layer2_verdict(&self, address: IpAddr) -> Option<&Layer2Verdict> {
        self.layer2.iter().find(|it| it.addresses.contains(&address))
    }

    /// The addresses for which this node answers.
    pub(super) fn answered(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let answering = self.layer2.iter().filter(|it| it.answer.is_ok());
        answering.flat_map(|it| it.addresses.iter().copied())
    }

    /// Every reason in it, from the Service to its prefixes.
    pub fn reasons(&self) -> impl Iterator<Item = &Reason> {
        let addresses = self.addresses.iter();
        self.reason.iter().chain(addresses.flat_map(|address| {
            let prefixes = address.prefixes.iter().filter_map(|prefix| prefix.reason.as_ref());
            address.reason.iter().chain(prefixes)
        }))
    }
}
