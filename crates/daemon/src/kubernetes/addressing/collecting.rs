//! Beside the leading controller: what nobody uses any more is taken back. A pass lists everything, so that nothing is watched
//! in between, and asks once more for each Pod whose address it is about to take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{EventRecord, EventSubject};
use fairway_ground::{Prefix, printable};
use fairway_ipam::calico::{Cluster, Refusal, refusal};
use fairway_ipam::{
    Addressing, Census, Collected, Collector, Facts, Moment, PodName, PodState, StoreError,
};
use fairway_model::{Kind, ObjectName};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::super::api::{Api, Problem};
use super::super::event::{EventSource, Events};
use super::super::resource::{IP_POOL, IP_RESERVATION, IPAM_CONFIG, POD, Resource};
use super::store::{ApiStore, for_each};
use crate::host::epoch_milliseconds;
use crate::metrics::{PodPoolCounters, PoolFill};

/// The time limit of one object.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two passes without a grace, and the shortest one with.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(450);

/// The task, with what it remembers from pass to pass.
pub(crate) struct Collecting {
    api: Api,
    store: ApiStore,
    leads: watch::Receiver<bool>,
    /// How long an address has to be without its Pod; with 0, only what nodes that are gone left behind is taken back.
    grace: Duration,
    events: Events,
    counters: Arc<PodPoolCounters>,
    /// The pools that have no address left, which were told.
    exhausted: BTreeSet<String>,
}

impl Collecting {
    /// Nothing is collected without a grace.
    pub(crate) fn new(
        api: &Api,
        source: &EventSource,
        leads: &watch::Receiver<bool>,
        grace: Option<Duration>,
    ) -> Option<Self> {
        Some(Self {
            grace: grace?,
            api: api.clone(),
            store: ApiStore::new(api.clone()),
            leads: leads.clone(),
            events: Events::start(api.clone(), source.clone()),
            counters: Arc::default(),
            exhausted: BTreeSet::new(),
        })
    }

    /// Collects for as long as the process runs, while this controller leads. Returns what is counted.
    pub(crate) fn start(mut self) -> Arc<PodPoolCounters> {
        let counters = Arc::clone(&self.counters);
        let mut leads = self.leads.clone();
        tokio::spawn(async move {
            while leads.wait_for(|it| *it).await.is_ok() {
                tokio::select! {
                    () = self.collect() => {}
                    _ = leads.wait_for(|it| !*it) => {}
                }
                self.counters.forget_pools();
            }
        });
        counters
    }

    async fn collect(&mut self) {
        info!(grace = ?self.grace, "collecting addresses that no Pod has any more");
        let mut collector = Collector::default();
        let mut trouble: Option<String> = None;
        let pause = if self.grace.is_zero() { PAUSE_MAX } else { self.grace / 2 };
        loop {
            let failure = match pass(&self.api, &self.store, &mut collector, self.grace).await {
                Ok((collected, pools)) => {
                    tell(&collected);
                    self.note(&collected, &pools);
                    collected.errors.first().map(ToString::to_string)
                }
                Err(reason) => Some(reason),
            };
            if let Some(reason) = &failure {
                self.counters.failed();
                if trouble.is_none() {
                    warn!("cannot collect addresses: {}; trying again", printable(reason));
                }
            }
            trouble = failure;
            sleep(pause.clamp(PAUSE_MIN, PAUSE_MAX)).await;
        }
    }

    /// Counts how full pools are, and posts an Event about one that has just run out.
    fn note(&mut self, collected: &Collected, pools: &BTreeMap<Prefix, PoolName>) {
        let mut fills = Vec::with_capacity(collected.pools.len());
        let before = std::mem::take(&mut self.exhausted);
        for usage in &collected.pools {
            let Some(PoolName { name, uid }) = pools.get(&usage.prefix) else { continue };
            let addresses = usage.capacity.saturating_sub(usage.reserved);
            if usage.available == 0 && addresses > 0 {
                if !before.contains(name) {
                    let message = format!(
                        "all {addresses} addresses of {} that Pods behind a gateway may have are in use",
                        usage.prefix
                    );
                    warn!(pool = printable(name).to_string(), "{message}");
                    let record = EventRecord {
                        kind: EventSubject::IpPool,
                        name: ObjectName::new("", name.as_str()),
                        uid: uid.clone(),
                        is_warning: true,
                        reason: "PoolExhausted",
                        message,
                    };
                    self.events.post(record, epoch_milliseconds() / 1000);
                }
                self.exhausted.insert(name.clone());
            }
            fills.push(PoolFill { name: name.clone(), addresses, available: usage.available });
        }
        self.counters.passed(fills, collected.candidates.len(), collected.released.len());
    }
}

