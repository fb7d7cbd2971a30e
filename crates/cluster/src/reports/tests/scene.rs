//! A node with Services and routers, and an API server that stores what it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AsPath, Asn, NextHop, PathId, PeerKey, Prefix, RemoteAs, RouterId};
use fairway_plan::{AddressAnnouncement, Announcement, PrefixAnnouncement};
use fairway_seam::{PathAttributes, PeerConfig, PeerRoute, PeerView, SessionState};
use serde_json::json;

use super::super::*;

pub(super) const NAMESPACE: &str = "metallb-system";
pub(super) const EPOCH_SECONDS: u64 = 1_795_192_683;

pub(super) fn key(address: &str) -> PeerKey {
    PeerKey::from(address.parse::<IpAddr>().unwrap())
}

/// `default/NAME`.
pub(super) fn service(name: &str) -> ObjectName {
    ObjectName::new("default", name)
}

/// A neighbour that has just been configured.
pub(super) fn peer(name: &str, address: &str) -> PeerView {
    let asn = |number| Asn::new(number).unwrap();
    let router_id = RouterId::new(7).unwrap();
    let config = PeerConfig::new(key(address), asn(65_001), RemoteAs::Asn(asn(65_002)), router_id);
    let config = PeerConfig { name: name.to_owned(), ..config };
    PeerView { state: SessionState::Active, ..PeerView::idle(config) }
}

/// A speaker on its node, with two routers.
pub(super) struct Scene {
    pub(super) reports: Reports,
    pub(super) plan: NodePlan,
    pub(super) bgp: BgpView,
    pub(super) layer2: Option<Layer2View>,
    /// How often the Services were recreated.
    pub(super) made: u32,
    pub(super) findings: Vec<Finding>,
    pub(super) drain: DrainStatus,
    pub(super) is_synced: bool,
    pub(super) now: Instant,
    pub(super) api: Api,
    pub(super) events: Vec<EventRecord>,
    /// Requests, and when they are answered.
    under_way: Vec<(Instant, ReportsAction)>,
    /// How long answers take; no time at all without it.
    pub(super) delays: Option<Rng>,
}

/// The API server: all objects by kind and name.
#[derive(Default)]
pub(super) struct Api {
    pub(super) objects: BTreeMap<(WrittenKind, String), Value>,
    /// Every write that arrived, including those that are refused.
    pub(super) writes: Vec<(Instant, ObjectWrite)>,
    pub(super) lists: usize,
    pub(super) is_away: bool,
    /// Writes to objects of these names are refused.
    pub(super) refused: BTreeSet<String>,
    /// Answers are lost, but the writes succeed.
    pub(super) loses_answers: bool,
}

pub(super) fn settings() -> ReportsSettings {
    ReportsSettings {
        node: "node-a".to_owned(),
        namespace: NAMESPACE.to_owned(),
        pod: Some(OwnPod { name: "speaker-x".to_owned(), uid: "pod-1".to_owned() }),
        seed: 7,
    }
}

impl Scene {
    pub(super) fn new() -> Self {
        let peers = vec![peer("tor-1", "192.0.2.1"), peer("tor-2", "2001:db8::2")];
        Self {
            reports: Reports::new(settings()),
            plan: NodePlan::default(),
            bgp: BgpView { peers, ..BgpView::default() },
            layer2: None,
            made: 0,
            findings: Vec::new(),
            drain: DrainStatus::InService,
            is_synced: true,
            now: Instant::ZERO,
            api: Api::default(),
            events: Vec::new(),
            under_way: Vec::new(),
            delays: None,
        }
    }

    /// With this many Services for both routers, and sessions with both.
    pub(super) fn announcing(services: usize) -> Self {
        let mut scene = Self::new();
        (0..services).for_each(|number| scene.plan_service(number));
        scene.set_session(0, true);
        scene.set_session(1, true);
        scene
    }

