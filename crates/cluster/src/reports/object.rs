//! The objects that a speaker writes: names, labels, content.
//!
//! Fields and labels are MetalLB's, and of sessions frr-k8s's. Knows neither what is stored nor when it is
//! written. Names are derived from the content, so that a restarted speaker finds its own objects and
//! overwrites them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::Remote;
use fairway_model::ObjectName;
use fairway_resources::status::{
    BgpSessionStateStatus, Condition, ConfigurationStateStatus, InterfaceStatus, ServiceBgpStatus,
    ServiceL2Status,
};
use fairway_resources::{Finding, Severity};
use fairway_seam::{PeerView, SessionState};
use serde_json::{Map, Value, json};

use super::ReportFacts;
use super::stored::Known;
use crate::configuration_state::{
    Component, configuration_object, configuration_status, fault_summary,
};
use crate::write::{OwnPod, WrittenKind, digest, label_value, own_reference};

/// The fields of [`ConfigurationStateStatus`] that are written even if they are empty: MetalLB may have left
/// values there.
const ERROR_SUMMARY: &str = "errorSummary";
/// The label of MetalLB's objects with the name of their node.
const NODE_LABEL: &str = "metallb.io/node";
/// The same label of frr-k8s.
const SESSION_NODE_LABEL: &str = "frrk8s.metallb.io/node";
/// The prefix of the names of our sessions; those of frr-k8s start with the node.
const SESSION_PREFIX: &str = "session-";
const SERVICE_PREFIX: &str = "bgp-";
const LAYER2_PREFIX: &str = "l2-";
/// frr-k8s's word for a session without BFD.
const NO_BFD: &str = "N/A";

/// The key of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: WrittenKind,
    pub(super) name: String,
}

/// The content of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    Configuration(ConfigurationStateStatus),
    Session(BgpSessionStateStatus),
    Service(ServiceBgpStatus),
    Layer2(ServiceL2Status),
}

impl Status {
    fn parse(kind: WrittenKind, value: &Value) -> Option<Self> {
        let value = value.clone();
        match kind {
            WrittenKind::ConfigurationState => {
                serde_json::from_value(value).ok().map(Self::Configuration)
            }
            WrittenKind::BgpSessionState => serde_json::from_value(value).ok().map(Self::Session),
            WrittenKind::ServiceBgpStatus => serde_json::from_value(value).ok().map(Self::Service),
            WrittenKind::ServiceL2Status => serde_json::from_value(value).ok().map(Self::Layer2),
            _ => None,
        }
    }

    /// Keeps the times of `before` in conditions with an unchanged status.
    pub(super) fn keeping_times(self, before: Option<&Self>) -> Self {
        match (self, before) {
            (Self::Configuration(mut status), Some(Self::Configuration(before))) => {
                for condition in &mut status.conditions {
                    let same = |it: &&Condition| {
                        (&it.kind, it.status) == (&condition.kind, condition.status)
                    };
                    if let Some(before) = before.conditions.iter().find(same) {
                        condition.last_transition_time.clone_from(&before.last_transition_time);
                    }
                }
                Self::Configuration(status)
            }
            (status, _) => status,
        }
    }

    /// Whether `wanted` has the same content; conditions of others do not count.
    pub(super) fn says_the_same(&self, wanted: &Self) -> bool {
        match (self, wanted.clone().keeping_times(Some(self))) {
            (Self::Configuration(it), Self::Configuration(wanted)) => {
                let has = |condition| it.conditions.contains(condition);
                (it.result, &it.error_summary) == (wanted.result, &wanted.error_summary)
                    && wanted.conditions.iter().all(has)
            }
            (it, wanted) => *it == wanted,
        }
    }

    /// Whether both report a session as down, without any other change.
    pub(super) fn is_another_attempt_of(&self, before: &Self) -> bool {
        let up = SessionState::Established.name();
        let (Self::Session(now), Self::Session(before)) = (self, before) else { return false };
        now.bgp_status != up && before.bgp_status != up && now.bfd_status == before.bfd_status
    }

    /// The Service of the object.
    pub(super) fn service(&self) -> Option<ObjectName> {
        match self {
            Self::Service(it) => Some(ObjectName::new(&it.service_namespace, &it.service_name)),
            Self::Layer2(it) => Some(ObjectName::new(&it.service_namespace, &it.service_name)),
            _ => None,
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Configuration(status) => {
                let mut value = json!(status);
                if let Some(fields) = value.as_object_mut() {
                    fields.entry(ERROR_SUMMARY).or_insert_with(|| json!(""));
                }
                value
            }
            Self::Session(status) => json!(status),
            Self::Service(status) => json!(status),
            Self::Layer2(status) => json!(status),
        }
    }
}

/// The BFD state of the path, in FRR's words as frr-k8s has them.
fn bfd_status(peer: &PeerView) -> &'static str {
    match peer.config.bfd {
        None => NO_BFD,
        Some(_) => peer.bfd_status(),
    }
}

