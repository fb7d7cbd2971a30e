//! User actions and failures, one step of a schedule at a time.
//!
//! Changes the API server, processes and links. Judges nothing.

use std::time::Duration;

use fairway_cluster::Reply;
use fairway_ground::Instant;
use fairway_model::{Kind, ObjectKey, ObjectName};
use fairway_model_api::{Query, Request as ApiRequest};
use fairway_seam::{Announcements, Leave};
use serde_json::{Value, json};

use crate::objects::{self, Place, resource, with_type};
use crate::process::{News, from_disk};
use crate::schedule::{Op, Who};
use crate::world::{Event, Shared, World};

impl World {
    /// The state before the first step: the namespaces, and all processes start.
    pub(crate) fn begin(&mut self) {
        for namespace in objects::namespaces() {
            let request = ApiRequest::create(&resource(Kind::Namespace), "", namespace);
            let response = self.api.handle(self.timestamp(), 0, &request);
            let object = Shared::new(with_type(Kind::Namespace, response.body));
            self.changed(Kind::Namespace, Some(&object), None);
        }
        let all: Vec<Who> = self.processes.keys().copied().collect();
        for who in all {
            self.after_millis(0, 300, Event::Start(who, 0));
        }
    }

    pub(crate) fn step(&mut self, number: usize) {
        let Some(step) = self.schedule.steps.get(number).copied() else { return };
        self.tell(|| format!("-- {}", step.op));
        self.act(step.op);
    }

    fn act(&mut self, op: Op) {
        let seconds = |seconds: u64| Duration::from_secs(seconds);
        match op {
            Op::Crash { who, seconds } => self.crash(who, seconds, false),
            Op::CrashAt { who, actions, seconds } => {
                let process = self.processes.get_mut(&who);
                process.into_iter().for_each(|it| it.crash_after = Some((actions, seconds)));
            }
            Op::Restart { who, seconds } => self.stop(who, seconds),
            Op::LoseDisk { node } => self.lose_disk(node),
            Op::Outage { seconds: length } => self.begin_outage(seconds(length)),
            Op::Partition { who, seconds: length } => self.partition(who, seconds(length)),
            Op::LeaseTrouble { who, seconds: length } => {
                let until = self.now + seconds(length);
                self.link(who, |link| link.lease_trouble = until);
            }
            Op::LoseAnswers { who, seconds: length } => {
                let until = self.now + seconds(length);
                self.link(who, |link| link.loses_answers = until);
                self.trouble(who, until);
            }
            Op::Slow { who, seconds: length } => {
                let until = self.now + seconds(length);
                self.link(who, |link| link.slow = until);
                self.trouble(who, until);
            }
            Op::Cut { who } => self.cut(who),
            Op::Lag { replica, seconds: length } => {
                let until = self.now + seconds(length);
                self.lags.get_mut(replica).into_iter().for_each(|it| *it = until);
            }
            Op::Compact => self.api.compact(u64::MAX),
            Op::Router { number } => self.restart_router(number),
            _ if self.outage > self.now => self.held_back.push(op),
            wish => self.obey(wish),
        }
    }

