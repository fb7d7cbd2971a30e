//! A plan that is kept up to date equals a new plan of the same facts.

use fairway_ground::Rng;
use fairway_model::{
    Bandwidth, Changes, Deliveries, Delivery, DeliveryUpdate, FrrExtras, Layer2Advertisement,
    PreferredNodes,
};

use super::*;

/// Changes, one or a few at a time, each followed by a comparison.
const CHANGES: usize = 10_000;
const SERVICES: u64 = 12;

/// A small cluster in which anything may change.
struct World {
    random: Rng,
    index: ClusterIndex,
    allocator: Allocator,
    planner: NodePlanner,
    node: Node,
    local: Local,
    /// What a service proxy says, once one is followed.
    deliveries: Option<Deliveries>,
}

impl World {
    fn new(seed: u64) -> Self {
        let node = node("n1");
        Self {
            random: Rng::seeded(seed),
            index: ClusterIndex::default(),
            allocator: Allocator::default(),
            planner: NodePlanner::new(node.clone(), OPTIONS),
            node,
            local: Local::default(),
            deliveries: None,
        }
    }

    fn below(&mut self, count: u64) -> u64 {
        self.random.next_u64() % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn any<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(u64::try_from(of.len()).unwrap())).unwrap()].clone()
    }

    fn any_name(&mut self, letter: char, count: u64) -> String {
        format!("{letter}{}", self.below(count))
    }

    /// Mostly Services and endpoints, as in a cluster.
    fn change(&mut self) -> Changes {
        let object = match self.below(40) {
            0 => Object::from(self.any_peer()),
            1 => Object::from(self.any_pool()),
            2 => Object::from(self.any_advertisement()),
            3 => Object::Layer2Advertisement(self.any_layer2_advertisement()),
            4 => Object::Node(self.any_node()),
            5..20 => Object::from(self.any_service()),
            20 => Object::FrrExtras(FrrExtras {
                name: name("bgpextras"),
                text: self.any_name('x', 3),
            }),
            _ => Object::EndpointSlice(self.any_slice()),
        };
        if self.one_in(5) { self.index.delete(&object.key()) } else { self.index.apply(object) }
    }

    fn any_peer(&mut self) -> Peer {
        let number = self.below(3);
        let node_selectors =
            if self.one_in(4) { selecting("kubernetes.io/hostname=n2") } else { Vec::new() };
        let peer = peer(&format!("p{number}"), &format!("192.0.2.{number}"));
        let gateway = Remote::DefaultGateway(V4);
        let remote = if number == 0 && self.one_in(2) { gateway } else { peer.remote };
        Peer { node_selectors, remote, ..peer }
    }

    fn any_pool(&mut self) -> Pool {
        let number = self.below(2);
        let (wide, narrow) = (format!("10.{number}.0.0/24"), format!("10.{number}.0.0/30"));
        let six = format!("2001:db8:{number}::/64");
        let ipv4 = if self.one_in(3) { narrow } else { wide };
        pool(&format!("pool{number}"), &[&ipv4, &six])
    }

    fn any_advertisement(&mut self) -> BgpAdvertisement {
        let called = self.any_name('a', 4);
        let service_selectors = if self.one_in(2) { selecting("tier=1") } else { Vec::new() };
        let peers = self.any(&[&[][..], &["p0"], &["p1", "p2"], &["gone"]]);
        let length = self.any(&[32, 32, 28, 24]);
        let aggregation_length_ipv6 = self.any(&[128, 64]);
        let local_pref = self.any(&[None, None, Some(100), Some(200)]);
        let link_bandwidth = self.any(&[None, None, Some(Bandwidth::Auto)]);
        let pools = if self.one_in(3) { names(&["pool0"]) } else { BTreeSet::new() };
        let prefixes = if self.one_in(3) { vec![prefix("10.0.0.0/28")] } else { Vec::new() };
        BgpAdvertisement {
            aggregation_length_ipv4: length,
            aggregation_length_ipv6,
            local_pref,
            link_bandwidth,
            pools,
            service_selectors,
            peers: names(peers),
            pod_blocks: !prefixes.is_empty(),
            prefixes,
            ..advertisement(&called)
        }
    }

    fn any_layer2_advertisement(&mut self) -> Layer2Advertisement {
        let preference = selecting("kubernetes.io/hostname=n1").remove(0);
        Layer2Advertisement {
            name: name(&self.any_name('l', 2)),
            pools: if self.one_in(2) { names(&["pool0"]) } else { BTreeSet::new() },
            pool_selectors: Vec::new(),
            node_selectors: Vec::new(),
            service_selectors: if self.one_in(3) { selecting("tier=1") } else { Vec::new() },
            interfaces: names(self.any(&[&[][..], &["eth0"], &["eth1", "eth2"]])),
            preferred_nodes: vec![PreferredNodes { weight: 1, preference }],
            bind: self.one_in(3),
        }
    }

    fn any_node(&mut self) -> Node {
        let mut node = node(&self.any_name('n', 3));
        node.network_unavailable = self.one_in(5);
        node
    }

    fn any_service(&mut self) -> Service {
        let called = self.any_name('s', SERVICES);
        let tier = self.below(2);
        let port = u16::try_from(self.below(4)).unwrap();
        Service {
            labels: labels(&format!("tier={tier}")),
            families: self.any(&[FamilyPolicy::Single(V4), FamilyPolicy::PreferDual(V4)]),
            requested_pools: self.any(&[vec![], vec![], vec!["pool1".to_owned()]]),
            sharing_key: self.any(&[None, Some("key".to_owned())]),
            ports: vec![ServicePort { protocol: "TCP".to_owned(), port }],
            traffic_policy: self.any(&[TrafficPolicy::Cluster, TrafficPolicy::Local]),
            ..service(&called)
        }
    }

    fn any_slice(&mut self) -> EndpointSlice {
        let (of, other) = (self.any_name('s', SERVICES), self.any_name('s', SERVICES));
        let endpoints = self.any(&["n1", "n1 n2", "n2", "!n1", "", "n1 n1 n1"]);
        // A slice may be moved to another Service.
        let service = if self.one_in(10) { other } else { of.clone() };
        slice(&of, &service, endpoints)
    }

    fn any_local(&mut self) -> Local {
        let failing = self.any_name('s', SERVICES);
        let pending = self.any_name('s', SERVICES);
        let has_pods = failing == "s0";
        let pod_blocks = has_pods.then(|| (prefix("10.9.0.0/26"), "pods".to_owned()));
        let pod_blocks = pod_blocks.into_iter().collect();
        Local {
            pod_blocks,
            failing: [(name(&failing), "refused".to_owned())].into(),
            pending: [name(&pending)].into(),
            interfaces: self.any(&[None, Some("eth0"), Some("eth1")]).map(|it| names(&[it])),
            gateways: self
                .any(&[None, Some("192.0.2.250"), Some("192.0.2.251")])
                .map(|it| [((None, V4), ip(it))].into()),
        }
    }

    /// The proxy says something else of one address or of all. Returns the Services that this concerns.
    fn hear(&mut self) -> BTreeSet<ObjectName> {
        let service = name(&self.any_name('s', SERVICES));
        let addresses = self.allocator.outcomes().get(&service).map(|it| it.addresses.clone());
        let delivered = Delivery::Delivered;
        let obstructed = Delivery::Obstructed("no space".to_owned());
        let says = self.any(&[None, Some(obstructed), Some(delivered.clone()), Some(delivered)]);
        let is_all = self.one_in(4) || self.deliveries.is_none();
        let deliveries = self.deliveries.get_or_insert_default();
        for address in addresses.unwrap_or_default() {
            let of_address = deliveries.entry(address).or_default();
            match says.clone() {
                Some(delivery) => of_address.insert(service.clone(), delivery),
                None => of_address.remove(&service),
            };
        }
        let deliveries = deliveries.clone();
        self.planner.follow_data_path(if is_all {
            DeliveryUpdate::All(deliveries)
        } else {
            DeliveryUpdate::Changed(deliveries)
        })
    }

    /// One change or a few, with all consequences. Returns how many.
    fn step(&mut self, number: usize) -> usize {
        let (mut changes, mut count) = (self.change(), 1);
        while self.one_in(2) {
            let more = self.change();
            changes.absorb(more);
            count += 1;
        }
        let other = self.allocator.converge(Instant::ZERO, &self.index, &changes);
        self.node = self.index.nodes.get("n1").cloned().unwrap_or_else(|| node("n1"));
        self.planner.set_node(self.node.clone());
        if self.one_in(20) {
            self.local = self.any_local();
            self.planner.set_local(self.local.clone());
        }
        let before = self.planner.plan().clone();
        let mut changes = PlanChanges::of(&changes, other);
        // In half of the run a proxy is followed.
        if number >= CHANGES / 2 {
            changes.services.extend(self.hear());
        }
        let update = self.planner.update(&self.index, self.allocator.outcomes(), &changes);
        let mut whole = NodePlanner::new(self.node.clone(), OPTIONS);
        whole.set_local(self.local.clone());
        if let Some(deliveries) = self.deliveries.clone() {
            whole.follow_data_path(DeliveryUpdate::All(deliveries));
        }
        whole.make(&self.index, self.allocator.outcomes());
        let expected = whole.into_plan();
        let now = self.planner.plan();
        assert_eq!(*now, expected, "after change {number}: {changes:?}");
        assert!(now.routes.is_sorted_by_key(|route| route.prefix));
        assert_update(&before, now, &update, number);
        count
    }
}

