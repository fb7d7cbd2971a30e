//! How the allocator behaves: stories, and invariants under random operations.

mod random;
mod stories;

use std::net::IpAddr;

use fairway_sessions::types::AddressFamily;

use crate::model::{
    AddressRange, ClusterIndex, FamilyPolicy, Labels, Object, ObjectName, Pool, Service,
    ServicePort, TrafficPolicy,
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
        requested_pool: None,
        sharing_key: None,
        ports: vec![ServicePort { protocol: "TCP".to_owned(), port: 80 }],
        traffic_policy: TrafficPolicy::Cluster,
        selector: format!("app={called}"),
        status_addresses: Vec::new(),
    }
}

fn asking_for(called: &str, addresses: &[&str]) -> Service {
    let requested_addresses = addresses.iter().map(|text| ip(text)).collect();
    Service { requested_addresses, ..service(called) }
}

fn from_pool(called: &str, pool: &str) -> Service {
    Service { requested_pool: Some(pool.to_owned()), ..service(called) }
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
#[derive(Default)]
struct World {
    index: ClusterIndex,
    allocator: Allocator,
}

impl World {
    fn with(pools: impl IntoIterator<Item = Pool>) -> Self {
        let mut world = Self::default();
        world.index.reset(pools.into_iter().map(Object::Pool));
        world
    }

    fn add(&mut self, service: Service) -> &mut Self {
        self.index.apply(Object::Service(service));
        self
    }

    fn pool(&mut self, pool: Pool) -> &mut Self {
        self.index.apply(Object::Pool(pool));
        self
    }

    fn converge(&mut self) -> Outcomes {
        self.allocator.converge(Instant::ZERO, &self.index, &Changes::default());
        self.allocator.outcomes().clone()
    }

    fn restart(&mut self) {
        self.allocator = Allocator::restore(None, self.allocator.memory());
    }

    /// Converges and says what a Service got: its addresses, or else the reason.
    fn got(&mut self, called: &str) -> String {
        let outcome = self.converge().remove(&name(called)).unwrap();
        let mut parts: Vec<_> = outcome.addresses.iter().map(IpAddr::to_string).collect();
        parts.extend(outcome.reason.map(|reason| reason.to_string()));
        parts.join(" | ")
    }
}