/// An IPPool.
pub(super) struct PoolName {
    name: String,
    uid: String,
}

/// One look at everything. Also what each pool is called.
pub(super) async fn pass(
    api: &Api,
    store: &ApiStore,
    collector: &mut Collector,
    grace: Duration,
) -> Result<(Collected, BTreeMap<Prefix, PoolName>), String> {
    let (mut cluster, mut uids) = (Cluster::default(), BTreeMap::new());
    let kinds = [IP_POOL, IPAM_CONFIG, IP_RESERVATION, Resource::read(Kind::Node), POD];
    for resource in kinds {
        let read = for_each(api, resource, |object| {
            let is_other_config =
                resource == IPAM_CONFIG && text(&object, "/metadata/name") != DEFAULT_CONFIG;
            if !is_other_config && refusal(&object).is_none_or(|it: Refusal| it.pool.is_empty()) {
                if resource == IP_POOL {
                    uids.insert(text(&object, "/metadata/name"), text(&object, "/metadata/uid"));
                }
                cluster.read(&object);
            }
        });
        read.await.map_err(|problem| format!("{}: {problem}", resource.plural))?;
    }
    let Cluster { facts, pods, .. } = cluster;
    let census = ApiCensus { api, facts: &facts, pods: pods.unwrap_or_default() };
    let now = Moment::from_nanoseconds(epoch_milliseconds().saturating_mul(1_000_000));
    let addressing = Addressing { store, facts: &facts, now };
    let collected = collector.pass(&addressing, &census, grace.as_secs()).await;
    let collected = collected.map_err(|it| it.to_string())?;
    let named = facts.pools.iter().map(|it| {
        let uid = uids.get(&it.name).cloned().unwrap_or_default();
        (it.prefix, PoolName { name: it.name.clone(), uid })
    });
    Ok((collected, named.collect()))
}

/// The IPAMConfig that counts.
const DEFAULT_CONFIG: &str = "default";

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn tell(collected: &Collected) {
    let Collected { released, blocks, hosts, .. } = collected;
    for address in released {
        info!(%address, "released: its Pod is gone");
    }
    for block in blocks {
        info!(%block, "the block has no owner any more");
    }
    for host in hosts {
        info!(node = printable(host).to_string(), "cleared: the node is gone");
    }
}

/// Pods and nodes of a pass, and as the API server has them now.
struct ApiCensus<'a> {
    api: &'a Api,
    facts: &'a Facts,
    pods: BTreeMap<PodName, PodState>,
}

impl ApiCensus<'_> {
    async fn now(&self, path: &str) -> Result<Option<Value>, StoreError> {
        match self.api.get(path, OBJECT_TIMEOUT).await {
            Ok(object) => Ok(Some(object)),
            Err(Problem { code: Some(404), .. }) => Ok(None),
            Err(problem) => Err(StoreError::Unavailable(problem.to_string())),
        }
    }
}

impl Census for ApiCensus<'_> {
    fn pod(&self, name: &PodName) -> Option<PodState> {
        self.pods.get(name).cloned()
    }

    fn has_node(&self, name: &str) -> bool {
        self.facts.nodes.contains_key(name)
    }

    async fn pod_now(&self, name: &PodName) -> Result<Option<PodState>, StoreError> {
        let path = format!("{}/{}", POD.in_namespace(&name.namespace), name.name);
        let mut cluster = Cluster::default();
        if let Some(object) = self.now(&path).await? {
            cluster.read(&object);
        }
        Ok(cluster.pods.and_then(|it| it.get(name).cloned()))
    }

    async fn has_node_now(&self, name: &str) -> Result<bool, StoreError> {
        let path = format!("{}/{name}", Resource::read(Kind::Node).in_namespace(""));
        Ok(self.now(&path).await?.is_some())
    }
}
