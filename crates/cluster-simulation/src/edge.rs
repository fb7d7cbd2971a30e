//! The edge around each core: its connection to the API server, in the state of the network.
//!
//! Carries requests and answers with delays and losses. Decides nothing.

use std::time::Duration;

use fairway_cluster::{
    ADDRESSES_ANNOTATION, ControllerAction, LeaseRecord, LeaseReply, LeaseRequest, ListedObject,
    Reply, Request, SecretReply, SpeakerAction, WRITE_TIMEOUT,
};
use fairway_ground::Instant;
use fairway_model::{Kind, ObjectKey, ObjectName};
use fairway_model_api::{EventKind, Request as ApiRequest, Response, WatchStep};
use fairway_seam::Announcements;
use serde_json::{Value, json};

use crate::objects::{SYSTEM, leases, resource, with_type};
use crate::process::{Action, Asked, Core, News};
use crate::schedule::Who;
use crate::world::{Event, Shared, World, failed, lease_failed};
use crate::written::without_version;

const LEASE: &str = "fairway-controller";

impl World {
    /// Polls a core until it has nothing to do.
    pub(crate) fn drive(&mut self, who: Who) {
        while self.violation.is_none() {
            let now = self.misbehaviour.clock(self.now, who);
            let Some(process) = self.processes.get_mut(&who) else { return };
            let Some(action) = process.poll_action(now) else { break };
            self.actions += 1;
            if let Some((left, seconds)) = process.crash_after {
                if left == 0 {
                    self.crash(who, seconds, true);
                    return;
                }
                process.crash_after = Some((left - 1, seconds));
            }
            self.perform(who, action);
        }
        let now = self.now;
        if let Some(process) = self.processes.get_mut(&who).filter(|it| it.is_in_doubt()) {
            process.doubted_at = now;
        }
        self.sleep(who);
    }

    fn sleep(&mut self, who: Who) {
        let now = self.now;
        let Some(process) = self.processes.get_mut(&who) else { return };
        let Some(at) = process.next_deadline(self.misbehaviour.clock(now, who)) else { return };
        // A deadline in the past without an effect would stop the clock.
        let at = self.misbehaviour.real_time(at, who).max(now + Duration::from_millis(1));
        if process.wake_at.is_none_or(|before| before <= now || at < before) {
            process.wake_at = Some(at);
            let run = process.run;
            self.at(at, Event::Wake(who, run));
        }
    }

    pub(crate) fn wake(&mut self, who: Who, run: u64) {
        let now = self.now;
        let Some(process) = self.processes.get_mut(&who) else { return };
        if process.run == run && process.core.is_some() && process.wake_at == Some(now) {
            process.wake_at = None;
            self.drive(who);
        }
    }

    fn perform(&mut self, who: Who, action: Action) {
        match action {
            Action::Controller(ControllerAction::Ask(kind, request))
            | Action::Speaker(SpeakerAction::Ask(kind, request)) => self.ask(who, kind, request),
            Action::Controller(ControllerAction::Lease(request)) => self.ask_lease(who, request),
            Action::Controller(ControllerAction::Write(mut write)) => {
                write.not_after = self.misbehaviour.real_time(write.not_after, who);
                self.ask_write(who, write);
            }
            Action::Controller(ControllerAction::Event(_)) => {} // Nothing receives Events here.
            Action::Speaker(SpeakerAction::GetSecret(name)) => self.ask_secret(who, name),
            // No peer of the simulation is one.
            Action::Speaker(SpeakerAction::FollowGateways) => {}
            Action::Speaker(SpeakerAction::Announce(announced)) => self.announce(who, announced),
            Action::Speaker(SpeakerAction::Persist) => {
                if self.misbehaviour.keeps_snapshots()
                    && let Some(process) = self.processes.get_mut(&who)
                    && let Some(Core::Speaker(core)) = &process.core
                {
                    process.disk = Some(core.snapshot());
                    process.has_lost_disk = false;
                }
            }
        }
    }

    /// The one-way delay.
    pub(crate) fn delay(&mut self, who: Who) -> Duration {
        let is_slow = self.processes.get(&who).is_some_and(|it| self.now < it.link.slow);
        let drawn = self.random.next_u64();
        let millis = if is_slow { 200 + drawn % 2500 } else { 1 + drawn % 20 };
        Duration::from_millis(millis)
    }

