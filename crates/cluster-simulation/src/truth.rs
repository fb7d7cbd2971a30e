//! The actual state of the API server as the rules see it, and how it was recently.
//!
//! Knows neither processes nor routers. Follows every change at once, without a network between, and
//! remembers every valid version. Where an object is invalid, processes that remember less may see a
//! different state (`is_disputed`); the rules allow for that, and only there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_allocator::{Outcome, Outcomes, PoolLookup};
use fairway_cluster::{InForce, ObjectText, status_addresses};
use fairway_ground::{Instant, PeerKey, Prefix};
use fairway_model::{Changes, ClusterIndex, Kind, ObjectKey, ObjectName, Service, TrafficPolicy};
use fairway_plan::{self as plan, AttributeDefaults, NodePlan, PlanOptions};
use fairway_resources::{self as resources, Finding};
use serde_json::Value;

use crate::objects::node_name;

/// How old the state may be that a process decides by: the slowest watch that is not broken, and one
/// that broke and was restored.
pub(crate) const GRACE: Duration = Duration::from_secs(14);

/// The plan options of speakers in a cluster.
const OPTIONS: PlanOptions = PlanOptions {
    ignore_exclude_label: false,
    unsliced_services_are_served: false,
    attribute_defaults: AttributeDefaults { local_pref: None, med: None },
};

/// Since when an address is unassigned, and its last holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) former: ObjectName,
    /// As it was then.
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) at: Instant,
}

/// The actual state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    in_force: InForce,
    pub(crate) index: Arc<ClusterIndex>,
    /// Until when an object was invalid; [`FOREVER`] while one is.
    disputed_until: Option<Instant>,
    /// Services as they are stored.
    pub(crate) services: BTreeMap<ObjectName, Arc<Value>>,
    /// Earlier states, with the end of each; no older than [`GRACE`].
    recent: VecDeque<(Instant, Arc<ClusterIndex>)>,
    /// The Services with the address in their status.
    pub(crate) users: BTreeMap<IpAddr, BTreeSet<ObjectName>>,
    pub(crate) released: BTreeMap<IpAddr, Released>,
    /// Until when an address was both in a status and in a pool; [`FOREVER`] where it is.
    allowed_until: BTreeMap<IpAddr, Instant>,
    /// What each node should announce to which peer, and since when.
    wanted: Vec<BTreeMap<(Prefix, PeerKey), Instant>>,
    pub(crate) plans: Vec<NodePlan>,
    /// When an object changed that sessions depend on.
    pub(crate) sessions_changed: BTreeMap<ObjectKey, Instant>,
}

const FOREVER: Instant = Instant::from_micros(u64::MAX);

