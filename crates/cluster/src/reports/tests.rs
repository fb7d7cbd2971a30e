//! A speaker and its reports in the API, on a clock of its own.

mod scene;

use fairway_ground::{BfdSettings, MacAddress};
use fairway_model::Kind;
use fairway_plan::{Announcement, Answer, Layer2Announcement, Layer2Verdict};
use fairway_resources::{FindingObject, Severity};
use fairway_seam::{
    AddressAnswer, AnsweredAddress, CheckedAddress, DrainState, ForeignClaim, Liveness, PeerBfd,
    SessionState,
};
use scene::{EPOCH_SECONDS, NAMESPACE, Scene, service};
use serde_json::json;

use super::*;

const BOTH: [&str; 2] = ["tor-1", "tor-2"];

fn told(scene: &Scene, number: usize) -> Option<Vec<String>> {
    scene.told(&format!("web-{number}"))
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|it| (*it).to_owned()).collect())
}

fn fault(name: &str) -> Finding {
    let object = FindingObject { kind: "BGPPeer".to_owned(), name: name.to_owned() };
    Finding {
        severity: Severity::Fault,
        file: String::new(),
        line: None,
        object: Some(object),
        field: Some("spec.peerPort".to_owned()),
        message: "70000 is not allowed".to_owned(),
    }
}

#[test]
fn a_service_is_reported_with_the_routers_that_know_it() {
    let mut scene = Scene::announcing(1);
    scene.tell_and_run(1);
    assert_eq!(told(&scene, 0), names(&BOTH));
    let object = scene.api.of(WrittenKind::ServiceBgpStatus).next().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("bgp-") && name.len() == 20, "{name}");
    let expected = json!({
        "apiVersion": "metallb.io/v1beta1",
        "kind": "ServiceBGPStatus",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {
                "metallb.io/node": "node-a",
                "metallb.io/service-name": "web-0",
                "metallb.io/service-namespace": "default",
            },
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "Pod", "name": "speaker-x", "uid": "pod-1" },
            ],
        },
        "status": {
            "node": "node-a",
            "serviceName": "web-0",
            "serviceNamespace": "default",
            "peers": BOTH,
        },
    });
    assert_eq!(*object, expected);

    scene.set_session(1, false);
    scene.tell_and_run(1);
    assert_eq!(told(&scene, 0), names(&["tor-1"]), "a router without a session knows nothing");
    scene.set_session(0, false);
    scene.tell_and_run(1);
    assert_eq!(told(&scene, 0), None, "no router has it");
}

#[test]
fn sessions_are_reported_as_frr_k8s_reports_them() {
    let mut scene = Scene::announcing(0);
    scene.bgp.peers[1].state = SessionState::Idle;
    scene.tell_and_run(1);
    let ipv6 = "2001-0db8-0000-0000-0000-0000-0000-0002";
    assert_eq!(
        scene.session_states(),
        ["192.0.2.1 Established".to_owned(), format!("{ipv6} Idle")]
    );
    let mut sessions = scene.api.of(WrittenKind::BgpSessionState);
    let object = sessions.find(|it| it["status"]["peer"] == ipv6).unwrap();
    let labels = json!({
        "frrk8s.metallb.io/node": "node-a",
        "frrk8s.metallb.io/peer": ipv6,
        "frrk8s.metallb.io/vrf": "",
    });
    assert_eq!(object["metadata"]["labels"], labels);
    assert_eq!(
        (&object["apiVersion"], &object["kind"]),
        (&json!("frrk8s.metallb.io/v1beta1"), &json!("BGPSessionState"),)
    );
    assert_eq!(object["status"]["bfdStatus"], "N/A");
    drop(sessions);
    let bfd =
        PeerBfd { profile: "fast".to_owned(), settings: BfdSettings::default(), strict: false };
    for (liveness, expected) in [(Liveness::Unknown, "Unknown"), (Liveness::Up, "Up")] {
        scene.bgp.peers[1].config.bfd = Some(bfd.clone());
        scene.bgp.peers[1].liveness = liveness;
        scene.tell_and_run(1);
        let mut sessions = scene.api.of(WrittenKind::BgpSessionState);
        let object = sessions.find(|it| it["status"]["peer"] == ipv6).unwrap();
        assert_eq!(object["status"]["bfdStatus"], expected);
    }

    scene.bgp.peers.pop();
    scene.tell_and_run(1);
    assert_eq!(scene.session_states(), ["192.0.2.1 Established"], "a peer that is gone");
}

