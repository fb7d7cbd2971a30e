//! The processes of a schedule, and what they were told.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use fairway_ground::{Prefix, Rng};

use super::invariants::Contents;
use super::node_store::{NodeStore, Watched};
use super::shaky_store::ShakyStore;
use crate::gateway::Edges;
use crate::tests::pool::pool;
use crate::{
    AddressRequest, Addressing, Attributes, Census, Collected, Collector, Config, Facts,
    FamilyRequest, MemoryStore, Moment, Owner, PodName, PodState, StoreError, Use,
};

const HOSTS: [&str; 3] = ["a", "b", "c"];
const STEPS: u64 = 400;
const GRACE: u64 = 60;

type Process = Pin<Box<dyn Future<Output = ()>>>;

/// How much happened in all schedules.
#[derive(Debug, Default)]
pub(super) struct Counts {
    given: u64,
    refused: u64,
    collected: u64,
    died: u64,
    borrowed: u64,
}

impl Counts {
    pub(super) fn is_lively(&self) -> bool {
        let Self { given, refused, collected, died, borrowed } = *self;
        [given, refused, collected, died, borrowed].iter().all(|it| *it > 100)
    }
}

/// A Pod.
#[derive(Debug, Clone)]
struct Pod {
    host: String,
    addresses: Vec<IpAddr>,
}

/// What is true, beside the store.
struct Truth {
    facts: Facts,
    pods: BTreeMap<String, Pod>,
    /// What was given, and to which Pod.
    owned: BTreeMap<IpAddr, String>,
    fault: Option<String>,
    counts: Counts,
}

struct Shared {
    store: Arc<ShakyStore>,
    truth: Mutex<Truth>,
}

pub(super) struct World {
    dice: Rng,
    shared: Arc<Shared>,
    /// Each with the Pods whose runtime it is.
    processes: Vec<(Process, Vec<String>)>,
    collector: Arc<Mutex<Collector>>,
    /// What nodes remember, where they do.
    watched: BTreeMap<String, Watched>,
    nanoseconds: u64,
    named: u64,
    /// Nobody dies and no call fails: nothing is left for the collector to put right.
    is_quiet: bool,
}

/// Pods and nodes as they are; as they were when the pass began, where nobody asks again.
struct Snapshot {
    facts: Facts,
    pods: BTreeMap<String, Pod>,
    shared: Arc<Shared>,
}

fn roll(dice: &mut Rng, sides: usize) -> usize {
    usize::try_from(dice.next_u64() % sides as u64).unwrap()
}

fn state_of(pod: &Pod) -> PodState {
    PodState { node: pod.host.clone(), addresses: pod.addresses.clone(), is_finished: false }
}

impl Census for Snapshot {
    fn pod(&self, name: &PodName) -> Option<PodState> {
        self.pods.get(&name.name).map(state_of)
    }

    fn has_node(&self, name: &str) -> bool {
        self.facts.nodes.contains_key(name)
    }

    async fn pod_now(&self, name: &PodName) -> Result<Option<PodState>, StoreError> {
        Ok(self.shared.truth.lock().unwrap().pods.get(&name.name).map(state_of))
    }

    async fn has_node_now(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.shared.truth.lock().unwrap().facts.nodes.contains_key(name))
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Rng::seeded(seed);
        let is_strict = roll(&mut dice, 3) == 0;
        let config = Config {
            is_strict,
            allocates_blocks: true,
            blocks_per_host_max: if is_strict {
                u32::try_from(roll(&mut dice, 3)).unwrap()
            } else {
                0
            },
            cooldown: [0, 0, 30][roll(&mut dice, 3)],
        };
        let mut ipv4 = pool("v4", "10.0.0.0/28");
        ipv4.block_length = 30;
        let mut ipv6 = pool("v6", "fd00::/125");
        ipv6.block_length = 126;
        let facts = Facts {
            pools: vec![ipv4, ipv6],
            nodes: HOSTS.iter().map(|it| ((*it).to_owned(), BTreeMap::new())).collect(),
            namespaces: BTreeMap::new(),
            reservations: vec!["10.0.0.5/32".parse().unwrap()],
            config,
        };
        let truth = Truth {
            facts,
            pods: BTreeMap::new(),
            owned: BTreeMap::new(),
            fault: None,
            counts: Counts::default(),
        };
        let is_quiet = roll(&mut dice, 4) == 0;
        let failures_per_mille = [0, 0, 20, 100][roll(&mut dice, 4)];
        let failures_per_mille = if is_quiet { 0 } else { failures_per_mille };
        let store = ShakyStore::new(MemoryStore::default(), dice.next_u64(), failures_per_mille);
        let store = Arc::new(store);
        // Calico's nodes may be beside ours: one that remembers nothing is as they are.
        let remember = roll(&mut dice, 3);
        let watched = HOSTS
            .iter()
            .skip(remember)
            .map(|host| ((*host).to_owned(), Watched::new(&store, host, roll(&mut dice, 2) == 0)));
        let watched = watched.collect();
        Self {
            shared: Arc::new(Shared { store, truth: Mutex::new(truth) }),
            processes: Vec::new(),
            collector: Arc::default(),
            watched,
            nanoseconds: 1_000_000_000_000,
            named: 0,
            is_quiet,
            dice,
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        roll(&mut self.dice, sides)
    }

