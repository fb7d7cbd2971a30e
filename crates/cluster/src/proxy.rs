//! The service proxy of one node in a cluster: its copy of the objects that it reads.
//!
//! Returns the requests to the API server, each object that changed, and the snapshot for the disk. Decides nothing about
//! packets. Pure: time and replies come in, actions go out; the edge has the sockets and files.
//!
//! Nothing goes because the API server does not answer: the last known state stays in force, and a proxy that starts
//! meanwhile continues from the snapshot of the previous run. Until all kinds were listed once, it is not complete, and
//! nothing that an earlier run left may be removed.

use std::time::Duration;

use fairway_ground::Instant;
use fairway_model::{Kind, ObjectChange};
use fairway_resources::{BackendKind, Finding};

use super::belief::{Belief, Held, Outage};
use super::reflector::{Reply, Request};
use super::speaker::Snapshot;

/// The kinds that the proxy reads; of Nodes its own one alone.
pub const PROXY_KINDS: [Kind; 3] = [Kind::Service, Kind::EndpointSlice, Kind::Node];

/// The settings of this proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// How long objects of a kind stay that the API server lacks all at once.
    pub empty_list_hold: Duration,
    /// For the jitter of pauses.
    pub seed: u64,
}

/// An action for the edge.
#[derive(Debug, Clone, PartialEq)]
pub enum ProxyAction {
    /// Send a request about a kind, in place of the earlier one.
    Ask(Kind, Request),
    /// Save [`ProxyCore::snapshot`] for the next start, in place of the earlier one.
    Persist,
}

/// See the module.
#[derive(Debug)]
pub struct ProxyCore {
    belief: Belief,
    to_persist: bool,
    /// What is in force is enough to serve by.
    is_begun: bool,
}

impl ProxyCore {
    /// A proxy that has just started, with the snapshot of the previous run.
    pub fn new(settings: ProxySettings, snapshot: Option<Snapshot>) -> Self {
        let ProxySettings { empty_list_hold, seed } = settings;
        let mut belief = Belief::new(&PROXY_KINDS, BackendKind::Proxy, empty_list_hold, seed);
        let is_begun = snapshot.is_some();
        if let Some(snapshot) = snapshot {
            belief.restore(snapshot.objects);
        }
        Self { belief, to_persist: false, is_begun }
    }

