//! Does the model answer as the real server does? A conversation with kube-apiserver 1.36.3 was
//! recorded, line by line; the model gets the same requests, and must give the same answers.
//!
//! Compared are codes, Status objects word by word, metadata, the stored fields, their managers, and
//! watch events. Versions and uids are compared by the order in which they
//! appear. Not compared: defaults of specs (the model has no schemas), the paths of managed fields
//! (it knows leaves only), and times.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // What fails here fails the test.

use std::collections::BTreeMap;

use fairway_model_api::{
    ApiServer, Query, Request, Resource, ResourceDefinition, Settings, Timestamp, Verb,
    VersionMatch, WatchStep,
};
use serde_json::{Value, json};

const RECORDED: &str = include_str!("conversation/kube-apiserver-1.36.3.jsonl");

fn resource(plural: &str) -> Resource {
    match plural {
        "leases" => Resource::new("coordination.k8s.io", "v1", plural),
        "endpointslices" => Resource::new("discovery.k8s.io", "v1", plural),
        "things" => Resource::new("example.com", "v1", plural),
        _ => Resource::core(plural),
    }
}

fn request(recorded: &Value) -> Request {
    let text = |field: &str| recorded[field].as_str().unwrap_or_default().to_owned();
    let asked = |field: &str| recorded["query"][field].as_str().map(str::to_owned);
    let is_true = |field: &str| asked(field).as_deref() == Some("true");
    let verb = match text("verb").as_str() {
        "get" => Verb::Get,
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "create" => Verb::Create,
        "update" => Verb::Update,
        "merge-patch" => Verb::MergePatch,
        "apply" => Verb::Apply,
        "delete" => Verb::Delete,
        other => panic!("{other}"),
    };
    Request {
        verb,
        resource: resource(&text("resource")),
        namespace: text("namespace"),
        name: text("name"),
        status: recorded["status"] == true,
        query: Query {
            resource_version: asked("resourceVersion"),
            resource_version_match: asked("resourceVersionMatch").map(|it| match it.as_str() {
                "Exact" => VersionMatch::Exact,
                _ => VersionMatch::NotOlderThan,
            }),
            limit: asked("limit").map_or(0, |it| it.parse().unwrap()),
            continue_token: asked("continue"),
            label_selector: asked("labelSelector"),
            field_selector: asked("fieldSelector"),
            timeout_seconds: None,
            allow_watch_bookmarks: is_true("allowWatchBookmarks"),
            send_initial_events: is_true("sendInitialEvents"),
            field_manager: asked("fieldManager"),
            force: is_true("force"),
        },
        body: recorded["body"].clone(),
        user: "unknown".to_owned(),
    }
}

/// One side of the conversation: the values of its `$name$`s, and its versions and uids in the
/// order in which they appeared.
#[derive(Default)]
struct Side {
    saved: BTreeMap<String, String>,
    seen: Vec<String>,
}

impl Side {
    fn fill(&self, recorded: &Value) -> Value {
        let mut text = recorded.to_string();
        for (name, value) in &self.saved {
            text = text.replace(&format!("${name}$"), value);
        }
        serde_json::from_str(&text).unwrap()
    }

    fn save(&mut self, name: &str, answer: &Value) {
        for (field, word) in
            [("resourceVersion", "version"), ("uid", "uid"), ("continue", "continue")]
        {
            let value = answer["body"]["metadata"][field].as_str().unwrap_or_default();
            self.saved.insert(format!("{name}.{word}"), value.to_owned());
        }
    }

    fn label(&mut self, value: &str) -> String {
        let known = self.seen.iter().position(|it| it == value);
        let number = known.unwrap_or_else(|| {
            self.seen.push(value.to_owned());
            self.seen.len() - 1
        });
        format!("#{number}")
    }

    /// The compared part of an answer.
    fn essence(&mut self, answer: &Value) -> Value {
        let mut essence = json!({"code": answer["code"]});
        if let Some(events) = answer["events"].as_array() {
            let events = events.iter().map(
                |event| json!({"type": event["type"], "object": self.of_object(&event["object"])}),
            );
            essence["events"] = events.collect();
        } else if let Some(items) = answer["body"]["items"].as_array() {
            essence["items"] = items.iter().map(|item| self.of_object(item)).collect();
            let metadata = &answer["body"]["metadata"];
            if !items.is_empty() {
                let version = metadata["resourceVersion"].as_str().unwrap();
                essence["version"] = json!(self.label(version));
            }
            essence["more"] = json!(metadata["continue"].as_str().is_some_and(|it| !it.is_empty()));
            essence["remaining"] = metadata["remainingItemCount"].clone();
            essence["kind"] = answer["body"]["kind"].clone();
        } else {
            essence["body"] = self.of_object(&answer["body"]);
        }
        essence
    }

