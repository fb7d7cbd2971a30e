//! What is in force when objects contradict each other, and after a start without any state.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // What fails here fails the test.

use std::time::Duration;

use serde_json::json;

use super::super::speaker::SPEAKER_KINDS;
use super::*;
use crate::{CONTROLLER_KINDS, ListedObject};

const NOW: Instant = Instant::from_micros(1_000_000);
const HOLD: Duration = Duration::from_secs(300);
const SYSTEM: &str = "metallb-system";

/// A cluster as the API server reports it, all at once or change by change.
#[derive(Default)]
struct Server {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    version: u64,
}

impl Server {
    /// Writes an object, in this minute.
    fn put(&mut self, kind: Kind, name: &str, minute: u32, spec: Value) -> Arc<Value> {
        self.version += 1;
        let group = match kind {
            Kind::BgpPeer => "metallb.io/v1beta2",
            Kind::Service | Kind::Node | Kind::Secret | Kind::Namespace => "v1",
            Kind::EndpointSlice => "discovery.k8s.io/v1",
            _ => "metallb.io/v1beta1",
        };
        let time = format!("2026-11-22T08:{minute:02}:00Z");
        let namespace = if kind == Kind::Node { "" } else { SYSTEM };
        let mut object = json!({
            "apiVersion": group, "kind": kind.to_string(),
            "metadata": {
                "name": name, "namespace": namespace, "uid": name,
                "resourceVersion": self.version.to_string(),
                "creationTimestamp": "2026-11-22T07:00:00Z",
                "managedFields": [
                    { "manager": "kubectl", "time": time, "fieldsV1": { "f:spec": {} } },
                    {
                        "manager": "fairway", "time": "2026-11-22T09:00:00Z",
                        "subresource": "status", "fieldsV1": { "f:status": {} },
                    },
                ],
            },
        });
        let fields = object.as_object_mut().unwrap();
        match kind {
            Kind::Node => {
                fields["metadata"].as_object_mut().unwrap().insert("labels".to_owned(), spec);
            }
            Kind::Secret => fields.extend(spec.as_object().unwrap().clone()),
            _ => {
                fields.insert("spec".to_owned(), spec);
            }
        }
        let object = Arc::new(object);
        let key = ObjectKey { kind, name: name_of(&object) };
        self.objects.insert(key, Arc::clone(&object));
        object
    }

    fn pool(&mut self, name: &str, minute: u32, addresses: &str) -> Arc<Value> {
        let spec = json!({ "addresses": [addresses] });
        self.put(Kind::IpAddressPool, name, minute, spec)
    }

    fn peer(&mut self, name: &str, minute: u32, address: &str, secret: Option<&str>) -> Arc<Value> {
        let mut spec = json!({ "myASN": 64512, "peerASN": 64513, "peerAddress": address });
        if let Some(secret) = secret {
            spec["passwordSecret"] = json!({ "name": secret });
        }
        self.put(Kind::BgpPeer, name, minute, spec)
    }

    fn secret(&mut self, password: &str) -> Arc<Value> {
        let spec = json!({
            "type": "kubernetes.io/basic-auth", "stringData": { "password": password },
        });
        self.put(Kind::Secret, "key", 0, spec)
    }

    /// A process that starts now receives everything.
    fn tell_all(&mut self, belief: &mut Belief) {
        self.tell_all_at(belief, NOW);
    }

    fn tell_all_at(&mut self, belief: &mut Belief, now: Instant) {
        self.version += 1;
        while let Some((kind, request)) = belief.next_request(now) {
            if matches!(request, Request::Watch { .. }) {
                continue;
            }
            let items = self.objects.iter().filter(|(key, _)| key.kind == kind);
            let items = items.map(|(_, value)| ListedObject::from(&**value)).collect();
            let resource_version = self.version.to_string();
            belief.handle(
                now,
                kind,
                Reply::Listed { items, resource_version, continue_token: None },
            );
        }
    }

