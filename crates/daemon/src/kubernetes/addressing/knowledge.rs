//! What the API server says of pools, the node, namespaces and Pods, where addresses are given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::printable;
use fairway_ipam::calico::{Cluster, Refusal, notes, refusal};
use fairway_ipam::cni::PodNotes;
use fairway_ipam::{Facts, PodName};
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::warn;

use super::super::api::Api;
use super::super::resource::{IP_POOL, IP_RESERVATION, IPAM_CONFIG, POD, Resource};
use super::following::Followed;
use crate::ipam::Knowledge;

/// The time limit of one Pod.
const POD_TIMEOUT: Duration = Duration::from_secs(5);
/// The kinds without which nothing can be decided.
const NEEDED: [&str; 5] = ["IPPool", "IPAMConfig", "IPReservation", "Namespace", "Node"];

/// What is known at a moment.
#[derive(Debug, Default)]
pub(super) struct Known {
    facts: Arc<Facts>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pods: Arc<BTreeMap<PodName, Pod>>,
}

/// A Pod of this node.
#[derive(Debug, Clone)]
struct Pod {
    uid: String,
    notes: BTreeMap<String, String>,
}

/// See the module. Cheap to clone.
pub(super) struct ApiKnowledge {
    api: Api,
    known: watch::Receiver<Option<Arc<Known>>>,
}

impl ApiKnowledge {
    pub(super) fn new(api: Api, known: watch::Receiver<Option<Arc<Known>>>) -> Self {
        Self { api, known }
    }

    fn known(&self) -> Option<Arc<Known>> {
        self.known.borrow().clone()
    }
}

impl Knowledge for ApiKnowledge {
    fn facts(&self) -> Result<Arc<Facts>, String> {
        let known = self.known().ok_or("IPPools and nodes are not read from the API server yet")?;
        Ok(Arc::clone(&known.facts))
    }

    async fn notes(&self, pod: &PodName, uid: Option<&str>) -> Result<PodNotes, String> {
        let known = self.known().unwrap_or_default();
        let of_namespace = known.namespaces.get(&pod.namespace).cloned().unwrap_or_default();
        let seen = known.pods.get(pod).filter(|it| uid.is_none_or(|uid| it.uid == uid));
        let of_pod = match seen {
            Some(seen) => seen.notes.clone(),
            // The kubelet may have heard of it before this daemon.
            None => self.ask(pod, uid).await?,
        };
        Ok(PodNotes { of_pod, of_namespace })
    }
}

impl ApiKnowledge {
    async fn ask(
        &self,
        pod: &PodName,
        uid: Option<&str>,
    ) -> Result<BTreeMap<String, String>, String> {
        let path = format!("{}/{}", POD.in_namespace(&pod.namespace), pod.name);
        match self.api.get_metadata(&path, POD_TIMEOUT).await {
            Ok(object) if uid.is_some_and(|it| it != uid_of(&object)) => {
                Err(format!("Pod {}/{} is another one by now", pod.namespace, pod.name))
            }
            Ok(object) => Ok(notes(&object)),
            // A Pod of a file of the kubelet, which has none.
            Err(problem) if problem.code == Some(404) => Ok(BTreeMap::new()),
            Err(problem) => {
                Err(format!("cannot read Pod {}/{}: {problem}", pod.namespace, pod.name))
            }
        }
    }
}