#[test]
fn nothing_is_written_before_everything_is_known() {
    let mut scene = Scene::announcing(3);
    scene.is_synced = false;
    scene.tell_and_run(30);
    assert!(scene.api.writes.is_empty() && scene.api.lists == KINDS.len());
    scene.is_synced = true;
    scene.tell_and_run(30);
    assert_eq!(scene.api.objects.len(), 3 + 2 + 1);

    let mut scene = Scene::announcing(3);
    scene.api.is_away = true;
    scene.tell_and_run(30);
    assert!(scene.api.writes.is_empty(), "it is unknown what exists already");
}

#[test]
fn a_state_that_passes_is_written_once_a_minute_and_a_session_at_once() {
    let mut scene = Scene::announcing(0);
    scene.set_session(1, false);
    scene.tell_and_run(10);
    let before = scene.api.writes.len();
    let dialling = [SessionState::Connect, SessionState::Idle, SessionState::Active];
    for state in dialling.into_iter().cycle().take(299) {
        scene.bgp.peers[1].state = state;
        scene.tell_and_run(2);
    }
    let writes = scene.api.writes.len() - before;
    assert!((9..=10).contains(&writes), "{writes} in ten minutes");
    scene.run_until(scene.now + DOWN_INTERVAL);
    assert!(scene.session_states()[1].ends_with(" Idle"), "the last one is not lost");
    scene.bgp.peers[1].state = SessionState::Connect;
    scene.tell_and_run(1);
    scene.bgp.peers[1].state = SessionState::Established;
    scene.tell_and_run(0);
    assert!(scene.session_states()[1].ends_with(" Established"));
    scene.bgp.peers[1].state = SessionState::Active;
    scene.tell_and_run(0);
    assert!(scene.session_states()[1].ends_with(" Active"));
}

#[test]
fn five_thousand_services_are_written_at_a_bounded_rate_and_a_session_does_not_wait_for_them() {
    let mut scene = Scene::announcing(5_000);
    scene.tell_and_run(60);
    let writes = scene.api.writes.len();
    assert!(writes <= 100 + 20 * 60 && writes > 1_250, "{writes}");
    scene.bgp.peers[1].state = SessionState::Idle;
    scene.tell_and_run(1);
    assert!(scene.session_states()[1].ends_with(" Idle"));
    scene.run_until(scene.now + Duration::from_secs(600));
    assert_eq!(scene.api.of(WrittenKind::ServiceBgpStatus).count(), 5_000);
    let writes = scene.api.writes.len();
    scene.set_session(1, true);
    scene.tell_and_run(1_200);
    assert!(scene.api.writes.len() - writes <= 2, "what is so already is not written");
}

#[test]
fn the_last_value_wins_over_those_that_had_no_time() {
    let mut scene = Scene::announcing(200);
    scene.tell_and_run(60);
    let writes = scene.api.writes.len();
    for round in 0..10 {
        scene.set_session(0, round % 2 == 1);
        scene.tell_and_run(0);
    }
    scene.run_until(scene.now + Duration::from_secs(60));
    assert_eq!(told(&scene, 7), names(&BOTH));
    let rewritten = scene.api.writes.len() - writes;
    assert!(rewritten <= 400, "a write each for the change and its end at most: {rewritten}");
}

