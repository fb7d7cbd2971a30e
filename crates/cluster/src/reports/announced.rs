//! Events about changes: a Service is announced from this node, the node leaves or returns to service.
//!
//! Transitions only. A Service stays announced while a session is down for a moment: its announcement starts
//! and ends with the plan. What an earlier run reported is no news either.

use std::collections::{BTreeMap, VecDeque};

use fairway_ground::Utc;
use fairway_model::{Kind, ObjectName};
use fairway_node::drain::DrainStatus;
use fairway_seam::DrainState;

use super::ReportFacts;
use crate::write::EventRecord;

/// The phase of the node that was reported last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    InService,
    Draining,
    Drained,
}

/// What has been reported.
#[derive(Debug)]
pub(super) struct AnnouncementEvents {
    node: String,
    /// With the uid at the time of the report: another Service may take the name between two reports. `None`:
    /// an earlier run reported it.
    services: BTreeMap<ObjectName, Option<String>>,
    /// Services that were announced before it was known which of them are news, with their uids.
    unheard: Option<BTreeMap<ObjectName, String>>,
    phase: Phase,
    events: VecDeque<EventRecord>,
}

impl AnnouncementEvents {
    pub(super) fn new(node: String) -> Self {
        Self {
            node,
            services: BTreeMap::new(),
            unheard: Some(BTreeMap::new()),
            phase: Phase::InService,
            events: VecDeque::new(),
        }
    }

    pub(super) fn next_event(&mut self) -> Option<EventRecord> {
        self.events.pop_front()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// These Services were announced before this process started.
    pub(super) fn remember(&mut self, services: impl Iterator<Item = ObjectName>) {
        self.services.extend(services.map(|name| (name, None)));
        for (name, uid) in self.unheard.take().unwrap_or_default() {
            self.begins(name, uid);
        }
    }

    /// Routers have routes for these Services.
    pub(super) fn follow_services<T>(
        &mut self,
        facts: &ReportFacts<'_>,
        told: &BTreeMap<&ObjectName, T>,
    ) {
        let services = facts.plan.map(|plan| &plan.services);
        let is_planned = |name: &ObjectName| {
            services.and_then(|it| it.get(name)).is_some_and(|it| it.is_announced())
        };
        if let Some(unheard) = &mut self.unheard {
            let told =
                told.keys().filter_map(|name| Some(((*name).clone(), (facts.service_uid)(name)?)));
            *unheard = told.collect();
            return;
        }
        self.services.retain(|name, uid| {
            let is_same = uid.is_none() || *uid == (facts.service_uid)(name);
            is_planned(name) && is_same
        });
        for name in told.keys() {
            if !self.services.contains_key(*name)
                && let Some(uid) = (facts.service_uid)(name)
            {
                self.begins((*name).clone(), uid);
            }
        }
    }

    fn begins(&mut self, name: ObjectName, uid: String) {
        if self.services.contains_key(&name) {
            return;
        }
        self.services.insert(name.clone(), Some(uid.clone()));
        let message = format!("announcing from node {:?} with protocol \"bgp\"", self.node);
        self.post(Kind::Service, name, uid, "nodeAssigned", message);
    }

    /// The drain state of the node. It counts as drained once the withdrawal is sent to every session.
    pub(super) fn follow_drain(&mut self, facts: &ReportFacts<'_>) {
        let is_told = facts.bgp.drain == DrainState::Drained
            && !facts.bgp.peers.iter().any(|it| it.is_being_told || !it.advertised.is_empty());
        let (phase, reason, message) = match facts.drain {
            DrainStatus::InService => {
                (Phase::InService, "NodeInService", "all routes are announced again".to_owned())
            }
            DrainStatus::Draining { until_epoch_seconds, .. } => {
                let message = format!(
                    "routers are asked to prefer other nodes (GRACEFUL_SHUTDOWN); all routes are \
                     withdrawn at {}",
                    Utc(until_epoch_seconds)
                );
                (Phase::Draining, "NodeDraining", message)
            }
            DrainStatus::Drained { .. } if is_told => {
                let message = "all routes are withdrawn, and the BGP sessions stay up".to_owned();
                (Phase::Drained, "NodeDrained", message)
            }
            DrainStatus::Drained { .. } => return,
        };
        let Some(uid) = facts.node_uid.filter(|_| phase != self.phase) else { return };
        self.phase = phase;
        let name = ObjectName::new("", &self.node);
        self.post(Kind::Node, name, uid.to_owned(), reason, message);
    }

    fn post(
        &mut self,
        kind: Kind,
        name: ObjectName,
        uid: String,
        reason: &'static str,
        message: String,
    ) {
        let event = EventRecord { kind, name, uid, is_warning: false, reason, message };
        self.events.push_back(event);
    }
}
