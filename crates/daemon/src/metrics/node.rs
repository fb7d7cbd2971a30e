//! The metrics of `fairway run` and `fairway speaker`: sessions, routes, Services, objects.

use std::sync::Arc;

use fairway_allocator::PoolUse;
use fairway_plan::{AddressAnnouncement, Announcement};
use fairway_seam::{
    AddressAnswer, AnsweredAddress, Backend, DrainState, Layer2View, MemberStatus, ViewScope,
};

use super::families::{
    ANNOUNCED, FINDINGS, HEALTH, LAYER2_CHECKED, LAYER2_CONFLICTS, LAYER2_GRATUITOUS,
    LAYER2_REQUESTS, LAYER2_RESPONSES, MEMBERS, SERVICES, SERVICES_ANNOUNCED, SERVICES_PENDING,
    STALE_OBJECTS,
};
use super::page::Page;
use super::{ClientCounters, Collect, Collected, PeerLabel, PodAddressCounters, bgp, controller};
use crate::host::{Enquirer, Published};

/// Asks the loop of a node and its BGP core.
#[derive(Clone)]
pub struct NodeMetrics {
    enquirer: Enquirer,
    backend: Arc<dyn Backend>,
    counters: Arc<ClientCounters>,
    peer_label: PeerLabel,
    gives_addresses: bool,
    pod_addresses: Option<Arc<PodAddressCounters>>,
}

impl NodeMetrics {
    /// A node that announces addresses assigned by a controller.
    pub fn new(
        enquirer: Enquirer,
        backend: Arc<dyn Backend>,
        counters: Arc<ClientCounters>,
    ) -> Self {
        let peer_label = PeerLabel::default();
        let (gives_addresses, pod_addresses) = (false, None);
        Self { enquirer, backend, counters, peer_label, gives_addresses, pod_addresses }
    }

    /// The same, with this label of neighbours.
    pub fn labelled(self, peer_label: PeerLabel) -> Self {
        Self { peer_label, ..self }
    }

    /// It gives Pods addresses as well: adds what that counts.
    pub fn with_pod_addresses(self, counters: Option<Arc<PodAddressCounters>>) -> Self {
        Self { pod_addresses: counters, ..self }
    }

    /// It assigns addresses as well: adds the metrics of its pools.
    pub fn with_pools(self) -> Self {
        Self { gives_addresses: true, ..self }
    }
}

impl Collect for NodeMetrics {
    fn unready(&self) -> Option<String> {
        self.backend.unready()
    }

    fn collect<'a>(&'a self, page: &'a mut Page) -> Collected<'a> {
        Box::pin(async move {
            let Ok(view) = self.backend.view(ViewScope::SESSIONS).await else { return false };
            let Some(state) = self.enquirer.ask().await else { return false };
            self.counters.in_force(view.faults.is_empty() && state.is_reading);
            bgp::write(page, self.peer_label, &view, &state.plan);
            write_services(page, &state);
            if let Some(members) = &state.members {
                write_members(page, &members.view().await);
            }
            if let Some(edge) = &state.layer2 {
                write_layer2(page, &edge.view().await);
            }
            write_health(page, &state);
            write_objects(page, &state);
            if self.gives_addresses {
                controller::write_pools(page, &PoolUse::of_all(&state.index, &state.outcomes));
            }
            if let Some(counters) = &self.pod_addresses {
                counters.write(page);
            }
            true
        })
    }

    fn is_alive(&self) -> Collected<'_> {
        Box::pin(async {
            let core = self.backend.view(ViewScope::SESSIONS).await;
            core.is_ok() && self.enquirer.ask().await.is_some()
        })
    }
}

fn write_services(page: &mut Page, state: &Published) {
    let is_in_service = state.drain.state() != DrainState::Drained;
    let announced = || {
        let services = state.plan.services.iter().filter(|_| is_in_service);
        services.filter(|(_, announcement)| announcement.is_announced())
    };
    page.number(&SERVICES, state.outcomes.len());
    page.number(&SERVICES_PENDING, state.outcomes.values().filter(|it| it.is_pending()).count());
    page.number(&SERVICES_ANNOUNCED, announced().count());
    let mut samples = page.family(&ANNOUNCED);
    for (service, announcement) in announced() {
        let name = service.to_string();
        for address in told(announcement) {
            samples.add(&[&name, "bgp", &state.node.name, &address], 1);
        }
    }
    for answered in state.plan.layer2.iter().filter(|_| is_in_service) {
        for service in &answered.services {
            let (name, address) = (service.to_string(), answered.address.to_string());
            samples.add(&[&name, "layer2", &state.node.name, &address], 1);
        }
    }
}

fn write_health(page: &mut Page, state: &Published) {
    let mut samples = page.family(&HEALTH);
    for (service, is_served) in &state.health {
        samples.add(&[&service.to_string()], u64::from(*is_served));
    }
}

fn write_members(page: &mut Page, members: &[MemberStatus]) {
    let mut samples = page.family(&MEMBERS);
    for state in ["alive", "suspect", "left", "dead"] {
        samples.add(&[state], members.iter().filter(|it| it.state == state).count());
    }
}

fn write_layer2(page: &mut Page, view: &Layer2View) {
    let mut family = |family, count: fn(&AnsweredAddress) -> u64| {
        let mut samples = page.family(family);
        for (address, answered) in &view.addresses {
            samples.add(&[&address.to_string()], count(answered));
        }
    };
    family(&LAYER2_REQUESTS, |it| it.requests);
    family(&LAYER2_RESPONSES, |it| it.responses);
    family(&LAYER2_GRATUITOUS, |it| it.announcements);
    family(&LAYER2_CONFLICTS, |it| it.conflicts);
    let mut samples = page.family(&LAYER2_CHECKED);
    for answer in AddressAnswer::WORDS {
        samples
            .add(&[answer], view.checks.values().filter(|it| it.answer.word() == answer).count());
    }
}

/// The addresses that are planned for at least one neighbour.
fn told(announcement: &Announcement) -> impl Iterator<Item = String> {
    let is_told = |it: &&AddressAnnouncement| {
        it.prefixes.iter().any(|prefix| prefix.reason.is_none() && !prefix.peers.is_empty())
    };
    announcement.addresses.iter().filter(is_told).map(|it| it.address.to_string())
}

fn write_objects(page: &mut Page, state: &Published) {
    let faults = state.findings.iter().filter(|it| it.is_fault()).count();
    let mut samples = page.family(&FINDINGS);
    samples.add(&["fault"], faults);
    samples.add(&["warning"], state.findings.len().saturating_sub(faults));
    page.number(&STALE_OBJECTS, state.stale.len());
}