    /// An action of the user on the API server.
    fn obey(&mut self, op: Op) {
        match op {
            Op::Service { number, variant } => {
                self.put(&objects::service_place(number), objects::service(number, variant));
                // While controllers act upon it.
                let remark = Event::Remark { service: number, value: variant };
                self.after_millis(2, 60, remark);
            }
            Op::NoService { number } => self.delete(&objects::service_place(number)),
            Op::Endpoints { number, nodes } => {
                self.put(&objects::slice_place(number), objects::slice(number, nodes));
            }
            Op::Pool { number, variant } => {
                self.put(&objects::pool_place(number), objects::pool(number, variant));
            }
            Op::NoPool { number } => self.delete(&objects::pool_place(number)),
            Op::Advertisement { number, variant } => {
                let advertisement = objects::advertisement(number, variant);
                self.put(&objects::advertisement_place(number), advertisement);
            }
            Op::NoAdvertisement { number } => self.delete(&objects::advertisement_place(number)),
            Op::Layer2 { variant } => self.put(&objects::layer2_place(), objects::layer2(variant)),
            Op::NoLayer2 => self.delete(&objects::layer2_place()),
            Op::Peer { number, variant } => {
                self.put(&objects::peer_place(number), objects::peer(number, variant));
            }
            Op::Secret { variant } => self.put(&objects::secret_place(), objects::secret(variant)),
            Op::Node { number, variant } => {
                self.put(&objects::node_place(number), objects::node(number, variant));
            }
            Op::NoNode { number } => self.delete(&objects::node_place(number)),
            Op::Label { number, value } => {
                let place = objects::service_place(number);
                if let Some(mut service) = self.stored(&place) {
                    service["metadata"]["labels"]["seen"] = json!(value.to_string());
                    self.update(&place, service);
                    self.set_condition(&place, value);
                }
            }
            _ => {}
        }
    }

    fn stored(&mut self, place: &Place) -> Option<Value> {
        let request = ApiRequest::get(&resource(place.kind), place.namespace, &place.name);
        let response = self.api.handle(self.timestamp(), 0, &request.with(Query::default()));
        (response.code == 200).then_some(response.body)
    }

    /// As `kubectl apply` does: fields of other writers stay.
    fn put(&mut self, place: &Place, wanted: Value) {
        let Some(mut stored) = self.stored(place) else {
            let request = ApiRequest::create(&resource(place.kind), place.namespace, wanted);
            let response = self.api.handle(self.timestamp(), 0, &request);
            let object = Shared::new(with_type(place.kind, response.body));
            return self.changed(place.kind, Some(&object), None);
        };
        for field in ["spec", "endpoints", "data"] {
            if let Some(value) = wanted.get(field) {
                stored[field] = value.clone();
            }
        }
        if let Some(labels) = wanted["metadata"].get("labels") {
            stored["metadata"]["labels"] = labels.clone();
        }
        if place.kind == Kind::Service {
            let pool =
                stored["metadata"]["annotations"].get(fairway_cluster::POOL_ANNOTATION).cloned();
            stored["metadata"]["annotations"] = wanted["metadata"]["annotations"].clone();
            if let Some(pool) = pool {
                stored["metadata"]["annotations"][fairway_cluster::POOL_ANNOTATION] = pool;
            }
        }
        self.update(place, stored);
        if place.kind == Kind::Node
            && let Some(mut stored) = self.stored(place)
        {
            stored["status"] = wanted["status"].clone();
            let request = ApiRequest::update(&resource(Kind::Node), "", stored).of_status();
            let response = self.api.handle(self.timestamp(), 0, &request);
            let object = Shared::new(with_type(Kind::Node, response.body));
            self.changed(Kind::Node, Some(&object), None);
        }
    }

    fn update(&mut self, place: &Place, object: Value) {
        let request = ApiRequest::update(&resource(place.kind), place.namespace, object);
        let response = self.api.handle(self.timestamp(), 0, &request);
        if response.is_success() {
            let object = Shared::new(with_type(place.kind, response.body));
            self.changed(place.kind, Some(&object), None);
        }
    }

    /// Another writer edits what was edited, too.
    pub(crate) fn remark(&mut self, service: u8, value: u8) {
        if self.outage <= self.now {
            self.set_condition(&objects::service_place(service), value);
        }
    }

    /// Another writer sets a condition of a Service.
    fn set_condition(&mut self, place: &Place, value: u8) {
        let Some(mut service) = self.stored(place) else { return };
        let conditions = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let others = conditions.into_iter().filter(|it| it["type"] != "example.com/Seen");
        let seen =
            json!({ "type": "example.com/Seen", "status": "True", "reason": format!("S{value}") });
        service["status"]["conditions"] = others.chain([seen]).collect();
        let request = ApiRequest::update(&resource(place.kind), place.namespace, service);
        let response = self.api.handle(self.timestamp(), 0, &request.of_status());
        let object = Shared::new(with_type(place.kind, response.body));
        self.changed(place.kind, Some(&object), None);
    }