#[test]
fn an_api_server_that_is_away_is_asked_now_and_then_and_hears_all_when_it_is_back() {
    let mut scene = Scene::announcing(500);
    scene.tell_and_run(120);
    scene.api.writes.clear();
    scene.api.is_away = true;
    scene.set_session(0, false);
    scene.tell_and_run(3_600);
    let attempts = scene.api.writes.len();
    assert!((60..=120).contains(&attempts), "{attempts} in an hour");
    scene.api.is_away = false;
    scene.run_until(scene.now + Duration::from_secs(120));
    assert!((0..500).all(|number| told(&scene, number) == names(&["tor-2"])));
}

#[test]
fn one_object_that_is_refused_holds_no_other_up() {
    let mut scene = Scene::announcing(50);
    let mut twin = Scene::announcing(50);
    twin.tell_and_run(60);
    let mut objects = twin.api.of(WrittenKind::ServiceBgpStatus);
    let object = objects.find(|it| it["status"]["serviceName"] == "web-7").unwrap();
    let key = object["metadata"]["name"].as_str().unwrap().to_owned();
    scene.api.refused.insert(key.clone());
    scene.tell_and_run(60);
    assert_eq!(scene.api.of(WrittenKind::ServiceBgpStatus).count(), 49);
    let refused =
        |scene: &Scene| scene.api.writes.iter().filter(|(_, it)| it.name.name == key).count();
    assert!(refused(&scene) <= 8, "{}", refused(&scene));
    scene.run_until(scene.now + Duration::from_secs(3_600));
    let writes = scene.api.writes.len();
    scene.set_session(0, false);
    scene.tell_and_run(5);
    assert!(scene.api.writes.len() - writes >= 49, "the others are written meanwhile");
    scene.api.refused.clear();
    scene.run_until(scene.now + Duration::from_secs(61));
    assert_eq!(told(&scene, 7), names(&["tor-2"]));
}

#[test]
fn a_write_without_an_answer_may_have_been_written() {
    let mut scene = Scene::announcing(1);
    scene.tell_and_run(5);
    scene.api.loses_answers = true;
    scene.set_session(0, false);
    scene.tell_and_run(0);
    assert_eq!(told(&scene, 0), names(&["tor-2"]), "it was");
    let sent = scene.now;
    scene.api.loses_answers = false;
    scene.set_session(0, true);
    scene.tell_and_run(120);
    assert_eq!(told(&scene, 0), names(&BOTH), "that it was so before is no reason to say nothing");
    let next = scene
        .api
        .writes
        .iter()
        .find(|(at, it)| it.kind == WrittenKind::ServiceBgpStatus && *at > sent);
    let late = next.unwrap().0.since(sent);
    assert!(late >= WRITE_TIMEOUT, "the first may still be on its way: {late:?}");
}

#[test]
fn what_others_break_is_repaired_with_the_next_list() {
    let mut scene = Scene::announcing(3);
    scene.tell_and_run(700);
    let lists = scene.api.lists;
    let kind = WrittenKind::ServiceBgpStatus;
    let keys: Vec<_> = scene.api.objects.keys().filter(|(it, _)| *it == kind).cloned().collect();
    scene.api.objects.remove(&keys[0]);
    scene.api.objects.get_mut(&keys[1]).unwrap()["status"]["peers"] = json!(["nobody"]);
    scene.api.objects.get_mut(&keys[2]).unwrap()["metadata"]["ownerReferences"] = json!([]);
    let gone = json!({
        "metadata": { "name": "bgp-x7k2p", "labels": { "metallb.io/node": "node-a" } },
        "status": { "node": "node-a", "serviceName": "old", "serviceNamespace": "default" },
    });
    scene.api.put(kind, gone);
    let elsewhere = json!({
        "metadata": { "name": "bgp-b2k9m", "labels": { "metallb.io/node": "node-b" } },
    });
    scene.api.put(kind, elsewhere);
    scene.run_until(scene.now + Duration::from_secs(600));
    assert_eq!(scene.api.lists - lists, KINDS.len(), "one of each kind in ten minutes");
    assert!((0..3).all(|number| told(&scene, number) == names(&BOTH)));
    let owners = &scene.api.objects[&keys[2]]["metadata"]["ownerReferences"];
    assert_eq!(owners[0]["uid"], "pod-1");
    assert_eq!(scene.told("old"), None, "what MetalLB's speaker of this node has left");
    assert_eq!(scene.api.of(kind).count(), 4, "what is of another node is left alone");
}

