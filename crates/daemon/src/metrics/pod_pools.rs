//! The metrics of the controller that takes addresses of Pods back: how full pools are, and what was taken back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::families::{
    IPAM_COLLECTED, IPAM_LEAKED, IPAM_PASS_FAILURES, IPAM_POOL, IPAM_POOL_AVAILABLE,
};
use super::page::Page;

/// How full an IPPool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFill {
    /// Its name.
    pub name: String,
    /// Its addresses but those that are reserved.
    pub addresses: u128,
    /// Those that could be given.
    pub available: u128,
}

#[derive(Debug, Default)]
struct State {
    pools: Vec<PoolFill>,
    leaked: usize,
    collected: usize,
    failures: u64,
}

/// What the collector has counted.
#[derive(Debug, Default)]
pub struct PodPoolCounters(Mutex<State>);

impl PodPoolCounters {
    /// A pass found pools so full, and this many addresses without a Pod, and took others back.
    pub fn passed(&self, pools: Vec<PoolFill>, leaked: usize, collected: usize) {
        let mut state = self.state();
        (state.pools, state.leaked) = (pools, leaked);
        state.collected = state.collected.saturating_add(collected);
    }

    /// A pass failed, at least in part.
    pub fn failed(&self) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
    }

    /// Another controller leads now: what is known here is no longer true.
    pub fn forget_pools(&self) {
        let mut state = self.state();
        (state.pools, state.leaked) = Default::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, page: &mut Page) {
        let state = self.state();
        let mut samples = page.family(&IPAM_POOL);
        state.pools.iter().for_each(|it| samples.add(&[&it.name], it.addresses));
        let mut samples = page.family(&IPAM_POOL_AVAILABLE);
        state.pools.iter().for_each(|it| samples.add(&[&it.name], it.available));
        page.number(&IPAM_LEAKED, state.leaked);
        page.number(&IPAM_COLLECTED, state.collected);
        page.number(&IPAM_PASS_FAILURES, state.failures);
    }
}
