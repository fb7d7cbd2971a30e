//! Writes of controllers, on their way to the server and back.
//!
//! Carries each write with its delays and losses, and passes it to the rules. Decides nothing.

use std::sync::Arc;

use fairway_cluster::{ObjectWrite, WRITE_TIMEOUT, WriteHow, WriteReply, WrittenKind};
use fairway_ground::Instant;
use fairway_model::{ClusterIndex, Kind, ObjectName};
use fairway_model_api::{Request as ApiRequest, Resource, Response};
use serde_json::Value;

use crate::objects::{resource, with_type};
use crate::process::News;
use crate::rules;
use crate::schedule::Who;
use crate::truth::GRACE;
use crate::world::{Event, Shared, World, write_failed};

/// The field manager of controllers.
const FIELD_MANAGER: &str = "fairway-controller";

impl World {
    pub(crate) fn ask_write(&mut self, who: Who, write: ObjectWrite) {
        let now = self.now;
        let Some(process) = self.processes.get(&who) else { return };
        let (run, Who::Controller(number)) = (process.run, who) else { return };
        self.tell(|| format!("{who} writes {:?} {} {}", write.kind, write.name, said(&write.how)));
        let counted = self.writes.note(now, number, &write);
        self.judge(counted);
        if self.is_reachable(who) {
            let belief = self.believed(who).map(Arc::new);
            let at = now + self.delay(who);
            self.at(at, Event::Write { who, run, write, sent: now, belief });
        } else {
            let at = now + self.give_up();
            let news = write_failed(&write);
            self.at(at, Event::Tells { who, run, serial: None, news });
        }
    }

    /// The state that a controller decides by, if it is a recent one, or if the controller has a
    /// reason to continue with an earlier one.
    fn believed(&self, who: Who) -> Option<ClusterIndex> {
        let controller = self.processes.get(&who)?.controller()?;
        let is_excused = controller.is_in_doubt()
            || self.truth.was_so_lately(controller.index())
            || self.truth.is_disputed(self.now, GRACE);
        is_excused.then(|| controller.index().clone())
    }

    /// A write reaches the server.
    pub(crate) fn write_asked(
        &mut self,
        who: Who,
        run: u64,
        write: &ObjectWrite,
        sent: Instant,
        belief: Option<&ClusterIndex>,
    ) {
        let name = &write.name;
        if !self.is_reachable(who) || write.not_after <= self.now {
            let at = (sent + WRITE_TIMEOUT).max(self.now);
            self.at(at, Event::Tells { who, run, serial: None, news: write_failed(write) });
            return;
        }
        let response = self.write(write.kind, name, &write.how, belief);
        let reply = match response.code {
            200 | 201 => WriteReply::Done,
            404 => WriteReply::Missing,
            409 => WriteReply::Conflict,
            _ => WriteReply::Failed,
        };
        self.tell(|| format!("{who}: {name} is written: {reply:?}"));
        if reply == WriteReply::Conflict && self.misbehaviour.overwrites() {
            self.write(write.kind, name, &unconditional(&write.how), belief);
        }
        let is_lost = self.processes.get(&who).is_some_and(|it| self.now < it.link.loses_answers);
        let at = if is_lost { write.not_after } else { self.now + self.delay(who) };
        let reply = if is_lost || at > write.not_after { WriteReply::Failed } else { reply };
        if reply == WriteReply::Done && self.misbehaviour.writes_for_ever() {
            let how = unconditional(&write.how);
            self.ask_write(
                who,
                ObjectWrite { how, not_after: self.now + WRITE_TIMEOUT, ..write.clone() },
            );
        }
        let news = News::Written(write.kind, name.clone(), reply);
        self.at(at.min(write.not_after), Event::Tells { who, run, serial: None, news });
    }

    fn write(
        &mut self,
        kind: WrittenKind,
        name: &ObjectName,
        how: &WriteHow,
        belief: Option<&ClusterIndex>,
    ) -> Response {
        let (namespace, name_only) = (name.namespace.as_str(), name.name.as_str());
        let resource = written_resource(kind);
        let get = ApiRequest::get(&resource, namespace, name_only);
        let before = Arc::new(self.api.handle(self.timestamp(), 0, &get).body);
        let request = match how.clone() {
            WriteHow::MergeStatus(patch) => {
                ApiRequest::merge_patch(&resource, namespace, name_only, patch).of_status()
            }
            WriteHow::Apply(object) => {
                ApiRequest::apply(&resource, namespace, name_only, FIELD_MANAGER, object)
            }
            WriteHow::ApplyStatus(object) => {
                ApiRequest::apply(&resource, namespace, name_only, FIELD_MANAGER, object)
                    .of_status()
            }
            WriteHow::Delete => ApiRequest::delete(&resource, namespace, name_only),
        };
        let response = self.api.handle(self.timestamp(), 0, &request);
        if !response.is_success() {
            return response;
        }
        if before.pointer("/metadata/resourceVersion").and_then(Value::as_str)
            != Some(response.resource_version())
        {
            self.last_write = self.now;
        }
        let kind = match kind {
            WrittenKind::Service => Kind::Service,
            WrittenKind::IpAddressPool => Kind::IpAddressPool,
            _ => return response, // There are no watches of these.
        };
        let after = Shared::new(with_type(kind, response.body.clone()));
        if kind == Kind::Service {
            let result = rules::check_write(self.now, &self.truth, belief, name, &before, &after);
            self.judge(result);
        }
        self.changed(kind, Some(&after), None);
        response
    }
}

fn written_resource(kind: WrittenKind) -> Resource {
    let ours = |plural| Resource::new("metallb.io", "v1beta1", plural);
    match kind {
        WrittenKind::Service => resource(Kind::Service),
        WrittenKind::IpAddressPool => resource(Kind::IpAddressPool),
        WrittenKind::ConfigurationState => ours("configurationstates"),
        WrittenKind::ServiceBgpStatus => ours("servicebgpstatuses"),
        WrittenKind::ServiceL2Status => ours("servicel2statuses"),
        WrittenKind::BgpSessionState => {
            Resource::new("frrk8s.metallb.io", "v1beta1", "bgpsessionstates")
        }
    }
}

/// The same without a precondition.
fn unconditional(how: &WriteHow) -> WriteHow {
    match how {
        WriteHow::MergeStatus(patch) => WriteHow::MergeStatus(without_version(patch.clone())),
        how => how.clone(),
    }
}

pub(crate) fn without_version(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    object
}

fn said(how: &WriteHow) -> String {
    match how {
        WriteHow::MergeStatus(patch) => patch.to_string(),
        WriteHow::Apply(object) | WriteHow::ApplyStatus(object) => object.to_string(),
        WriteHow::Delete => "away".to_owned(),
    }
}