    /// Plans the Service `web-NUMBER`.
    pub(super) fn plan_service(&mut self, number: usize) {
        let keys: BTreeSet<PeerKey> = self.bgp.peers.iter().map(|it| it.config.key).collect();
        let address = address(number);
        let prefix = PrefixAnnouncement {
            prefix: format!("{address}/32").parse().unwrap(),
            advertisements: Arc::new([]),
            peers: Arc::new(keys),
            reason: None,
        };
        let address = AddressAnnouncement { address, reason: None, prefixes: vec![prefix] };
        let announcement = Announcement {
            reason: None,
            addresses: vec![address],
            data_path: Vec::new(),
            layer2: Vec::new(),
        };
        self.plan.services.insert(service(&format!("web-{number}")), Arc::new(announcement));
    }

    /// The session with one of the routers comes up, and all routes are sent; or it goes down.
    pub(super) fn set_session(&mut self, peer: usize, is_up: bool) {
        let prefixes = self.plan.services.values().flat_map(|it| it.told().map(|(it, _)| it));
        let prefixes: BTreeSet<Prefix> = prefixes.filter(|_| is_up).collect();
        let next_hop = NextHop::Ipv4([192, 0, 2, 9].into());
        let attributes = PathAttributes::originated(AsPath::sequence(vec![65_001]), next_hop);
        let attributes = Arc::new(attributes);
        let route = |prefix| PeerRoute {
            prefix,
            path_id: PathId::NONE,
            attributes: Arc::clone(&attributes),
            stale: false,
        };
        let peer = &mut self.bgp.peers[peer];
        peer.advertised = prefixes.into_iter().map(route).collect();
        peer.state = if is_up { SessionState::Established } else { SessionState::Active };
    }

    /// Hands the facts to the machine.
    pub(super) fn tell(&mut self) {
        let made = self.made;
        let epoch_seconds = EPOCH_SECONDS + self.now.as_micros() / 1_000_000;
        let facts = ReportFacts {
            layer2: self.layer2.as_ref(),
            is_synced: self.is_synced,
            plan: Some(&self.plan),
            bgp: &self.bgp,
            findings: &self.findings,
            drain: self.drain,
            node_uid: Some("node-1"),
            service_uid: &|name| Some(format!("uid-{}-{made}", name.name)),
        };
        self.reports.follow(Moment { epoch_seconds, monotonic: self.now }, &facts);
    }

    /// Carries out the machine's actions until then.
    pub(super) fn run_until(&mut self, end: Instant) {
        loop {
            while let Some(action) = self.reports.poll_action(self.now) {
                self.send(action);
            }
            let answer = self.under_way.iter().map(|(at, _)| *at).min();
            let deadline = self.reports.next_deadline(self.now);
            let next = answer.into_iter().chain(deadline).min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            assert!(at > self.now || answer == Some(at), "a hot loop at {:?}", self.now);
            self.now = at;
            while let Some(due) = self.under_way.iter().position(|(at, _)| *at <= self.now) {
                let (_, action) = self.under_way.swap_remove(due);
                self.answer(action);
            }
        }
        self.now = end;
    }

