//! Which prefixes of Pods this node announces: they go to the plan, and to disk, so that a restart withdraws none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fairway_ground::Prefix;
use fairway_ipam::{
    Affinity, Block, Facts, Owner, RememberedStore, Store, StoreError, is_for_no_pod, routes,
};
use fairway_node::document::{FormatError, decode_document, encode_document};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tracing::{error, info};

use crate::host::boot_id;
use crate::host::state_file::StateFile;
use crate::metrics::{PodAddressCounters, PoolShare};
use crate::node::PodAddresses;

/// The file in the state directory.
const STATE_FILE: &str = "pod-blocks.json";
const STATE_VERSION: u64 = 1;

/// A store that knows what concerns this node.
pub(crate) trait NodeStore: Store {
    /// The blocks that concern the node, and its affinities; `None` before they are known.
    fn own(&self) -> Option<(Vec<Block>, Vec<Affinity>)>;

    /// Reads again what others may have changed unheard.
    fn refresh(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads what is not known of blocks that the node owns now.
    fn settle(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl<S: Store + Send> NodeStore for Arc<RememberedStore<S>> {
    fn own(&self) -> Option<(Vec<Block>, Vec<Affinity>)> {
        RememberedStore::own(self)
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        RememberedStore::refresh(self).await
    }

    async fn settle(&self) -> Result<(), StoreError> {
        RememberedStore::settle(self).await
    }
}

/// What was announced when it was saved.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// Which start of the machine: after another one, its Pods are gone.
    boot: Option<String>,
    /// With the name of their pool.
    prefixes: BTreeMap<Prefix, String>,
}

/// See the module.
pub(crate) struct AnnouncedBlocks {
    tell: watch::Sender<BTreeMap<Prefix, String>>,
    file: StateFile,
    counters: Arc<PodAddressCounters>,
}

impl AnnouncedBlocks {
    /// Those of the run before, until others are known.
    pub(crate) fn start(state_dir: &Path) -> (Self, PodAddresses) {
        let file = StateFile::new(state_dir, STATE_FILE);
        let decode = |text: &str| -> Result<Saved, FormatError> {
            Ok(serde_json::from_value(decode_document(text, STATE_VERSION)?)?)
        };
        let saved = file.load(decode).unwrap_or_else(|error| {
            error!("{error}; blocks of Pods are announced once they are known");
            None
        });
        let saved = saved.filter(|it| it.boot.is_some() && it.boot == boot_id());
        let (tell, blocks) = watch::channel(saved.map(|it| it.prefixes).unwrap_or_default());
        let counters = Arc::<PodAddressCounters>::default();
        (Self { tell, file, counters: Arc::clone(&counters) }, PodAddresses { blocks, counters })
    }

    /// For the metrics.
    pub(super) fn counters(&self) -> &Arc<PodAddressCounters> {
        &self.counters
    }

    /// Announces what the store says now, if it knows.
    pub(super) async fn follow(&self, store: &impl NodeStore, facts: &Facts, node: &str) {
        let Some((blocks, affinities)) = store.own() else { return };
        self.counters.pools(shares(&blocks, facts, node));
        let announced = routes(node, blocks.iter(), affinities.iter(), facts).announced;
        // Pods keep the addresses of a pool that is deleted, or refused.
        let before = self.tell.borrow().clone();
        let pool_of = |it: &Prefix| {
            let pool = facts.pool_of(it.address()).map(|it| it.name.clone());
            pool.or_else(|| before.get(it).cloned()).unwrap_or_default()
        };
        let announced: BTreeMap<Prefix, String> =
            announced.into_iter().map(|it| (it, pool_of(&it))).collect();
        if !self.tell.send_if_modified(|before| {
            let is_new = *before != announced;
            before.clone_from(&announced);
            is_new
        }) {
            return;
        }
        info!(count = announced.len(), "the prefixes of Pods of this node have changed");
        let file = self.file.clone();
        let saved = Saved { boot: boot_id(), prefixes: announced };
        let body = serde_json::to_value(&saved).ok().and_then(|it| it.as_object().cloned());
        let text = encode_document(STATE_VERSION, body.unwrap_or_default());
        if let Ok(Err(error)) = spawn_blocking(move || file.save(&text)).await {
            error!("{error}; a restart withdraws the blocks of Pods for a moment");
        }
    }
}

/// What each pool has on this node, by the blocks that concern it.
fn shares(blocks: &[Block], facts: &Facts, node: &str) -> BTreeMap<String, PoolShare> {
    let owner = Owner::Host(node.to_owned());
    let pools = facts.pools.iter().map(|it| (it.name.clone(), PoolShare::default()));
    let mut shares: BTreeMap<String, PoolShare> = pools.collect();
    for block in blocks {
        let Some(pool) = facts.pool_of(block.prefix().address()) else { continue };
        let share = shares.entry(pool.name.clone()).or_default();
        let is_own = block.owner() == Some(&owner);
        let is_here = |it: &fairway_ipam::Attributes| {
            let named = it.secondary.get("node").map(String::as_str);
            let is_of_pod = it.handle.as_deref().is_none_or(|it| !is_for_no_pod(it));
            it.released_at.is_none() && is_of_pod && named.map_or(is_own, |it| it == node)
        };
        let count = block.taken().filter(|(_, it)| is_here(it)).count();
        share.in_use = share.in_use.saturating_add(count);
        if is_own {
            share.blocks = share.blocks.saturating_add(1);
            share.free = share.free.saturating_add(block.free_count());
        } else {
            share.borrowed = share.borrowed.saturating_add(count);
        }
    }
    shares
}
