//! The speaker of one node in a cluster: its copy of the objects, and its announcements.
//!
//! Returns the requests to the API server, the announcements and the snapshot for the disk. Assigns no
//! addresses: it announces what a Service's status has, if a pool contains it. Pure: time and replies come
//! in, actions go out; the edge has the sockets and files.
//!
//! Nothing is withdrawn because the API server does not answer: while it is unreachable, the last known state
//! stays in force; a speaker that starts meanwhile continues from the snapshot of the previous run. Until all
//! kinds were listed once it `awaits_sources`, so that no router gets End-of-RIB too early (RFC 4724 §4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairway_allocator::{Outcome, Outcomes, PoolLookup, Reason};
use fairway_ground::{Abstention, Instant, Prefix};
use fairway_model::{
    Changes, ClusterIndex, DeliveryUpdate, Kind, Node, ObjectKey, ObjectName, Peer, Service,
};
use fairway_plan::{
    AttributeDefaults, Gateways, Local, NodePlan, NodePlanner, PlanChanges, PlanOptions, PlanUpdate,
};
use fairway_resources::{BackendKind, Finding};
use fairway_seam::{Announcements, Leave};

use super::belief::{Belief, Held, Outage};
use super::object_text::ObjectText;
use super::reflector::{Reply, Request};
use super::secrets::SecretReply;

/// The kinds that a speaker decides by, without Secrets, which it reads one by one, and without the kind that
/// only FRR needs.
pub const SPEAKER_KINDS: [Kind; 11] = [
    Kind::BgpPeer,
    Kind::BfdProfile,
    Kind::IpAddressPool,
    Kind::BgpAdvertisement,
    Kind::Layer2Advertisement,
    Kind::Community,
    Kind::BgpConfiguration,
    Kind::Service,
    Kind::EndpointSlice,
    Kind::Node,
    Kind::Namespace,
];
/// How many updates of the plan are kept; the oldest are dropped first. The edge takes them after every step,
/// for the log.
pub const UPDATES_MAX: usize = 64;

/// The identity and the settings of this speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeakerSettings {
    /// Its node.
    pub node: String,
    /// The loadBalancerClass of the Services to announce; those without a class when `None`.
    pub load_balancer_class: Option<String>,
    /// `--ignore-exclude-lb`.
    pub ignore_exclude_label: bool,
    /// Attributes of routes whose advertisements do not set them.
    pub attribute_defaults: AttributeDefaults,
    /// Which backend speaks BGP: what it does not support is a fault.
    pub backend: BackendKind,
    /// How long objects of a kind stay that the API server lacks all at once.
    pub empty_list_hold: Duration,
    /// For the jitter of pauses.
    pub seed: u64,
}

/// The kinds that a speaker reads with this backend. A kind that is not needed is not requested: without the
/// permission for it, the speaker would never be synced.
pub(super) fn speaker_kinds(backend: BackendKind) -> Vec<Kind> {
    let mut kinds = SPEAKER_KINDS.to_vec();
    if let BackendKind::Frr { .. } = backend {
        kinds.push(Kind::ConfigMap);
    }
    kinds
}

/// An action for the edge.
#[derive(Debug, Clone, PartialEq)]
pub enum SpeakerAction {
    /// Send a request about a kind, in place of the earlier one.
    Ask(Kind, Request),
    /// Read this Secret.
    GetSecret(ObjectName),
    /// Some peer is the default gateway: hand in [`SpeakerCore::set_gateways`], now and when they change.
    FollowGateways,
    /// Hand these announcements to the backend.
    Announce(Announcements),
    /// Save [`SpeakerCore::snapshot`] for the next start, in place of the earlier one.
    Persist,
}

/// The objects that were in force, for a start without the API server. Contains Secrets: readable by its
/// owner only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// As received from the API server, by kind and name.
    pub objects: Vec<ObjectText>,
}

/// What changed in the facts, and consequently in the plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Updates {
    /// In the facts.
    pub facts: Changes,
    /// In the plan, the latest last.
    pub plan: Vec<PlanUpdate>,
}

/// A speaker.
#[derive(Debug)]
pub struct SpeakerCore {
    settings: SpeakerSettings,
    belief: Belief,
    outcomes: Outcomes,
    planner: NodePlanner,
    /// Whether there is a Node object.
    has_node: bool,
    /// It continues from what an earlier run knew.
    has_snapshot: bool,
    to_announce: bool,
    to_persist: bool,
    /// Changes that the plan does not include yet: a burst of them is one plan.
    pending: Changes,
    /// The members that own layer 2 addresses; `None` while all nodes count as alive.
    members: Option<BTreeMap<String, BTreeSet<Abstention>>>,
    /// They are others than in the plan, or the machine is.
    has_other_members: bool,
    /// Services of which the service proxy has said something else.
    heard: BTreeSet<ObjectName>,
    local: Local,
    updates: Updates,
}

