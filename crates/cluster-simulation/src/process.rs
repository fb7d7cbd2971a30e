//! A process of the box: the core of a controller or a speaker, and the pending operations of the
//! edge around it.
//!
//! Knows no rule. The world drives it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_cluster::{
    ControllerAction, ControllerCore, ControllerSettings, LeaseReply, Reply, SecretReply, Snapshot,
    SpeakerAction, SpeakerCore, SpeakerSettings, WriteReply, WrittenKind,
};
use fairway_ground::{Instant, Prefix};
use fairway_model::{Kind, ObjectName};
use fairway_model_api::WatchId;
use fairway_plan::AttributeDefaults;
use fairway_resources::BackendKind;
use fairway_seam::Announcements;

use crate::epoch::EPOCH_SECONDS;
use crate::objects::{SYSTEM, node_name};
use crate::schedule::Who;

/// The core inside.
#[derive(Debug)]
pub(crate) enum Core {
    Controller(Box<ControllerCore>),
    Speaker(Box<SpeakerCore>),
}

/// An action that a core requests.
#[derive(Debug)]
pub(crate) enum Action {
    Controller(ControllerAction),
    Speaker(SpeakerAction),
}

/// An input of a core.
#[derive(Debug, Clone)]
pub(crate) enum News {
    Reply(Kind, Reply),
    Lease(LeaseReply),
    Secret(ObjectName, SecretReply),
    Written(WrittenKind, ObjectName, WriteReply),
}

/// The pending request for a kind.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Replies to an earlier one are not for the core.
    pub(crate) serial: u64,
    /// The replica of the API server.
    pub(crate) replica: usize,
    pub(crate) watch: Option<WatchId>,
    /// No event overtakes another.
    pub(crate) last_delivery: Instant,
}

/// Failures of its connection, with the end of each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Link {
    pub(crate) partition: Instant,
    pub(crate) lease_trouble: Instant,
    pub(crate) loses_answers: Instant,
    pub(crate) slow: Instant,
    /// The last time of any such failure, or of a lost watch.
    pub(crate) trouble: Instant,
}

/// A process, running or not.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) who: Who,
    /// The number of starts.
    pub(crate) run: u64,
    pub(crate) core: Option<Core>,
    pub(crate) asked: BTreeMap<Kind, Asked>,
    pub(crate) serial: u64,
    pub(crate) wake_at: Option<Instant>,
    /// It crashes after this many more actions, and is started again after these seconds.
    pub(crate) crash_after: Option<(u64, u64)>,
    pub(crate) link: Link,
    pub(crate) started_at: Instant,
    /// The time up to which it, or its disk, must have received every change.
    pub(crate) informed_at: Instant,
    /// When it last distrusted the API server.
    pub(crate) doubted_at: Instant,
    /// What the speaker's backend announces.
    pub(crate) announced: Option<Announcements>,
    /// The disk of the node.
    pub(crate) disk: Option<Snapshot>,
    /// The content of the disk was removed.
    pub(crate) has_lost_disk: bool,
    /// What it wanted to announce when it lost the API server: no less until it is back.
    pub(crate) wanted_when_cut_off: BTreeSet<(Prefix, usize)>,
    /// Its disk was lost, or it ended between an announcement and its storage: what routers may lose
    /// for that, until it has received everything again.
    pub(crate) excused: BTreeSet<Prefix>,
}

impl Process {
    pub(crate) fn new(who: Who) -> Self {
        Self {
            who,
            run: 0,
            core: None,
            asked: BTreeMap::new(),
            serial: 0,
            wake_at: None,
            crash_after: None,
            link: Link::default(),
            started_at: Instant::ZERO,
            informed_at: Instant::ZERO,
            doubted_at: Instant::ZERO,
            announced: None,
            disk: None,
            has_lost_disk: false,
            wanted_when_cut_off: BTreeSet::new(),
            excused: BTreeSet::new(),
        }
    }

    /// Starts it.
    pub(crate) fn start(&mut self, now: Instant, seed: u64) {
        self.run += 1;
        self.started_at = now;
        self.asked.clear();
        self.wake_at = None;
        self.announced = None;
        self.core = Some(match self.who {
            Who::Controller(number) => {
                let identity = format!("controller-{number}-{}", self.run);
                let settings = ControllerSettings {
                    identity,
                    predecessors: Some(format!("controller-{number}-")),
                    load_balancer_class: None,
                    namespace: SYSTEM.to_owned(),
                    pod: None,
                    empty_list_hold: EMPTY_LIST_HOLD,
                    answers_reviews: false,
                    disruption_limit: None,
                    epoch_seconds: EPOCH_SECONDS,
                    seed,
                };
                Core::Controller(Box::new(ControllerCore::new(settings)))
            }
            Who::Speaker(node) => {
                let core = SpeakerCore::new(speaker_settings(node, seed), self.disk.clone());
                Core::Speaker(Box::new(core))
            }
        });
    }

    /// The next action of its core.
    pub(crate) fn poll_action(&mut self, now: Instant) -> Option<Action> {
        match self.core.as_mut()? {
            Core::Controller(core) => core.poll_action(now).map(Action::Controller),
            Core::Speaker(core) => core.poll_action(now).map(Action::Speaker),
        }
    }

    /// The next deadline of its core.
    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        match self.core.as_ref()? {
            Core::Controller(core) => core.next_deadline(now),
            Core::Speaker(core) => core.next_deadline(),
        }
    }

    /// Passes an input to its core.
    pub(crate) fn hear(&mut self, now: Instant, news: News) {
        match (&mut self.core, news) {
            (Some(Core::Controller(core)), News::Reply(kind, reply)) => {
                core.handle(now, kind, reply);
            }
            (Some(Core::Speaker(core)), News::Reply(kind, reply)) => {
                core.handle(now, kind, reply);
                core.take_updates(); // There is no log here.
            }
            (Some(Core::Speaker(core)), News::Secret(name, reply)) => {
                core.handle_secret(now, &name, &reply);
            }
            (Some(Core::Controller(core)), News::Lease(reply)) => core.handle_lease(now, reply),
            (Some(Core::Controller(core)), News::Written(kind, name, reply)) => {
                core.handle_write(now, kind, &name, reply);
            }
            _ => {}
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        match &self.core {
            Some(Core::Controller(core)) => core.is_in_doubt(),
            Some(Core::Speaker(core)) => core.is_in_doubt(),
            None => false,
        }
    }

    pub(crate) fn speaker(&self) -> Option<&SpeakerCore> {
        match self.core.as_ref()? {
            Core::Speaker(core) => Some(core),
            Core::Controller(_) => None,
        }
    }

    pub(crate) fn controller(&self) -> Option<&ControllerCore> {
        match self.core.as_ref()? {
            Core::Controller(core) => Some(core),
            Core::Speaker(_) => None,
        }
    }
}

/// Shorter than by default, and than the quiet in which everything is checked.
const EMPTY_LIST_HOLD: Duration = Duration::from_secs(60);

fn speaker_settings(node: usize, seed: u64) -> SpeakerSettings {
    SpeakerSettings {
        node: node_name(node),
        load_balancer_class: None,
        ignore_exclude_label: false,
        attribute_defaults: AttributeDefaults::default(),
        backend: BackendKind::Native,
        empty_list_hold: EMPTY_LIST_HOLD,
        seed,
    }
}

/// A speaker that starts from the disk of its node, and has received nothing else.
pub(crate) fn from_disk(node: usize, disk: Option<Snapshot>) -> SpeakerCore {
    let mut core = SpeakerCore::new(speaker_settings(node, 0), disk);
    core.poll_action(Instant::ZERO);
    core
}