    /// When a request without an answer times out.
    pub(crate) fn give_up(&mut self) -> Duration {
        Duration::from_millis(50 + self.random.next_u64() % 4900)
    }

    pub(crate) fn ask(&mut self, who: Who, kind: Kind, request: Request) {
        let replica = usize::from(self.random.next_u64().is_multiple_of(2));
        let now = self.now;
        let Some(process) = self.processes.get_mut(&who) else { return };
        process.serial += 1;
        let (serial, run) = (process.serial, process.run);
        let asked = Asked { serial, replica, watch: None, last_delivery: now };
        if let Some(before) = process.asked.insert(kind, asked).and_then(|it| it.watch) {
            self.api.cut(before);
        }
        if self.is_reachable(who) {
            let at = self.now + self.delay(who);
            let watch_from = match request {
                Request::List { .. } => None,
                Request::Watch { resource_version } => Some(resource_version),
            };
            self.at(at, Event::Asks { who, run, kind, serial, watch_from });
        } else {
            let at = self.now + self.give_up();
            self.at(at, Event::Tells { who, run, serial: Some(serial), news: failed(kind) });
        }
    }

    /// A list or a watch reaches the server.
    pub(crate) fn asks(
        &mut self,
        who: Who,
        run: u64,
        kind: Kind,
        serial: u64,
        watch_from: Option<&str>,
    ) {
        if !self.is_current(who, run, kind, serial) {
            return;
        }
        let asked = self.processes.get(&who).and_then(|it| it.asked.get(&kind));
        let replica = asked.map_or(0, |it| it.replica);
        let reply = if !self.is_reachable(who) {
            Reply::Failed
        } else if let Some(version) = watch_from {
            let request = ApiRequest::watch(&resource(kind), "", version);
            match self.api.watch(self.timestamp(), replica, &request) {
                Ok(watch) => {
                    let asked = self.processes.get_mut(&who).and_then(|it| it.asked.get_mut(&kind));
                    asked.into_iter().for_each(|it| it.watch = Some(watch));
                    self.watch_soon(who, kind);
                    Reply::Opened
                }
                Err(_) => Reply::Failed,
            }
        } else {
            let request = ApiRequest::list(&resource(kind), "");
            let response = self.api.handle(self.timestamp(), replica, &request);
            listed(kind, &response)
        };
        let is_lost = self.processes.get(&who).is_some_and(|it| self.now < it.link.loses_answers);
        let reply = if is_lost { Reply::Failed } else { reply };
        let at = self.now + self.delay(who);
        let news = News::Reply(kind, reply);
        self.at(at, Event::Tells { who, run, serial: Some(serial), news });
    }

    fn is_current(&self, who: Who, run: u64, kind: Kind, serial: u64) -> bool {
        self.processes.get(&who).is_some_and(|it| {
            it.run == run
                && it.core.is_some()
                && it.asked.get(&kind).is_some_and(|it| it.serial == serial)
        })
    }

    /// There may be an event for a watch.
    fn watch_soon(&mut self, who: Who, kind: Kind) {
        let delay = self.delay(who);
        let now = self.now;
        let Some(process) = self.processes.get_mut(&who) else { return };
        let run = process.run;
        let Some(asked) = process.asked.get_mut(&kind).filter(|it| it.watch.is_some()) else {
            return;
        };
        let at = (now + delay).max(asked.last_delivery);
        asked.last_delivery = at;
        let serial = asked.serial;
        self.at(at, Event::Watched { who, run, kind, serial });
    }

    /// There may be events for all watches of a process, or of a kind.
    pub(crate) fn all_watch_soon(&mut self, wanted: impl Fn(Who, Kind, usize) -> bool) {
        let mut soon = Vec::new();
        for (who, process) in &self.processes {
            let asked = process.asked.iter();
            let asked = asked.filter(|(kind, it)| wanted(*who, **kind, it.replica));
            soon.extend(asked.map(|(kind, _)| (*who, *kind)));
        }
        for (who, kind) in soon {
            self.watch_soon(who, kind);
        }
    }