    pub(super) fn run(mut self, counts: &mut Counts) -> Result<(), String> {
        for _ in 0..STEPS {
            self.nanoseconds += 1_000;
            match self.roll(20) {
                0..=2 if self.processes.len() < 6 => self.begin(),
                3 => self.nanoseconds += 1_000_000_000 * self.roll(40) as u64,
                4 if !self.is_quiet && self.roll(4) == 0 => self.kill(),
                5..=7 => self.watch(),
                _ => self.step(),
            }
            self.check()?;
        }
        self.come_to_rest()?;
        let truth = self.shared.truth.lock().unwrap();
        counts.given += truth.counts.given;
        counts.refused += truth.counts.refused;
        counts.collected += truth.counts.collected;
        counts.died += truth.counts.died;
        counts.borrowed += truth.counts.borrowed;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let truth = self.shared.truth.lock().unwrap();
        if let Some(fault) = &truth.fault {
            return Err(fault.clone());
        }
        let contents = Contents::new(self.shared.store.inner.objects());
        let outcome = contents.check_always(&truth.owned);
        outcome.map_err(|fault| format!("{fault}\n{}", self.shared.store.log()))
    }

    /// Some node hears of affinities, or starts again.
    fn watch(&mut self) {
        let (host, kind, count) = (self.host(), self.roll(20), self.roll(4));
        let Some(watched) = self.watched.get_mut(&host) else { return };
        match kind {
            0 => *watched = Watched::new(&self.shared.store, &host, count % 2 == 0),
            1 | 2 => watched.list_again(),
            _ => watched.see(count),
        }
    }

    /// What a node reaches the store by.
    fn store_of(&self, host: &str) -> NodeStore {
        match self.watched.get(host) {
            Some(watched) => NodeStore::Remembered(Arc::clone(&watched.store)),
            None => NodeStore::Straight(Arc::clone(&self.shared.store)),
        }
    }

    /// One process goes on to its next call.
    fn step(&mut self) {
        if self.processes.is_empty() {
            return;
        }
        let chosen = self.roll(self.processes.len());
        let mut context = Context::from_waker(Waker::noop());
        if self.processes[chosen].0.as_mut().poll(&mut context).is_ready() {
            drop(self.processes.swap_remove(chosen));
        }
    }

    /// One process dies between two calls; a Pod whose runtime died is given up by its kubelet.
    fn kill(&mut self) {
        if self.processes.is_empty() {
            return;
        }
        let chosen = self.roll(self.processes.len());
        let (process, pods) = self.processes.swap_remove(chosen);
        drop(process);
        let mut truth = self.shared.truth.lock().unwrap();
        truth.counts.died += 1;
        for pod in pods {
            truth.remove(&pod);
        }
    }

    fn come_to_rest(&mut self) -> Result<(), String> {
        self.shared.store.fail_no_more();
        while !self.processes.is_empty() {
            self.step();
            self.check()?;
        }
        if self.is_quiet {
            Contents::new(self.shared.store.inner.objects()).check_counts()?;
        }
        for _ in 0..6 {
            self.nanoseconds += 1_000_000_000 * (GRACE + 31);
            self.collect();
            while !self.processes.is_empty() {
                self.step();
                self.check()?;
            }
        }
        for (host, watched) in &mut self.watched {
            watched.check(host)?;
        }
        let truth = self.shared.truth.lock().unwrap();
        Contents::new(self.shared.store.inner.objects()).check_at_rest(&truth.owned)
    }

    fn begin(&mut self) {
        match self.roll(14) {
            0..=4 => self.give(),
            5..=7 => self.take(),
            8 => self.wish(),
            9 => self.claim(),
            10 => self.release_affinities(),
            11 if !self.is_quiet => self.turn_node(),
            _ => self.collect(),
        }
    }

