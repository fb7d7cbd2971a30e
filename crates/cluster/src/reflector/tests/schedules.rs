//! Any schedule of changes, cuts, 410s, lagging servers, outages and lost histories: at the end the reflector
//! has what the server has, and its deltas add up to that.
//!
//! `FAIRWAY_SEED=93` replays one; `FAIRWAY_SEEDS=100000` runs more.

use fairway_model_api::{
    ApiServer, EventKind, Query, Request as Ask, Resource, Settings, Timestamp, WatchId, WatchStep,
};
use serde_json::json;

use super::super::*;
use super::HOLD;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const REPLICAS: u64 = 2;
const STEPS: u64 = 50;
/// About ten seconds of a debug build; `make sim` runs more.
const SEEDS: u64 = 4000;

/// What the reflector waits for.
enum UnderWay {
    Nothing,
    /// An answer in transit.
    Reply(Reply),
    Watch(WatchId),
}

struct World {
    random: Rng,
    now: Instant,
    server: ApiServer,
    /// The replica that the client reaches.
    replica: usize,
    is_out: bool,
    under_way: UnderWay,
    reflector: Reflector,
    /// The sum of the deltas.
    mirror: BTreeMap<ObjectName, ObjectText>,
    /// The objects with their uids.
    alive: BTreeMap<&'static str, String>,
    /// From now on versions may repeat.
    history_lost: bool,
    deltas: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Rng::seeded(seed);
        let settings = Settings {
            replicas: 2,
            in_step: random.next_u64().is_multiple_of(3),
            lag_changes_max: 8,
            history_changes: 4 + random.next_u64() % 20,
            managed_fields: false,
            ..Settings::default()
        };
        Self {
            now: Instant::ZERO,
            server: ApiServer::new(settings),
            replica: 0,
            is_out: false,
            under_way: UnderWay::Nothing,
            reflector: Reflector::new(random.next_u64(), HOLD),
            mirror: BTreeMap::new(),
            alive: BTreeMap::new(),
            history_lost: false,
            deltas: 0,
            random,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn number(&mut self, bound: u64) -> usize {
        usize::try_from(self.below(bound)).unwrap()
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(self.now.as_micros())
    }

    fn resource() -> Resource {
        Resource::core("configmaps")
    }

    fn step(&mut self) {
        match self.below(20) {
            0..=4 => self.change(),
            5 => self.end_watch(),
            6 => {
                let revision = self.below(self.server.revision() + 1);
                self.server.compact(revision);
            }
            7 => {
                let (replica, changes) = (self.number(REPLICAS), self.below(4));
                self.server.catch_up(replica, changes);
            }
            8 => self.replica = self.number(REPLICAS),
            9 => {
                let replica = self.number(REPLICAS);
                self.server.restart_replica(replica);
            }
            10 => self.is_out = self.below(3) == 0,
            11 => self.now = self.now + Duration::from_millis(self.random.next_u64() % 70_000),
            12 => self.now = self.now.max(self.reflector.next_deadline()),
            _ => self.drive(),
        }
    }

    fn change(&mut self) {
        let (resource, at) = (Self::resource(), self.timestamp());
        let name = NAMES[self.number(4)];
        let value = self.below(1000).to_string();
        let body = json!({"metadata": {"name": name}, "data": {"v": value}});
        if self.below(3) == 0 && self.alive.remove(name).is_some() {
            self.server.handle(at, 0, &Ask::delete(&resource, "default", name));
            if self.below(2) == 0 {
                return;
            }
        }
        if self.alive.contains_key(name) {
            self.server.handle(at, 0, &Ask::update(&resource, "default", body));
            return;
        }
        let created = self.server.handle(at, 0, &Ask::create(&resource, "default", body));
        if let Some(uid) = ObjectText::from(&created.body).uid() {
            self.alive.insert(name, uid);
        }
    }

    fn end_watch(&mut self) {
        if let UnderWay::Watch(watch) = self.under_way {
            self.server.cut(watch);
            let reply = if self.below(2) == 0 { Reply::Closed } else { Reply::Failed };
            self.under_way = UnderWay::Nothing;
            self.deliver(reply);
        }
    }

    /// One message is delivered.
    fn drive(&mut self) {
        if let Some(request) = self.reflector.next_request(self.now) {
            if let UnderWay::Watch(watch) = self.under_way {
                self.server.cut(watch);
            }
            self.under_way = self.send(request);
            return;
        }
        match std::mem::replace(&mut self.under_way, UnderWay::Nothing) {
            UnderWay::Nothing => {}
            UnderWay::Reply(reply) => self.deliver(reply),
            UnderWay::Watch(watch) => {
                if self.is_out {
                    // The connection is open, and no message arrives.
                    self.under_way = UnderWay::Watch(watch);
                    return;
                }
                let reply = match self.server.poll_watch(self.timestamp(), watch) {
                    WatchStep::Idle => None,
                    WatchStep::Ended => Some(Reply::Closed),
                    WatchStep::Event(event) => Some(match event.kind {
                        EventKind::Added | EventKind::Modified => Reply::Applied(event.object),
                        EventKind::Deleted => Reply::Deleted(event.object),
                        EventKind::Error => Reply::Gone,
                        EventKind::Bookmark => {
                            Reply::Bookmark(version_of(&event.object).unwrap().to_owned())
                        }
                    }),
                };
                if !matches!(reply, Some(Reply::Closed | Reply::Gone)) {
                    self.under_way = UnderWay::Watch(watch);
                }
                if let Some(reply) = reply {
                    self.deliver(reply);
                }
            }
        }
    }

    fn send(&mut self, request: Request) -> UnderWay {
        let at = self.timestamp();
        if self.is_out {
            return UnderWay::Reply(Reply::Failed);
        }
        match request {
            Request::List { continue_token } => {
                let limit = self.number(4);
                let query = Query { limit, continue_token, ..Query::default() };
                let ask = Ask::list(&Self::resource(), "").with(query);
                let answer = self.server.handle(at, self.replica, &ask);
                UnderWay::Reply(match answer.code {
                    200 => page(&answer.body),
                    410 => Reply::Gone,
                    code => panic!("{code}: {}", answer.body),
                })
            }
            Request::Watch { resource_version } => {
                let mut ask = Ask::watch(&Self::resource(), "", &resource_version);
                ask.query.allow_watch_bookmarks = true;
                UnderWay::Watch(self.server.watch(at, self.replica, &ask).unwrap())
            }
        }
    }

    fn deliver(&mut self, reply: Reply) {
        for delta in self.reflector.handle(self.now, reply) {
            self.deltas += 1;
            match delta {
                Delta::Applied(object) => {
                    let known = self.mirror.insert(name_of(&object.value()), object.clone());
                    let Some(known) = known else { continue };
                    assert_eq!(known.uid(), object.uid(), "replaced without a deletion");
                    let [before, after] = [&known, &object]
                        .map(|it| version_of(&it.value()).unwrap().parse::<u64>().unwrap());
                    let text = object.as_str();
                    assert!(before < after || self.history_lost, "back in time: {text}");
                }
                Delta::Deleted(name) => {
                    let gone = self.mirror.remove(&name).expect("a deletion of what was not there");
                    let uid = self.alive.get(name.name.as_str());
                    let is_alive = uid == gone.uid().as_ref();
                    assert!(!is_alive || self.history_lost, "{name} was never deleted");
                }
            }
        }
        assert_eq!(&self.mirror, self.reflector.items(), "the deltas do not add up");
    }

    fn lose_history(&mut self) {
        let revision = self.server.revision().saturating_sub(self.below(6));
        if self.server.restore(revision) {
            self.history_lost = true;
        }
    }

    /// No more changes, and all can be reached: within `limit` it has the latest state.
    fn settle(&mut self, limit: Duration) {
        self.is_out = false;
        for replica in 0..2 {
            self.server.catch_up(replica, u64::MAX);
        }
        let latest = self.server.handle(self.timestamp(), 0, &Ask::list(&Self::resource(), ""));
        let Reply::Listed { items, .. } = page(&latest.body) else { unreachable!() };
        let truth: BTreeMap<_, _> = items.into_iter().map(|it| (it.name, it.text)).collect();
        let began = self.now;
        loop {
            for _ in 0..10 {
                self.drive();
            }
            if truth == self.mirror && self.reflector.is_synced() {
                return;
            }
            let waited = self.now.since(began);
            assert!(waited <= limit, "after {waited:?}: {:#?}, and not {truth:#?}", self.mirror);
            // Often enough to receive each bookmark.
            let deadline = self.reflector.next_deadline();
            self.now = deadline
                .clamp(self.now + Duration::from_secs(1), self.now + Duration::from_secs(50));
        }
    }
}

/// A list as the edge hands it over: with apiVersion and kind in the items.
fn page(body: &Value) -> Reply {
    let items = body["items"].as_array().unwrap().iter().map(|item| {
        let mut item = item.clone();
        item["apiVersion"] = json!("v1");
        item["kind"] = json!("ConfigMap");
        ListedObject::from(&item)
    });
    Reply::Listed {
        items: items.collect(),
        resource_version: version_of(body).unwrap().to_owned(),
        continue_token: body["metadata"]["continue"].as_str().map(str::to_owned),
    }
}

fn for_each_seed(share: u64, run: impl Fn(u64) -> usize + std::panic::RefUnwindSafe) {
    let asked = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = asked("FAIRWAY_SEED") {
        run(seed);
        return;
    }
    let seeds = asked("FAIRWAY_SEEDS").unwrap_or(SEEDS) / share;
    let mut deltas = 0;
    for seed in 0..seeds {
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(count) => deltas += count,
            Err(panic) => {
                eprintln!("FAIRWAY_SEED={seed} replays this");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(deltas as u64 > seeds * 4, "the schedules say nothing: {deltas} deltas");
}

#[test]
fn whatever_happens_on_the_way_in_the_end_it_believes_what_is_true() {
    for_each_seed(1, |seed| {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        // The worst case: a silent watch, or a doubt, with the longest pauses.
        world.settle(SILENCE_MAX + DOUBT * 3 + HOLD);
        world.deltas
    });
}

#[test]
fn a_storage_from_a_backup_is_believed_in_the_end() {
    for_each_seed(10, |seed| {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.lose_history();
        for _ in 0..STEPS / 2 {
            world.step();
        }
        // If new versions overtook the old ones unseen, only the next regular list helps.
        world.settle(RELIST_INTERVAL + DOUBT * 3 + HOLD);
        world.deltas
    });
}
