//! The metrics of `fairway proxy`: kube-proxy's names for what it has, and counters of each Service.

use std::collections::BTreeMap;

use fairway_seam::Latencies;
use tokio::sync::{mpsc, oneshot};

use super::families::{
    ENDPOINT_CHANGES, ENDPOINT_CHANGES_PENDING, FILTER_FAILURES, NETWORK_PROGRAMMING,
    NO_LOCAL_ENDPOINTS, PROXY_BYTES_IN, PROXY_BYTES_OUT, PROXY_CONNECTIONS, PROXY_DRAINING,
    PROXY_FAULTS, PROXY_HEALTHZ, PROXY_LIVEZ, PROXY_PACKETS_IN, PROXY_PACKETS_OUT, PROXY_REPAIRS,
    PROXY_SERVERS, SERVICE_CHANGES, SERVICE_CHANGES_PENDING, SYNC, SYNC_FULL, SYNC_LAST,
    SYNC_PARTIAL, SYNC_QUEUED,
};
use super::page::{Family, Page};
use super::{Collect, Collected};

/// Requests in the queue for the loop; later ones wait.
const QUESTIONS_MAX: usize = 16;

/// What one family of addresses has taken.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    /// All rounds.
    pub all: Latencies,
    /// Those in which the whole kernel was read.
    pub full: Latencies,
    /// Those that followed from changed objects.
    pub partial: Latencies,
    /// From the change of a Pod or Service until the kernel has what follows.
    pub network_programming: Latencies,
}

/// What a Service has carried.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServiceTraffic {
    /// Connections and flows.
    pub connections: u64,
    /// Packets from clients, and to them.
    pub packets: (u64, u64),
    /// Octets from clients, and to them.
    pub bytes: (u64, u64),
}

impl ServiceTraffic {
    /// Adds what another virtual server of it has carried; of pairs, the first is from clients.
    pub fn add(&mut self, connections: u64, packets: (u64, u64), bytes: (u64, u64)) {
        let sum = |(a, b): (u64, u64), (c, d)| (a.saturating_add(c), b.saturating_add(d));
        self.connections = self.connections.saturating_add(connections);
        self.packets = sum(self.packets, packets);
        self.bytes = sum(self.bytes, bytes);
    }
}

/// The state of the proxy.
#[derive(Debug, Clone, Default)]
pub struct ProxyFacts {
    /// Rounds, of IPv4 and IPv6.
    pub rounds: [Rounds; 2],
    /// When the kernel was last as wanted, in Unix time.
    pub updated_epoch_seconds: u64,
    /// When the last change arrived.
    pub queued_epoch_seconds: u64,
    /// Slices that came, changed or went.
    pub endpoint_changes: u64,
    /// Services that came, changed or went.
    pub service_changes: u64,
    /// Of both, those that the kernel does not have yet.
    pub pending: (u64, u64),
    /// Services whose policy is Local without a usable endpoint here, by internal and external policy.
    pub without_local_endpoints: (usize, usize),
    /// Refused transactions of the packet filter.
    pub filter_failures: u64,
    /// Answers to `/healthz` and `/livez`, each with 200 and with 503.
    pub answers: [(u64, u64); 2],
    /// Virtual servers.
    pub servers: usize,
    /// Endpoints that drain.
    pub draining: usize,
    /// What could not be done.
    pub faults: usize,
    /// Times that something else had changed the kernel.
    pub repairs: u64,
    /// By Service.
    pub traffic: BTreeMap<String, ServiceTraffic>,
}

/// A request for the facts.
#[derive(Debug)]
pub struct ProxyQuestion(oneshot::Sender<ProxyFacts>);

impl ProxyQuestion {
    /// Answers it.
    pub fn answer(self, facts: ProxyFacts) {
        // The client may have disconnected.
        let _ = self.0.send(facts);
    }
}

/// The loop's end of the channel, which answers.
pub type ProxyQuestions = mpsc::Receiver<ProxyQuestion>;

