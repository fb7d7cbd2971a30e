//! A controller beside the model API server, on virtual time. Answers come at once.

use std::collections::BTreeMap;

use fairway_model_api::{
    ApiServer, EventKind, Request as Ask, Resource, ResourceDefinition, Settings, Timestamp,
    WatchId, WatchStep,
};
use serde_json::json;

use super::super::*;
use crate::{LeaseRecord, LeaseRequest, ListedObject};

/// 2026-01-01.
pub(super) const EPOCH_SECONDS: u64 = 1_767_225_600;
const FIELD_MANAGER: &str = "fairway-controller";

/// The answer to each of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// The result.
    True,
    /// No answer, although it has succeeded.
    Lost,
}

/// A controller, its API server, and the messages between them.
pub(super) struct Lab {
    pub(super) api: ApiServer,
    pub(super) core: ControllerCore,
    pub(super) now: Instant,
    pub(super) answers: Answers,
    pub(super) lease_answers: Answers,
    pub(super) writes: Vec<ObjectWrite>,
    pub(super) events: Vec<EventRecord>,
    /// How often the core was asked for an action.
    pub(super) polls: usize,
    pub(super) lease: Option<LeaseRecord>,
    lease_writes: u32,
    watches: BTreeMap<Kind, WatchId>,
}

pub(super) fn settings(identity: &str) -> ControllerSettings {
    ControllerSettings {
        identity: identity.to_owned(),
        predecessors: None,
        load_balancer_class: None,
        namespace: "metallb-system".to_owned(),
        pod: Some(OwnPod { name: "controller-0".to_owned(), uid: "1".to_owned() }),
        empty_list_hold: Duration::from_secs(300),
        answers_reviews: false,
        disruption_limit: None,
        epoch_seconds: EPOCH_SECONDS,
        seed: 1,
    }
}

impl Lab {
    /// An empty cluster without any earlier leader.
    pub(super) fn new() -> Self {
        let settings_of_api = Settings { history_changes: 100_000, ..Settings::default() };
        let mut api = ApiServer::new(settings_of_api);
        api.define(ResourceDefinition::custom(
            written(WrittenKind::ConfigurationState),
            "ConfigurationState",
            true,
        ));
        let mut lab = Self {
            api,
            core: ControllerCore::new(settings("first")),
            now: Instant::from_micros(1_000_000),
            answers: Answers::True,
            lease_answers: Answers::True,
            writes: Vec::new(),
            events: Vec::new(),
            polls: 0,
            lease: None,
            lease_writes: 0,
            watches: BTreeMap::new(),
        };
        lab.apply(Kind::Namespace, json!({ "metadata": { "name": "metallb-system" } }));
        lab
    }

    /// One with a pool of these addresses.
    pub(super) fn with_pool(addresses: &str) -> Self {
        let mut lab = Self::new();
        lab.pool("first", json!({ "addresses": [addresses] }));
        lab
    }

    /// Another controller leads from now on, without any state.
    pub(super) fn another_leads(&mut self) {
        self.leader_ends();
        self.begin(settings("another"));
    }

    /// The leader ends in order.
    pub(super) fn leader_ends(&mut self) {
        if let Some(ControllerAction::Lease(request)) = self.core.leave(self.now) {
            self.lease(request);
        }
    }

    /// A controller begins, without any state; the one before is gone.
    pub(super) fn begin(&mut self, settings: ControllerSettings) {
        self.core = ControllerCore::new(settings);
        self.watches.clear();
        self.writes.clear();
        self.events.clear();
    }

    pub(super) fn pool(&mut self, name: &str, spec: Value) {
        let metadata = json!({ "name": name, "namespace": "metallb-system" });
        self.apply(Kind::IpAddressPool, json!({ "metadata": metadata, "spec": spec }));
    }

    /// Creates or changes the Service.
    pub(super) fn service(&mut self, name: &str, annotations: Value, spec: Value) {
        self.apply(Kind::Service, service(name, annotations, spec));
    }

    /// Creates a Service; it costs less than the above.
    pub(super) fn new_service(&mut self, name: &str) {
        let service = service(name, json!({}), json!({}));
        let request = Ask::create(&resource(Kind::Service), "default", service);
        assert!(self.api.handle(self.timestamp(), 0, &request).is_success());
    }