    /// Handles an answer about a kind.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) {
        let was_complete = self.is_complete();
        self.belief.handle(now, kind, reply);
        self.to_persist |= self.belief.take_is_other() || was_complete != self.is_complete();
    }

    /// The objects that came into force or went since the last call. Without a snapshot, none before all kinds were
    /// listed: Services whose endpoints are not known yet would be refused.
    pub fn take_changes(&mut self) -> Vec<ObjectChange> {
        self.is_begun |= self.is_complete();
        if self.is_begun { self.belief.take_changed() } else { Vec::new() }
    }

    /// The next action; `None` until an event arrives or [`Self::next_deadline`] has passed.
    pub fn poll_action(&mut self, now: Instant) -> Option<ProxyAction> {
        if std::mem::take(&mut self.to_persist) {
            return Some(ProxyAction::Persist);
        }
        self.belief.next_request(now).map(|(kind, request)| ProxyAction::Ask(kind, request))
    }

    /// When the next action is due without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.belief.next_deadline()
    }

    /// Whether every kind was listed since the start: what is not there is gone.
    pub fn is_complete(&self) -> bool {
        self.belief.complete().is_some()
    }

    /// The objects in force, for the next start.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { objects: self.belief.in_force().cloned().collect() }
    }

    /// The requests that have failed and not succeeded since.
    pub fn outage(&self) -> Option<Outage> {
        self.belief.outage()
    }

    /// The kinds whose objects stay although the API server has none.
    pub fn held(&self) -> Vec<Held> {
        self.belief.held()
    }

    /// The faults of the latest versions; the versions before them stay in force.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.belief.faults()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::object_text::ListedObject;

    fn service(name: &str, address: &str, version: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version},
            "spec": {"clusterIP": address, "ports": [{"port": 80}]},
        })
    }

    fn started(snapshot: Option<Snapshot>) -> ProxyCore {
        let settings = ProxySettings { empty_list_hold: Duration::from_secs(300), seed: 1 };
        ProxyCore::new(settings, snapshot)
    }

    /// Answers each request for a list with these Services and nothing else.
    fn list(proxy: &mut ProxyCore, services: &[Value]) {
        let mut asked = Vec::new();
        while let Some(action) = proxy.poll_action(Instant::ZERO) {
            if let ProxyAction::Ask(kind, Request::List { .. }) = action {
                asked.push(kind);
            }
        }
        for kind in asked {
            let is_service = kind == Kind::Service;
            let items = services.iter().filter(|_| is_service).map(ListedObject::from).collect();
            let resource_version = "10".to_owned();
            let reply = Reply::Listed { items, resource_version, continue_token: None };
            proxy.handle(Instant::ZERO, kind, reply);
        }
    }

    /// What changed, with a `-` before what went.
    fn changes(proxy: &mut ProxyCore) -> Vec<String> {
        let told = proxy.take_changes().into_iter().map(|(key, object)| {
            let sign = if object.is_some() { "" } else { "-" };
            format!("{sign}{}", key.name)
        });
        told.collect()
    }

    #[test]
    fn without_the_api_server_an_earlier_state_is_in_force_and_nothing_of_it_goes() {
        let mut first = started(None);
        list(&mut first, &[service("a", "10.96.0.1", "1"), service("b", "10.96.0.2", "2")]);
        assert_eq!(changes(&mut first), ["shop/a", "shop/b"]);
        assert_eq!(first.poll_action(Instant::ZERO), Some(ProxyAction::Persist));

        let mut second = started(Some(first.snapshot()));
        assert_eq!(changes(&mut second), ["shop/a", "shop/b"]);
        second.handle(Instant::ZERO, Kind::Service, Reply::Failed);
        assert!(!second.is_complete() && changes(&mut second).is_empty());

        let mut third = started(Some(first.snapshot()));
        drop(third.take_changes());
        list(&mut third, &[service("b", "10.96.0.3", "5")]);
        assert!(third.is_complete());
        assert_eq!(changes(&mut third), ["shop/b", "-shop/a"]);
    }

    #[test]
    fn no_service_is_taken_for_one_without_endpoints_before_those_were_listed() {
        let mut proxy = started(None);
        let list = |version: &str, items: &[Value]| Reply::Listed {
            items: items.iter().map(ListedObject::from).collect(),
            resource_version: version.to_owned(),
            continue_token: None,
        };
        while proxy.poll_action(Instant::ZERO).is_some() {}
        let services = list("10", &[service("a", "10.96.0.1", "1")]);
        proxy.handle(Instant::ZERO, Kind::Service, services);
        assert_eq!(changes(&mut proxy), [""; 0]);
        proxy.handle(Instant::ZERO, Kind::EndpointSlice, list("11", &[]));
        proxy.handle(Instant::ZERO, Kind::Node, list("12", &[]));
        assert_eq!(changes(&mut proxy), ["shop/a"]);
    }

    #[test]
    fn of_a_service_that_becomes_faulty_the_last_good_version_stays() {
        let mut proxy = started(None);
        list(&mut proxy, &[service("a", "10.96.0.1", "1")]);
        drop(proxy.take_changes());
        while proxy.poll_action(Instant::ZERO).is_some() {}
        let mut bad = service("a", "10.96.0.1", "11");
        bad["metadata"]["annotations"] = json!({"fairway.dev/ipvs-scheduler": "best"});
        proxy.handle(Instant::ZERO, Kind::Service, Reply::Applied(Arc::new(bad)));
        assert_eq!(changes(&mut proxy), [""; 0]);
        let faults: Vec<_> = proxy.faults().map(ToString::to_string).collect();
        assert!(faults.concat().contains("is not a scheduler of IPVS"), "{faults:?}");
        let good = service("a", "10.96.0.1", "12");
        proxy.handle(Instant::ZERO, Kind::Service, Reply::Applied(Arc::new(good)));
        assert_eq!((changes(&mut proxy), proxy.faults().count()), (vec!["shop/a".to_owned()], 0));
    }
}