/// Builds and reads the objects of one node.
#[derive(Debug)]
pub(super) struct Writer {
    node: String,
    namespace: String,
    pod: Option<OwnPod>,
    component: Component,
}

impl Writer {
    pub(super) fn new(node: String, namespace: String, pod: Option<OwnPod>) -> Self {
        Self { component: Component::Speaker(node.clone()), node, namespace, pod }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// All desired objects. `services`: which peers have the routes of which Service; `answered`: which
    /// Services this node answers for, and on which interfaces.
    pub(super) fn wanted(
        &self,
        facts: &ReportFacts<'_>,
        services: BTreeMap<&ObjectName, BTreeSet<&str>>,
        answered: BTreeMap<&ObjectName, Option<BTreeSet<&str>>>,
        epoch_seconds: u64,
    ) -> BTreeMap<Key, Status> {
        let sessions = facts.bgp.peers.iter().filter(|peer| !peer.config.key.is_range());
        let mut wanted: BTreeMap<Key, Status> = sessions.map(|it| self.session(it)).collect();
        wanted.extend(services.into_iter().map(|(name, peers)| self.service(name, peers)));
        wanted.extend(answered.into_iter().map(|(name, on)| self.layer2(name, on)));
        wanted.extend(self.configuration(facts, epoch_seconds));
        wanted
    }

    fn session(&self, peer: &PeerView) -> (Key, Status) {
        let key = peer.config.key;
        let status = BgpSessionStateStatus {
            node: self.node.clone(),
            peer: peer_text(key.remote),
            vrf: key.vrf.map(|it| it.to_string()).unwrap_or_default(),
            bgp_status: peer.state.name().to_owned(),
            bfd_status: bfd_status(peer).to_owned(),
        };
        let name = name(SESSION_PREFIX, &[&self.node, &status.peer, &status.vrf]);
        (Key { kind: WrittenKind::BgpSessionState, name }, Status::Session(status))
    }

    fn service(&self, service: &ObjectName, peers: BTreeSet<&str>) -> (Key, Status) {
        let name = name(SERVICE_PREFIX, &[&self.node, &service.namespace, &service.name]);
        let status = ServiceBgpStatus {
            node: self.node.clone(),
            service_name: service.name.clone(),
            service_namespace: service.namespace.clone(),
            peers: peers.into_iter().map(str::to_owned).collect(),
        };
        (Key { kind: WrittenKind::ServiceBgpStatus, name }, Status::Service(status))
    }

    fn layer2(&self, service: &ObjectName, on: Option<BTreeSet<&str>>) -> (Key, Status) {
        let name = name(LAYER2_PREFIX, &[&self.node, &service.namespace, &service.name]);
        let interface = |name: &str| InterfaceStatus { name: name.to_owned() };
        let status = ServiceL2Status {
            node: self.node.clone(),
            service_name: service.name.clone(),
            service_namespace: service.namespace.clone(),
            interfaces: on.into_iter().flatten().map(interface).collect(),
        };
        (Key { kind: WrittenKind::ServiceL2Status, name }, Status::Layer2(status))
    }

    fn configuration(&self, facts: &ReportFacts<'_>, since: u64) -> Option<(Key, Status)> {
        let left_out = facts.plan.into_iter().flat_map(|plan| &plan.faults);
        let left_out = left_out.map(|fault| fault_of_this_node(fault.to_string()));
        let set_aside = facts.bgp.peers.iter().filter_map(|peer| {
            let why = peer.set_aside.as_ref()?;
            let name = &peer.config.name;
            Some(fault_of_this_node(format!("BGPPeer {name} is set aside: {why}")))
        });
        let not_in_force = facts.bgp.faults.iter().cloned().map(fault_of_this_node);
        let here: Vec<Finding> = left_out.chain(set_aside).chain(not_in_force).collect();
        let summary = fault_summary(facts.findings.iter().chain(&here));
        let object = configuration_status(&self.component, &self.namespace, &summary, since);
        let kind = WrittenKind::ConfigurationState;
        let status = Status::parse(kind, object.get("status")?)?;
        Some((Key { kind, name: self.component.object_name() }, status))
    }

    /// The object without its status.
    pub(super) fn object(&self, key: &Key, status: &Status) -> Value {
        if let Status::Configuration(_) = status {
            return configuration_object(&self.component, &self.namespace, self.pod.as_ref());
        }
        let mut object = self.named(key);
        let owners = self.pod.as_ref().map(|pod| json!([own_reference(pod)]));
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("labels".to_owned(), self.labels(status).into());
            metadata.extend(owners.map(|it| ("ownerReferences".to_owned(), it)));
        }
        object
    }

