//! How long do 10,000 Services with five endpoints each take, from facts to operations, and how long one change?
//!
//! The kernel's own time is not in it: every operation succeeds at once.

#![allow(clippy::unwrap_used)] // What fails here fails the measurement.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fairway_ground::{AddressFamily, Instant};
use fairway_model::{
    Object, ObjectChange, ObjectName, ProxiedEndpoint, ProxiedPort, ProxiedService, ProxiedSlice,
    SlicePort, TrafficPolicy, TransportProtocol,
};
use fairway_proxy::{Kernel, Outcome, Place, Planner, Reconciler, ReconcilerOptions};

const SERVICES: u32 = 10_000;
const ENDPOINTS: u32 = 5;

fn name(number: u32) -> ObjectName {
    ObjectName::new("default", format!("service-{number}"))
}

fn service(number: u32) -> Object {
    let first = u32::from(Ipv4Addr::new(10, 96, 0, 0));
    Object::ProxiedService(Box::new(ProxiedService {
        name: name(number),
        cluster_addresses: vec![IpAddr::V4((first + number).into())],
        external_addresses: Vec::new(),
        balancer_addresses: Vec::new(),
        source_ranges: Vec::new(),
        ports: vec![ProxiedPort {
            name: String::new(),
            protocol: TransportProtocol::Tcp,
            port: 80,
            node_port: None,
        }],
        affinity: None,
        external_policy: TrafficPolicy::Cluster,
        internal_policy: TrafficPolicy::Cluster,
        health_check_port: None,
        scheduler: None,
    }))
}

/// The endpoints of a Service, from the one of this number on.
fn slice(number: u32, from: u32) -> Object {
    let first = u32::from(Ipv4Addr::new(10, 128, 0, 0));
    let endpoint = |it: u32| ProxiedEndpoint {
        address: IpAddr::V4((first + number * 16 + it).into()),
        node: Some(format!("node-{}", it % 3)),
        is_ready: true,
        is_serving: true,
        is_terminating: false,
        node_hints: Vec::new(),
        zone_hints: Vec::new(),
    };
    Object::ProxiedSlice(ProxiedSlice {
        name: name(number),
        service: name(number),
        family: AddressFamily::Ipv4Unicast,
        triggered_at: None,
        ports: vec![SlicePort {
            name: String::new(),
            protocol: TransportProtocol::Tcp,
            port: 8080,
        }],
        endpoints: (from..from + ENDPOINTS).map(endpoint).collect(),
    })
}

fn changes(objects: impl IntoIterator<Item = Object>) -> Vec<ObjectChange> {
    objects.into_iter().map(|it| (Arc::new(it.key()), Some(Arc::new(it)))).collect()
}

fn place() -> Place {
    Place { node: "node-0".to_owned(), ..Place::default() }
}

/// Until nothing is to be done; returns how many operations that took.
fn settle(reconciler: &mut Reconciler, planner: &Planner) -> usize {
    let mut count = 0;
    loop {
        let operations = reconciler.next_batch(planner.wanted(), Instant::ZERO).len();
        if operations == 0 {
            return count;
        }
        count += operations;
        let outcomes = vec![Outcome::Done; operations];
        reconciler.finish(outcomes, planner.wanted(), Instant::ZERO);
    }
}

fn cold(objects: &[ObjectChange]) -> (Planner, Reconciler) {
    let mut planner = Planner::new(place());
    planner.follow(objects.iter().cloned());
    let mut reconciler = Reconciler::new(ReconcilerOptions::default(), Some(Default::default()));
    reconciler.observe(Kernel::default(), planner.wanted());
    reconciler.complete(planner.wanted());
    settle(&mut reconciler, &planner);
    (planner, reconciler)
}

fn measure(criterion: &mut Criterion) {
    let objects = changes((0..SERVICES).flat_map(|it| [service(it), slice(it, 0)]));
    let mut group = criterion.benchmark_group("10,000 Services with 5 endpoints");
    group.sample_size(10);
    group.bench_function("cold start, planned and reconciled", |bencher| {
        bencher.iter(|| cold(&objects));
    });
    // In place: a copy of everything would be the measurement.
    let (mut planner, mut reconciler) = cold(&objects);
    let mut number = 0_u32;
    group.sample_size(100);
    group.bench_function("one endpoint replaced, planned and reconciled", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                changes([slice(4_711, number % 8)])
            },
            |change| {
                let touched = planner.follow(change);
                reconciler.touch(&touched);
                settle(&mut reconciler, &planner)
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, measure);
criterion_main!(benches);
