//! How the allocator behaves: stories, and invariants under random operations.

mod adoption;
mod cooling;
mod random;
mod stories;

use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::AddressFamily;
use fairway_model::{
    AddressRange, ClusterIndex, FamilyPolicy, Kind, Labels, Object, ObjectKey, ObjectName, Pool,
    Service, ServicePort, TrafficPolicy,
};

use super::*;

const V4: AddressFamily = AddressFamily::Ipv4Unicast;
const V6: AddressFamily = AddressFamily::Ipv6Unicast;

fn name(name: &str) -> ObjectName {
    ObjectName::new("default", name)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn pool(called: &str, ranges: &[&str]) -> Pool {
    Pool {
        name: name(called),
        labels: Labels::new(),
        ranges: ranges.iter().map(|range| range.parse::<AddressRange>().unwrap()).collect(),
        auto_assign: true,
        avoid_buggy_addresses: false,
        reserved: Vec::new(),
        allocation: None,
    }
}

fn service(called: &str) -> Service {
    Service {
        name: name(called),
        labels: Labels::new(),
        load_balancer_class: None,
        families: FamilyPolicy::Single(V4),
        requested_addresses: Vec::new(),
        requested_pools: Vec::new(),
        sharing_key: None,
        ports: vec![ServicePort { protocol: "TCP".to_owned(), port: 80 }],
        traffic_policy: TrafficPolicy::Cluster,
        selector: format!("app={called}"),
        status_addresses: Vec::new(),
        health_check: None,
    }
}

fn asking_for(called: &str, addresses: &[&str]) -> Service {
    let requested_addresses = addresses.iter().map(|text| ip(text)).collect();
    Service { requested_addresses, ..service(called) }
}

fn from_pool(called: &str, pool: &str) -> Service {
    Service { requested_pools: vec![pool.to_owned()], ..service(called) }
}

fn from_two(called: &str, pools: [&str; 2], families: FamilyPolicy) -> Service {
    Service { requested_pools: pools.map(str::to_owned).to_vec(), ..wanting(called, families) }
}

fn sharing(called: &str, port: u16) -> Service {
    Service {
        sharing_key: Some("together".to_owned()),
        ports: vec![ServicePort { protocol: "TCP".to_owned(), port }],
        ..service(called)
    }
}

fn wanting(called: &str, families: FamilyPolicy) -> Service {
    Service { families, ..service(called) }
}

/// A cluster and its allocator.
#[derive(Clone, Default)]
struct World {
    index: ClusterIndex,
    allocator: Allocator,
    changes: Changes,
    now: Instant,
    /// The memory on disk.
    copy: MemoryCopy,
    kept: Memory,
}

impl World {
    fn with(pools: impl IntoIterator<Item = Pool>) -> Self {
        let mut world = Self::default();
        world.changes = world.index.reset(pools.into_iter().map(Object::from));
        world
    }

    fn apply(&mut self, object: Object) -> &mut Self {
        self.changes.absorb(self.index.apply(object));
        self
    }

    fn add(&mut self, service: Service) -> &mut Self {
        self.apply(Object::from(service))
    }

    fn pool(&mut self, pool: Pool) -> &mut Self {
        self.apply(Object::from(pool))
    }

    fn delete(&mut self, kind: Kind, called: &str) -> &mut Self {
        let key = ObjectKey { kind, name: name(called) };
        self.changes.absorb(self.index.delete(&key));
        self
    }

    fn remove(&mut self, service: &str) -> &mut Self {
        self.delete(Kind::Service, service)
    }

    fn remove_pools(&mut self) -> &mut Self {
        let pools: Vec<_> = self.index.pools.keys().map(|pool| pool.name.clone()).collect();
        for pool in pools {
            self.delete(Kind::IpAddressPool, &pool);
        }
        self
    }

    /// All neighbours have received the last decisions.
    fn told(&mut self) -> &mut Self {
        self.allocator.withdrawn(self.allocator.last_release());
        self
    }

    fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now = self.now + Duration::from_secs(seconds);
        self
    }

    /// Decides incrementally, and checks that a full pass comes to the same.
    fn converge(&mut self) -> Outcomes {
        let mut full = self.allocator.clone();
        full.pools = None;
        full.converge(self.now, &self.index, &Changes::default());
        let before = self.allocator.outcomes().clone();
        let changes = std::mem::take(&mut self.changes);
        let answer = self.allocator.converge(self.now, &self.index, &changes);
        self.copy.apply(self.allocator.memory_change());
        self.kept = self.copy.memory();
        let now = self.allocator.outcomes();
        let names: BTreeSet<_> = before.keys().chain(now.keys()).cloned().collect();
        let others = names.into_iter().filter(|name| before.get(name) != now.get(name));
        assert_eq!(answer, others.collect());
        assert_eq!(now, full.outcomes());
        assert_eq!(self.kept, self.allocator.memory(), "the memory on disk is incomplete");
        assert_eq!(self.kept, full.memory());
        let waits =
            |it: &Allocator| it.not_withdrawn().map(|(address, ..)| address).collect::<Vec<_>>();
        assert_eq!(waits(&self.allocator), waits(&full));
        full.pools = None;
        let later = full.converge(self.now, &self.index, &Changes::default());
        assert_eq!(later, BTreeSet::new(), "a second pass changed something");
        assert_eq!(self.allocator.memory().assignments, full.memory().assignments);
        now.clone()
    }

    fn restart(&mut self) -> &mut Self {
        self.allocator = Allocator::restore(None, self.allocator.memory());
        self
    }

    /// Converges and returns a Service's outcome: its addresses, or else the reason.
    fn got(&mut self, called: &str) -> String {
        let outcome = self.converge().remove(&name(called)).unwrap();
        let mut parts: Vec<_> = outcome.addresses.iter().map(IpAddr::to_string).collect();
        parts.extend(outcome.reason.map(|reason| reason.to_string()));
        parts.join(" | ")
    }
}