/// Asks the loop of `fairway proxy`.
#[derive(Debug, Clone)]
pub struct ProxyMetrics(mpsc::Sender<ProxyQuestion>);

impl ProxyMetrics {
    /// Both ends of the channel.
    pub fn new() -> (Self, ProxyQuestions) {
        let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
        (Self(ask), questions)
    }

    async fn ask(&self) -> Option<ProxyFacts> {
        let (question, answer) = oneshot::channel();
        self.0.send(ProxyQuestion(question)).await.ok()?;
        answer.await.ok()
    }
}

impl Collect for ProxyMetrics {
    fn collect<'a>(&'a self, page: &'a mut Page) -> Collected<'a> {
        Box::pin(async move {
            let Some(facts) = self.ask().await else { return false };
            write(page, &facts);
            true
        })
    }

    fn is_alive(&self) -> Collected<'_> {
        Box::pin(async { self.ask().await.is_some() })
    }

    fn listen_option(&self) -> &'static str {
        "--metrics-bind-address"
    }

    fn text_at(&self, path: &str) -> Option<&'static str> {
        (path == "/proxyMode").then_some("ipvs")
    }
}

/// The names of the families of addresses, as kube-proxy has them.
const NAMES: [&str; 2] = ["IPv4", "IPv6"];

type RoundsOf = fn(&Rounds) -> &Latencies;
type CountOf = fn(&ServiceTraffic) -> u64;

fn write(page: &mut Page, facts: &ProxyFacts) {
    let kinds: [(&Family, RoundsOf); 4] = [
        (&SYNC, |it| &it.all),
        (&SYNC_FULL, |it| &it.full),
        (&SYNC_PARTIAL, |it| &it.partial),
        (&NETWORK_PROGRAMMING, |it| &it.network_programming),
    ];
    for (family, latencies) in kinds {
        let mut samples = page.family(family);
        for (name, rounds) in NAMES.iter().zip(&facts.rounds) {
            samples.add_histogram(&[name], latencies(rounds));
        }
    }
    for (family, seconds) in
        [(&SYNC_LAST, facts.updated_epoch_seconds), (&SYNC_QUEUED, facts.queued_epoch_seconds)]
    {
        let mut samples = page.family(family);
        NAMES.iter().for_each(|name| samples.add(&[name], seconds));
    }
    page.number(&ENDPOINT_CHANGES, facts.endpoint_changes);
    page.number(&SERVICE_CHANGES, facts.service_changes);
    page.number(&ENDPOINT_CHANGES_PENDING, facts.pending.0);
    page.number(&SERVICE_CHANGES_PENDING, facts.pending.1);
    let (internal, external) = facts.without_local_endpoints;
    let mut samples = page.family(&NO_LOCAL_ENDPOINTS);
    samples.add(&["internal"], internal);
    samples.add(&["external"], external);
    page.number(&FILTER_FAILURES, facts.filter_failures);
    for (family, (ok, unavailable)) in [&PROXY_HEALTHZ, &PROXY_LIVEZ].into_iter().zip(facts.answers)
    {
        let mut samples = page.family(family);
        samples.add(&["200"], ok);
        samples.add(&["503"], unavailable);
    }
    page.number(&PROXY_SERVERS, facts.servers);
    page.number(&PROXY_DRAINING, facts.draining);
    page.number(&PROXY_FAULTS, facts.faults);
    page.number(&PROXY_REPAIRS, facts.repairs);
    let counts: [(&Family, CountOf); 5] = [
        (&PROXY_CONNECTIONS, |it| it.connections),
        (&PROXY_PACKETS_IN, |it| it.packets.0),
        (&PROXY_PACKETS_OUT, |it| it.packets.1),
        (&PROXY_BYTES_IN, |it| it.bytes.0),
        (&PROXY_BYTES_OUT, |it| it.bytes.1),
    ];
    for (family, count) in counts {
        let mut samples = page.family(family);
        facts.traffic.iter().for_each(|(service, it)| samples.add(&[service], count(it)));
    }
}