#[test]
fn what_metallb_and_frr_k8s_have_left_is_taken_over_or_left_alone() {
    let mut scene = Scene::announcing(0);
    let labels = json!({
        "metallb.io/component-type": "speaker", "metallb.io/node-name": "node-a",
    });
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "ConfigurationError", "message": "old",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = [condition("configReconcilerValid", "False"), condition("other", "True")];
    scene.api.put(
        WrittenKind::ConfigurationState,
        json!({
            "metadata": { "name": "speaker-node-a", "labels": labels },
            "status": { "result": "Invalid", "errorSummary": "old", "conditions": conditions },
        }),
    );
    scene.api.put(WrittenKind::BgpSessionState, json!({
        "metadata": { "name": "node-a-x7k2p", "labels": { "frrk8s.metallb.io/node": "node-a" } },
        "status": { "node": "node-a", "peer": "192.0.2.77", "bgpStatus": "Established" },
    }));
    scene.tell_and_run(5);
    let status = scene.configuration();
    assert_eq!((&status["result"], &status["errorSummary"]), (&json!("Valid"), &json!("")));
    assert_eq!(scene.session_states().len(), 3, "a cluster with frr-k8s keeps its sessions");
}

#[test]
fn what_metallb_said_of_services_goes_even_where_it_is_read_before_the_plan_is_known() {
    let mut scene = Scene::announcing(1);
    scene.api.put(WrittenKind::ServiceBgpStatus, json!({
        "metadata": { "name": "bgp-5cpvm", "labels": { "metallb.io/node": "node-a" } },
        "status": { "node": "node-a", "serviceName": "web-0", "serviceNamespace": "default", "peers": ["tor-1"] },
    }));
    scene.is_synced = false;
    scene.tell_and_run(5);
    scene.is_synced = true;
    scene.tell_and_run(5);
    let objects = scene.api.of(WrittenKind::ServiceBgpStatus);
    let names: Vec<_> = objects.map(|it| it["metadata"]["name"].clone()).collect();
    assert!(names.len() == 1 && names[0] != "bgp-5cpvm", "one for each Service: {names:?}");
}

#[test]
fn a_restart_in_the_same_pod_writes_nothing_and_says_nothing_again() {
    let mut scene = Scene::announcing(20);
    scene.tell_and_run(60);
    assert_eq!(scene.events.len(), 20);
    scene.restart();
    scene.tell_and_run(1_200);
    assert_eq!((scene.api.writes.len(), scene.events.len()), (0, 0));
    scene.plan_service(20);
    scene.set_session(0, true);
    scene.tell_and_run(1);
    assert_eq!(scene.events.len(), 1, "that one is new");
}

