//! The box: an event loop over virtual time that connects everything.
//!
//! Answers which rule a schedule breaks, if any. The behaviour of a process is in `edge`, the user and
//! the failures in `happening`, the actual state in `truth`, the invariants in `rules` and `quiet`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{LeaseReply, LeaseRequest, ObjectWrite, Reply, WriteReply};
use fairway_ground::{Instant, Rng};
use fairway_model::{ClusterIndex, Kind, ObjectName};
use fairway_model_api::{ApiServer, Resource, ResourceDefinition, Settings, Timestamp};

use crate::misbehaviour::Misbehaviour;
use crate::objects::PEERS;
use crate::process::{News, Process};
use crate::router::Adjacency;
use crate::rules::{Violation, WriteCounts};
use crate::schedule::{Op, Schedule, Who};
use crate::truth::Truth;

/// How long there are no failures before the end: the longest pause of any process, a lease, a
/// cool-down, and a minute of silence.
pub(crate) const QUIET: Duration = Duration::from_secs(170);
/// In this last part of it no process may have anything left to do.
pub(crate) const SILENCE: Duration = Duration::from_secs(40);
/// The interval of the periodic checks.
const LOOK: Duration = Duration::from_secs(5);

/// An event at a point in time.
#[derive(Debug)]
pub(crate) enum Event {
    /// The next step of the schedule.
    Step(usize),
    /// Another writer sets a condition of a Service, as controllers do after an edit.
    Remark { service: u8, value: u8 },
    /// The deadline of a process.
    Wake(Who, u64),
    /// A process is started.
    Start(Who, u64),
    /// A request about a kind reaches the server.
    Asks { who: Who, run: u64, kind: Kind, serial: u64, watch_from: Option<String> },
    /// The server has an event for a watch, or the client notices that it has none.
    Watched { who: Who, run: u64, kind: Kind, serial: u64 },
    /// An answer reaches the core.
    Tells { who: Who, run: u64, serial: Option<u64>, news: News },
    /// A request for a Secret reaches the server.
    Secret { who: Who, run: u64, name: ObjectName },
    /// A request about the Lease reaches the server.
    Lease { who: Who, run: u64, request: LeaseRequest, sent: Instant },
    /// A write reaches the server.
    Write {
        who: Who,
        run: u64,
        write: ObjectWrite,
        sent: Instant,
        belief: Option<Arc<ClusterIndex>>,
    },
    /// A replica has caught up.
    CatchUp(usize),
    /// A session comes up.
    SessionUp { node: usize, run: u64, router: usize },
    /// The deferral of End-of-RIB of a speaker is over.
    Deferred { node: usize, run: u64, router: usize },
    /// The restart time of a router is over.
    StaleOver { node: usize, router: usize, ends: u64 },
    /// The outage may be over.
    Back,
    /// The periodic checks.
    Look,
}

#[derive(Debug)]
pub(crate) struct Due {
    at: Instant,
    number: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The rule that was broken first, and when.
    pub violation: Option<(Duration, Violation)>,
    /// The events, line by line, if they were kept.
    pub story: Vec<String>,
    /// The content of the API server and of the routers at the end.
    pub outcome: BTreeMap<String, String>,
    /// Actions of all processes.
    pub actions: u64,
}

/// A box.
pub struct World {
    pub(crate) schedule: Schedule,
    pub(crate) now: Instant,
    pub(crate) random: Rng,
    queue: BinaryHeap<Reverse<Due>>,
    numbers: u64,
    pub(crate) api: ApiServer,
    /// No process reaches the API server until then.
    pub(crate) outage: Instant,
    /// Each replica lags until then.
    pub(crate) lags: [Instant; 2],
    pub(crate) processes: BTreeMap<Who, Process>,
    /// By node and router.
    pub(crate) adjacencies: Vec<Vec<Adjacency>>,
    pub(crate) truth: Truth,
    pub(crate) writes: WriteCounts,
    pub(crate) last_write: Instant,
    /// User actions that failed while the server was unreachable.
    pub(crate) held_back: Vec<Op>,
    pub(crate) misbehaviour: Misbehaviour,
    pub(crate) violation: Option<(Duration, Violation)>,
    pub(crate) actions: u64,
    story: Option<Vec<String>>,
}

impl World {
    /// The box of a schedule, without mistakes.
    pub fn new(schedule: Schedule, keeps_story: bool) -> Self {
        Self::with(schedule, Misbehaviour::default(), keeps_story)
    }