impl SpeakerCore {
    /// A speaker that has just started, with the snapshot of the previous run.
    pub fn new(settings: SpeakerSettings, snapshot: Option<Snapshot>) -> Self {
        let SpeakerSettings { backend, empty_list_hold, seed, .. } = settings;
        let belief = Belief::new(&speaker_kinds(backend), backend, empty_list_hold, seed);
        let options = PlanOptions {
            ignore_exclude_label: settings.ignore_exclude_label,
            unsliced_services_are_served: false,
            attribute_defaults: settings.attribute_defaults,
        };
        let node = Node::assumed(&settings.node, Vec::new());
        let mut speaker = Self {
            settings,
            belief,
            outcomes: Outcomes::new(),
            planner: NodePlanner::new(node, options),
            has_node: false,
            has_snapshot: snapshot.is_some(),
            to_announce: false,
            to_persist: false,
            pending: Changes::default(),
            members: None,
            has_other_members: false,
            heard: BTreeSet::new(),
            local: Local::default(),
            updates: Updates::default(),
        };
        if let Some(snapshot) = snapshot {
            speaker.pending = speaker.belief.restore(snapshot.objects);
        }
        speaker
    }

    /// Handles an answer about a kind.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) {
        let was_synced = self.belief.is_synced();
        let (changes, _) = self.belief.handle(now, kind, reply);
        let is_synced_now = !was_synced && self.belief.is_synced();
        self.to_persist |= is_synced_now;
        // The completion of the lists is a change of its own.
        self.to_announce |= is_synced_now;
        self.pending.absorb(changes);
    }

    /// Handles an answer about a requested Secret.
    pub fn handle_secret(&mut self, now: Instant, name: &ObjectName, reply: &SecretReply) {
        let changes = self.belief.handle_secret(now, name, reply);
        self.pending.absorb(changes);
    }

    /// The members that own layer 2 addresses, as far as they are nodes of the cluster, each with what it is no
    /// candidate for; `None` if that is not known, and all nodes count as alive.
    pub fn set_members(&mut self, members: Option<&BTreeMap<String, BTreeSet<Abstention>>>) {
        self.members = members.cloned();
        self.has_other_members = true;
    }

    /// The interfaces that layer 2 can answer on.
    pub fn set_interfaces(&mut self, names: &BTreeSet<String>) {
        self.local.interfaces = Some(names.clone());
        self.follow_local();
    }

    /// The default gateways of this machine.
    pub fn set_gateways(&mut self, gateways: Gateways) {
        self.local.gateways = Some(gateways);
        self.follow_local();
    }

    /// The blocks of addresses of Pods that this machine has, and the addresses that its Pods have of others' blocks, with
    /// the name of their IPPool.
    pub fn set_pod_blocks(&mut self, blocks: &BTreeMap<Prefix, String>) {
        self.local.pod_blocks.clone_from(blocks);
        self.follow_local();
    }

    /// What the service proxy of this machine delivers: from the first answer on, an address is announced only while it
    /// does; with none of its own, while another proxy serves the machine, whenever it may be.
    pub fn follow_deliveries(&mut self, update: DeliveryUpdate) {
        self.heard.extend(self.planner.follow_data_path(update));
        self.has_other_members |= self.planner.is_outdated();
    }

    fn follow_local(&mut self) {
        self.planner.set_local(self.local.clone());
        self.has_other_members = true;
    }

    /// A peer is the default gateway, which was not asked for yet.
    fn misses_gateways(&self) -> bool {
        let mut peers = self.belief.index().peers.values();
        self.local.gateways.is_none() && peers.any(Peer::is_default_gateway)
    }

    /// What this node is no candidate for on layer 2.
    pub fn abstentions(&self) -> &BTreeSet<Abstention> {
        self.planner.abstentions()
    }

    /// The snapshot for the next run.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { objects: self.belief.in_force().cloned().collect() }
    }

    /// The next action; `None` until an event arrives or [`Self::next_deadline`] has passed. The wire comes
    /// before the disk: no route waits for a flush.
    pub fn poll_action(&mut self, now: Instant) -> Option<SpeakerAction> {
        if self.misses_gateways() {
            return Some(SpeakerAction::FollowGateways);
        }
        self.follow();
        if std::mem::take(&mut self.to_announce) {
            return Some(SpeakerAction::Announce(self.announced()));
        }
        if std::mem::take(&mut self.to_persist) {
            return Some(SpeakerAction::Persist);
        }
        if let Some((kind, request)) = self.belief.next_request(now) {
            return Some(SpeakerAction::Ask(kind, request));
        }
        self.belief.next_secret(now).map(SpeakerAction::GetSecret)
    }

    /// When the next action is due without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.belief.next_deadline()
    }

    /// How to end the sessions when the process is terminated: for good if the node is gone.
    pub fn how_to_leave(&self) -> Leave {
        if self.belief.is_synced() && !self.has_node { Leave::ForGood } else { Leave::ForRestart }
    }

    /// Whether an answer of the API server is not trusted yet.
    pub fn is_in_doubt(&self) -> bool {
        self.belief.is_in_doubt()
    }

    /// The kinds whose objects stay although the API server has none.
    pub fn held(&self) -> Vec<Held> {
        self.belief.held()
    }

    /// The requests that have failed and not succeeded since.
    pub fn outage(&self) -> Option<Outage> {
        self.belief.outage()
    }

    /// The index of the objects in force.
    pub fn index(&self) -> &ClusterIndex {
        self.belief.index()
    }

    /// Faults and warnings of the objects that configure Fairway.
    pub fn findings(&self) -> Vec<Finding> {
        self.belief.findings()
    }

    /// The objects with an earlier version in force, because the last one is faulty.
    pub fn stale(&self) -> &BTreeSet<ObjectKey> {
        self.belief.stale()
    }

    /// The index, for readers that hold it for longer: the next change copies it while it is held.
    pub fn index_shared(&self) -> Arc<ClusterIndex> {
        Arc::clone(self.belief.index())
    }

    /// `metadata.uid` of the latest version from the API server.
    pub fn uid(&self, kind: Kind, name: &ObjectName) -> Option<String> {
        self.belief.uid(kind, name)
    }

    /// What changed since the last call, or since the start: for the log and the history.
    pub fn take_updates(&mut self) -> Updates {
        std::mem::take(&mut self.updates)
    }

    /// The outcome of each Service.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// The plan in force; without a Node, nothing of it is announced.
    pub fn plan(&self) -> Option<&NodePlan> {
        self.has_node.then(|| self.planner.plan())
    }

    /// Whether the plan has all that there is for this node, or was when the earlier run ended.
    pub fn has_whole_plan(&self) -> bool {
        self.has_node && (self.has_snapshot || self.belief.complete().is_some())
    }

    /// Whether every kind was listed since the start.
    pub fn is_synced(&self) -> bool {
        self.belief.is_synced()
    }

    fn announced(&self) -> Announcements {
        let awaits_sources = !self.belief.is_synced();
        match self.plan() {
            Some(plan) => plan.announcements(awaits_sources),
            // A deleted Node is to get no traffic.
            None => Announcements { awaits_sources, ..Announcements::default() },
        }
    }

    fn follow(&mut self) {
        self.to_persist |= self.belief.take_is_other();
        let facts = std::mem::take(&mut self.pending);
        let heard = std::mem::take(&mut self.heard);
        if !std::mem::take(&mut self.has_other_members) && facts.is_empty() && heard.is_empty() {
            return;
        }
        self.update_outcomes(&facts);
        let index = self.belief.index();
        let had_node = self.has_node;
        let node = index.nodes.get(&self.settings.node);
        self.has_node = node.is_some();
        node.into_iter().for_each(|node| self.planner.set_node(node.clone()));
        let is_node = |name: &String| index.nodes.contains_key(name);
        let members = self.members.as_ref().map(|all| {
            let nodes = all.iter().filter(|(name, _)| is_node(name));
            nodes.map(|(name, it)| (name.clone(), it.clone())).collect()
        });
        self.planner.set_members(members.as_ref());
        let changes = PlanChanges::of(&facts, heard);
        let update = self.planner.update(index, &self.outcomes, &changes);
        self.to_announce |= had_node != self.has_node || update.is_for_routers();
        self.updates.facts.absorb(facts);
        if self.updates.plan.len() >= UPDATES_MAX {
            self.updates.plan.remove(0);
        }
        self.updates.plan.push(update);
    }

    fn update_outcomes(&mut self, changes: &Changes) {
        let index = self.belief.index();
        let pools = PoolLookup::new(index);
        let class = &self.settings.load_balancer_class;
        let ours = |service: &&Arc<Service>| service.load_balancer_class == *class;
        if changes.kinds.contains(&Kind::IpAddressPool) {
            let services = index.services.values().filter(ours);
            let all = services.map(|it| (it.name.clone(), outcome(it, index, &pools)));
            self.outcomes = all.collect();
            return;
        }
        for name in &changes.services {
            match index.services.get(name).filter(ours) {
                Some(service) => {
                    self.outcomes.insert(name.clone(), outcome(service, index, &pools));
                }
                None => {
                    self.outcomes.remove(name);
                }
            }
        }
    }
}

