//! What is measured of `fairway controller`, and of the pools in `fairway run`.

use fairway_allocator::PoolUse;
use tokio::sync::{mpsc, oneshot};

use super::families::{
    ADDRESSES, ADDRESSES_FREE, ADDRESSES_IN_USE, IPV4_ADDRESSES, IPV4_ADDRESSES_IN_USE,
    IPV6_ADDRESSES, IPV6_ADDRESSES_IN_USE, LEADER, SERVICES, SERVICES_ALLOCATED, SERVICES_PENDING,
};
use super::page::{Family, Page};
use super::{Collect, Collected};

/// Questions that may wait for the loop; who comes later waits to ask.
const QUESTIONS_MAX: usize = 16;

/// How the controller is.
#[derive(Debug, Clone, Default)]
pub struct ControllerFacts {
    /// Whether it is the one that writes.
    pub leads: bool,
    /// Services of our class of type LoadBalancer.
    pub services: usize,
    /// Those of them that wait for an address.
    pub pending: usize,
    /// How much of each pool is in use.
    pub pools: Vec<PoolUse>,
}

/// Somebody wants to know.
#[derive(Debug)]
pub struct ControllerQuestion(oneshot::Sender<ControllerFacts>);

impl ControllerQuestion {
    /// Tells them.
    pub fn answer(self, facts: ControllerFacts) {
        // They may have gone.
        let _ = self.0.send(facts);
    }
}

/// The loop's end, which answers.
pub type ControllerQuestions = mpsc::Receiver<ControllerQuestion>;

/// Asks the loop of `fairway controller`.
#[derive(Debug, Clone)]
pub struct ControllerMetrics(mpsc::Sender<ControllerQuestion>);

impl ControllerMetrics {
    /// Both ends.
    pub fn new() -> (Self, ControllerQuestions) {
        let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
        (Self(ask), questions)
    }

    async fn ask(&self) -> Option<ControllerFacts> {
        let (question, answer) = oneshot::channel();
        self.0.send(ControllerQuestion(question)).await.ok()?;
        answer.await.ok()
    }
}

impl Collect for ControllerMetrics {
    fn collect<'a>(&'a self, page: &'a mut Page) -> Collected<'a> {
        Box::pin(async move {
            let Some(facts) = self.ask().await else { return false };
            page.number(&LEADER, u8::from(facts.leads));
            // Whoever does not decide knows less, and must not be counted beside the leader.
            if facts.leads {
                page.number(&SERVICES, facts.services);
                page.number(&SERVICES_PENDING, facts.pending);
                write_pools(page, &facts.pools);
            }
            true
        })
    }

    fn is_alive(&self) -> Collected<'_> {
        Box::pin(async { self.ask().await.is_some() })
    }
}

/// One of the numbers that a pool has.
type Number = fn(&PoolUse) -> u128;

const NUMBERS: [(Family, Number); 6] = [
    (ADDRESSES, |pool| pool.total.ipv4.saturating_add(pool.total.ipv6)),
    (ADDRESSES_IN_USE, |pool| pool.used.ipv4.saturating_add(pool.used.ipv6)),
    (IPV4_ADDRESSES, |pool| pool.total.ipv4),
    (IPV4_ADDRESSES_IN_USE, |pool| pool.used.ipv4),
    (IPV6_ADDRESSES, |pool| pool.total.ipv6),
    (IPV6_ADDRESSES_IN_USE, |pool| pool.used.ipv6),
];

/// Writes what is used of each pool.
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

/// The name of a pool, with its namespace where another has the same (which files may).
fn label(pool: &PoolUse, all: &[PoolUse]) -> String {
    let same = all.iter().filter(|it| it.pool.name == pool.pool.name).count();
    if same > 1 { pool.pool.to_string() } else { pool.pool.name.clone() }
}
