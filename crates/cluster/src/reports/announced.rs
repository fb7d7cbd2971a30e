//! Events about changes: a Service is announced from this node, a foreign host claims an address of this node, nobody
//! or another host answers for one of another node, the node leaves or returns to service.
//!
//! Transitions only. A Service stays announced while a session is down for a moment: its announcement starts
//! and ends with the plan. What an earlier run reported is no news either.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Utc;
use fairway_model::{Kind, ObjectName};
use fairway_node::drain::DrainStatus;
use fairway_plan::Announcement;
use fairway_seam::{AddressAnswer, CheckedAddress, DrainState, ForeignClaim};

use super::ReportFacts;
use crate::write::{EventRecord, WrittenKind};

/// How long a foreign host must not claim an address before its next claim is news.
const QUIET_AFTER: Duration = Duration::from_secs(600);

/// Events that may wait when a finding about an address is added: a hostile host can claim all of them at once.
const WAITING_MAX: usize = 1_024;

/// The phase of the node that was reported last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    InService,
    Draining,
    Drained,
}

/// The Services that are announced with one protocol, as far as that has been reported.
#[derive(Debug)]
struct OfProtocol {
    protocol: &'static str,
    /// With the uid at the time of the report: another Service may take the name between two reports. `None`:
    /// an earlier run reported it.
    services: BTreeMap<ObjectName, Option<String>>,
    /// Services that were announced before it was known which of them are news, with their uids.
    unheard: Option<BTreeMap<ObjectName, String>>,
}

/// Services that are announced now and were not before, with their uids.
type News = Vec<(ObjectName, String)>;

impl OfProtocol {
    fn new(protocol: &'static str) -> Self {
        Self { protocol, services: BTreeMap::new(), unheard: Some(BTreeMap::new()) }
    }

    /// These Services were announced before this process started.
    fn remember(&mut self, services: impl Iterator<Item = ObjectName>) -> News {
        self.services.extend(services.map(|name| (name, None)));
        let unheard = self.unheard.take().unwrap_or_default();
        unheard.into_iter().filter_map(|(name, uid)| self.begins(name, uid)).collect()
    }

    /// These Services are announced; those that are not planned any more are forgotten.
    fn follow<'a>(
        &mut self,
        told: impl Iterator<Item = &'a ObjectName>,
        is_planned: impl Fn(&ObjectName) -> bool,
        uid_of: &dyn Fn(&ObjectName) -> Option<String>,
    ) -> News {
        let told = told.filter_map(|name| Some((name.clone(), uid_of(name)?)));
        if let Some(unheard) = &mut self.unheard {
            *unheard = told.collect();
            return Vec::new();
        }
        self.services.retain(|name, uid| {
            let is_same = uid.is_none() || *uid == uid_of(name);
            is_planned(name) && is_same
        });
        told.filter_map(|(name, uid)| self.begins(name, uid)).collect()
    }

    fn begins(&mut self, name: ObjectName, uid: String) -> Option<(ObjectName, String)> {
        if self.services.contains_key(&name) {
            return None;
        }
        self.services.insert(name.clone(), Some(uid.clone()));
        Some((name, uid))
    }
}

/// What has been reported.
#[derive(Debug)]
pub(super) struct AnnouncementEvents {
    node: String,
    bgp: OfProtocol,
    layer2: OfProtocol,
    /// Addresses that a foreign host claims, and those for which others do not answer as they should.
    claimed: BTreeSet<IpAddr>,
    failing: BTreeMap<IpAddr, AddressAnswer>,
    phase: Phase,
    events: VecDeque<EventRecord>,
}

