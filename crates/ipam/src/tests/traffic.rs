//! What the nodes of a cluster ask the API server for, printed with `--nocapture`. `FAIRWAY_NODES` says how many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pool::pool;
use super::remembering::{CountingStore, call, done};
use crate::calico::write;
use crate::cni::{Invocation, PodNotes, Request, answer_together};
use crate::{
    Addressing, Affinity, Facts, Moment, Object, RememberedStore, Selection, Store, Versioned,
};

const NODES: usize = 50;
const ROUNDS: usize = 10;
const PODS_AT_ONCE: usize = 3;
const DELETED: usize = 10;

type Node = RememberedStore<Arc<CountingStore>>;

fn node_count() -> usize {
    std::env::var("FAIRWAY_NODES").ok().and_then(|it| it.parse().ok()).unwrap_or(NODES)
}

struct Cluster {
    store: Arc<CountingStore>,
    facts: Facts,
    nodes: Vec<(String, Node)>,
}

impl Cluster {
    fn new() -> Self {
        let names = (0..node_count()).map(|it| format!("node-{it}"));
        let pools = vec![pool("v4", "10.0.0.0/12"), pool("v6", "fd00::/100")];
        let store = Arc::<CountingStore>::default();
        let nodes = names.clone().map(|it| {
            let node = RememberedStore::new(Arc::clone(&store), &it);
            node.affinities_are([]);
            done(node.refresh()).unwrap();
            (it, node)
        });
        let nodes = nodes.collect();
        let of_facts = names.map(|it| (it, BTreeMap::new())).collect();
        Self { store, facts: Facts { pools, nodes: of_facts, ..Facts::default() }, nodes }
    }

    fn serve(&self, (name, node): &(String, Node), calls: &[Invocation<'_>]) {
        let now = Moment::from_nanoseconds(1_000_000_000_000);
        let addressing = Addressing { store: node, facts: &self.facts, now };
        let requests: Vec<_> = calls.iter().map(Request::parse).collect();
        let answers = done(answer_together(&addressing, &requests, name, |_| PodNotes::default()));
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }

    fn affinities(&self) -> Vec<Versioned<Affinity>> {
        let listed = done(self.store.inner().list(&Selection::Affinities)).unwrap();
        let affinity = |it: Versioned<Object>| match it.value {
            Object::Affinity(value) => Some(Versioned { value, version: it.version }),
            _ => None,
        };
        listed.into_iter().filter_map(affinity).collect()
    }

    /// What was asked for since the last time, for each of so many.
    fn print(&self, what: &str, count: usize) -> f64 {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let calls = self.store.take_calls();
        calls.iter().for_each(|it| *counts.entry(it).or_default() += 1);
        #[allow(clippy::cast_precision_loss, reason = "some thousands")]
        let each = calls.len() as f64 / count as f64;
        println!("{what}: {} requests, {each:.2} for each: {counts:?}", calls.len());
        each
    }
}

#[test]
fn nodes_ask_the_api_server_for_little() {
    let cluster = Cluster::new();
    let count = cluster.nodes.len();
    assert!(cluster.print("nodes start", count) <= 1.0, "one list for each");
    // No node hears of the others' first blocks before it has its own.
    for round in 0..ROUNDS {
        for node in &cluster.nodes {
            let named: Vec<String> =
                (0..PODS_AT_ONCE).map(|it| format!("{}-{round}-{it}", node.0)).collect();
            let calls: Vec<_> = named.iter().map(|it| call("ADD", it)).collect();
            cluster.serve(node, &calls);
        }
        if round == 0 {
            let each = cluster.print("each gets its first 3 Pods of two families", count);
            assert!(each <= 20.0, "two blocks, and three handles");
            let affinities = cluster.affinities();
            cluster.nodes.iter().for_each(|(_, it)| it.affinities_are(affinities.clone()));
            print_watch(&affinities);
            cluster.store.take_calls();
        }
    }
    let pods = count * PODS_AT_ONCE * (ROUNDS - 1);
    assert!(cluster.print("more Pods, 3 at once", pods) <= 2.0);
    for node in &cluster.nodes {
        for number in 0..DELETED {
            let (round, it) = (number / PODS_AT_ONCE, number % PODS_AT_ONCE);
            cluster.serve(node, &[call("DEL", &format!("{}-{round}-{it}", node.0))]);
        }
    }
    assert!(cluster.print("Pods go, one after the other", count * DELETED) <= 4.0);
}

/// A claim changes an affinity twice, and each node hears of both.
fn print_watch(affinities: &[Versioned<Affinity>]) {
    let bytes = |it: &Versioned<Affinity>| {
        let object = write(&Object::Affinity(it.value.clone()), None).unwrap();
        object.to_string().len()
    };
    let bytes: usize = affinities.iter().map(bytes).sum();
    println!(
        "watches: {} affinities of {} bytes, told twice to {} nodes: {} MB",
        affinities.len(),
        bytes / affinities.len(),
        node_count(),
        2 * bytes * node_count() / 1_000_000
    );
}