    fn of_object(&mut self, object: &Value) -> Value {
        let mut object = object.clone();
        if object["kind"] == "Status" {
            // Messages contain uids and versions.
            let mut text = object.to_string();
            for (number, value) in self.seen.iter().enumerate().rev() {
                text = text
                    .replace(&format!("object meta: {value}"), &format!("object meta: #{number}"));
                text = text.replace(&format!("({value})"), &format!("(#{number})"));
                text = text.replace(&format!("\"{value}\""), &format!("\"#{number}\""));
            }
            let mut status: Value = serde_json::from_str(&text).unwrap();
            // The position of the server itself, which writes something now and then.
            for words in ["current: ", "too old resource version: 1 "] {
                let message = status["message"].as_str().unwrap_or_default();
                if let Some((before, _)) = message.split_once(words) {
                    status["message"] = json!(format!("{before}{words}"));
                }
            }
            if let Some(causes) = status["details"]["causes"].as_array_mut() {
                // Some occur twice.
                causes.dedup();
            }
            return status;
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        for field in ["resourceVersion", "uid"] {
            if let Some(value) = metadata.get_mut(field) {
                *value = json!(self.label(value.as_str().unwrap()));
            }
        }
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(value) = metadata.get_mut(field) {
                *value = json!("some time");
            }
        }
        for owner in
            metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten()
        {
            let fields = owner.as_object_mut().unwrap();
            fields.retain(|key, _| ["manager", "operation", "subresource"].contains(&key.as_str()));
        }
        if let Some(owners) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            owners.sort_by_key(Value::to_string);
        }
        if object["kind"] != "Thing" {
            // Built-in kinds have defaults, and so owners, of their own.
            object["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        }
        object
    }
}

/// Where the model's answer differs from the recorded one. Outside metadata and Status objects the
/// real server may have more: it has defaults.
fn differences(path: &str, model: &Value, real: &Value, into: &mut Vec<String>) {
    let is_exact =
        path.contains(".metadata") || model["kind"] == "Status" || path.contains(".details");
    match (model, real) {
        (Value::Object(model), Value::Object(real)) => {
            for (key, value) in model {
                let other = real.get(key).unwrap_or(&Value::Null);
                differences(&format!("{path}.{key}"), value, other, into);
            }
            for key in real.keys().filter(|key| is_exact && !model.contains_key(*key)) {
                into.push(format!("{path}.{key} is missing"));
            }
        }
        (Value::Array(model), Value::Array(real)) if model.len() == real.len() => {
            for (index, (model, real)) in model.iter().zip(real).enumerate() {
                differences(&format!("{path}[{index}]"), model, real, into);
            }
        }
        _ if model == real => {}
        _ => into.push(format!("{path} is {model}, and was {real}")),
    }
}

fn ask(server: &mut ApiServer, request: &Request) -> Value {
    let now = Timestamp::from_micros(1_795_312_390_000_000);
    if request.verb != Verb::Watch {
        let answer = server.handle(now, 0, request);
        return json!({"code": answer.code, "body": answer.body});
    }
    match server.watch(now, 0, request) {
        Err(status) => json!({"code": status.code, "body": status.body()}),
        Ok(watch) => {
            let events = std::iter::from_fn(|| match server.poll_watch(now, watch) {
                WatchStep::Event(event) => Some(event.body()),
                WatchStep::Idle | WatchStep::Ended => None,
            });
            json!({"code": 200, "events": events.collect::<Vec<_>>()})
        }
    }
}

#[test]
fn the_model_says_what_the_real_server_said() {
    let mut server = ApiServer::new(Settings::default());
    server.define(ResourceDefinition::custom(resource("things"), "Thing", true));
    let namespace = json!({"metadata": {"name": "kube-public"}});
    let namespace = Request::create(&Resource::core("namespaces"), "", namespace);
    server.handle(Timestamp::default(), 0, &namespace);
    server.compact(server.revision());
    let (mut model, mut real) = (Side::default(), Side::default());
    let mut wrong = Vec::new();
    let mut lines = 0;
    for line in RECORDED.lines() {
        lines += 1;
        let recorded: Value = serde_json::from_str(line).unwrap();
        let answer = ask(&mut server, &request(&model.fill(&recorded["request"])));
        let (expected, actual) = (real.essence(&recorded["answer"]), model.essence(&answer));
        if let Some(name) = recorded["request"]["save"].as_str() {
            model.save(name, &answer);
            real.save(name, &recorded["answer"]);
        }
        let mut found = Vec::new();
        differences("", &actual, &expected, &mut found);
        if !found.is_empty() {
            wrong.push(format!("line {lines}: {}\n  {}", recorded["request"], found.join("\n  ")));
        }
    }
    assert!(lines > 70);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
