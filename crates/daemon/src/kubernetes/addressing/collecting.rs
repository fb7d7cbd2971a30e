//! Beside the leading controller: what nobody uses any more is taken back. A pass lists everything, so that nothing is watched
//! in between, and asks once more for each Pod whose address it is about to take.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_ground::printable;
use fairway_ipam::calico::{Cluster, Refusal, refusal};
use fairway_ipam::{
    Addressing, Census, Collected, Collector, Facts, Moment, PodName, PodState, StoreError,
};
use fairway_model::Kind;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::super::api::{Api, Problem};
use super::super::resource::{IP_POOL, IP_RESERVATION, IPAM_CONFIG, POD, Resource};
use super::store::{ApiStore, for_each};
use crate::host::epoch_milliseconds;

/// The time limit of one object.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two passes without a grace, and the shortest one with.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(450);

/// Collects for as long as the process runs, if there is a grace.
pub(crate) fn start(api: &Api, leads: &watch::Receiver<bool>, grace: Option<Duration>) {
    if let Some(grace) = grace {
        tokio::spawn(collect(api.clone(), leads.clone(), grace));
    }
}

/// Collects while this controller leads. `grace` is how long an address has to be without its Pod; with 0, only what nodes
/// that are gone left behind is taken back.
async fn collect(api: Api, mut leads: watch::Receiver<bool>, grace: Duration) {
    while leads.wait_for(|it| *it).await.is_ok() {
        tokio::select! {
            () = collect_as_leader(&api, grace) => {}
            _ = leads.wait_for(|it| !*it) => {}
        }
    }
}

async fn collect_as_leader(api: &Api, grace: Duration) {
    info!(grace = ?grace, "collecting addresses that no Pod has any more");
    let store = ApiStore::new(api.clone());
    let mut collector = Collector::default();
    let mut trouble: Option<String> = None;
    let pause = if grace.is_zero() { PAUSE_MAX } else { grace / 2 };
    loop {
        let failure = match pass(api, &store, &mut collector, grace).await {
            Ok(collected) => {
                tell(&collected);
                collected.errors.first().map(ToString::to_string)
            }
            Err(reason) => Some(reason),
        };
        if let Some(reason) = failure.as_ref().filter(|_| trouble.is_none()) {
            warn!("cannot collect addresses: {}; trying again", printable(reason));
        }
        trouble = failure;
        sleep(pause.clamp(PAUSE_MIN, PAUSE_MAX)).await;
    }
}

async fn pass(
    api: &Api,
    store: &ApiStore,
    collector: &mut Collector,
    grace: Duration,
) -> Result<Collected, String> {
    let mut cluster = Cluster::default();
    let kinds = [IP_POOL, IPAM_CONFIG, IP_RESERVATION, Resource::read(Kind::Node), POD];
    for resource in kinds {
        let read = for_each(api, resource, |object| {
            let is_other_config =
                resource.kind == IPAM_CONFIG.kind && name(&object) != DEFAULT_CONFIG;
            if !is_other_config && refusal(&object).is_none_or(|it: Refusal| it.pool.is_empty()) {
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
    collected.map_err(|it| it.to_string())
}

/// The IPAMConfig that counts.
const DEFAULT_CONFIG: &str = "default";

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
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