    fn started(&mut self, kinds: &[Kind]) -> Belief {
        let mut belief = Belief::new(kinds, BackendKind::Native, HOLD, 1);
        self.tell_all(&mut belief);
        assert!(belief.is_synced());
        belief
    }
}

fn apply(belief: &mut Belief, object: Arc<Value>) -> Changes {
    let kind = Kind::ALL.into_iter().find(|it| it.to_string() == object["kind"]).unwrap();
    belief.handle(NOW, kind, Reply::Applied(object)).0
}

fn name(name: &str) -> ObjectName {
    ObjectName::new(SYSTEM, name)
}

fn pool_key(called: &str) -> ObjectKey {
    ObjectKey { kind: Kind::IpAddressPool, name: name(called) }
}

/// The pools in force, each with its last address.
fn pools(belief: &Belief) -> Vec<String> {
    let pools = belief.index().pools.values();
    pools.map(|it| format!("{} {}", it.name.name, it.ranges[0].last())).collect()
}

fn faults(belief: &Belief) -> Vec<String> {
    let findings = belief.findings();
    findings.iter().filter(|it| it.is_fault()).map(ToString::to_string).collect()
}

fn peers(belief: &Belief) -> Vec<&str> {
    belief.index().peers.keys().map(|it| it.name.as_str()).collect()
}

#[test]
fn a_change_that_contradicts_another_object_is_at_fault_and_the_last_good_version_stays() {
    let mut server = Server::default();
    server.pool("a", 1, "192.0.2.0/25");
    server.pool("b", 2, "192.0.2.128/25");
    let mut belief = server.started(&CONTROLLER_KINDS);
    assert_eq!(faults(&belief), Vec::<String>::new());
    let changes = apply(&mut belief, server.pool("a", 3, "192.0.2.0/24"));
    assert!(changes.is_empty(), "nothing in force is other");
    assert_eq!(pools(&belief), ["a 192.0.2.127", "b 192.0.2.255"]);
    let expected = "IPAddressPool/a: spec.addresses[0]: 192.0.2.0-192.0.2.255 overlaps \
                    192.0.2.128-192.0.2.255 of IPAddressPool/b; an address may be in one pool only";
    assert_eq!(faults(&belief), [expected]);
    assert_eq!(*belief.stale(), BTreeSet::from([pool_key("a")]));
    assert!(belief.index().unknown_pools.is_empty(), "an earlier version is known");
    // The other one is deleted.
    let gone = server.objects.remove(&pool_key("b")).unwrap();
    let mut gone = Value::clone(&gone);
    gone["metadata"]["resourceVersion"] = json!("100");
    belief.handle(NOW, Kind::IpAddressPool, Reply::Deleted(Arc::new(gone)));
    assert_eq!(pools(&belief), ["a 192.0.2.255"]);
    assert_eq!((faults(&belief).len(), belief.stale().len()), (0, 0));
}

#[test]
fn whoever_remembers_nothing_blames_the_later_change_too() {
    let mut server = Server::default();
    // By name it would be the other way round.
    server.pool("z", 1, "192.0.2.0/24");
    server.pool("a", 2, "192.0.2.128/25");
    let belief = server.started(&CONTROLLER_KINDS);
    assert_eq!(pools(&belief), ["z 192.0.2.255"]);
    assert!(faults(&belief)[0].starts_with("IPAddressPool/a: spec.addresses[0]: "));
    assert_eq!(belief.index().unknown_pools, BTreeSet::from([name("a")]));
    assert_eq!(belief.index(), server.started(&CONTROLLER_KINDS).index());
    // z is changed last: it is faulty for a process that starts then, and stays for a running one.
    server.pool("z", 3, "192.0.2.0/24");
    assert_eq!(pools(&server.started(&CONTROLLER_KINDS)), ["a 192.0.2.255"]);
}

