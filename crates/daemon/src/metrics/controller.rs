//! The metrics of `fairway controller`, and of the pools in `fairway run`.

use std::sync::Arc;

use fairway_allocator::PoolUse;
use tokio::sync::{mpsc, oneshot};

use super::families::{
    ADDRESSES, ADDRESSES_FREE, ADDRESSES_IN_USE, IPV4_ADDRESSES, IPV4_ADDRESSES_IN_USE,
    IPV6_ADDRESSES, IPV6_ADDRESSES_IN_USE, LEADER, SERVICES, SERVICES_ALLOCATED, SERVICES_PENDING,
};
use super::page::{Family, Page};
use super::{Collect, Collected, PodPoolCounters};

/// Requests in the queue for the loop; later ones wait.
const QUESTIONS_MAX: usize = 16;

/// The state of the controller.
#[derive(Debug, Clone, Default)]
pub struct ControllerFacts {
    /// Whether it leads.
    pub leads: bool,
    /// Services of type LoadBalancer of our class.
    pub services: usize,
    /// Services that wait for an address.
    pub pending: usize,
    /// How much of each pool is in use.
    pub pools: Vec<PoolUse>,
}

/// A request for the facts.
#[derive(Debug)]
pub struct ControllerQuestion(oneshot::Sender<ControllerFacts>);

impl ControllerQuestion {
    /// Answers it.
    pub fn answer(self, facts: ControllerFacts) {
        // The client may have disconnected.
        let _ = self.0.send(facts);
    }
}

/// The loop's end of the channel, which answers.
pub type ControllerQuestions = mpsc::Receiver<ControllerQuestion>;

/// Asks the loop of `fairway controller`.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    questions: mpsc::Sender<ControllerQuestion>,
    pod_pools: Option<Arc<PodPoolCounters>>,
}

impl ControllerMetrics {
    /// Both ends of the channel.
    pub fn new() -> (Self, ControllerQuestions) {
        let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
        (Self { questions: ask, pod_pools: None }, questions)
    }

    /// It takes addresses of Pods back as well: adds what that counts.
    pub fn with_pod_pools(self, counters: Option<Arc<PodPoolCounters>>) -> Self {
        Self { pod_pools: counters, ..self }
    }

    async fn ask(&self) -> Option<ControllerFacts> {
        let (question, answer) = oneshot::channel();
        self.questions.send(ControllerQuestion(question)).await.ok()?;
        answer.await.ok()
    }
}

impl Collect for ControllerMetrics {
    fn collect<'a>(&'a self, page: &'a mut Page) -> Collected<'a> {
        Box::pin(async move {
            let Some(facts) = self.ask().await else { return false };
            page.number(&LEADER, u8::from(facts.leads));
            // A follower knows less, and must not be counted beside the leader.
            if facts.leads {
                page.number(&SERVICES, facts.services);
                page.number(&SERVICES_PENDING, facts.pending);
                write_pools(page, &facts.pools);
                if let Some(counters) = &self.pod_pools {
                    counters.write(page);
                }
            }
            true
        })
    }

    fn is_alive(&self) -> Collected<'_> {
        Box::pin(async { self.ask().await.is_some() })
    }
}

/// A counter or gauge of a pool.
type Number = fn(&PoolUse) -> u128;

const NUMBERS: [(Family, Number); 6] = [
    (ADDRESSES, |pool| pool.total.ipv4.saturating_add(pool.total.ipv6)),
    (ADDRESSES_IN_USE, |pool| pool.used.ipv4.saturating_add(pool.used.ipv6)),
    (IPV4_ADDRESSES, |pool| pool.total.ipv4),
    (IPV4_ADDRESSES_IN_USE, |pool| pool.used.ipv4),
    (IPV6_ADDRESSES, |pool| pool.total.ipv6),
    (IPV6_ADDRESSES_IN_USE, |pool| pool.used.ipv6),
];

/// Writes the use of each pool.
pub(super) fn write_pools(page: &mut Page, pools: &[PoolUse]) {
    let named: Vec<(String, &PoolUse)> = pools.iter().map(|it| (label(it, pools), it)).collect();
    for (family, number) in &NUMBERS {
        let mut samples = page.family(family);
        named.iter().for_each(|(name, pool)| samples.add(&[name], number(pool)));
    }
    let mut samples = page.family(&SERVICES_ALLOCATED);
    named.iter().for_each(|(name, pool)| samples.add(&[name], pool.services));
    let mut samples = page.family(&ADDRESSES_FREE);
    for (name, pool) in &named {
        samples.add(&[name, "ipv4"], pool.free.ipv4);
        samples.add(&[name, "ipv6"], pool.free.ipv6);
    }
}

/// The name of a pool, with its namespace if another has the same name (which files allow).
fn label(pool: &PoolUse, all: &[PoolUse]) -> String {
    let same = all.iter().filter(|it| it.pool.name == pool.pool.name).count();
    if same > 1 { pool.pool.to_string() } else { pool.pool.name.clone() }
}
