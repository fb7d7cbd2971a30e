//! Cost of a plan: complete, and after one change; and its memory.
//!
//! `cargo bench --bench plan`. One Service in ten has traffic policy Local; each has a slice with an endpoint
//! on three nodes. "layer 2" has an L2Advertisement in addition to the BGPAdvertisement.

#![allow(clippy::unwrap_used)] // What fails here fails the benchmark.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group};
use fairway_allocator::{self as allocator, Outcomes};
use fairway_ground::AddressFamily;
use fairway_model::{Changes, ClusterIndex, Endpoint, EndpointSlice, Node, Object, ObjectName};
use fairway_plan::{NodePlanner, PlanChanges, PlanOptions, for_node};
use fairway_resources::parse_value;
use serde_json::{Value, json};

const SIZES: [usize; 3] = [100, 1_000, 10_000];
const NODES: usize = 100;

fn name(name: impl Into<String>) -> ObjectName {
    ObjectName::new("default", name)
}

fn node_name(number: usize) -> String {
    format!("node-{:03}", number % NODES)
}

fn node(number: usize) -> Node {
    Node::assumed(&node_name(number), vec!["192.0.2.250".parse().unwrap()])
}

/// An object as a user writes it.
fn object(kind: &str, version: &str, name: &str, spec: Value) -> Object {
    let metadata = json!({ "name": name, "namespace": "default", "labels": { "app": name } });
    let value = json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec });
    parse_value(&value).object.unwrap()
}

fn service(number: usize) -> Object {
    let policy = if number.is_multiple_of(10) { "Local" } else { "Cluster" };
    let ports = json!([{ "port": 80 }]);
    let spec = json!({ "type": "LoadBalancer", "externalTrafficPolicy": policy, "ports": ports });
    object("Service", "v1", &format!("service-{number:05}"), spec)
}

/// `ready` is the value that changes.
fn slice(number: usize, ready: bool) -> EndpointSlice {
    let endpoint = |place| Endpoint { node: Some(node_name(number + place)), usable: ready };
    EndpointSlice {
        name: name(format!("service-{number:05}-1")),
        service: name(format!("service-{number:05}")),
        family: Some(AddressFamily::Ipv4Unicast),
        endpoints: (0..3).map(endpoint).collect(),
    }
}

fn peer(number: usize) -> Object {
    let address = format!("192.0.2.{number}");
    let spec = json!({ "myASN": 65000, "peerASN": 65001, "peerAddress": address });
    object("BGPPeer", "metallb.io/v1beta2", &format!("tor-{number}"), spec)
}

/// For all pools and all peers.
fn advertisement(kind: &str, spec: Value) -> Object {
    object(kind, "metallb.io/v1beta1", "all", spec)
}

/// A cluster of 100 nodes and two routers.
struct Cluster {
    index: ClusterIndex,
    outcomes: Outcomes,
}

impl Cluster {
    fn new(services: usize, has_layer2: bool) -> Self {
        let mut index = ClusterIndex::default();
        index.apply(peer(1));
        index.apply(peer(2));
        index.apply(advertisement("BGPAdvertisement", json!({})));
        if has_layer2 {
            index.apply(advertisement("L2Advertisement", json!({})));
        }
        let addresses = json!({ "addresses": ["10.0.0.0/8"] });
        index.apply(object("IPAddressPool", "metallb.io/v1beta1", "all", addresses));
        for number in 0..NODES {
            index.apply(Object::Node(node(number)));
        }
        for number in 0..services {
            index.apply(service(number));
            index.apply(Object::EndpointSlice(slice(number, true)));
        }
        let outcomes = allocator::from_scratch(&index, None);
        Self { index, outcomes }
    }

    fn planner(&self) -> NodePlanner {
        let mut planner = NodePlanner::new(node(0), PlanOptions::default());
        planner.update(&self.index, &self.outcomes, &PlanChanges::everything());
        planner
    }

    fn update(&self, planner: &mut NodePlanner, changes: &Changes) {
        black_box(planner.update(&self.index, &self.outcomes, &PlanChanges::of(changes, [])));
    }
}

fn full(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("full plan of a node");
    for services in SIZES {
        for (label, has_layer2) in [("BGP", false), ("BGP and layer 2", true)] {
            let cluster = Cluster::new(services, has_layer2);
            group.bench_function(BenchmarkId::new(label, services), |bencher| {
                bencher.iter(|| {
                    let (index, outcomes) = (&cluster.index, &cluster.outcomes);
                    black_box(for_node(index, outcomes, &node(0), PlanOptions::default()))
                });
            });
        }
    }
    group.finish();
}

/// A slice becomes unready and ready again: a route is withdrawn, a route is announced.
fn incremental(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one slice that changes");
    for services in SIZES {
        for (label, has_layer2) in [("BGP", false), ("BGP and layer 2", true)] {
            let mut cluster = Cluster::new(services, has_layer2);
            let mut planner = cluster.planner();
            let (mut number, mut is_ready) = (0, true);
            group.bench_function(BenchmarkId::new(label, services), |bencher| {
                bencher.iter(|| {
                    if is_ready {
                        number = (number + 7_919) % services;
                    }
                    is_ready = !is_ready;
                    let object = Object::EndpointSlice(slice(number, is_ready));
                    let changes = cluster.index.apply(object);
                    cluster.update(&mut planner, &changes);
                });
            });
        }
    }
    group.finish();
}

/// All services behind one prefix of length 8.
fn aggregated(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one slice that changes, one prefix for all");
    for services in SIZES {
        let mut cluster = Cluster::new(services, false);
        let whole = json!({ "aggregationLength": 8 });
        cluster.index.apply(advertisement("BGPAdvertisement", whole));
        let mut planner = cluster.planner();
        let (mut number, mut is_ready) = (0, true);
        group.bench_function(BenchmarkId::from_parameter(services), |bencher| {
            bencher.iter(|| {
                if is_ready {
                    number = (number + 7_919) % services;
                }
                is_ready = !is_ready;
                let changes = cluster.index.apply(Object::EndpointSlice(slice(number, is_ready)));
                cluster.update(&mut planner, &changes);
            });
        });
    }
    group.finish();
}

/// What `fairway plan` does: every node of the cluster, one after the other.
fn all_nodes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("full plans of 100 nodes");
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    let cluster = Cluster::new(10_000, false);
    group.bench_function(BenchmarkId::from_parameter(10_000), |bencher| {
        bencher.iter(|| {
            for number in 0..NODES {
                let (index, outcomes) = (&cluster.index, &cluster.outcomes);
                black_box(for_node(index, outcomes, &node(number), PlanOptions::default()));
            }
        });
    });
    group.finish();
}

/// What facts and plan of a Service take, as the growth of resident memory.
fn memory() {
    const SERVICES: usize = 10_000;
    // Several plans, so that what the facts left free in the heap counts little.
    const PLANS: usize = 10;
    let empty = resident_kib();
    let cluster = Cluster::new(SERVICES, false);
    let with_facts = resident_kib();
    let planners: Vec<NodePlanner> = (0..PLANS).map(|_| cluster.planner()).collect();
    let with_plans = resident_kib();
    println!(
        "{SERVICES} services: index and assignments {} KiB, each plan {} KiB\n",
        with_facts.saturating_sub(empty),
        with_plans.saturating_sub(with_facts) / PLANS,
    );
    drop(planners);
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

criterion_group!(benches, full, incremental, aggregated, all_nodes);

fn main() {
    // First, while the heap is small.
    memory();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