    /// The server's event for a watch reaches the client.
    pub(crate) fn watched(&mut self, who: Who, run: u64, kind: Kind, serial: u64) {
        if !self.is_current(who, run, kind, serial) || !self.is_reachable(who) {
            return; // It waits for the end of the partition.
        }
        let asked = self.processes.get(&who).and_then(|it| it.asked.get(&kind));
        let Some(watch) = asked.and_then(|it| it.watch) else { return };
        loop {
            let reply = match self.api.poll_watch(self.timestamp(), watch) {
                WatchStep::Idle => break,
                WatchStep::Ended => Reply::Closed,
                WatchStep::Event(event) => match event.kind {
                    EventKind::Added | EventKind::Modified => Reply::Applied(event.object),
                    EventKind::Deleted => Reply::Deleted(event.object),
                    EventKind::Bookmark => Reply::Bookmark(text(&event.object)),
                    EventKind::Error => Reply::Gone,
                },
            };
            let is_over = matches!(reply, Reply::Closed | Reply::Gone);
            self.hear(who, News::Reply(kind, reply));
            if is_over {
                break;
            }
        }
        self.drive(who);
    }

    /// An answer reaches the client.
    pub(crate) fn tells(&mut self, who: Who, run: u64, serial: Option<u64>, news: News) {
        let is_wanted = match (&news, serial) {
            (News::Reply(kind, _), Some(serial)) => self.is_current(who, run, *kind, serial),
            _ => self.processes.get(&who).is_some_and(|it| it.run == run && it.core.is_some()),
        };
        if is_wanted {
            if matches!(news, News::Reply(Kind::Service, Reply::Failed))
                && self.misbehaviour.withdraws_in_outage()
                && let Some(process) = self.processes.get(&who)
                && let Some(announced) = process.announced.clone()
            {
                self.announce(who, Announcements { routes: Vec::new().into(), ..announced });
            }
            self.hear(who, news);
            self.drive(who);
        }
    }

    fn hear(&mut self, who: Who, news: News) {
        let now = self.misbehaviour.clock(self.now, who);
        let run = self.processes.get(&who).map_or(0, |it| it.run);
        for news in self.misbehaviour.hears(who, run, news) {
            if let Some(process) = self.processes.get_mut(&who) {
                process.hear(now, news);
            }
        }
    }

    fn ask_secret(&mut self, who: Who, name: ObjectName) {
        let Some(run) = self.processes.get(&who).map(|it| it.run) else { return };
        if self.is_reachable(who) {
            let at = self.now + self.delay(who);
            self.at(at, Event::Secret { who, run, name });
        } else {
            let at = self.now + self.give_up();
            let news = News::Secret(name, SecretReply::Failed);
            self.at(at, Event::Tells { who, run, serial: None, news });
        }
    }

    /// A request for a Secret reaches the server.
    pub(crate) fn secret_asked(&mut self, who: Who, run: u64, name: &ObjectName) {
        let secrets = resource(Kind::Secret);
        let request = ApiRequest::get(&secrets, &name.namespace, &name.name);
        let response = self.api.handle(self.timestamp(), 0, &request);
        let is_lost = !self.is_reachable(who)
            || self.processes.get(&who).is_some_and(|it| self.now < it.link.loses_answers);
        let reply = match response.code {
            _ if is_lost => SecretReply::Failed,
            200 => SecretReply::Is(Shared::new(with_type(Kind::Secret, response.body))),
            404 => SecretReply::Missing,
            _ => SecretReply::Failed,
        };
        let at = self.now + self.delay(who);
        let news = News::Secret(name.clone(), reply);
        self.at(at, Event::Tells { who, run, serial: None, news });
    }

    fn ask_lease(&mut self, who: Who, request: LeaseRequest) {
        let now = self.now;
        let Some(process) = self.processes.get(&who) else { return };
        let run = process.run;
        if self.is_reachable(who) && process.link.lease_trouble <= now {
            let at = now + self.delay(who);
            self.at(at, Event::Lease { who, run, request, sent: now });
        } else {
            let at = now + self.give_up();
            self.at(at, Event::Tells { who, run, serial: None, news: lease_failed() });
        }
    }