#[test]
fn faults_are_summed_up_and_the_time_is_that_of_the_change() {
    let mut scene = Scene::announcing(0);
    scene.tell_and_run(100);
    let condition = |scene: &Scene| scene.configuration()["conditions"][0].clone();
    let valid = condition(&scene);
    assert_eq!(
        (&valid["type"], &valid["status"], &valid["reason"]),
        (&json!("configReconcilerValid"), &json!("True"), &json!("Reconciled"),)
    );
    let time = |seconds| json!(fairway_ground::Utc(EPOCH_SECONDS + seconds).rfc3339());
    assert_eq!(valid["lastTransitionTime"], time(0));

    scene.findings = vec![fault("tor-1")];
    scene.tell_and_run(100);
    scene.findings.push(fault("tor-2"));
    scene.bgp.peers[1].set_aside = Some("this kernel has no TCP-AO".to_owned());
    scene.bgp.faults = vec!["bgpd does not answer".to_owned()];
    scene.tell_and_run(100);
    let invalid = condition(&scene);
    assert_eq!((&invalid["status"], &invalid["lastTransitionTime"]), (&json!("False"), &time(100)));
    let summary = scene.configuration()["errorSummary"].as_str().unwrap();
    assert_eq!(scene.configuration()["result"], "Invalid");
    for words in ["BGPPeer/tor-1: spec.peerPort", "BGPPeer/tor-2", "no TCP-AO", "bgpd does"] {
        assert!(summary.contains(words), "{summary}");
    }
    scene.findings.clear();
    scene.bgp.peers[1].set_aside = None;
    scene.bgp.faults.clear();
    scene.tell_and_run(100);
    assert_eq!(condition(&scene)["lastTransitionTime"], time(300));
}

#[test]
fn an_event_says_that_a_service_is_announced_and_not_that_it_still_is() {
    let mut scene = Scene::announcing(1);
    scene.tell_and_run(1);
    let event = EventRecord {
        kind: Kind::Service.into(),
        name: service("web-0"),
        uid: "uid-web-0-0".to_owned(),
        is_warning: false,
        reason: "nodeAssigned",
        message: "announcing from node \"node-a\" with protocol \"bgp\"".to_owned(),
    };
    assert_eq!(scene.events, [event]);
    for is_up in [false, true, false, true] {
        scene.set_session(0, is_up);
        scene.set_session(1, is_up);
        scene.tell_and_run(1);
    }
    assert_eq!(scene.events.len(), 1, "a session that flaps is no transition of the Service");
    scene.plan.services.clear();
    scene.tell_and_run(1);
    scene.plan_service(0);
    scene.set_session(0, true);
    scene.tell_and_run(1);
    assert_eq!(scene.events.len(), 2, "it was not announced in between");
    scene.made += 1;
    scene.tell_and_run(1);
    assert_eq!(scene.events.len(), 3, "another one has its name, without a report in between");
}

#[test]
fn every_service_gets_its_event_however_many_are_announced_at_once() {
    let mut scene = Scene::announcing(1_000);
    scene.tell_and_run(1);
    assert_eq!(scene.events.len(), 1_000);
}

#[test]
fn the_node_says_when_it_leaves_and_when_it_is_back() {
    let mut scene = Scene::announcing(1);
    scene.tell_and_run(1);
    scene.events.clear();
    let reasons = |scene: &Scene| scene.events.iter().map(|it| it.reason).collect::<Vec<_>>();
    scene.drain = DrainStatus::Draining {
        since_epoch_seconds: EPOCH_SECONDS,
        until_epoch_seconds: EPOCH_SECONDS + 30,
    };
    scene.bgp.drain = DrainState::Draining;
    scene.tell_and_run(1);
    scene.tell_and_run(1);
    assert_eq!(reasons(&scene), ["NodeDraining"]);
    let event = &scene.events[0];
    assert_eq!((event.kind, event.name.to_string().as_str()), (Kind::Node.into(), "node-a"));
    assert_eq!(event.uid, "node-1");
    assert!(event.message.ends_with("withdrawn at 2026-11-20 16:38:33 UTC"), "{}", event.message);

    scene.drain = DrainStatus::Drained { since_epoch_seconds: EPOCH_SECONDS + 30 };
    scene.bgp.drain = DrainState::Drained;
    scene.tell_and_run(1);
    assert_eq!(reasons(&scene).len(), 1, "routers still have routes");
    for peer in &mut scene.bgp.peers {
        peer.advertised.clear();
    }
    scene.bgp.peers[0].is_being_told = true;
    scene.tell_and_run(1);
    assert_eq!(reasons(&scene).len(), 1, "the last withdrawal is on its way");
    scene.bgp.peers[0].is_being_told = false;
    scene.tell_and_run(1);
    assert_eq!(reasons(&scene), ["NodeDraining", "NodeDrained"]);
    assert_eq!(told(&scene, 0), None);

    scene.drain = DrainStatus::InService;
    scene.bgp.drain = DrainState::InService;
    scene.set_session(0, true);
    scene.tell_and_run(1);
    assert_eq!(reasons(&scene), ["NodeDraining", "NodeDrained", "NodeInService"]);
    assert_eq!(told(&scene, 0), names(&["tor-1"]));
}

