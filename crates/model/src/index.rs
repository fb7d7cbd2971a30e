//! The index: the facts in force, by kind and name.
//!
//! Answers what is there, and what each change affected; refuses to decide anything. One writer (the
//! source), read by allocator and plan.

use std::borrow::Borrow;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    BfdProfile, BgpAdvertisement, BgpConfiguration, Changes, CommunityAliases, EndpointSlice,
    FrrExtras, Kind, Labels, Layer2Advertisement, Namespace, Node, ObjectKey, ObjectName, Peer,
    Pool, ProxiedService, ProxiedSlice, ProxyConfiguration, Secret, Service,
};

/// A valid object of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// BGPPeer.
    Peer(Box<Peer>),
    /// BFDProfile.
    BfdProfile(Box<BfdProfile>),
    /// IPAddressPool.
    Pool(Box<Pool>),
    /// BGPAdvertisement.
    BgpAdvertisement(Box<BgpAdvertisement>),
    /// L2Advertisement.
    Layer2Advertisement(Layer2Advertisement),
    /// Community.
    Community(CommunityAliases),
    /// BGPConfiguration.
    BgpConfiguration(BgpConfiguration),
    /// Service of type LoadBalancer.
    Service(Arc<Service>),
    /// EndpointSlice.
    EndpointSlice(EndpointSlice),
    /// Node.
    Node(Node),
    /// Namespace.
    Namespace(Namespace),
    /// Secret that holds keys of sessions.
    Secret(Secret),
    /// ConfigMap `bgpextras`.
    FrrExtras(FrrExtras),
    /// Service, for the service proxy.
    ProxiedService(Box<ProxiedService>),
    /// EndpointSlice, for the service proxy.
    ProxiedSlice(ProxiedSlice),
    /// KubeProxyConfiguration.
    ProxyConfiguration(Box<ProxyConfiguration>),
}

/// Objects of one kind are far larger than those of another: what is large is behind a pointer, and Services, of which there
/// are many, are shared with all that know them.
macro_rules! object_from {
    ($($variant:ident($type:ty),)*) => {
        $(
            impl From<$type> for Object {
                fn from(it: $type) -> Self {
                    Self::$variant(it.into())
                }
            }
        )*
    };
}

object_from! {
    Peer(Peer),
    BfdProfile(BfdProfile),
    Pool(Pool),
    BgpAdvertisement(BgpAdvertisement),
    Service(Service),
    ProxyConfiguration(ProxyConfiguration),
}

impl Object {
    /// Its key.
    pub fn key(&self) -> ObjectKey {
        let (kind, name) = match self {
            Self::Peer(it) => (Kind::BgpPeer, it.name.clone()),
            Self::BfdProfile(it) => (Kind::BfdProfile, it.name.clone()),
            Self::Pool(it) => (Kind::IpAddressPool, it.name.clone()),
            Self::BgpAdvertisement(it) => (Kind::BgpAdvertisement, it.name.clone()),
            Self::Layer2Advertisement(it) => (Kind::Layer2Advertisement, it.name.clone()),
            Self::Community(it) => (Kind::Community, it.name.clone()),
            Self::BgpConfiguration(it) => (Kind::BgpConfiguration, it.name.clone()),
            Self::Service(it) => (Kind::Service, it.name.clone()),
            Self::EndpointSlice(it) => (Kind::EndpointSlice, it.name.clone()),
            Self::Node(it) => (Kind::Node, ObjectName::new("", &it.name)),
            Self::Namespace(it) => (Kind::Namespace, ObjectName::new("", &it.name)),
            Self::Secret(it) => (Kind::Secret, it.name.clone()),
            Self::FrrExtras(it) => (Kind::ConfigMap, it.name.clone()),
            Self::ProxiedService(it) => (Kind::Service, it.name.clone()),
            Self::ProxiedSlice(it) => (Kind::EndpointSlice, it.name.clone()),
            Self::ProxyConfiguration(_) => (Kind::ConfigMap, ProxyConfiguration::object_name()),
        };
        ObjectKey { kind, name }
    }
}