    fn delete(&mut self, place: &Place) {
        let request = ApiRequest::delete(&resource(place.kind), place.namespace, &place.name);
        if self.api.handle(self.timestamp(), 0, &request).is_success() {
            let name = ObjectName::new(place.namespace, &place.name);
            self.changed(place.kind, None, Some(&ObjectKey { kind: place.kind, name }));
        }
    }

    fn link(&mut self, who: Who, change: impl FnOnce(&mut crate::process::Link)) {
        if let Some(process) = self.processes.get_mut(&who) {
            change(&mut process.link);
        }
    }

    /// The knowledge of this process may be outdated until then.
    fn trouble(&mut self, who: Who, until: Instant) {
        self.link(who, |link| link.trouble = link.trouble.max(until));
    }

    pub(crate) fn start(&mut self, who: Who, run: u64) {
        let (now, seed) = (self.now, self.random.next_u64());
        let Some(process) = self.processes.get_mut(&who) else { return };
        if process.run != run || process.core.is_some() {
            return;
        }
        if self.misbehaviour.ends_rib_too_early() {
            process.disk = None;
        }
        process.start(now, seed);
        self.tell(|| format!("{who} starts"));
        if let Who::Speaker(node) = who
            && self.misbehaviour.ends_rib_too_early()
        {
            let peers = self.truth.plans.get(node).map(|it| it.peers.clone()).unwrap_or_default();
            let routes = Vec::new().into();
            let announced = Announcements { peers, routes, ..Announcements::default() };
            self.announce(who, announced);
        }
        self.drive(who);
    }

    /// It ends abruptly. `amid`: between two actions.
    pub(crate) fn crash(&mut self, who: Who, seconds: u64, amid: bool) {
        let Some(process) = self.processes.get_mut(&who) else { return };
        if process.core.take().is_none() {
            return;
        }
        process.crash_after = None;
        let run = process.run;
        self.tell(|| format!("{who} crashes{}", if amid { " between two actions" } else { "" }));
        self.forget_requests(who);
        if let Who::Speaker(node) = who {
            if amid {
                self.excuse_what_is_not_on_disk(node);
            }
            self.sessions_break(node);
        }
        let millis = seconds * 1000;
        self.after_millis(millis + 200, millis + 900, Event::Start(who, run));
    }

    /// It is asked to end, and is started again later.
    fn stop(&mut self, who: Who, seconds: u64) {
        let now = self.now;
        let Some(process) = self.processes.get_mut(&who) else { return };
        match &mut process.core {
            None => return,
            Some(crate::process::Core::Controller(core)) => {
                let last = core.leave(now);
                if let Some(fairway_cluster::ControllerAction::Lease(request)) = last {
                    let run = process.run;
                    self.after_millis(1, 20, Event::Lease { who, run, request, sent: now });
                }
            }
            Some(crate::process::Core::Speaker(core)) => {
                let leave = self.misbehaviour.leaves(core.how_to_leave());
                let Who::Speaker(node) = who else { return };
                if leave == Leave::ForGood {
                    self.sessions_end(node);
                }
            }
        }
        self.crash(who, seconds, false);
    }

    fn forget_requests(&mut self, who: Who) {
        let Some(process) = self.processes.get_mut(&who) else { return };
        let asked = std::mem::take(&mut process.asked);
        for watch in asked.into_values().filter_map(|it| it.watch) {
            self.api.cut(watch);
        }
    }

    /// What the next run cannot know: announcements that did not reach the disk.
    fn excuse_what_is_not_on_disk(&mut self, node: usize) {
        let Some(process) = self.processes.get_mut(&Who::Speaker(node)) else { return };
        let known = from_disk(node, process.disk.clone());
        let known = known.plan().map(|plan| plan.routes.clone()).unwrap_or_default();
        let known: Vec<_> = known.iter().map(|route| route.prefix).collect();
        let told = self.adjacencies.get(node).into_iter().flatten();
        let told = told.flat_map(|it| it.prefixes().collect::<Vec<_>>());
        process.excused.extend(told.filter(|it| !known.contains(it)));
    }