    /// Its status.
    pub(super) fn status(&self, key: &Key, status: &Status) -> Value {
        let mut object = self.named(key);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("status".to_owned(), status.json());
        }
        object
    }

    fn named(&self, key: &Key) -> Value {
        let (version, kind) = match key.kind {
            WrittenKind::BgpSessionState => ("frrk8s.metallb.io/v1beta1", "BGPSessionState"),
            WrittenKind::ConfigurationState => ("metallb.io/v1beta1", "ConfigurationState"),
            WrittenKind::ServiceL2Status => ("metallb.io/v1beta1", "ServiceL2Status"),
            _ => ("metallb.io/v1beta1", "ServiceBGPStatus"),
        };
        let metadata = json!({ "name": key.name, "namespace": self.namespace });
        json!({ "apiVersion": version, "kind": kind, "metadata": metadata })
    }

    fn labels(&self, status: &Status) -> Map<String, Value> {
        let labels = match status {
            Status::Service(ServiceBgpStatus { service_name, service_namespace, .. })
            | Status::Layer2(ServiceL2Status { service_name, service_namespace, .. }) => json!({
                NODE_LABEL: label_value(&self.node),
                "metallb.io/service-name": label_value(service_name),
                "metallb.io/service-namespace": label_value(service_namespace),
            }),
            Status::Session(it) => json!({
                SESSION_NODE_LABEL: label_value(&self.node),
                "frrk8s.metallb.io/peer": label_value(&it.peer),
                "frrk8s.metallb.io/vrf": label_value(&it.vrf),
            }),
            Status::Configuration(_) => {
                let object = configuration_object(&self.component, &self.namespace, None);
                object.pointer("/metadata/labels").cloned().unwrap_or_default()
            }
        };
        labels.as_object().cloned().unwrap_or_default()
    }

    /// The selector for all objects of a kind that may be ours.
    pub(super) fn label_selector(&self, kind: WrittenKind) -> String {
        let node = label_value(&self.node);
        match kind {
            WrittenKind::BgpSessionState => format!("{SESSION_NODE_LABEL}={node}"),
            WrittenKind::ConfigurationState => {
                let labels = self.labels(&Status::Configuration(Default::default()));
                let terms = labels.iter().filter_map(|(key, it)| Some((key, it.as_str()?)));
                terms.map(|(key, it)| format!("{key}={it}")).collect::<Vec<_>>().join(",")
            }
            _ => format!("{NODE_LABEL}={node}"),
        }
    }

    /// The objects in a list that are ours, or in the place of ours: those that MetalLB's speaker of this
    /// node has left behind are, sessions of frr-k8s are not.
    pub(super) fn read(&self, kind: WrittenKind, objects: &[Arc<Value>]) -> Vec<(Key, Known)> {
        let known = objects.iter().filter_map(|object| {
            let name = object.pointer("/metadata/name")?.as_str()?.to_owned();
            let is_ours = match kind {
                WrittenKind::BgpSessionState => name.starts_with(SESSION_PREFIX),
                WrittenKind::ConfigurationState => name == self.component.object_name(),
                _ => true,
            };
            if !is_ours {
                return None;
            }
            let status = object.get("status").and_then(|it| Status::parse(kind, it));
            let is_described = status.as_ref().is_some_and(|it| self.is_described(object, it));
            Some((Key { kind, name }, Known { is_described, status, written_at: None }))
        });
        known.collect()
    }

    /// Whether it has the desired labels and owner.
    fn is_described(&self, object: &Value, status: &Status) -> bool {
        let labels = object.pointer("/metadata/labels");
        let has =
            |(key, value): (&String, &Value)| labels.and_then(|it| it.get(key)) == Some(value);
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_owner = |pod: &OwnPod| {
            let uid = |it: &Value| it.get("uid").and_then(Value::as_str) == Some(&pod.uid);
            owners.is_some_and(|owners| owners.iter().any(uid))
        };
        self.labels(status).iter().all(has) && self.pod.as_ref().is_none_or(is_owner)
    }
}

fn fault_of_this_node(message: String) -> Finding {
    let severity = Severity::Fault;
    Finding { severity, file: String::new(), line: None, object: None, field: None, message }
}

/// The address as frr-k8s writes it, in the status and as a label: IPv6 in full, with dashes, since a label
/// has no colons.
fn peer_text(remote: Remote) -> String {
    match remote {
        Remote::Address(IpAddr::V6(address)) => {
            address.segments().map(|it| format!("{it:04x}")).join("-")
        }
        remote => remote.to_string(),
    }
}

/// A name derived from all of these.
fn name(prefix: &str, parts: &[&str]) -> String {
    format!("{prefix}{}", digest(&parts.join("\0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_written_as_frr_k8s_writes_them() {
        let text = |address: &str| peer_text(Remote::Address(address.parse().unwrap()));
        assert_eq!(text("192.0.2.1"), "192.0.2.1");
        assert_eq!(text("2001:db8::1"), "2001-0db8-0000-0000-0000-0000-0000-0001");
        assert_eq!(peer_text(Remote::Interface("eth0.7".parse().unwrap())), "eth0.7");
    }
}