/// An object as it is now; `None` if it is in force no more.
pub type ObjectChange = (Arc<ObjectKey>, Option<Arc<Object>>);

/// All facts in force. Iteration order is name order, and so is every list made from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterIndex {
    /// BGPPeers.
    pub peers: BTreeMap<ObjectName, Peer>,
    /// BFDProfiles.
    pub bfd_profiles: BTreeMap<ObjectName, BfdProfile>,
    /// IPAddressPools.
    pub pools: BTreeMap<ObjectName, Pool>,
    /// BGPAdvertisements.
    pub bgp_advertisements: BTreeMap<ObjectName, BgpAdvertisement>,
    /// L2Advertisements.
    pub layer2_advertisements: BTreeMap<ObjectName, Layer2Advertisement>,
    /// Communities.
    pub communities: BTreeMap<ObjectName, CommunityAliases>,
    /// BGPConfigurations.
    pub bgp_configurations: BTreeMap<ObjectName, BgpConfiguration>,
    /// Services of type LoadBalancer.
    pub services: BTreeMap<ObjectName, Arc<Service>>,
    /// EndpointSlices.
    pub endpoint_slices: BTreeMap<ObjectName, EndpointSlice>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// Namespaces by name.
    pub namespaces: BTreeMap<String, Namespace>,
    /// Secrets.
    pub secrets: BTreeMap<ObjectName, Secret>,
    /// ConfigMap `bgpextras`, of which there is one at most.
    pub frr_extras: BTreeMap<ObjectName, FrrExtras>,
    /// Invalid IPAddressPools without an earlier valid version: it is unknown which addresses they
    /// hold.
    pub unknown_pools: BTreeSet<ObjectName>,
    /// The slices of each Service, by the Service's name.
    slices_by_service: BTreeMap<ObjectName, BTreeSet<ObjectName>>,
}

/// Puts `value` under `key`; returns whether that changed anything.
fn put<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: V) -> bool {
    if map.get(&key) == Some(&value) {
        return false;
    }
    map.insert(key, value);
    true
}