    /// Creates or changes the object, as `kubectl apply` does.
    pub(super) fn apply(&mut self, kind: Kind, object: Value) {
        let name = name_of(&object);
        let (namespace, resource) = (namespace_of(kind, &name), resource(kind));
        let request = Ask::apply(&resource, namespace, &name.name, "kubectl", object);
        let response = self.api.handle(self.timestamp(), 0, &request);
        assert!(response.is_success(), "{response:?}");
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &ObjectName) {
        let request = Ask::delete(&resource(kind), namespace_of(kind, name), &name.name);
        assert!(self.api.handle(self.timestamp(), 0, &request).is_success());
    }

    /// Another client writes a status.
    pub(super) fn set_status(&mut self, kind: Kind, name: &ObjectName, status: Value) {
        let patch = json!({ "status": status });
        let (namespace, resource) = (namespace_of(kind, name), resource(kind));
        let request = Ask::merge_patch(&resource, namespace, &name.name, patch).of_status();
        assert!(self.api.handle(self.timestamp(), 0, &request).is_success());
    }

    pub(super) fn stored(&mut self, kind: Kind, name: &ObjectName) -> Value {
        let request = Ask::get(&resource(kind), namespace_of(kind, name), &name.name);
        self.api.handle(self.timestamp(), 0, &request).body
    }

    /// The addresses in the status of a Service.
    pub(super) fn addresses(&mut self, name: &str) -> Vec<String> {
        let service = self.stored(Kind::Service, &default(name));
        status_addresses(&service).iter().map(IpAddr::to_string).collect()
    }

    /// Our condition of a Service.
    pub(super) fn condition(&mut self, name: &str) -> Option<Value> {
        let service = self.stored(Kind::Service, &default(name));
        let conditions = service.pointer("/status/conditions")?.as_array()?;
        conditions.iter().find(|it| it["type"] == ADDRESS_CONDITION).cloned()
    }

    /// The events since the last call, as `kubectl get events` prints them.
    pub(super) fn said(&mut self) -> Vec<String> {
        let line = |it: EventRecord| {
            let kind = if it.is_warning { "Warning" } else { "Normal" };
            assert_ne!(it.uid, "", "{it:?}");
            format!("{} {kind} {}: {}", it.name, it.reason, it.message)
        };
        std::mem::take(&mut self.events).into_iter().map(line).collect()
    }

    /// The writes of a kind since the last call.
    pub(super) fn written(&mut self, kind: WrittenKind) -> Vec<ObjectWrite> {
        self.writes.extract_if(.., |it| it.kind == kind).collect()
    }

    /// Runs the controller for this many seconds.
    pub(super) fn run(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        loop {
            self.settle();
            let next = self.core.next_deadline(self.now).unwrap_or(end);
            // A deadline without an action would be an endless loop.
            assert!(next > self.now, "it wants to be asked at once, and has nothing to do");
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
        }
    }

    /// Until there are no more messages.
    fn settle(&mut self) {
        loop {
            self.polls += 1;
            if let Some(action) = self.core.poll_action(self.now) {
                self.perform(action);
            } else if !self.hear() {
                return;
            }
        }
    }

    fn perform(&mut self, action: ControllerAction) {
        match action {
            ControllerAction::Ask(kind, Request::List { .. }) => self.list(kind),
            ControllerAction::Ask(kind, Request::Watch { resource_version }) => {
                let request = Ask::watch(&resource(kind), "", &resource_version);
                let watch = self.api.watch(self.timestamp(), 0, &request).unwrap();
                self.watches.insert(kind, watch);
            }
            ControllerAction::Lease(request) => {
                let reply = self.lease(request);
                let is_lost = self.lease_answers == Answers::Lost;
                let reply = if is_lost { LeaseReply::Failed } else { reply };
                self.core.handle_lease(self.now, reply);
            }
            ControllerAction::Event(event) => self.events.push(event),
            ControllerAction::Write(write) => {
                let reply = self.write(&write);
                let reply = if self.answers == Answers::Lost { WriteReply::Failed } else { reply };
                self.core.handle_write(self.now, write.kind, &write.name, reply);
                self.writes.push(write);
            }
        }
    }

    fn list(&mut self, kind: Kind) {
        let response = self.api.handle(self.timestamp(), 0, &Ask::list(&resource(kind), ""));
        let items = response.body["items"].as_array().cloned().unwrap_or_default();
        let resource_version = response.resource_version().to_owned();
        let items = items.into_iter();
        let items = items.map(|it| ListedObject::from(&with_type(kind, it))).collect();
        let reply = Reply::Listed { items, resource_version, continue_token: None };
        self.core.handle(self.now, kind, reply);
    }