    fn lose_disk(&mut self, node: usize) {
        if let Some(process) = self.processes.get_mut(&Who::Speaker(node)) {
            process.disk = None;
            process.has_lost_disk = true;
            let told = self.adjacencies.get(node).into_iter().flatten();
            process.excused.extend(told.flat_map(|it| it.prefixes().collect::<Vec<_>>()));
        }
    }

    /// A process is about to lose the API server: one that has lost it already has no newer state.
    fn cut_off(&mut self, who: Who) {
        if let Who::Speaker(node) = who
            && self.is_reachable(who)
        {
            let wanted = self.truth.wanted(node);
            let process = self.processes.get_mut(&who);
            process.into_iter().for_each(|it| it.wanted_when_cut_off = wanted.clone());
        }
    }

    fn begin_outage(&mut self, length: Duration) {
        let all: Vec<Who> = self.processes.keys().copied().collect();
        all.iter().for_each(|who| self.cut_off(*who));
        self.outage = self.outage.max(self.now + length);
        let until = self.outage;
        self.at(until, Event::Back);
        for who in all {
            self.trouble(who, until);
            self.break_watches(who, 3000);
        }
    }

    fn partition(&mut self, who: Who, length: Duration) {
        self.cut_off(who);
        let until = self.now + length;
        self.link(who, |link| link.partition = link.partition.max(until));
        self.trouble(who, until);
        self.at(until, Event::Back);
        // A client finds out when its connection has been silent for too long.
        self.break_watches(who, 45_000);
    }

    fn cut(&mut self, who: Who) {
        let now = self.now;
        self.trouble(who, now);
        self.break_watches(who, 50);
    }

    /// Every watch of a process fails within this many milliseconds, unless it continues before.
    fn break_watches(&mut self, who: Who, millis: u64) {
        let Some(process) = self.processes.get(&who) else { return };
        let run = process.run;
        let asked: Vec<_> = process.asked.iter().map(|(kind, it)| (*kind, it.serial)).collect();
        for (kind, serial) in asked {
            let news = News::Reply(kind, Reply::Failed);
            self.after_millis(1, millis, Event::Tells { who, run, serial: Some(serial), news });
        }
    }

    /// A partition or an outage may be over: waiting processes continue.
    pub(crate) fn back(&mut self) {
        if self.outage <= self.now {
            for op in std::mem::take(&mut self.held_back) {
                self.tell(|| format!("-- at last: {op}"));
                self.obey(op);
            }
        }
        self.all_watch_soon(|_, _, _| true);
    }

    /// The user corrects invalid objects: the valid versions are applied together.
    fn mend(&mut self) {
        if !self.truth.is_disputed(self.now, Duration::ZERO) {
            return;
        }
        self.obey(Op::Secret { variant: 0 });
        for number in 0..objects::POOLS {
            if self.stored(&objects::pool_place(number)).is_some() {
                self.obey(Op::Pool { number, variant: 0 });
            }
        }
    }

    /// No failures from now on, and all processes run.
    pub(crate) fn heal(&mut self) {
        self.tell(|| "-- no failures from here on".to_owned());
        self.outage = self.now;
        let now = self.now;
        self.lags = [now; 2];
        let mut stopped = Vec::new();
        for (who, process) in &mut self.processes {
            process.crash_after = None;
            let link = &mut process.link;
            for until in [
                &mut link.partition,
                &mut link.lease_trouble,
                &mut link.loses_answers,
                &mut link.slow,
            ] {
                *until = (*until).min(now);
            }
            link.trouble = now;
            if process.core.is_none() {
                stopped.push((*who, process.run));
            }
        }
        for replica in 0..self.lags.len() {
            self.catch_up(replica);
        }
        self.back();
        self.mend();
        for (who, run) in stopped {
            self.after_millis(1, 500, Event::Start(who, run));
        }
    }
}