#[test]
fn a_pool_that_shrinks_below_what_an_advertisement_announces_is_at_fault_for_everybody() {
    let mut server = Server::default();
    server.pool("a", 1, "192.0.2.0/24");
    server.put(Kind::BgpAdvertisement, "wide", 2, json!({ "aggregationLength": 24 }));
    let mut old = server.started(&CONTROLLER_KINDS);
    apply(&mut old, server.pool("a", 3, "192.0.2.0/28"));
    let expected = "IPAddressPool/a: spec.addresses: is too small for BGPAdvertisement/wide";
    assert!(faults(&old)[0].starts_with(expected), "{:?}", faults(&old));
    assert_eq!(pools(&old), ["a 192.0.2.255"]);
    for kinds in [&CONTROLLER_KINDS[..], &SPEAKER_KINDS] {
        let new = server.started(kinds);
        assert!(faults(&new)[0].starts_with(expected), "{:?}", faults(&new));
        assert_eq!(new.index().bgp_advertisements.len(), 1);
        assert_eq!(new.index().unknown_pools, BTreeSet::from([name("a")]));
    }
    // If the advertisement had come last, it would be faulty.
    server.pool("a", 3, "192.0.2.0/28");
    server.put(Kind::BgpAdvertisement, "wide", 4, json!({ "aggregationLength": 24 }));
    let new = server.started(&CONTROLLER_KINDS);
    assert_eq!(pools(&new), ["a 192.0.2.15"]);
    assert!(faults(&new)[0].starts_with("BGPAdvertisement/wide: "), "{:?}", faults(&new));
}

#[test]
fn an_edit_that_breaks_nothing_is_never_blamed_for_what_was_broken_before() {
    let mut server = Server::default();
    server.pool("a", 1, "192.0.2.0/28");
    server.put(Kind::BgpAdvertisement, "wide", 2, json!({ "aggregationLength": 24 }));
    let mut belief = server.started(&CONTROLLER_KINDS);
    assert!(faults(&belief)[0].starts_with("BGPAdvertisement/wide: "));
    let edit = json!({ "addresses": ["192.0.2.0/28"], "autoAssign": false });
    apply(&mut belief, server.put(Kind::IpAddressPool, "a", 3, edit));
    assert!(!belief.index().pools[&name("a")].auto_assign);
    assert!(faults(&belief)[0].starts_with("BGPAdvertisement/wide: "), "{:?}", faults(&belief));
}

#[test]
fn a_peer_waits_for_its_secret_and_holds_nobody_up() {
    let mut server = Server::default();
    server.peer("open", 1, "10.0.0.1", None);
    server.peer("signed", 1, "10.0.0.2", Some("key"));
    let mut belief = server.started(&SPEAKER_KINDS);
    assert_eq!(peers(&belief), ["open"]);
    assert_eq!(faults(&belief), Vec::<String>::new(), "it is unknown what the Secret lacks");
    assert_eq!(belief.next_secret(NOW), Some(name("key")));
    assert_eq!(belief.next_secret(NOW), None);
    belief.handle_secret(NOW, &name("key"), &SecretReply::Failed);
    assert!(faults(&belief).iter().any(|it| it.starts_with("Secret/key: cannot be read")));
    assert_eq!(peers(&belief), ["open"]);
    let later = belief.secrets.next_deadline().unwrap();
    assert_eq!(belief.next_secret(later), Some(name("key")));
    belief.handle_secret(later, &name("key"), &SecretReply::Missing);
    let expected = "BGPPeer/signed: spec.passwordSecret.name: there is no usable Secret \
                    metallb-system/key; expected one of type kubernetes.io/basic-auth with the key \
                    password";
    assert_eq!(faults(&belief), [expected]);
    let later = belief.secrets.next_deadline().unwrap();
    assert_eq!(belief.next_secret(later), Some(name("key")));
    let changes = belief.handle_secret(later, &name("key"), &SecretReply::Is(server.secret("one")));
    assert_eq!(changes.kinds, BTreeSet::from([Kind::BgpPeer, Kind::Secret]));
    assert_eq!(peers(&belief), ["open", "signed"]);
    assert_eq!(faults(&belief), Vec::<String>::new());
}