    /// A request about the Lease reaches the server.
    pub(crate) fn lease_asked(
        &mut self,
        who: Who,
        run: u64,
        request: &LeaseRequest,
        sent: Instant,
    ) {
        if !self.is_reachable(who) || sent + WRITE_TIMEOUT <= self.now {
            self.at(
                sent + WRITE_TIMEOUT,
                Event::Tells { who, run, serial: None, news: lease_failed() },
            );
            return;
        }
        let api_request = match request {
            LeaseRequest::Read => ApiRequest::get(&leases(), SYSTEM, LEASE),
            LeaseRequest::Write { holder, transitions, resource_version, addresses } => {
                let body = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {
                        "name": LEASE, "namespace": SYSTEM, "resourceVersion": resource_version,
                        "annotations": addresses.as_ref().map(|it| json!({ ADDRESSES_ANNOTATION: it })),
                    },
                    "spec": {
                        "holderIdentity": holder, "leaseTransitions": transitions,
                        "leaseDurationSeconds": 15, "renewTime": self.timestamp().rfc3339(),
                    },
                });
                match resource_version {
                    Some(_) => ApiRequest::update(&leases(), SYSTEM, body),
                    None => ApiRequest::create(&leases(), SYSTEM, without_version(body)),
                }
            }
        };
        let response = self.api.handle(self.timestamp(), 0, &api_request);
        self.catch_up_soon();
        if let LeaseRequest::Write { holder, .. } = request
            && response.code == 201
        {
            self.tell(|| format!("{who} is the first leader, as {holder}"));
        }
        let reply = lease_reply(&response);
        let is_lost = self.processes.get(&who).is_some_and(|it| self.now < it.link.loses_answers);
        let (at, reply) = if is_lost {
            (sent + WRITE_TIMEOUT, LeaseReply::Failed)
        } else {
            (self.now + self.delay(who), reply)
        };
        // An answer after the timeout of its request is dropped.
        let (at, reply) = if at > sent + WRITE_TIMEOUT {
            (sent + WRITE_TIMEOUT, LeaseReply::Failed)
        } else {
            (at, reply)
        };
        self.at(at, Event::Tells { who, run, serial: None, news: News::Lease(reply) });
    }

    /// An object was stored, or deleted.
    pub(crate) fn changed(
        &mut self,
        kind: Kind,
        object: Option<&Shared>,
        deleted: Option<&ObjectKey>,
    ) {
        object.into_iter().for_each(|object| self.truth.applied(self.now, object));
        deleted.into_iter().for_each(|key| self.truth.deleted(self.now, key));
        self.catch_up_soon();
        self.all_watch_soon(|_, it, _| it == kind);
    }

    fn catch_up_soon(&mut self) {
        for replica in 0..self.lags.len() {
            if self.lags.get(replica).is_some_and(|until| *until <= self.now) {
                self.api.catch_up(replica, u64::MAX);
            } else {
                self.after_millis(200, 4000, Event::CatchUp(replica));
            }
        }
    }

    pub(crate) fn catch_up(&mut self, replica: usize) {
        self.api.catch_up(replica, u64::MAX);
        self.all_watch_soon(|_, _, it| it == replica);
    }
}

fn text(bookmark: &Value) -> String {
    let version = bookmark.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

fn listed(kind: Kind, response: &Response) -> Reply {
    if !response.is_success() {
        return if response.code == 410 { Reply::Gone } else { Reply::Failed };
    }
    let items = response.body.get("items").and_then(Value::as_array);
    let items = items.into_iter().flatten();
    let items = items.map(|it| ListedObject::from(&with_type(kind, it.clone())));
    let resource_version = response.resource_version().to_owned();
    Reply::Listed { items: items.collect(), resource_version, continue_token: None }
}

fn lease_reply(response: &Response) -> LeaseReply {
    match response.code {
        404 => LeaseReply::Missing,
        409 => LeaseReply::Conflict,
        200 | 201 => {
            let spec = |field: &str| response.body.get("spec").and_then(|it| it.get(field));
            let annotations = response.body.pointer("/metadata/annotations");
            let annotation = annotations.and_then(|it| it.get(ADDRESSES_ANNOTATION));
            LeaseReply::Is(LeaseRecord {
                holder: spec("holderIdentity").and_then(Value::as_str).unwrap_or_default().into(),
                transitions: spec("leaseTransitions").and_then(Value::as_u64).unwrap_or_default(),
                resource_version: response.resource_version().to_owned(),
                addresses: annotation.and_then(Value::as_str).map(str::to_owned),
            })
        }
        _ => LeaseReply::Failed,
    }
}