/// The objects behind it.
pub(super) struct Objects {
    /// By kind and name, without what decides nothing.
    objects: BTreeMap<(&'static str, String), Value>,
    read: BTreeSet<&'static str>,
    /// What is wrong with objects of which an earlier version is in force.
    kept: BTreeMap<(&'static str, String), String>,
    pods: Arc<BTreeMap<PodName, Pod>>,
    tell: watch::Sender<Option<Arc<Known>>>,
    /// The faults that were logged.
    told: BTreeSet<String>,
}

impl Objects {
    pub(super) fn new() -> (Self, watch::Receiver<Option<Arc<Known>>>) {
        let (tell, known) = watch::channel(None);
        let (objects, read, kept, pods, told) = Default::default();
        (Self { objects, read, kept, pods, tell, told }, known)
    }

    /// Takes a change in. It counts once [`Self::publish`] is called.
    pub(super) fn follow(&mut self, kind: &'static str, followed: Followed) {
        if kind == POD.kind {
            return self.follow_pods(followed);
        }
        match followed {
            Followed::All(objects) => {
                let all = std::mem::take(&mut self.objects).into_iter();
                let (mut before, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    all.partition(|((of, _), _)| *of == kind);
                self.objects = others;
                self.kept.retain(|(of, _), _| *of != kind);
                for object in objects {
                    let earlier = before.remove(&(kind, name(&object)));
                    self.take(kind, object, earlier);
                }
                self.read.insert(kind);
            }
            Followed::Is(object) => {
                let earlier = self.objects.remove(&(kind, name(&object)));
                self.take(kind, object, earlier);
            }
            Followed::Gone(object) => {
                let key = (kind, name(&object));
                self.objects.remove(&key);
                self.kept.remove(&key);
            }
        }
    }

    /// An object is so now. One at fault leaves its earlier version in force: a typo in an IPReservation gives no reserved
    /// address away.
    fn take(&mut self, kind: &'static str, object: Value, earlier: Option<Value>) {
        let key = (kind, name(&object));
        let object = trimmed(kind, object);
        let mut cluster = Cluster::default();
        if WHOLE.iter().any(|it| it.kind == kind) && refusal(&object).is_none() {
            cluster.read(&object);
        }
        self.kept.remove(&key);
        match (cluster.faults.first(), earlier) {
            (Some(fault), Some(earlier)) => {
                let fault = format!("{fault}; its earlier version stays in force");
                self.kept.insert(key.clone(), fault);
                self.objects.insert(key, earlier);
            }
            _ => _ = self.objects.insert(key, object),
        }
    }

    fn follow_pods(&mut self, followed: Followed) {
        let mut pods = BTreeMap::clone(&self.pods);
        match followed {
            Followed::All(objects) => pods = objects.iter().map(pod).collect(),
            Followed::Is(object) => pods.extend([pod(&object)]),
            Followed::Gone(object) => _ = pods.remove(&pod(&object).0),
        }
        self.pods = Arc::new(pods);
    }

    /// Says what is known now, once nothing is missing.
    pub(super) fn publish(&mut self) {
        if NEEDED.iter().any(|it| !self.read.contains(it)) {
            return;
        }
        let (mut cluster, mut faults) = (Cluster::default(), BTreeSet::new());
        for object in self.objects.values() {
            match refusal(object) {
                Some(Refusal { pool, mode }) => _ = faults.insert(format!("IPPool {pool}: {mode}")),
                None => cluster.read(object),
            }
        }
        faults.extend(cluster.faults.iter().map(ToString::to_string));
        faults.extend(self.kept.values().cloned());
        for fault in faults.difference(&self.told) {
            warn!("{}", printable(fault));
        }
        self.told = faults;
        let Cluster { facts, notes: namespaces, .. } = cluster;
        let pods = Arc::clone(&self.pods);
        self.tell.send_replace(Some(Arc::new(Known { facts: Arc::new(facts), namespaces, pods })));
    }
}

/// The kinds that are read whole.
const WHOLE: [Resource; 3] = [IP_POOL, IPAM_CONFIG, IP_RESERVATION];

/// What decides of an object, with its version and kind, which those of a list lack.
fn trimmed(kind: &'static str, object: Value) -> Value {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let name = part("/metadata/name");
    match WHOLE.iter().find(|it| it.kind == kind) {
        Some(resource) => json!({
            "apiVersion": resource.api_version,
            "kind": kind,
            "metadata": {"name": name},
            "spec": part("/spec"),
        }),
        None => json!({
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "labels": part("/metadata/labels"), "annotations": notes(&object)},
        }),
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

/// The UID as runtimes know it: that of a Pod of a file is noted on what the API server has of it.
fn uid_of(object: &Value) -> String {
    let of_file = text(object, "/metadata/annotations/kubernetes.io~1config.mirror");
    if of_file.is_empty() { text(object, "/metadata/uid") } else { of_file }
}

fn pod(object: &Value) -> (PodName, Pod) {
    let pod = PodName { namespace: text(object, "/metadata/namespace"), name: name(object) };
    (pod, Pod { uid: uid_of(object), notes: notes(object) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(prefix: &str) -> Value {
        json!({"metadata": {"name": "r"}, "spec": {"reservedCIDRs": [prefix]}})
    }

    #[test]
    fn a_reservation_at_fault_leaves_its_earlier_version_in_force() {
        let (mut objects, known) = Objects::new();
        let kind = IP_RESERVATION.kind;
        let mut reserved = |followed: Followed| {
            NEEDED.iter().for_each(|it| _ = objects.read.insert(it));
            objects.follow(kind, followed);
            objects.publish();
            let facts = Arc::clone(&known.borrow().as_ref().unwrap().facts);
            let prefixes: Vec<String> =
                facts.reservations.iter().map(ToString::to_string).collect();
            (prefixes, objects.told.len())
        };
        let good = || (vec!["10.0.0.0/28".to_owned()], 0);
        let is = |prefix: &str| Followed::Is(reservation(prefix));
        assert_eq!(reserved(Followed::All(vec![reservation("10.0.0.0/28")])), good());
        assert_eq!(reserved(is("10.0.0.0/2x")), (good().0, 1));
        assert_eq!(reserved(Followed::All(vec![reservation("10.0.0.0/2x")])), (good().0, 1));
        assert_eq!(reserved(is("10.0.0.16/28")), (vec!["10.0.0.16/28".to_owned()], 0));
        assert_eq!(reserved(Followed::Gone(reservation("10.0.0.0/2x"))), (vec![], 0));
    }
}
