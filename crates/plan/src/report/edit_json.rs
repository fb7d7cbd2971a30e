//! An edit for programs.
//!
//! Each list has one object for each node and peer: programs count, people group.

use fairway_allocator::Outcome;
use serde_json::{Map, Value, json};

use super::super::Layer2Announcement;
use super::edit::{Edit, Layer2Edit, RouteEdit, ServiceEdit};
use super::routes;
use super::sessions::{Fate, FieldEdit, SessionEdit};

/// `services`, `routes`, `layer2` and `sessions`.
pub(super) fn json(edit: &Edit<'_>) -> Value {
    json!({
        "services": edit.services.iter().map(service).collect::<Vec<_>>(),
        "routes": routes(edit),
        "layer2": layer2(edit),
        "sessions": sessions(edit),
    })
}

/// The fields of an outcome: `pool` is empty without addresses, `reason` if the Service got what it
/// requested.
pub(super) fn outcome(outcome: &Outcome) -> Map<String, Value> {
    let addresses: Vec<_> = outcome.addresses.iter().map(ToString::to_string).collect();
    let reason = outcome.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut fields = Map::new();
    fields.insert("addresses".to_owned(), json!(addresses));
    fields.insert("pool".to_owned(), json!(outcome.pool.as_deref().unwrap_or_default()));
    fields.insert("reason".to_owned(), json!(reason));
    fields
}

/// The new outcome, and `before` if there was one.
fn service(edit: &ServiceEdit<'_>) -> Value {
    let gone = Outcome { addresses: Vec::new(), pool: None, reason: None };
    let mut fields = outcome(edit.after.unwrap_or(&gone));
    if edit.after.is_none() {
        fields.insert(
            "reason".to_owned(),
            json!("deleted, or no longer a Service of this type and class"),
        );
    }
    fields.shift_insert(0, "name".to_owned(), json!(edit.name.name));
    fields.shift_insert(0, "namespace".to_owned(), json!(edit.name.namespace));
    fields.insert("before".to_owned(), json!(edit.before.map(outcome)));
    Value::Object(fields)
}

fn routes(edit: &Edit<'_>) -> Value {
    let (mut announced, mut withdrawn, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for it in &edit.routes {
        match (&it.before, &it.after) {
            (Some(before), Some(after)) => {
                let both = [("before", before), ("after", after)];
                let both = both.map(|(key, it)| (key.to_owned(), routes::fields(it).into()));
                changed.push(route(it, both.into_iter().collect()));
            }
            (Some(only), None) => withdrawn.push(route(it, routes::fields(only))),
            (None, Some(only)) => announced.push(route(it, routes::fields(only))),
            (None, None) => {}
        }
    }
    json!({ "announced": announced, "withdrawn": withdrawn, "changed": changed })
}

fn route(edit: &RouteEdit<'_>, attributes: Map<String, Value>) -> Value {
    let mut fields = Map::new();
    fields.insert("node".to_owned(), json!(edit.node));
    fields.insert("peer".to_owned(), json!(edit.peer));
    fields.insert("prefix".to_owned(), json!(edit.prefix.to_string()));
    fields.extend(attributes);
    fields.insert("services".to_owned(), json!(edit.services));
    Value::Object(fields)
}

/// The fields of a layer 2 announcement.
pub(super) fn answer(answer: &Layer2Announcement) -> Map<String, Value> {
    let services: Vec<_> = answer.services.iter().map(ToString::to_string).collect();
    let mut fields = Map::new();
    fields.insert("address".to_owned(), json!(answer.address.to_string()));
    fields.insert("interfaces".to_owned(), json!(answer.interfaces));
    if answer.bind {
        fields.insert("bind".to_owned(), json!(true));
    }
    fields.insert("services".to_owned(), json!(services));
    fields
}

/// Changed ones are shown in their new state.
fn layer2(edit: &Edit<'_>) -> Value {
    let (mut announced, mut withdrawn, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for Layer2Edit { node, before, after } in &edit.layer2 {
        let (list, shown) = match (before, after) {
            (Some(_), Some(after)) => (&mut changed, after),
            (Some(before), None) => (&mut withdrawn, before),
            (None, Some(after)) => (&mut announced, after),
            (None, None) => continue,
        };
        let mut fields = answer(shown);
        fields.shift_insert(0, "node".to_owned(), json!(node));
        list.push(Value::Object(fields));
    }
    json!({ "announced": announced, "withdrawn": withdrawn, "changed": changed })
}

/// Sessions that stay up with other settings do not affect a router, and are left out.
fn sessions(edit: &Edit<'_>) -> Value {
    let of = |fate: Fate| -> Vec<Value> {
        edit.sessions.iter().filter(|it| it.fate == fate).map(session).collect()
    };
    json!({ "added": of(Fate::Added), "removed": of(Fate::Removed), "reset": of(Fate::Reset) })
}

fn session(edit: &SessionEdit<'_>) -> Value {
    let field = |FieldEdit { name, values }: &FieldEdit| {
        let (before, after) = values.clone().unzip();
        json!({ "field": name, "before": before, "after": after })
    };
    let fields: Vec<Value> = edit.fields.iter().map(field).collect();
    let mut session = json!({ "node": edit.node, "peer": edit.peer, "remote": edit.remote });
    if let (Fate::Reset, Some(session)) = (edit.fate, session.as_object_mut()) {
        session.insert("fields".to_owned(), json!(fields));
        session.insert("losesRoutes".to_owned(), json!(edit.loses_routes));
    }
    session
}