/// A cluster that has the peer `signed` and its Secret in force.
fn signed(server: &mut Server) -> Belief {
    server.peer("signed", 1, "10.0.0.2", Some("key"));
    let mut belief = server.started(&SPEAKER_KINDS);
    belief.next_secret(NOW).unwrap();
    let secret = server.secret("one");
    server.objects.retain(|key, _| key.kind != Kind::Secret);
    belief.handle_secret(NOW, &name("key"), &SecretReply::Is(secret));
    assert_eq!(peers(&belief), ["signed"]);
    belief
}

/// Requests the Secret when that is due, and answers.
fn answer(belief: &mut Belief, reply: SecretReply) -> Changes {
    let later = belief.secrets.next_deadline().unwrap();
    belief.next_secret(later).unwrap();
    belief.handle_secret(later, &name("key"), &reply)
}

#[test]
fn a_secret_that_vanishes_or_breaks_ends_no_session_and_a_restart_knows_it_still() {
    let mut server = Server::default();
    let mut belief = signed(&mut server);
    let is_as_it_was = |belief: &Belief| {
        let secret = &belief.index().secrets[&name("key")];
        assert_eq!(secret.password.as_ref().unwrap().expose(), b"one");
        assert_eq!(peers(belief), ["signed"]);
    };
    for reply in [SecretReply::Missing, SecretReply::Is(server.secret(&"x".repeat(81)))] {
        assert!(answer(&mut belief, reply).is_empty());
        is_as_it_was(&belief);
        assert!(!faults(&belief).is_empty());
        let kept: Vec<_> = belief.in_force().cloned().collect();
        let mut again = Belief::new(&SPEAKER_KINDS, BackendKind::Native, HOLD, 2);
        assert!(!again.restore(kept).is_empty());
        is_as_it_was(&again);
        assert_eq!(again.next_secret(NOW), Some(name("key")), "it need not wait for the lists");
        server.objects.retain(|key, _| key.kind != Kind::Secret);
        server.tell_all(&mut again);
        is_as_it_was(&again);
    }
    answer(&mut belief, SecretReply::Is(server.secret("two")));
    let secret = &belief.index().secrets[&name("key")];
    assert_eq!(secret.password.as_ref().unwrap().expose(), b"two");
    assert_eq!(faults(&belief), Vec::<String>::new());
}

#[test]
fn a_secret_that_nobody_names_any_more_is_forgotten() {
    let mut server = Server::default();
    let mut belief = signed(&mut server);
    apply(&mut belief, server.peer("signed", 2, "10.0.0.2", None));
    assert!(belief.index().secrets.is_empty());
    assert!(belief.in_force().all(|it| it.value()["kind"] != "Secret"));
    assert_eq!(belief.secrets.next_deadline(), None);
}

#[test]
fn what_an_earlier_run_had_in_force_is_so_at_once_and_outlives_a_broken_edit() {
    let mut server = Server::default();
    server.pool("a", 1, "192.0.2.0/25");
    server.pool("b", 2, "192.0.2.128/25");
    let mut belief = server.started(&SPEAKER_KINDS);
    apply(&mut belief, server.pool("a", 3, "192.0.2.0/24"));
    let kept: Vec<_> = belief.in_force().cloned().collect();
    let mut again = Belief::new(&SPEAKER_KINDS, BackendKind::Native, HOLD, 2);
    again.restore(kept);
    assert_eq!(pools(&again), pools(&belief));
    server.tell_all(&mut again);
    assert_eq!(again.index(), belief.index());
    assert_eq!(again.findings(), belief.findings());
    assert_eq!(again.stale(), belief.stale());
    assert!(!again.take_is_other() || again.in_force().eq(belief.in_force()));
}