impl AnnouncementEvents {
    pub(super) fn new(node: String) -> Self {
        Self {
            node,
            bgp: OfProtocol::new("bgp"),
            layer2: OfProtocol::new("layer2"),
            claimed: BTreeSet::new(),
            failing: BTreeMap::new(),
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

    /// These Services were announced before this process started, according to objects of this kind.
    pub(super) fn remember(
        &mut self,
        kind: WrittenKind,
        services: impl Iterator<Item = ObjectName>,
    ) {
        let announced = match kind {
            WrittenKind::ServiceBgpStatus => &mut self.bgp,
            WrittenKind::ServiceL2Status => &mut self.layer2,
            _ => return,
        };
        let (protocol, news) = (announced.protocol, announced.remember(services));
        self.post_all(protocol, news);
    }

    /// Routers have routes for the Services `told`, and this node answers for those `answered`.
    pub(super) fn follow_services<T, U>(
        &mut self,
        facts: &ReportFacts<'_>,
        told: &BTreeMap<&ObjectName, T>,
        answered: &BTreeMap<&ObjectName, U>,
    ) {
        let announcement = |name: &ObjectName| facts.plan?.services.get(name);
        let is_routed = |name: &ObjectName| announcement(name).is_some_and(|it| it.is_announced());
        let is_owned = |name: &ObjectName| {
            let verdicts = announcement(name).into_iter().flat_map(|it| &it.layer2);
            verdicts.into_iter().any(|it| it.answer.is_ok())
        };
        let news = self.bgp.follow(told.keys().copied(), is_routed, facts.service_uid);
        self.post_all(self.bgp.protocol, news);
        let news = self.layer2.follow(answered.keys().copied(), is_owned, facts.service_uid);
        self.post_all(self.layer2.protocol, news);
    }

    /// What is seen of addresses on the segment.
    pub(super) fn follow_layer2(&mut self, facts: &ReportFacts<'_>) {
        let Some((view, plan)) = facts.layer2.zip(facts.plan) else { return };
        let mut news: Vec<(IpAddr, &'static str, String)> = Vec::new();
        let claims = view.addresses.iter().filter_map(|(address, it)| {
            Some((*address, it.last_conflict.as_ref().filter(|it| it.age < QUIET_AFTER)?))
        });
        let claims: BTreeMap<IpAddr, &ForeignClaim> = claims.collect();
        for (address, claim) in claims.iter().filter(|(it, _)| !self.claimed.contains(it)) {
            let ForeignClaim { mac, interface, .. } = claim;
            let message = format!(
                "host {mac} on {interface} of node {:?} claims {address}, which this node answers for",
                self.node
            );
            news.push((*address, "AddressClaimed", message));
        }
        self.claimed = claims.into_keys().collect();
        let failing = view.checks.iter().filter(|(_, it)| it.answer != AddressAnswer::Owner);
        for (address, check) in failing.clone() {
            if self.failing.get(address) != Some(&check.answer) {
                let CheckedAddress { owner, answer, .. } = check;
                let message = format!(
                    "node {owner:?} owns {address}; node {:?} asked for it, and {answer}",
                    self.node
                );
                news.push((*address, "AddressCheckFailed", message));
            }
        }
        self.failing = failing.map(|(address, it)| (*address, it.answer)).collect();
        for (address, reason, message) in news {
            let has = |it: &Announcement| it.layer2_verdict(address).is_some();
            for (name, _) in plan.services.iter().filter(|(_, it)| has(it)) {
                let Some(uid) = (facts.service_uid)(name) else { continue };
                if self.events.len() >= WAITING_MAX {
                    return;
                }
                let (name, message) = (name.clone(), message.clone());
                self.events.push_back(EventRecord {
                    kind: Kind::Service.into(),
                    name,
                    uid,
                    is_warning: true,
                    reason,
                    message,
                });
            }
        }
    }

    fn post_all(&mut self, protocol: &str, news: News) {
        for (name, uid) in news {
            let message =
                format!("announcing from node {:?} with protocol {protocol:?}", self.node);
            self.post(Kind::Service, name, uid, "nodeAssigned", message);
        }
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
        let event =
            EventRecord { kind: kind.into(), name, uid, is_warning: false, reason, message };
        self.events.push_back(event);
    }
}