    fn moment(&self) -> Moment {
        Moment::from_nanoseconds(self.nanoseconds)
    }

    fn host(&mut self) -> String {
        HOSTS[self.roll(3)].to_owned()
    }

    fn new_pod(&mut self) -> (String, AddressRequest) {
        self.named += 1;
        let (pod, host) = (format!("pod-{}", self.named), self.host());
        let family = |count| FamilyRequest { count, named: Vec::new(), host_reserved: None };
        let (ipv4, ipv6) = [(1, 0), (0, 1), (1, 1), (3, 0)][self.roll(4)];
        let secondary = [("node", host.as_str()), ("namespace", "n"), ("pod", pod.as_str())]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let request = AddressRequest {
            attributes: Attributes {
                handle: Some(pod.clone()),
                secondary: secondary.into(),
                ..Attributes::default()
            },
            host: host.clone(),
            ipv4: family(ipv4),
            ipv6: family(ipv6),
            purpose: Some(Use::Workload),
            namespace: None,
            blocks_max: None,
            per_handle_max: None,
            is_windows: false,
            is_first: false,
            edges: Edges::Given,
        };
        let mut truth = self.shared.truth.lock().unwrap();
        truth.pods.insert(pod.clone(), Pod { host, addresses: Vec::new() });
        drop(truth);
        (pod, request)
    }

    fn give(&mut self) {
        if self.roll(3) == 0 {
            return self.give_together();
        }
        let (pod, request) = self.new_pod();
        let store = self.store_of(&request.host);
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let facts = shared.facts();
        let name = pod.clone();
        let process = async move {
            let addressing = Addressing { store: &store, facts: &facts, now };
            let mut got = Vec::new();
            let outcome = addressing.assign_families(&request, &mut got).await;
            let wanted = request.ipv4.count + request.ipv6.count;
            let addresses = got.iter().map(|it| it.address);
            let is_alive = shared.truth.lock().unwrap().gave(&pod, addresses, &shared.store);
            if is_alive && (outcome.is_err() || got.len() < wanted) {
                shared.truth.lock().unwrap().counts.refused += 1;
                shared.truth.lock().unwrap().remove(&pod);
                _ = addressing.release_handle(&pod).await;
            }
        };
        self.processes.push((Box::pin(process), vec![name]));
    }

    /// Several Pods of one node at once.
    fn give_together(&mut self) {
        let host = self.host();
        let mut pods = Vec::new();
        for _ in 0..2 + self.roll(2) {
            let (pod, mut request) = self.new_pod();
            request.attributes.secondary.insert("node".to_owned(), host.clone());
            request.host.clone_from(&host);
            request.is_first = self.roll(2) == 0;
            let mut truth = self.shared.truth.lock().unwrap();
            truth.pods.insert(pod.clone(), Pod { host: host.clone(), addresses: Vec::new() });
            drop(truth);
            pods.push((pod, request));
        }
        let store = self.store_of(&host);
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let facts = shared.facts();
        let names: Vec<String> = pods.iter().map(|(pod, _)| pod.clone()).collect();
        let process = async move {
            let addressing = Addressing { store: &store, facts: &facts, now };
            let requests: Vec<AddressRequest> = pods.iter().map(|(_, it)| it.clone()).collect();
            let answers = addressing.assign_together(&requests).await;
            for ((pod, request), answer) in pods.iter().zip(answers) {
                let wanted = request.ipv4.count + request.ipv6.count;
                let addresses = answer.got.iter().map(|it| it.address);
                let is_alive = shared.truth.lock().unwrap().gave(pod, addresses, &shared.store);
                if is_alive && (answer.error.is_some() || answer.got.len() < wanted) {
                    shared.truth.lock().unwrap().remove(pod);
                    _ = addressing.release_handle(pod).await;
                }
            }
        };
        self.processes.push((Box::pin(process), names));
    }

    fn wish(&mut self) {
        let (pod, request) = self.new_pod();
        let address: IpAddr = format!("10.0.0.{}", self.roll(16)).parse().unwrap();
        let store = self.store_of(&request.host);
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let facts = shared.facts();
        let name = pod.clone();
        let process = async move {
            let addressing = Addressing { store: &store, facts: &facts, now };
            let outcome = addressing.assign_address_within(address, &request).await;
            let mut truth = shared.truth.lock().unwrap();
            match outcome {
                Ok(it) => _ = truth.gave(&pod, [it.address].into_iter(), &shared.store),
                Err(_) => truth.remove(&pod),
            }
        };
        self.processes.push((Box::pin(process), vec![name]));
    }