impl ClusterIndex {
    /// The labels of a namespace; only its name where no Namespace object describes it.
    pub fn namespace_labels(&self, namespace: &str) -> Cow<'_, Labels> {
        match self.namespaces.get(namespace) {
            Some(known) => Cow::Borrowed(&known.labels),
            None => Cow::Owned(Namespace::new(namespace.to_owned(), Labels::new()).labels),
        }
    }

    /// The EndpointSlices of a Service, in name order.
    pub fn slices_of(&self, service: &ObjectName) -> impl Iterator<Item = &EndpointSlice> {
        let names = self.slices_by_service.get(service).into_iter().flatten();
        names.filter_map(|name| self.endpoint_slices.get(name))
    }

    /// Adds or replaces an object.
    pub fn apply(&mut self, object: Object) -> Changes {
        let key = object.key();
        let is_other = match object {
            Object::Peer(it) => put(&mut self.peers, it.name.clone(), *it),
            Object::BfdProfile(it) => put(&mut self.bfd_profiles, it.name.clone(), *it),
            Object::Pool(it) => put(&mut self.pools, it.name.clone(), *it),
            Object::BgpAdvertisement(it) => put(&mut self.bgp_advertisements, it.name.clone(), *it),
            Object::Layer2Advertisement(it) => {
                put(&mut self.layer2_advertisements, it.name.clone(), it)
            }
            Object::Community(it) => put(&mut self.communities, it.name.clone(), it),
            Object::BgpConfiguration(it) => put(&mut self.bgp_configurations, it.name.clone(), it),
            Object::Service(it) => put(&mut self.services, it.name.clone(), it),
            Object::EndpointSlice(it) => return self.apply_slice(it),
            Object::Node(it) => put(&mut self.nodes, it.name.clone(), it),
            Object::Namespace(it) => put(&mut self.namespaces, it.name.clone(), it),
            Object::Secret(it) => put(&mut self.secrets, it.name.clone(), it),
            Object::FrrExtras(it) => put(&mut self.frr_extras, it.name.clone(), it),
            // The facts of the service proxy, which has an index of its own.
            Object::ProxiedService(_) | Object::ProxiedSlice(_) | Object::ProxyConfiguration(_) => {
                false
            }
        };
        if is_other { Changes::of(key) } else { Changes::default() }
    }

    /// A slice may move from one Service to another; both are affected then.
    fn apply_slice(&mut self, slice: EndpointSlice) -> Changes {
        if self.endpoint_slices.get(&slice.name) == Some(&slice) {
            return Changes::default();
        }
        let mut changes = self.delete_slice(&slice.name);
        let slices = self.slices_by_service.entry(slice.service.clone()).or_default();
        slices.insert(slice.name.clone());
        changes.endpoints.insert(slice.service.clone());
        self.endpoint_slices.insert(slice.name.clone(), slice);
        changes
    }

    fn delete_slice(&mut self, name: &ObjectName) -> Changes {
        let Some(slice) = self.endpoint_slices.remove(name) else { return Changes::default() };
        if let Some(slices) = self.slices_by_service.get_mut(&slice.service) {
            slices.remove(name);
            if slices.is_empty() {
                self.slices_by_service.remove(&slice.service);
            }
        }
        Changes { endpoints: BTreeSet::from([slice.service]), ..Changes::default() }
    }

    /// Removes an object.
    pub fn delete(&mut self, key: &ObjectKey) -> Changes {
        let name = &key.name;
        let was_there = match key.kind {
            Kind::BgpPeer => self.peers.remove(name).is_some(),
            Kind::BfdProfile => self.bfd_profiles.remove(name).is_some(),
            Kind::IpAddressPool => self.pools.remove(name).is_some(),
            Kind::BgpAdvertisement => self.bgp_advertisements.remove(name).is_some(),
            Kind::Layer2Advertisement => self.layer2_advertisements.remove(name).is_some(),
            Kind::Community => self.communities.remove(name).is_some(),
            Kind::BgpConfiguration => self.bgp_configurations.remove(name).is_some(),
            Kind::Service => self.services.remove(name).is_some(),
            Kind::EndpointSlice => return self.delete_slice(name),
            Kind::Node => self.nodes.remove(&name.name).is_some(),
            Kind::Namespace => self.namespaces.remove(&name.name).is_some(),
            Kind::Secret => self.secrets.remove(name).is_some(),
            Kind::ConfigMap => self.frr_extras.remove(name).is_some(),
        };
        if was_there { Changes::of(key.clone()) } else { Changes::default() }
    }

    /// The invalid IPAddressPools without an earlier valid version.
    pub fn set_unknown_pools(&mut self, pools: BTreeSet<ObjectName>) -> Changes {
        if self.unknown_pools == pools {
            return Changes::default();
        }
        self.unknown_pools = pools;
        Changes { kinds: BTreeSet::from([Kind::IpAddressPool]), ..Changes::default() }
    }

    /// Replaces everything: the complete result of a source.
    pub fn reset<O: Borrow<Object>>(&mut self, objects: impl IntoIterator<Item = O>) -> Changes {
        let mut gone: BTreeSet<ObjectKey> = self.keys().collect();
        let mut changes = Changes::default();
        for object in objects {
            gone.remove(&object.borrow().key());
            changes.absorb(self.apply(object.borrow().clone()));
        }
        for key in gone {
            changes.absorb(self.delete(&key));
        }
        changes
    }

    /// Applies the changes of a source that keeps unchanged objects.
    pub fn follow(&mut self, changed: impl IntoIterator<Item = ObjectChange>) -> Changes {
        let mut changes = Changes::default();
        for (key, now) in changed {
            changes.absorb(match now {
                Some(now) => self.apply(Arc::unwrap_or_clone(now)),
                None => self.delete(&key),
            });
        }
        changes
    }

    /// The keys of all objects.
    pub fn keys(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        fn of<V>(kind: Kind, map: &BTreeMap<ObjectName, V>) -> impl Iterator<Item = ObjectKey> {
            map.keys().map(move |name| ObjectKey { kind, name: name.clone() })
        }
        fn cluster_wide<V>(
            kind: Kind,
            map: &BTreeMap<String, V>,
        ) -> impl Iterator<Item = ObjectKey> {
            map.keys().map(move |name| ObjectKey { kind, name: ObjectName::new("", name) })
        }
        of(Kind::BgpPeer, &self.peers)
            .chain(of(Kind::BfdProfile, &self.bfd_profiles))
            .chain(of(Kind::IpAddressPool, &self.pools))
            .chain(of(Kind::BgpAdvertisement, &self.bgp_advertisements))
            .chain(of(Kind::Layer2Advertisement, &self.layer2_advertisements))
            .chain(of(Kind::Community, &self.communities))
            .chain(of(Kind::BgpConfiguration, &self.bgp_configurations))
            .chain(of(Kind::Service, &self.services))
            .chain(of(Kind::EndpointSlice, &self.endpoint_slices))
            .chain(cluster_wide(Kind::Node, &self.nodes))
            .chain(cluster_wide(Kind::Namespace, &self.namespaces))
            .chain(of(Kind::Secret, &self.secrets))
            .chain(of(Kind::ConfigMap, &self.frr_extras))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;

    fn slice(name: &str, service: &str) -> EndpointSlice {
        EndpointSlice {
            name: ObjectName::new("default", name),
            service: ObjectName::new("default", service),
            family: None,
            endpoints: vec![Endpoint { node: None, usable: true }],
        }
    }

    fn node(name: &str) -> Object {
        Object::Node(Node::assumed(name, Vec::new()))
    }

    #[test]
    fn a_slice_that_moves_to_another_service_touches_both() {
        let mut index = ClusterIndex::default();
        let (web, dns) = (ObjectName::new("default", "web"), ObjectName::new("default", "dns"));
        let changes = index.apply(Object::EndpointSlice(slice("a", "web")));
        assert_eq!(changes.endpoints, BTreeSet::from([web.clone()]));
        assert!(index.apply(Object::EndpointSlice(slice("a", "web"))).is_empty());
        let changes = index.apply(Object::EndpointSlice(slice("a", "dns")));
        assert_eq!(changes.endpoints, BTreeSet::from([web.clone(), dns.clone()]));
        assert_eq!(index.slices_of(&web).count(), 0);
        assert_eq!(index.slices_of(&dns).count(), 1);
    }

    #[test]
    fn to_follow_says_the_same_as_to_begin_anew() {
        let mut random = fairway_ground::Rng::seeded(3);
        let (mut following, mut replaced) = (ClusterIndex::default(), ClusterIndex::default());
        let mut known: BTreeMap<ObjectKey, Arc<Object>> = BTreeMap::new();
        for _ in 0..5_000 {
            let mut changed = BTreeMap::new();
            for _ in 0..random.next_u64() % 4 {
                let [one, other, which] = [0; 3].map(|_: i32| random.next_u64() % 5);
                let object = match which % 2 {
                    0 => Object::EndpointSlice(slice(&format!("s{one}"), &format!("w{other}"))),
                    _ => node(&format!("n{one}")),
                };
                let key = object.key();
                let now = (!random.next_u64().is_multiple_of(3)).then(|| Arc::new(object));
                match &now {
                    Some(object) => known.insert(key.clone(), Arc::clone(object)),
                    None => known.remove(&key),
                };
                changed.insert(Arc::new(key), now);
            }
            assert_eq!(following.follow(changed), replaced.reset(known.values().cloned()));
            assert_eq!(following, replaced);
        }
    }

    #[test]
    fn reset_says_what_came_what_changed_and_what_went() {
        let mut index = ClusterIndex::default();
        let changes = index.reset([node("a"), Object::EndpointSlice(slice("s", "web"))]);
        assert_eq!(changes.kinds, BTreeSet::from([Kind::Node]));
        assert!(index.reset([node("a"), Object::EndpointSlice(slice("s", "web"))]).is_empty());
        let changes = index.reset([node("a")]);
        assert!(changes.kinds.is_empty());
        assert_eq!(changes.endpoints, BTreeSet::from([ObjectName::new("default", "web")]));
        let changes = index.reset::<Object>([]);
        assert_eq!(changes.kinds, BTreeSet::from([Kind::Node]));
        assert_eq!(index, ClusterIndex::default());
    }
}
