//! Stories of lists and watches: what a client may rely on, and what not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // What fails here fails the test.

use fairway_model_api::{
    ApiServer, EventKind, Query, Request, Resource, Settings, Timestamp, VersionMatch, WatchEvent,
    WatchId, WatchStep,
};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_micros(1_795_312_390_000_000);

fn services() -> Resource {
    Resource::core("services")
}

fn service(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"v": value}}, "spec": {"type": "LoadBalancer"}})
}

fn put(server: &mut ApiServer, name: &str, value: &str) -> String {
    let create = Request::create(&services(), "default", service(name, value));
    let mut answer = server.handle(NOW, 0, &create);
    if answer.reason() == "AlreadyExists" {
        answer =
            server.handle(NOW, 0, &Request::update(&services(), "default", service(name, value)));
    }
    assert!(answer.is_success(), "{answer:?}");
    answer.resource_version().to_owned()
}

fn delete(server: &mut ApiServer, name: &str) {
    let answer = server.handle(NOW, 0, &Request::delete(&services(), "default", name));
    assert_eq!(answer.code, 200);
}

fn watch_from(server: &mut ApiServer, replica: usize, version: &str) -> WatchId {
    let mut request = Request::watch(&services(), "", version);
    request.query.allow_watch_bookmarks = true;
    server.watch(NOW, replica, &request).unwrap()
}

fn said(server: &mut ApiServer, now: Timestamp, watch: WatchId) -> Vec<WatchEvent> {
    let step = || match server.poll_watch(now, watch) {
        WatchStep::Event(event) => Some(event),
        WatchStep::Idle | WatchStep::Ended => None,
    };
    std::iter::from_fn(step).collect()
}

/// `ADDED a 1`: type, name and the label of each.
fn told(server: &mut ApiServer, watch: WatchId) -> Vec<String> {
    let line = |event: WatchEvent| {
        let text = |pointer| event.object.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        format!("{} {} {}", event.kind.word(), text("/metadata/name"), text("/metadata/labels/v"))
    };
    said(server, NOW, watch).into_iter().map(line).collect()
}