#[test]
fn whatever_fails_the_objects_are_right_in_the_end() {
    for seed in 0..40 {
        let mut random = Rng::seeded(seed);
        let mut scene = Scene::announcing(6);
        scene.delays = Some(Rng::seeded(seed));
        for _ in 0..60 {
            let mut chance = |of: u64| random.next_u64().is_multiple_of(of);
            for peer in 0..2 {
                if chance(3) {
                    let is_up = scene.bgp.peers[peer].state != SessionState::Established;
                    scene.set_session(peer, is_up);
                }
            }
            (scene.api.is_away, scene.api.loses_answers) = (chance(5), chance(5));
            if chance(8) {
                scene.api.objects.clear();
            }
            if chance(20) {
                scene.restart();
            }
            scene.tell_and_run(if chance(4) { 30 } else { 1 });
        }
        (scene.api.is_away, scene.api.loses_answers) = (false, false);
        scene.run_until(scene.now + Duration::from_secs(1_300));
        let up = |peer: &usize| scene.bgp.peers[*peer].state == SessionState::Established;
        let expected: Vec<String> = (0..2).filter(up).map(|it| BOTH[it].to_owned()).collect();
        let expected = (!expected.is_empty()).then_some(expected);
        for number in 0..6 {
            assert_eq!(told(&scene, number), expected, "web-{number}, seed {seed}");
        }
        let states = scene.bgp.peers.iter().map(|it| it.state.name());
        let said = scene.session_states();
        let said = said.iter().filter_map(|it| Some(it.split_once(' ')?.1));
        assert_eq!(said.collect::<Vec<_>>(), states.collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(scene.api.objects.len(), 3 + expected.map_or(0, |_| 6), "seed {seed}");
    }
}

/// `web-0` is answered for, on interfaces of the advertisement if it names some.
fn answered(scene: &mut Scene, interfaces: Option<&[&str]>) {
    let address = "192.0.2.100".parse().unwrap();
    let names = |it: &&[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
    let on = interfaces.as_ref().map(names);
    scene.plan.layer2 = vec![Layer2Announcement {
        bind: false,
        address,
        interfaces: on.clone().map(|it| it.into_iter().collect()),
        services: BTreeSet::from([service("web-0")]),
    }];
    let announcement = Announcement {
        reason: None,
        addresses: Vec::new(),
        data_path: Vec::new(),
        layer2: vec![Layer2Verdict {
            addresses: vec![address],
            advertisements: Vec::new(),
            answer: Ok(Answer {
                interfaces: on.clone().map(|it| it.into_iter().collect()),
                bind: false,
            }),
        }],
    };
    scene.plan.services.insert(service("web-0"), Arc::new(announcement));
    let interfaces = on.unwrap_or_else(|| vec!["eth0".to_owned()]);
    let answered = AnsweredAddress { interfaces, ..AnsweredAddress::default() };
    let view = Layer2View { addresses: [(address, answered)].into(), ..Layer2View::default() };
    scene.layer2 = Some(view);
}

#[test]
fn a_service_that_is_answered_for_is_reported_with_its_interfaces() {
    let mut scene = Scene::new();
    answered(&mut scene, None);
    scene.tell_and_run(1);
    let status = |scene: &Scene| {
        let mut all = scene.api.objects.iter();
        let found = all.find(|((kind, _), _)| *kind == WrittenKind::ServiceL2Status);
        found.map(|(_, object)| object["status"].clone())
    };
    let all = json!({ "node": "node-a", "serviceName": "web-0", "serviceNamespace": "default" });
    assert_eq!(status(&scene), Some(all.clone()), "no interface stands for all");
    let message = "announcing from node \"node-a\" with protocol \"layer2\"";
    let said: Vec<&str> = scene.events.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(said, [message]);

    answered(&mut scene, Some(&["eth1"]));
    scene.tell_and_run(1);
    let mut one = all.clone();
    one["interfaces"] = json!([{ "name": "eth1" }]);
    assert_eq!(status(&scene), Some(one));
    assert_eq!(scene.events.len(), 1, "it is answered for all the time");

    // Its interface has lost its carrier: nobody answers, and the plan is the same.
    answered(&mut scene, Some(&[]));
    scene.tell_and_run(1);
    assert_eq!(status(&scene), None);
    answered(&mut scene, None);
    scene.tell_and_run(1);
    assert_eq!((status(&scene), scene.events.len()), (Some(all), 1));

    // Another node owns it, and then this one again.
    scene.plan.layer2.clear();
    scene.plan.services.clear();
    scene.tell_and_run(1);
    assert_eq!(status(&scene), None);
    answered(&mut scene, None);
    scene.tell_and_run(1);
    assert_eq!(scene.events.len(), 2);
}

#[test]
fn a_restart_announces_no_service_of_layer_2_again() {
    let mut scene = Scene::new();
    answered(&mut scene, None);
    scene.tell_and_run(1);
    scene.restart();
    scene.tell_and_run(1);
    assert_eq!((scene.api.writes.len(), scene.events.len()), (0, 0));
}

#[test]
fn what_is_wrong_with_an_address_on_the_segment_is_an_event_once() {
    let mut scene = Scene::new();
    answered(&mut scene, None);
    scene.tell_and_run(1);
    scene.events.clear();
    let address = "192.0.2.100".parse().unwrap();
    let mac = MacAddress([2, 0, 0, 0, 0, 9]);
    let claim =
        |age| ForeignClaim { mac, interface: "eth0".to_owned(), age: Duration::from_secs(age) };
    let reasons = |scene: &Scene| scene.events.iter().map(|it| it.reason).collect::<Vec<_>>();
    for (age, expected) in [(0, 1), (0, 1), (700, 1), (0, 2)] {
        let view = scene.layer2.as_mut().unwrap();
        view.addresses.get_mut(&address).unwrap().last_conflict = Some(claim(age));
        scene.tell_and_run(1);
        assert_eq!(reasons(&scene), vec!["AddressClaimed"; expected], "{age} s ago");
    }
    assert_eq!(
        scene.events[0].message,
        "host 02:00:00:00:00:09 on eth0 of node \"node-a\" claims 192.0.2.100, which this node answers for"
    );
    scene.events.clear();
    let view = scene.layer2.as_mut().unwrap();
    view.addresses.clear();
    for (answer, expected) in [
        (AddressAnswer::Owner, 0),
        (AddressAnswer::Nobody, 1),
        (AddressAnswer::Nobody, 1),
        (AddressAnswer::Other(mac), 2),
        (AddressAnswer::Owner, 2),
        (AddressAnswer::Nobody, 3),
    ] {
        let check = CheckedAddress { owner: "node-b".to_owned(), answer, age: Duration::ZERO };
        scene.layer2.as_mut().unwrap().checks = [(address, check)].into();
        scene.tell_and_run(1);
        assert_eq!(reasons(&scene), vec!["AddressCheckFailed"; expected], "{answer:?}");
    }
    assert_eq!(
        scene.events[0].message,
        "node \"node-b\" owns 192.0.2.100; node \"node-a\" asked for it, and nobody answers"
    );
    assert!(scene.events.iter().all(|it| it.is_warning && it.name == service("web-0")));
}