    /// Delivers the watch events; false: there are none.
    fn hear(&mut self) -> bool {
        let mut is_any = false;
        for (kind, watch) in self.watches.clone() {
            loop {
                let reply = match self.api.poll_watch(self.timestamp(), watch) {
                    WatchStep::Idle => break,
                    WatchStep::Ended => Reply::Closed,
                    WatchStep::Event(event) => match event.kind {
                        EventKind::Added | EventKind::Modified => Reply::Applied(event.object),
                        EventKind::Deleted => Reply::Deleted(event.object),
                        EventKind::Bookmark => {
                            Reply::Bookmark(version_of(&event.object).unwrap_or_default().into())
                        }
                        EventKind::Error => Reply::Gone,
                    },
                };
                is_any = true;
                let is_over = matches!(reply, Reply::Closed | Reply::Gone);
                self.core.handle(self.now, kind, reply);
                if is_over {
                    self.watches.remove(&kind);
                    break;
                }
            }
        }
        is_any
    }

    fn lease(&mut self, request: LeaseRequest) -> LeaseReply {
        if let LeaseRequest::Write { holder, transitions, addresses, .. } = request {
            self.lease_writes += 1;
            let resource_version = self.lease_writes.to_string();
            self.lease = Some(LeaseRecord { holder, transitions, resource_version, addresses });
        }
        self.lease.clone().map_or(LeaseReply::Missing, LeaseReply::Is)
    }

    fn write(&mut self, write: &ObjectWrite) -> WriteReply {
        let (resource, name) = (written(write.kind), &write.name);
        let (namespace, name) = (name.namespace.as_str(), name.name.as_str());
        let request = match write.how.clone() {
            WriteHow::MergeStatus(patch) => {
                Ask::merge_patch(&resource, namespace, name, patch).of_status()
            }
            WriteHow::Apply(it) => Ask::apply(&resource, namespace, name, FIELD_MANAGER, it),
            WriteHow::ApplyStatus(it) => {
                Ask::apply(&resource, namespace, name, FIELD_MANAGER, it).of_status()
            }
            WriteHow::Delete => Ask::delete(&resource, namespace, name),
        };
        let response = self.api.handle(self.timestamp(), 0, &request);
        match response.code {
            200 | 201 => WriteReply::Done,
            404 => WriteReply::Missing,
            409 => WriteReply::Conflict,
            _ => panic!("{write:?}: {response:?}"),
        }
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(EPOCH_SECONDS * 1_000_000 + self.now.as_micros())
    }
}

fn service(name: &str, annotations: Value, more: Value) -> Value {
    let mut spec = json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }] });
    merge(&mut spec, more);
    let metadata = json!({ "name": name, "namespace": "default", "annotations": annotations });
    json!({ "metadata": metadata, "spec": spec })
}

pub(super) fn default(name: &str) -> ObjectName {
    ObjectName::new("default", name)
}

pub(super) fn system(name: &str) -> ObjectName {
    ObjectName::new("metallb-system", name)
}

fn namespace_of(kind: Kind, name: &ObjectName) -> &str {
    if matches!(kind, Kind::Namespace | Kind::Node) { "" } else { &name.namespace }
}

fn resource(kind: Kind) -> Resource {
    let ours = |plural| Resource::new("metallb.io", "v1beta1", plural);
    match kind {
        Kind::Service => Resource::core("services"),
        Kind::Node => Resource::core("nodes"),
        Kind::Namespace => Resource::core("namespaces"),
        Kind::IpAddressPool => ours("ipaddresspools"),
        Kind::BgpAdvertisement => ours("bgpadvertisements"),
        Kind::Layer2Advertisement => ours("l2advertisements"),
        Kind::Community => ours("communities"),
        kind => panic!("no controller reads {kind}"),
    }
}

pub(super) fn written(kind: WrittenKind) -> Resource {
    match kind {
        WrittenKind::Service => resource(Kind::Service),
        WrittenKind::IpAddressPool => resource(Kind::IpAddressPool),
        WrittenKind::ConfigurationState => {
            Resource::new("metallb.io", "v1beta1", "configurationstates")
        }
        kind => panic!("no controller writes {kind:?}"),
    }
}

/// Lists of Kubernetes' own kinds leave out the apiVersion and kind of their items.
fn with_type(kind: Kind, mut object: Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    fields.entry("kind").or_insert_with(|| json!(kind.to_string()));
    fields.entry("apiVersion").or_insert_with(|| json!(resource(kind).api_version()));
    object
}

/// The fields of `more`, null for none, override those of `object`.
fn merge(object: &mut Value, more: Value) {
    if let Value::Object(more) = more {
        object.as_object_mut().unwrap().extend(more);
    }
}