fn names(answer: &fairway_model_api::Response) -> Vec<String> {
    let items = answer.body["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn lagging() -> ApiServer {
    let settings = Settings { replicas: 2, in_step: false, ..Settings::default() };
    ApiServer::new(settings)
}

fn at(version: &str) -> Query {
    Query { resource_version: Some(version.to_owned()), ..Query::default() }
}

#[test]
fn a_watch_from_a_list_tells_everything_that_came_after_it() {
    let mut server = ApiServer::new(Settings::default());
    put(&mut server, "a", "1");
    let list = server.handle(NOW, 0, &Request::list(&services(), ""));
    assert_eq!(names(&list), ["a"]);
    let watch = watch_from(&mut server, 0, list.resource_version());
    put(&mut server, "b", "1");
    put(&mut server, "a", "2");
    delete(&mut server, "b");
    assert_eq!(told(&mut server, watch), ["ADDED b 1", "MODIFIED a 2", "DELETED b 1"]);
    assert_eq!(server.poll_watch(NOW, watch), WatchStep::Idle);
}

#[test]
fn a_deletion_carries_the_version_at_which_it_happened() {
    let mut server = ApiServer::new(Settings::default());
    put(&mut server, "a", "1");
    let version = server.revision().to_string();
    let watch = watch_from(&mut server, 0, &version);
    delete(&mut server, "a");
    let events = said(&mut server, NOW, watch);
    assert_eq!(events[0].kind, EventKind::Deleted);
    assert_eq!(events[0].object["metadata"]["resourceVersion"], server.revision().to_string());
}

#[test]
fn a_watch_from_before_the_history_hears_410_and_ends() {
    let mut server = ApiServer::new(Settings::default());
    let old = put(&mut server, "a", "1");
    put(&mut server, "a", "2");
    server.compact(server.revision());
    let watch = watch_from(&mut server, 0, &old);
    let events = said(&mut server, NOW, watch);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, EventKind::Error);
    assert_eq!(
        (&events[0].object["code"], &events[0].object["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert_eq!(server.poll_watch(NOW, watch), WatchStep::Ended);
}

#[test]
fn history_is_bounded() {
    let settings = Settings { history_changes: 5, ..Settings::default() };
    let mut server = ApiServer::new(settings);
    let old = put(&mut server, "a", "0");
    for round in 1..=6 {
        put(&mut server, "a", &round.to_string());
    }
    let watch = watch_from(&mut server, 0, &old);
    assert_eq!(said(&mut server, NOW, watch)[0].kind, EventKind::Error);
}

#[test]
fn a_lagging_replica_lists_and_watches_the_past() {
    let mut server = lagging();
    put(&mut server, "a", "1");
    for replica in [0, 1] {
        server.catch_up(replica, u64::MAX);
    }
    delete(&mut server, "a");
    put(&mut server, "b", "1");
    server.catch_up(0, u64::MAX);
    let any = Request::list(&services(), "").with(at("0"));
    assert_eq!(names(&server.handle(NOW, 0, &any)), ["b"]);
    let stale = server.handle(NOW, 1, &any);
    assert_eq!(names(&stale), ["a"], "the other server lags");
    let latest = Request::list(&services(), "");
    assert_eq!(names(&server.handle(NOW, 1, &latest)), ["b"], "unless it is asked for the latest");
    let watch = watch_from(&mut server, 1, stale.resource_version());
    assert!(told(&mut server, watch).is_empty());
    server.catch_up(1, 1);
    assert_eq!(told(&mut server, watch), ["DELETED a 1"]);
    server.catch_up(1, 1);
    assert_eq!(told(&mut server, watch), ["ADDED b 1"]);
}

#[test]
fn a_version_that_a_replica_has_not_seen_is_too_large_for_a_list_and_awaited_by_a_watch() {
    let mut server = lagging();
    let version = put(&mut server, "a", "1");
    let answer = server.handle(NOW, 1, &Request::list(&services(), "").with(at(&version)));
    assert_eq!((answer.code, answer.reason()), (504, "Timeout"));
    assert_eq!(answer.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    let watch = watch_from(&mut server, 1, &version);
    put(&mut server, "b", "1");
    server.catch_up(1, u64::MAX);
    assert_eq!(told(&mut server, watch), ["ADDED b 1"], "known objects are not sent again");
}

#[test]
fn lag_is_bounded() {
    let settings =
        Settings { replicas: 2, in_step: false, lag_changes_max: 3, ..Settings::default() };
    let mut server = ApiServer::new(settings);
    for round in 0..10 {
        put(&mut server, "a", &round.to_string());
    }
    assert_eq!(server.revision() - server.seen(1), 3);
}

#[test]
fn bookmarks_come_each_minute_and_name_what_was_told() {
    let mut server = ApiServer::new(Settings::default());
    let version = server.revision().to_string();
    let watch = watch_from(&mut server, 0, &version);
    let body = json!({"metadata": {"name": "other"}});
    server.handle(NOW, 0, &Request::create(&Resource::core("configmaps"), "default", body));
    assert!(said(&mut server, NOW.plus_seconds(59), watch).is_empty());
    let events = said(&mut server, NOW.plus_seconds(60), watch);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, EventKind::Bookmark);
    assert_eq!(events[0].object["kind"], "Service");
    assert_eq!(events[0].object["metadata"]["resourceVersion"], server.revision().to_string());
    assert_eq!(server.next_deadline(), Some(NOW.plus_seconds(120)));
}

#[test]
fn watches_end_when_their_time_is_over_or_when_they_are_cut() {
    let mut server = ApiServer::new(Settings::default());
    let mut request = Request::watch(&services(), "", "0");
    request.query.timeout_seconds = Some(10);
    let timed = server.watch(NOW, 0, &request).unwrap();
    assert_eq!(server.poll_watch(NOW.plus_seconds(9), timed), WatchStep::Idle);
    assert_eq!(server.poll_watch(NOW.plus_seconds(10), timed), WatchStep::Ended);
    let cut = server.watch(NOW, 0, &request).unwrap();
    put(&mut server, "a", "1");
    server.cut(cut);
    assert_eq!(server.poll_watch(NOW, cut), WatchStep::Ended);
    assert_eq!(server.watches().count(), 0);
}

#[test]
fn initial_events_end_with_a_bookmark_that_says_so() {
    let mut server = ApiServer::new(Settings::default());
    put(&mut server, "a", "1");
    let mut request = Request::watch(&services(), "", "");
    request.query.send_initial_events = true;
    let watch = server.watch(NOW, 0, &request).unwrap();
    let events = said(&mut server, NOW, watch);
    assert_eq!(
        events.iter().map(|it| it.kind).collect::<Vec<_>>(),
        [EventKind::Added, EventKind::Bookmark]
    );
    assert_eq!(events[1].object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[test]
fn who_leaves_or_joins_a_selection_is_deleted_or_added() {
    let mut server = ApiServer::new(Settings::default());
    put(&mut server, "a", "1");
    let mut request = Request::watch(&services(), "", &server.revision().to_string());
    request.query.label_selector = Some("v=1".to_owned());
    let watch = server.watch(NOW, 0, &request).unwrap();
    put(&mut server, "a", "2");
    put(&mut server, "a", "3");
    put(&mut server, "a", "1");
    assert_eq!(told(&mut server, watch), ["DELETED a 1", "ADDED a 1"]);
}

#[test]
fn pages_tell_one_state_however_much_happens_meanwhile() {
    let mut server = ApiServer::new(Settings::default());
    for name in ["a", "b", "c", "d", "e"] {
        put(&mut server, name, "1");
    }
    let mut query = Query { limit: 2, ..Query::default() };
    let first = server.handle(NOW, 0, &Request::list(&services(), "").with(query.clone()));
    assert_eq!(first.body["metadata"]["remainingItemCount"], 3);
    delete(&mut server, "c");
    put(&mut server, "f", "1");
    let mut all = names(&first);
    let mut token = first.body["metadata"]["continue"].as_str().map(str::to_owned);
    while let Some(next) = token {
        query.continue_token = Some(next);
        let page = server.handle(NOW, 0, &Request::list(&services(), "").with(query.clone()));
        assert_eq!(page.resource_version(), first.resource_version());
        all.extend(names(&page));
        token = page.body["metadata"]["continue"].as_str().map(str::to_owned);
    }
    assert_eq!(all, ["a", "b", "c", "d", "e"]);
    server.compact(server.revision());
    let late = server.handle(NOW, 0, &Request::list(&services(), "").with(query));
    assert_eq!((late.code, late.reason()), (410, "Expired"));
}

#[test]
fn an_exact_list_is_of_that_version_or_410() {
    let mut server = ApiServer::new(Settings::default());
    let first = put(&mut server, "a", "1");
    put(&mut server, "b", "1");
    let mut query = at(&first);
    query.resource_version_match = Some(VersionMatch::Exact);
    let request = Request::list(&services(), "").with(query);
    assert_eq!(names(&server.handle(NOW, 0, &request)), ["a"]);
    server.compact(server.revision());
    assert_eq!(server.handle(NOW, 0, &request).code, 410);
}

#[test]
fn a_restarted_server_remembers_nothing_of_before() {
    let mut server = ApiServer::new(Settings { replicas: 2, ..Settings::default() });
    let version = put(&mut server, "a", "1");
    put(&mut server, "b", "1");
    let watch = watch_from(&mut server, 0, &version);
    server.restart_replica(0);
    assert_eq!(server.poll_watch(NOW, watch), WatchStep::Ended);
    let again = watch_from(&mut server, 0, &version);
    assert_eq!(said(&mut server, NOW, again)[0].kind, EventKind::Error);
    let other = watch_from(&mut server, 1, &version);
    assert_eq!(told(&mut server, other), ["ADDED b 1"], "the other watch continues");
}

#[test]
fn a_backup_brings_back_old_versions_for_new_things() {
    let mut server = ApiServer::new(Settings::default());
    put(&mut server, "a", "1");
    let backup = server.revision();
    let lost = put(&mut server, "b", "1");
    delete(&mut server, "a");
    assert!(server.restore(backup));
    let list = server.handle(NOW, 0, &Request::list(&services(), ""));
    assert_eq!(
        (names(&list), list.resource_version()),
        (vec!["a".to_owned()], backup.to_string().as_str())
    );
    assert_eq!(put(&mut server, "c", "1"), lost, "the same version, another object");
    server.compact(server.revision());
    assert!(!server.restore(backup));
}