/// The addresses in the status, in the form of an allocator's outcome.
fn outcome(service: &Service, index: &ClusterIndex, pools: &PoolLookup<'_>) -> Outcome {
    let addresses = service.status_addresses.clone();
    let names: BTreeSet<&ObjectName> =
        addresses.iter().filter_map(|it| Some(&pools.holding(*it)?.name)).collect();
    let pool = names.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(",");
    let reason = index.pools.is_empty().then_some(Reason::NoPools);
    Outcome { pool: (!addresses.is_empty()).then_some(pool), addresses, reason }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fairway_model::Deliveries;
    use fairway_seam::Extras;
    use serde_json::json;

    use super::*;

    fn started(backend: BackendKind) -> SpeakerCore {
        let objects = [
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"extras": "log syslog"},
                "metadata": {"name": "bgpextras", "namespace": "metallb-system"},
            }),
        ];
        let settings = SpeakerSettings {
            node: "n1".to_owned(),
            load_balancer_class: None,
            ignore_exclude_label: false,
            attribute_defaults: AttributeDefaults::default(),
            backend,
            empty_list_hold: Duration::ZERO,
            seed: 1,
        };
        let objects = objects.iter().map(ObjectText::from).collect();
        SpeakerCore::new(settings, Some(Snapshot { objects }))
    }

    #[test]
    fn what_is_for_frr_alone_is_read_where_frr_speaks_and_announced_from_the_first_moment() {
        for (backend, reads) in
            [(BackendKind::Native, false), (BackendKind::Frr { version: None }, true)]
        {
            let mut speaker = started(backend);
            let mut asked = BTreeSet::new();
            let mut told = Vec::new();
            while let Some(action) = speaker.poll_action(Instant::ZERO) {
                match action {
                    SpeakerAction::Ask(kind, _) => drop(asked.insert(kind)),
                    SpeakerAction::Announce(Announcements { extras, .. }) => told.push(extras),
                    _ => {}
                }
            }
            assert_eq!(asked.contains(&Kind::ConfigMap), reads, "{backend:?}");
            let extras = Extras {
                origin: "ConfigMap metallb-system/bgpextras".to_owned(),
                text: "log syslog".to_owned(),
            };
            assert_eq!(told, [Some(Arc::new(extras))], "{backend:?}");
        }
    }

    #[test]
    fn what_the_service_proxy_says_is_planned_at_once() {
        let meta = |name: &str| json!({"name": name, "namespace": "metallb-system"});
        let objects = [
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
            json!({
                "apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": meta("all"),
                "spec": {"addresses": ["192.0.2.0/24"]},
            }),
            json!({
                "apiVersion": "metallb.io/v1beta1", "kind": "L2Advertisement", "metadata": meta("all"),
            }),
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1", "ports": [{"port": 80}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            }),
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {
                    "name": "web-1", "namespace": "shop",
                    "labels": {"kubernetes.io/service-name": "web"},
                },
                "endpoints": [{"addresses": ["10.1.0.1"], "nodeName": "n1"}],
            }),
        ];
        let settings = started(BackendKind::Native).settings;
        let objects = objects.iter().map(ObjectText::from).collect();
        let mut speaker = SpeakerCore::new(settings, Some(Snapshot { objects }));
        let mut answers = |update: Option<DeliveryUpdate>| {
            update.into_iter().for_each(|it| speaker.follow_deliveries(it));
            while speaker.poll_action(Instant::ZERO).is_some() {}
            speaker.plan().map(|it| it.layer2.len())
        };
        assert_eq!(answers(None), Some(1), "no proxy is followed");
        let nothing = Deliveries::new;
        for (update, expected) in [
            (DeliveryUpdate::Awaited, 0),
            (DeliveryUpdate::All(nothing()), 1),
            (DeliveryUpdate::Silent, 0),
            (DeliveryUpdate::Changed(nothing()), 1),
            (DeliveryUpdate::OfAnotherProxy, 1),
            (DeliveryUpdate::Silent, 1),
        ] {
            assert_eq!(answers(Some(update.clone())), Some(expected), "{update:?}");
        }
    }
}