impl Truth {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            wanted: vec![BTreeMap::new(); nodes],
            plans: vec![NodePlan::default(); nodes],
            ..Self::default()
        }
    }

    /// An object was added or changed.
    pub(crate) fn applied(&mut self, now: Instant, value: &Arc<Value>) {
        let Some(key) = resources::parse_value(value).key else { return };
        self.keep(now);
        if key.kind == Kind::Service {
            self.name(now, &key.name, status_addresses(value));
            self.services.insert(key.name.clone(), Arc::clone(value));
        }
        let changes = self.in_force.read(key.kind, &ObjectText::from(&**value));
        self.settle(now, key, changes);
    }

    /// An object was deleted.
    pub(crate) fn deleted(&mut self, now: Instant, key: &ObjectKey) {
        self.keep(now);
        if key.kind == Kind::Service {
            self.name(now, &key.name, BTreeSet::new());
            self.services.remove(&key.name);
        }
        let changes = self.in_force.gone(key);
        self.settle(now, key.clone(), changes);
    }

    fn settle(&mut self, now: Instant, key: ObjectKey, mut changes: Changes) {
        changes.absorb(self.in_force.settle());
        self.index = Arc::clone(self.in_force.index());
        match self.in_force.findings().iter().any(Finding::is_fault) {
            true => self.disputed_until = Some(FOREVER),
            false if self.disputed_until == Some(FOREVER) => self.disputed_until = Some(now),
            false => {}
        }
        // Processes may have other versions in force than this.
        if !changes.is_empty() || self.disputed_until == Some(FOREVER) {
            self.changed(now, key);
        }
    }

    /// Whether an object is invalid, or was within `grace`: what is in force then depends on what a
    /// process has received.
    pub(crate) fn is_disputed(&self, now: Instant, grace: Duration) -> bool {
        self.disputed_until.is_some_and(|until| until == FOREVER || until + grace >= now)
    }

    fn keep(&mut self, now: Instant) {
        self.recent.push_back((now, Arc::clone(&self.index)));
        while self.recent.front().is_some_and(|(until, _)| *until + GRACE < now) {
            self.recent.pop_front();
        }
    }

    fn name(&mut self, now: Instant, service: &ObjectName, addresses: BTreeSet<IpAddr>) {
        self.users.retain(|address, users| {
            if !addresses.contains(address) && users.remove(service) && users.is_empty() {
                let former = service.clone();
                let service = self.index.services.get(service).cloned();
                self.released.insert(*address, Released { former, service, at: now });
            }
            !users.is_empty()
        });
        for address in addresses {
            self.users.entry(address).or_default().insert(service.clone());
        }
    }

    fn changed(&mut self, now: Instant, key: ObjectKey) {
        let index = Arc::clone(&self.index);
        let pools = PoolLookup::new(&index);
        let is_disputed = self.is_disputed(now, GRACE);
        let is_allowed = |it: IpAddr| is_disputed || pools.offering(it).is_some();
        let allowed: BTreeSet<IpAddr> =
            self.users.keys().copied().filter(|it| is_allowed(*it)).collect();
        for (address, until) in &mut self.allowed_until {
            if *until == FOREVER && !allowed.contains(address) {
                *until = now;
            }
        }
        self.allow_overlaps(now, &pools);
        self.allowed_until.extend(allowed.into_iter().map(|address| (address, FOREVER)));
        if matches!(key.kind, Kind::BgpPeer | Kind::Node | Kind::Secret) {
            self.sessions_changed.insert(key, now);
        }
        let outcomes = outcomes(&index, &pools);
        for (number, (wanted, plan)) in self.wanted.iter_mut().zip(&mut self.plans).enumerate() {
            *plan = match index.nodes.get(&node_name(number)) {
                Some(node) => plan::for_node(&index, &outcomes, node, OPTIONS),
                None => NodePlan::default(),
            };
            let routes = plan.routes.iter();
            let now_wanted: BTreeSet<(Prefix, PeerKey)> = routes
                .flat_map(|route| route.peers.iter().map(|peer| (route.prefix, *peer)))
                .collect();
            wanted.retain(|route, _| now_wanted.contains(route));
            for route in now_wanted {
                wanted.entry(route).or_insert(now);
            }
        }
    }

    /// A status and a pool that never overlapped in time, but that a process may have seen together.
    fn allow_overlaps(&mut self, now: Instant, pools: &PoolLookup<'_>) {
        let lately = |it: &Instant| *it + GRACE >= now;
        let released = self.released.iter().map(|(address, it)| (*address, it.at));
        let named = self.users.keys().map(|address| (*address, now));
        for (address, named_until) in released.filter(|(_, at)| lately(at)).chain(named) {
            let held = |(_, index): &&(Instant, Arc<ClusterIndex>)| {
                index.pools.values().any(|pool| pool.contains(address))
            };
            let held_until = match pools.offering(address) {
                Some(_) => Some(now),
                None => self.recent.iter().rev().find(held).map(|(until, _)| *until),
            };
            if let Some(held_until) = held_until.filter(lately) {
                let until = self.allowed_until.entry(address).or_insert(Instant::ZERO);
                *until = (*until).max(named_until.min(held_until));
            }
        }
    }

    /// Since when a node should announce a prefix to a router.
    pub(crate) fn wanted_since(&self, node: usize, prefix: Prefix, peer: usize) -> Option<Instant> {
        let wanted = self.wanted.get(node)?;
        let mut routes = wanted.iter().filter(|((it, _), _)| *it == prefix);
        let of_peer = |key: &PeerKey| crate::router::router_of(key) == Some(peer);
        routes.find(|((_, key), _)| of_peer(key)).map(|(_, since)| *since)
    }

    /// What a node should announce, with the number of each router.
    pub(crate) fn wanted(&self, node: usize) -> BTreeSet<(Prefix, usize)> {
        let wanted = self.wanted.get(node).into_iter().flat_map(BTreeMap::keys);
        wanted.filter_map(|(prefix, key)| Some((*prefix, crate::router::router_of(key)?))).collect()
    }

    /// Until when a node might announce this prefix: an address of a Service in a pool, or one that
    /// an advertisement names. `None`: never.
    pub(crate) fn allowed_until(&self, prefix: Prefix) -> Option<Instant> {
        let advertisements = self.index.bgp_advertisements.values();
        if advertisements.flat_map(|it| &it.prefixes).any(|it| *it == prefix) {
            return Some(FOREVER);
        }
        if prefix.to_string().starts_with("100.64.") {
            return Some(Instant::ZERO); // Once it was; the end of the box checks whether it still is.
        }
        self.allowed_until.get(&prefix.address()).copied()
    }

    /// Whether everything that a controller decides by was actual recently, each kind for itself:
    /// watches are independent.
    pub(crate) fn was_so_lately(&self, belief: &ClusterIndex) -> bool {
        self.lately().any(|index| index.pools == belief.pools)
            && self.lately().any(|index| index.services == belief.services)
            && self.lately().any(|index| index.namespaces == belief.namespaces)
    }

    /// The states from now back to [`GRACE`] ago.
    pub(crate) fn lately(&self) -> impl Iterator<Item = &Arc<ClusterIndex>> {
        self.recent.iter().map(|(_, index)| index).chain([&self.index])
    }
}

/// The statuses as outcomes, for the plan.
pub(crate) fn outcomes(index: &ClusterIndex, pools: &PoolLookup<'_>) -> Outcomes {
    let ours = index.services.values().filter(|it| it.load_balancer_class.is_none());
    let outcome = |service: &Service| {
        let addresses = service.status_addresses.clone();
        let pool = addresses.first().and_then(|it| pools.holding(*it));
        Outcome { pool: pool.map(|it| it.name.name.clone()), addresses, reason: None }
    };
    ours.map(|service| (service.name.clone(), outcome(service))).collect()
}

/// Whether two Services may have the same address.
pub(crate) fn may_share(one: &Service, other: &Service) -> bool {
    let are_alike = match (one.traffic_policy, other.traffic_policy) {
        (TrafficPolicy::Cluster, TrafficPolicy::Cluster) => true,
        (TrafficPolicy::Local, TrafficPolicy::Local) => one.selector == other.selector,
        _ => false,
    };
    one.sharing_key.is_some()
        && one.sharing_key == other.sharing_key
        && are_alike
        && one.ports.iter().all(|port| !other.ports.contains(port))
}