    fn take(&mut self) {
        let count = self.shared.truth.lock().unwrap().pods.len();
        if count == 0 {
            return;
        }
        let chosen = self.roll(count);
        let mut truth = self.shared.truth.lock().unwrap();
        let Some((pod, state)) = truth.pods.iter().nth(chosen) else { return };
        if state.addresses.is_empty() {
            return;
        }
        let (pod, host) = (pod.clone(), state.host.clone());
        truth.remove(&pod);
        drop(truth);
        let store = self.store_of(&host);
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let facts = shared.facts();
        let process = async move {
            let addressing = Addressing { store: &store, facts: &facts, now };
            _ = addressing.release_handle(&pod).await;
        };
        self.processes.push((Box::pin(process), Vec::new()));
    }

    fn claim(&mut self) {
        let prefix: Prefix = format!("10.0.0.{}/30", 4 * self.roll(4)).parse().unwrap();
        let owner = Owner::Host(self.host());
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let facts = shared.facts();
        let process = async move {
            let addressing = Addressing { store: &shared.store, facts: &facts, now };
            _ = addressing.claim_affinity(prefix, &owner).await;
        };
        self.processes.push((Box::pin(process), Vec::new()));
    }

    fn release_affinities(&mut self) {
        let owner = Owner::Host(self.host());
        let must_be_empty = self.roll(2) == 0;
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let facts = shared.facts();
        let process = async move {
            let addressing = Addressing { store: &shared.store, facts: &facts, now };
            _ = addressing.release_host_affinities(&owner, must_be_empty).await;
        };
        self.processes.push((Box::pin(process), Vec::new()));
    }

    /// A node goes, with its Pods; or comes back.
    fn turn_node(&mut self) {
        let host = self.host();
        let mut truth = self.shared.truth.lock().unwrap();
        if truth.facts.nodes.remove(&host).is_none() {
            truth.facts.nodes.insert(host, BTreeMap::new());
            return;
        }
        let of_host = truth.pods.iter().filter(|(_, it)| it.host == host);
        let pods: Vec<String> = of_host.map(|(name, _)| name.clone()).collect();
        for pod in &pods {
            truth.remove(pod);
        }
        drop(truth);
        self.processes.retain(|(_, of)| !of.iter().any(|it| pods.contains(it)));
    }

    fn collect(&mut self) {
        let (shared, now) = (Arc::clone(&self.shared), self.moment());
        let truth = shared.truth.lock().unwrap();
        let census = Snapshot {
            facts: truth.facts.clone(),
            pods: truth.pods.clone(),
            shared: Arc::clone(&shared),
        };
        drop(truth);
        // A collector that dies has forgotten everything; so has one that begins beside another.
        let collector = Arc::clone(&self.collector);
        let mut memory = std::mem::take(&mut *collector.lock().unwrap());
        let process = async move {
            let addressing = Addressing { store: &shared.store, facts: &census.facts, now };
            let outcome = memory.pass(&addressing, &census, GRACE).await;
            let Collected { released, .. } = outcome.unwrap_or_default();
            shared.truth.lock().unwrap().counts.collected += released.len() as u64;
            *collector.lock().unwrap() = memory;
        };
        self.processes.push((Box::pin(process), Vec::new()));
    }
}

impl Shared {
    fn facts(&self) -> Facts {
        self.truth.lock().unwrap().facts.clone()
    }
}

impl Truth {
    /// A Pod is gone: what it had may be anybody's from now on.
    fn remove(&mut self, pod: &str) {
        self.pods.remove(pod);
        self.owned.retain(|_, it| it != pod);
    }

    /// A Pod was given addresses. Returns whether it still is there.
    fn gave(
        &mut self,
        pod: &str,
        addresses: impl Iterator<Item = IpAddr>,
        store: &ShakyStore,
    ) -> bool {
        let Some(state) = self.pods.get_mut(pod) else { return false };
        let contents = Contents::new(store.inner.objects());
        for address in addresses {
            self.counts.given += 1;
            let block = contents.blocks.values().find(|it| it.prefix().contains(address));
            let owner = block.and_then(|it| it.owner());
            if owner != Some(&Owner::Host(state.host.clone())) {
                self.counts.borrowed += 1;
            }
            state.addresses.push(address);
            if let Some(before) = self.owned.insert(address, pod.to_owned()) {
                self.fault = Some(format!("{address} was given to {pod} and {before}"));
            }
        }
        true
    }
}