#[test]
fn what_an_earlier_run_had_stays_for_a_while_when_the_server_has_none() {
    let mut server = Server::default();
    server.pool("a", 1, "192.0.2.0/25");
    server.put(Kind::Node, "n1", 2, json!({ "rack": "a" }));
    let kept: Vec<_> = server.started(&SPEAKER_KINDS).in_force().cloned().collect();
    for comes_back in [false, true] {
        let mut again = Belief::new(&SPEAKER_KINDS, BackendKind::Native, HOLD, 2);
        again.restore(kept.clone());
        let mut server = Server::default();
        server.put(Kind::Node, "n1", 2, json!({ "rack": "a" }));
        server.tell_all(&mut again);
        assert!(again.is_synced() && again.is_in_doubt());
        assert_eq!(pools(&again), ["a 192.0.2.127"]);
        let held = again.held();
        assert_eq!((held.len(), held[0].kind, &held[0].name), (1, Kind::IpAddressPool, &name("a")));
        let expected: &[&str] = if comes_back { &["a 192.0.2.191"] } else { &[] };
        if comes_back {
            apply(&mut again, server.pool("a", 3, "192.0.2.128/26"));
        } else {
            server.tell_all_at(&mut again, NOW + HOLD);
        }
        assert_eq!(pools(&again), expected);
        assert_eq!(again.held(), []);
    }
}

#[test]
fn what_changes_nothing_and_what_no_rule_is_about_settles_nothing() {
    let mut server = Server::default();
    server.put(Kind::Node, "n1", 1, json!({ "rack": "a" }));
    server.pool("a", 1, "192.0.2.0/25");
    let mut belief = server.started(&SPEAKER_KINDS);
    let settled = Arc::clone(belief.index());
    for object in [
        server.put(Kind::Node, "n1", 2, json!({ "rack": "a" })),
        server.pool("a", 3, "192.0.2.0/25"),
    ] {
        let kind = if object["kind"] == "Node" { Kind::Node } else { Kind::IpAddressPool };
        belief.in_force.read(kind, &ObjectText::from(&*object));
        assert!(!belief.in_force.is_unsettled(), "{object}");
    }
    let service = json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }] });
    let service = server.put(Kind::Service, "web", 1, service);
    belief.in_force.read(Kind::Service, &ObjectText::from(&*service));
    assert!(!belief.in_force.is_unsettled());
    assert!(settled.services.is_empty() && belief.index().services.len() == 1, "a copy was held");
    let node = server.put(Kind::Node, "n1", 4, json!({ "rack": "b" }));
    belief.in_force.read(Kind::Node, &ObjectText::from(&*node));
    assert!(belief.in_force.is_unsettled());
}

#[test]
fn a_service_that_cannot_be_read_stays_as_it_was_and_says_why() {
    let mut server = Server::default();
    let spec = json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }] });
    server.put(Kind::Service, "web", 1, spec);
    let mut belief = server.started(&CONTROLLER_KINDS);
    let broken = json!({ "type": "LoadBalancer", "ports": [{ "port": 800_000 }] });
    assert!(apply(&mut belief, server.put(Kind::Service, "web", 2, broken)).is_empty());
    assert_eq!(belief.index().services[&name("web")].ports[0].port, 80);
    assert_eq!(belief.faults_of_service(&name("web")).len(), 1);
    assert_eq!(faults(&belief), Vec::<String>::new(), "no peer uses it");
}