/// The update reports exactly what changed.
fn assert_update(before: &NodePlan, now: &NodePlan, update: &PlanUpdate, number: usize) {
    let PlanDiff { routes, sessions } = diff(before, now);
    assert_eq!((&update.routes, &update.sessions), (&routes, &sessions), "change {number}");
    assert_eq!(update.layer2, before.layer2 != now.layer2, "change {number}");
    assert_eq!(update.extras, before.extras != now.extras, "change {number}");
    let all: BTreeSet<_> = before.services.keys().chain(now.services.keys()).collect();
    for name in all {
        let (was, is) = (before.services.get(name), now.services.get(name));
        let said = update.services.get(name);
        let expected = (was != is).then(|| was.cloned());
        assert_eq!(said, expected.as_ref(), "{name}, change {number}");
    }
}

#[test]
fn after_every_change_the_plan_is_the_one_made_of_all_facts() {
    let seed = std::env::var("FAIRWAY_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(7);
    let mut world = World::new(seed);
    let (mut routes, mut conflicts, mut answers, mut extras) = (0, 0, 0, 0);
    let mut undelivered = 0;
    let mut number = 0;
    while number < CHANGES {
        number += world.step(number);
        let plan = world.planner.plan();
        routes += plan.routes.len();
        answers += plan.layer2.len();
        extras += usize::from(plan.extras.is_some());
        let reasons = plan.services.values().flat_map(|it| it.reasons());
        let words: Vec<_> = reasons.map(Reason::word).collect();
        conflicts += words.iter().filter(|it| **it == "conflictingAdvertisements").count();
        undelivered += words.iter().filter(|it| **it == "notDelivered").count();
    }
    // A world without events proves nothing.
    assert!(routes > CHANGES && conflicts > CHANGES / 20 && answers > CHANGES / 20 && extras > 0);
    assert!(undelivered > CHANGES / 20);
}
