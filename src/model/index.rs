//! The index: the facts in force, by kind and name.
//!
//! Answers what is there; refuses to decide anything. One writer (the source), read by allocator
//! and plan.

use std::collections::BTreeMap;

use super::{
    BgpAdvertisement, CommunityAliases, EndpointSlice, Kind, Node, ObjectKey, ObjectName, Peer,
    Pool, Secret, Service,
};

/// A valid object of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// BGPPeer.
    Peer(Peer),
    /// IPAddressPool.
    Pool(Pool),
    /// BGPAdvertisement.
    BgpAdvertisement(BgpAdvertisement),
    /// Community.
    Community(CommunityAliases),
    /// Service of type LoadBalancer.
    Service(Service),
    /// EndpointSlice.
    EndpointSlice(EndpointSlice),
    /// Node.
    Node(Node),
    /// Secret that holds keys of sessions.
    Secret(Secret),
}

impl Object {
    /// What it is called.
    pub fn key(&self) -> ObjectKey {
        let (kind, name) = match self {
            Self::Peer(peer) => (Kind::BgpPeer, peer.name.clone()),
            Self::Pool(pool) => (Kind::IpAddressPool, pool.name.clone()),
            Self::BgpAdvertisement(it) => (Kind::BgpAdvertisement, it.name.clone()),
            Self::Community(community) => (Kind::Community, community.name.clone()),
            Self::Service(service) => (Kind::Service, service.name.clone()),
            Self::EndpointSlice(slice) => (Kind::EndpointSlice, slice.name.clone()),
            Self::Node(node) => (Kind::Node, ObjectName::new("", &node.name)),
            Self::Secret(secret) => (Kind::Secret, secret.name.clone()),
        };
        ObjectKey { kind, name }
    }
}

/// All facts in force. Iteration order is name order, and so is every list made from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterIndex {
    /// BGPPeers.
    pub peers: BTreeMap<ObjectName, Peer>,
    /// IPAddressPools.
    pub pools: BTreeMap<ObjectName, Pool>,
    /// BGPAdvertisements.
    pub bgp_advertisements: BTreeMap<ObjectName, BgpAdvertisement>,
    /// Communities.
    pub communities: BTreeMap<ObjectName, CommunityAliases>,
    /// Services of type LoadBalancer.
    pub services: BTreeMap<ObjectName, Service>,
    /// EndpointSlices.
    pub endpoint_slices: BTreeMap<ObjectName, EndpointSlice>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// Secrets.
    pub secrets: BTreeMap<ObjectName, Secret>,
}

impl ClusterIndex {
    /// Adds or replaces an object. Says whether anything changed.
    pub fn apply(&mut self, object: Object) -> bool {
        fn put<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: V) -> bool {
            if map.get(&key) == Some(&value) {
                return false;
            }
            map.insert(key, value);
            true
        }
        match object {
            Object::Peer(it) => put(&mut self.peers, it.name.clone(), it),
            Object::Pool(it) => put(&mut self.pools, it.name.clone(), it),
            Object::BgpAdvertisement(it) => put(&mut self.bgp_advertisements, it.name.clone(), it),
            Object::Community(it) => put(&mut self.communities, it.name.clone(), it),
            Object::Service(it) => put(&mut self.services, it.name.clone(), it),
            Object::EndpointSlice(it) => put(&mut self.endpoint_slices, it.name.clone(), it),
            Object::Node(it) => put(&mut self.nodes, it.name.clone(), it),
            Object::Secret(it) => put(&mut self.secrets, it.name.clone(), it),
        }
    }

    /// Removes an object. Says whether it was there.
    pub fn delete(&mut self, key: &ObjectKey) -> bool {
        let name = &key.name;
        match key.kind {
            Kind::BgpPeer => self.peers.remove(name).is_some(),
            Kind::IpAddressPool => self.pools.remove(name).is_some(),
            Kind::BgpAdvertisement => self.bgp_advertisements.remove(name).is_some(),
            Kind::Community => self.communities.remove(name).is_some(),
            Kind::Service => self.services.remove(name).is_some(),
            Kind::EndpointSlice => self.endpoint_slices.remove(name).is_some(),
            Kind::Node => self.nodes.remove(&name.name).is_some(),
            Kind::Secret => self.secrets.remove(name).is_some(),
        }
    }

    /// Replaces everything: what a source says after it has read all there is.
    pub fn reset(&mut self, objects: impl IntoIterator<Item = Object>) -> bool {
        let mut fresh = Self::default();
        for object in objects {
            fresh.apply(object);
        }
        let changed = fresh != *self;
        *self = fresh;
        changed
    }
}