#[test]
fn when_the_server_is_back_all_kinds_are_listed_within_a_second_of_the_first() {
    let mut belief = Belief::new(&CONTROLLER_KINDS, BackendKind::Native, HOLD, 7);
    let mut now = NOW;
    let back = NOW + Duration::from_secs(60);
    let mut listed = BTreeMap::new();
    while listed.len() < CONTROLLER_KINDS.len() {
        match belief.next_request(now) {
            Some((kind, Request::List { .. })) if now < back => {
                belief.handle(now, kind, Reply::Failed);
            }
            Some((kind, Request::List { .. })) => {
                let resource_version = "1".to_owned();
                let items = Vec::new();
                belief.handle(
                    now,
                    kind,
                    Reply::Listed { items, resource_version, continue_token: None },
                );
                listed.insert(kind, now);
            }
            Some(_) => {}
            None => now = belief.next_deadline().unwrap(),
        }
    }
    let (first, last) = (listed.values().min().unwrap(), listed.values().max().unwrap());
    assert!(last.since(*first) < Duration::from_secs(1), "{:?}", last.since(*first));
}

#[test]
fn a_kind_that_the_cluster_does_not_have_is_asked_for_seldom() {
    let mut belief =
        Belief::new(&[Kind::BgpConfiguration, Kind::Node], BackendKind::Native, HOLD, 7);
    let (mut now, mut asked) = (NOW, 0);
    let end = NOW + Duration::from_secs(300);
    while now < end {
        match belief.next_request(now) {
            Some((Kind::BgpConfiguration, _)) => {
                asked += 1;
                belief.handle(now, Kind::BgpConfiguration, Reply::Undefined);
            }
            Some((kind, Request::List { .. })) => {
                let (items, resource_version) = (Vec::new(), "1".to_owned());
                let all = Reply::Listed { items, resource_version, continue_token: None };
                belief.handle(now, kind, all);
            }
            Some((kind, Request::Watch { .. })) => {
                belief.handle(now, kind, Reply::Opened);
            }
            None => now = belief.next_deadline().unwrap(),
        }
    }
    assert!(belief.is_synced() && asked < 40, "{asked}");
}

/// One that has listed every kind, and watches.
fn watching() -> Belief {
    let mut belief = Server::default().started(&CONTROLLER_KINDS);
    while let Some((kind, request)) = belief.next_request(NOW) {
        assert!(matches!(request, Request::Watch { .. }), "{kind}: {request:?}");
    }
    belief
}

#[test]
fn when_the_server_is_back_all_watches_open_within_a_second_of_the_first() {
    let mut belief = watching();
    let back = NOW + Duration::from_secs(60);
    for kind in CONTROLLER_KINDS {
        belief.handle(NOW, kind, Reply::Failed);
    }
    let (mut now, mut opened) = (NOW, Vec::new());
    while opened.len() < CONTROLLER_KINDS.len() {
        match belief.next_request(now) {
            Some((kind, Request::Watch { .. })) if now < back => {
                belief.handle(now, kind, Reply::Failed);
                assert!(belief.outage().is_some());
            }
            Some((kind, Request::Watch { .. })) => {
                belief.handle(now, kind, Reply::Opened);
                opened.push(now);
            }
            Some((kind, list)) => panic!("{kind}: {list:?}"),
            None => now = belief.next_deadline().unwrap(),
        }
    }
    assert!(now.since(opened[0]) < Duration::from_secs(1), "{:?}", now.since(opened[0]));
    assert_eq!(belief.outage().map(|it| it.kinds), None);
}

#[test]
fn a_server_that_breaks_each_watch_is_not_asked_in_a_hot_loop() {
    let mut belief = watching();
    for kind in CONTROLLER_KINDS {
        belief.handle(NOW, kind, Reply::Failed);
    }
    let (mut now, mut requests) = (NOW, 0);
    while now < NOW + Duration::from_secs(600) {
        match belief.next_request(now) {
            Some((kind, _)) => {
                requests += 1;
                belief.handle(now, kind, Reply::Opened);
                belief.handle(now, kind, Reply::Failed);
            }
            None => now = belief.next_deadline().unwrap(),
        }
    }
    assert!(requests < 70 * CONTROLLER_KINDS.len(), "{requests} in ten minutes");
}