    pub(super) fn tell_and_run(&mut self, seconds: u64) {
        self.tell();
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    /// A request is sent, which fits beside those in progress.
    fn send(&mut self, action: ReportsAction) {
        let mut lists = Vec::new();
        let mut writes = Vec::new();
        for (_, action) in &self.under_way {
            match action {
                ReportsAction::List { kind, .. } => lists.push(*kind),
                ReportsAction::Write(write) => writes.push((write.kind, &write.name)),
                ReportsAction::Event(_) => {}
            }
        }
        match &action {
            ReportsAction::Event(event) => return self.events.push(event.clone()),
            ReportsAction::List { kind, .. } => {
                assert!(!lists.contains(kind) && writes.iter().all(|(it, _)| it != kind));
            }
            ReportsAction::Write(write) => {
                assert!(writes.len() < IN_FLIGHT_MAX && !lists.contains(&write.kind));
                assert!(!writes.contains(&(write.kind, &write.name)), "two at a time: {write:?}");
            }
        }
        let delay = self.delays.as_mut().map_or(0, |random| random.next_u64() % 4_000);
        self.under_way.push((self.now + Duration::from_millis(delay), action));
    }

    /// The API server answers.
    fn answer(&mut self, action: ReportsAction) {
        match action {
            ReportsAction::List { kind, label_selector } => {
                self.api.lists += 1;
                let objects = self.api.list(kind, &label_selector);
                let reply =
                    if self.api.is_away { ListReply::Failed } else { ListReply::Is(objects) };
                self.reports.handle_list(self.now, kind, reply);
            }
            ReportsAction::Write(write) => {
                self.api.writes.push((self.now, write.clone()));
                let reply = self.api.write(&write);
                self.reports.handle_write(self.now, write.kind, &write.name, reply);
            }
            ReportsAction::Event(_) => {}
        }
    }

    /// A speaker in the same Pod without any state, with the objects that this one has left.
    pub(super) fn restart(&mut self) {
        self.reports = Reports::new(settings());
        // Requests in transit arrive, and their answers are lost.
        for (_, action) in std::mem::take(&mut self.under_way) {
            if let ReportsAction::Write(write) = action {
                self.api.write(&write);
            }
        }
        self.api.writes.clear();
        self.events.clear();
    }

    /// The routers that have the Service according to its stored object; `None` if there is no object.
    pub(super) fn told(&self, service: &str) -> Option<Vec<String>> {
        let mut objects = self.api.of(WrittenKind::ServiceBgpStatus);
        let object = objects.find(|it| it["status"]["serviceName"] == service)?;
        Some(serde_json::from_value(object["status"]["peers"].clone()).unwrap())
    }

    pub(super) fn session_states(&self) -> Vec<String> {
        let sessions = self.api.of(WrittenKind::BgpSessionState);
        let text = |it: &Value, field: &str| it["status"][field].as_str().unwrap().to_owned();
        let mut states: Vec<_> =
            sessions.map(|it| text(it, "peer") + " " + &text(it, "bgpStatus")).collect();
        states.sort();
        states
    }

    pub(super) fn configuration(&self) -> &Value {
        &self.api.objects[&(WrittenKind::ConfigurationState, "speaker-node-a".to_owned())]["status"]
    }
}

/// Addresses from 198.18.0.0 on.
fn address(number: usize) -> IpAddr {
    let first = u32::from_be_bytes([198, 18, 0, 0]);
    std::net::Ipv4Addr::from(first + u32::try_from(number).unwrap()).into()
}

impl Api {
    pub(super) fn of(&self, kind: WrittenKind) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |((it, _), _)| *it == kind).map(|(_, object)| object)
    }

    fn list(&self, kind: WrittenKind, selector: &str) -> Vec<Arc<Value>> {
        let has = |object: &Value, term: &str| {
            let (key, value) = term.split_once('=').unwrap();
            object["metadata"]["labels"][key] == value
        };
        let is_meant = |object: &&Value| selector.split(',').all(|term| has(object, term));
        self.of(kind).filter(is_meant).cloned().map(Arc::new).collect()
    }

    /// Objects that others put there.
    pub(super) fn put(&mut self, kind: WrittenKind, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.objects.insert((kind, name), object);
    }

    fn write(&mut self, write: &ObjectWrite) -> WriteReply {
        assert_eq!(write.name.namespace, NAMESPACE);
        if self.is_away || self.refused.contains(&write.name.name) {
            return WriteReply::Failed;
        }
        let key = (write.kind, write.name.name.clone());
        let reply = match &write.how {
            WriteHow::Apply(object) => {
                assert_eq!(object["metadata"]["name"], write.name.name.as_str());
                let stored = self.objects.entry(key).or_insert_with(|| object.clone());
                stored["metadata"]["labels"] = object["metadata"]["labels"].clone();
                stored["metadata"]["ownerReferences"] =
                    object["metadata"]["ownerReferences"].clone();
                WriteReply::Done
            }
            WriteHow::ApplyStatus(object) => match self.objects.get_mut(&key) {
                Some(stored) => {
                    let fields = object["status"].as_object().unwrap().clone();
                    let status = stored.as_object_mut().unwrap().entry("status");
                    let status = status.or_insert_with(|| json!({}));
                    status.as_object_mut().unwrap().extend(fields);
                    WriteReply::Done
                }
                None => WriteReply::Missing,
            },
            WriteHow::Delete => match self.objects.remove(&key) {
                Some(_) => WriteReply::Done,
                None => WriteReply::Missing,
            },
            WriteHow::MergeStatus(_) => panic!("no merge patch expected: {write:?}"),
        };
        if self.loses_answers { WriteReply::Failed } else { reply }
    }
}
