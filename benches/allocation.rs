//! Cost of one address allocation, by the number of addresses in use.
//!
//! `cargo bench --bench allocation`. Every figure is one call of the allocator after one Service was created
//! (or deleted), in a pool with that many others. A million of them need 2 GiB of memory.

#![allow(clippy::unwrap_used)] // What fails here fails the benchmark.
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use std::hint::black_box;
use std::net::IpAddr;
use std::time::{Duration, Instant as Stopwatch};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fairway_allocator::Allocator;
use fairway_ground::{AddressFamily, Instant};
use fairway_model::{
    AddressRange, Changes, ClusterIndex, FamilyPolicy, Kind, Labels, Object, ObjectKey, ObjectName,
    Pool, Service, ServicePort, TrafficPolicy,
};

const SIZES: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// After this time no address is cooling any more.
const COOLED: Duration = Duration::from_secs(61);

/// What makes it harder to find the lowest free address.
#[derive(Clone, Copy)]
enum Terrain {
    /// Only the addresses in use.
    Dense,
    /// Every second address is reserved.
    Reserved,
    /// .0 and .255 are avoided.
    Buggy,
    /// Every second address was just released.
    Cooling,
    /// Ten Services share each address.
    Shared,
}

struct World {
    index: ClusterIndex,
    allocator: Allocator,
    now: Instant,
}

fn name(number: u32) -> ObjectName {
    ObjectName::new("default", format!("service-{number:07}"))
}

fn service(number: u32, family: AddressFamily, terrain: Terrain) -> Service {
    let is_shared = matches!(terrain, Terrain::Shared);
    let port = if is_shared { u16::try_from(number % 10).unwrap() + 1 } else { 80 };
    Service {
        name: name(number),
        labels: Labels::new(),
        load_balancer_class: None,
        families: FamilyPolicy::Single(family),
        requested_addresses: Vec::new(),
        requested_pools: Vec::new(),
        sharing_key: is_shared.then(|| format!("group-{}", number / 10)),
        ports: vec![ServicePort { protocol: "TCP".to_owned(), port }],
        traffic_policy: TrafficPolicy::Cluster,
        selector: String::new(),
        status_addresses: Vec::new(),
        health_check: None,
    }
}

impl World {
    /// A cluster with `count` Services with one address each.
    fn new(count: u32, family: AddressFamily, terrain: Terrain) -> Self {
        let prefix = match family {
            AddressFamily::Ipv4Unicast => "10.0.0.0/8",
            AddressFamily::Ipv6Unicast => "2001:db8::/64",
        };
        let range: AddressRange = prefix.parse().unwrap();
        let every_second = |number: u32| {
            let address: IpAddr = range.nth(u128::from(number) * 2).unwrap();
            format!("{address}-{address}").parse().unwrap()
        };
        let reserved = match terrain {
            Terrain::Reserved => (0..count).map(every_second).collect(),
            _ => Vec::new(),
        };
        let pool = Pool {
            name: ObjectName::new("metallb-system", "all"),
            labels: Labels::new(),
            ranges: vec![range],
            auto_assign: true,
            avoid_buggy_addresses: matches!(terrain, Terrain::Buggy),
            reserved,
            allocation: None,
        };
        let mut world = Self {
            index: ClusterIndex::default(),
            allocator: Allocator::default(),
            now: Instant::ZERO,
        };
        world.index.apply(Object::from(pool));
        for number in 0..count {
            world.index.apply(Object::from(service(number, family, terrain)));
        }
        world.converge(&Changes::default());
        if matches!(terrain, Terrain::Cooling) {
            let mut changes = Changes::default();
            for number in (0..count).step_by(2) {
                changes.absorb(world.delete(number));
            }
            world.converge(&changes);
        }
        world
    }

    fn delete(&mut self, number: u32) -> Changes {
        self.index.delete(&ObjectKey { kind: Kind::Service, name: name(number) })
    }

    fn converge(&mut self, changes: &Changes) {
        black_box(self.allocator.converge(self.now, &self.index, changes));
    }

    /// Creates one Service; returns how long it takes until it has an address. Then deletes it.
    fn allocate(&mut self, number: u32, family: AddressFamily, terrain: Terrain) -> Duration {
        let changes = self.index.apply(Object::from(service(number, family, terrain)));
        let start = Stopwatch::now();
        self.converge(&changes);
        let taken = start.elapsed();
        assert!(!self.allocator.outcomes()[&name(number)].is_pending());
        self.release(number);
        taken
    }

    fn release(&mut self, number: u32) {
        let changes = self.delete(number);
        self.converge(&changes);
        self.allocator.withdrawn(self.allocator.last_release());
    }
}

fn allocation(criterion: &mut Criterion) {
    let ipv4 = AddressFamily::Ipv4Unicast;
    let terrains = [
        ("in a /8", ipv4, Terrain::Dense),
        ("in a /64", AddressFamily::Ipv6Unicast, Terrain::Dense),
        ("in a /8, every second reserved", ipv4, Terrain::Reserved),
        ("in a /8, avoidBuggyIPs", ipv4, Terrain::Buggy),
        ("in a /8, every second cooling", ipv4, Terrain::Cooling),
        ("of a shared address", ipv4, Terrain::Shared),
    ];
    for (called, family, terrain) in terrains {
        let mut group = criterion.benchmark_group(format!("one allocation {called}"));
        for count in SIZES {
            let mut world = World::new(count, family, terrain);
            let mut number = count;
            if matches!(terrain, Terrain::Shared) {
                // One of those that share an address, so that there is room for it again.
                number = count / 2;
                world.release(number);
            }
            let id = BenchmarkId::from_parameter(count);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|times| {
                    (0..times)
                        .map(|_| {
                            if matches!(terrain, Terrain::Cooling) {
                                // Another one each time: a Service that comes back needs no search.
                                number += 1;
                            } else {
                                world.now = world.now + COOLED;
                            }
                            world.allocate(number, family, terrain)
                        })
                        .sum()
                });
            });
        }
        group.finish();
    }
}

/// One Service is deleted, the withdrawal is written, and another is created.
fn exchange(criterion: &mut Criterion) {
    let (family, terrain) = (AddressFamily::Ipv4Unicast, Terrain::Dense);
    let mut group = criterion.benchmark_group("release and allocation");
    for count in SIZES {
        let mut world = World::new(count, family, terrain);
        let mut present = count - 1;
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                world.now = world.now + COOLED;
                world.release(present);
                present = if present < count { count } else { count - 1 };
                let new = service(present, family, terrain);
                let changes = world.index.apply(Object::from(new));
                world.converge(&changes);
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = allocation, exchange
}
criterion_main!(benches);
