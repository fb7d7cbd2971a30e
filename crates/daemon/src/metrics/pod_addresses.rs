//! The metrics of the role that gives Pods their addresses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_seam::Latencies;

use super::families::{
    IPAM_ADD, IPAM_BLOCKS, IPAM_BORROWED, IPAM_CALLS, IPAM_FREE, IPAM_IN_USE, IPAM_WAITING,
};
use super::page::Page;

/// What one pool has on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolShare {
    /// Blocks that the node owns.
    pub blocks: usize,
    /// Addresses that its Pods have.
    pub in_use: usize,
    /// Free addresses of its blocks.
    pub free: usize,
    /// Those of `in_use` that are of other nodes' blocks.
    pub borrowed: usize,
}

#[derive(Debug, Default)]
struct State {
    pools: BTreeMap<String, PoolShare>,
    /// By command, and the code of the CNI specification; 0 for no error.
    calls: BTreeMap<(&'static str, u8), u64>,
    adds: Latencies,
    waiting: usize,
}

/// What the role has counted.
#[derive(Debug, Default)]
pub struct PodAddressCounters(Mutex<State>);

impl PodAddressCounters {
    /// A call was answered, so long after it came.
    pub fn answered(&self, command: &'static str, code: u8, after: Duration) {
        let mut state = self.state();
        let count = state.calls.entry((command, code)).or_default();
        *count = count.saturating_add(1);
        if command == "ADD" && code == 0 {
            state.adds.note(after);
        }
    }

    /// So many deletions wait in the spool.
    pub fn waiting(&self, count: usize) {
        self.state().waiting = count;
    }

    /// What each pool has on this node.
    pub fn pools(&self, pools: BTreeMap<String, PoolShare>) {
        self.state().pools = pools;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, page: &mut Page) {
        let state = self.state();
        let mut family = |family, number: fn(&PoolShare) -> usize| {
            let mut samples = page.family(family);
            for (pool, share) in &state.pools {
                samples.add(&[pool], number(share));
            }
        };
        family(&IPAM_BLOCKS, |it| it.blocks);
        family(&IPAM_IN_USE, |it| it.in_use);
        family(&IPAM_FREE, |it| it.free);
        family(&IPAM_BORROWED, |it| it.borrowed);
        let mut samples = page.family(&IPAM_CALLS);
        for ((command, code), count) in &state.calls {
            samples.add(&[command, &code.to_string()], count);
        }
        page.histogram(&IPAM_ADD, &state.adds);
        page.number(&IPAM_WAITING, state.waiting);
    }
}