    /// A box with a mistake on purpose.
    pub fn with(schedule: Schedule, misbehaviour: Misbehaviour, keeps_story: bool) -> Self {
        let settings =
            Settings { replicas: 2, in_step: false, watch_seconds: 600, ..Settings::default() };
        let nodes = schedule.nodes;
        let who = (0..nodes).map(Who::Speaker);
        let mut api = ApiServer::new(settings);
        let states = Resource::new("metallb.io", "v1beta1", "configurationstates");
        api.define(ResourceDefinition::custom(states, "ConfigurationState", true));
        let who = who.chain((0..schedule.controllers).map(Who::Controller));
        Self {
            now: Instant::from_micros(1_000_000),
            random: Rng::seeded(schedule.seed ^ 0xC1A5_7E12),
            queue: BinaryHeap::new(),
            numbers: 0,
            api,
            outage: Instant::ZERO,
            lags: [Instant::ZERO; 2],
            processes: who.map(|who| (who, Process::new(who))).collect(),
            adjacencies: vec![vec![Adjacency::default(); usize::from(PEERS)]; nodes],
            truth: Truth::new(nodes),
            writes: WriteCounts::default(),
            last_write: Instant::ZERO,
            held_back: Vec::new(),
            misbehaviour,
            violation: None,
            actions: 0,
            story: keeps_story.then(Vec::new),
            schedule,
        }
    }

    /// Runs the schedule and the quiet after it, up to the first broken rule.
    pub fn run(mut self) -> Verdict {
        self.begin();
        let begun = self.now;
        for (number, step) in self.schedule.steps.clone().iter().enumerate() {
            self.at(begun + step.at, Event::Step(number));
        }
        let last = self.schedule.steps.last().map_or(Duration::ZERO, |step| step.at);
        self.at(begun + LOOK, Event::Look);
        let end = self.run_until(begun + last + Duration::from_millis(1));
        if end {
            self.heal();
            let quiet_until = self.now + QUIET;
            if self.run_until(quiet_until) {
                self.check_quiet();
            }
        }
        Verdict {
            outcome: self.outcome(),
            violation: self.violation,
            story: self.story.unwrap_or_default(),
            actions: self.actions,
        }
    }

    /// Returns whether all rules hold.
    fn run_until(&mut self, end: Instant) -> bool {
        while self.violation.is_none() {
            match self.queue.peek() {
                Some(Reverse(due)) if due.at <= end => {}
                _ => break,
            }
            let Some(Reverse(due)) = self.queue.pop() else { break };
            self.now = self.now.max(due.at);
            self.happens(due.event);
        }
        self.now = self.now.max(end);
        self.violation.is_none()
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Step(number) => self.step(number),
            Event::Remark { service, value } => self.remark(service, value),
            Event::Wake(who, run) => self.wake(who, run),
            Event::Start(who, run) => self.start(who, run),
            Event::Asks { who, run, kind, serial, watch_from } => {
                self.asks(who, run, kind, serial, watch_from.as_deref());
            }
            Event::Watched { who, run, kind, serial } => self.watched(who, run, kind, serial),
            Event::Tells { who, run, serial, news } => self.tells(who, run, serial, news),
            Event::Secret { who, run, name } => self.secret_asked(who, run, &name),
            Event::Lease { who, run, request, sent } => self.lease_asked(who, run, &request, sent),
            Event::Write { who, run, write, sent, belief } => {
                self.write_asked(who, run, &write, sent, belief.as_deref());
            }
            Event::CatchUp(replica) => self.catch_up(replica),
            Event::SessionUp { node, run, router } => self.session_up(node, run, router),
            Event::Deferred { node, run, router } => self.deferred(node, run, router),
            Event::StaleOver { node, router, ends } => self.stale_over(node, router, ends),
            Event::Back => self.back(),
            Event::Look => {
                self.look();
                self.at(self.now + LOOK, Event::Look);
            }
        }
    }

    pub(crate) fn at(&mut self, at: Instant, event: Event) {
        self.numbers += 1;
        self.queue.push(Reverse(Due { at, number: self.numbers, event }));
    }

    pub(crate) fn after_millis(&mut self, least: u64, most: u64, event: Event) {
        let millis = least + self.random.next_u64() % (most - least + 1);
        self.at(self.now + Duration::from_millis(millis), event);
    }

    /// The time for timestamps of objects.
    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(crate::epoch::EPOCH_SECONDS * 1_000_000 + self.now.as_micros())
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            let seconds = self.now.as_micros() as f64 / 1e6;
            story.push(format!("{seconds:10.3}  {}", line()));
        }
    }

    pub(crate) fn judge(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.tell(|| format!("BROKEN {violation}"));
            let since = self.now.since(Instant::ZERO);
            self.violation.get_or_insert((since, violation));
        }
    }

    /// Whether a process reaches the API server now.
    pub(crate) fn is_reachable(&self, who: Who) -> bool {
        self.outage <= self.now
            && self.processes.get(&who).is_some_and(|it| it.link.partition <= self.now)
    }
}

/// A failed request, for any kind of request.
pub(crate) fn failed(kind: Kind) -> News {
    News::Reply(kind, Reply::Failed)
}

pub(crate) fn lease_failed() -> News {
    News::Lease(LeaseReply::Failed)
}

pub(crate) fn write_failed(write: &ObjectWrite) -> News {
    News::Written(write.kind, write.name.clone(), WriteReply::Failed)
}

/// A value as others share it.
pub(crate) type Shared = Arc<serde_json::Value>;
