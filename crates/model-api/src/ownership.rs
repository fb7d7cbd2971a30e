//! Field ownership: `metadata.managedFields`, and the effect of apply on it.
//!
//! `Ours:` a field is a leaf of the JSON; a list is one leaf. The real server knows from the schema
//! that some lists are maps, and tracks their items one by one.

use crate::patch::merge;
use crate::request::Request;
use crate::status::Status;
use crate::time::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

type Path = Vec<String>;

/// Fields that the server itself writes into metadata, or that name the object: they have no owner.
const UNOWNED_METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// One manager's fields, as written by one operation on one (sub)resource.
#[derive(Debug, Clone)]
struct Owner {
    manager: String,
    applies: bool,
    status: bool,
    api_version: String,
    time: String,
    fields: BTreeSet<Path>,
}

impl Owner {
    fn parse(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut fields = BTreeSet::new();
        read_fields(entry.get("fieldsV1")?, &mut Vec::new(), &mut fields);
        Some(Self {
            manager: text("manager")?,
            applies: text("operation")? == "Apply",
            status: entry.get("subresource").is_some(),
            api_version: text("apiVersion")?,
            time: text("time").unwrap_or_default(),
            fields,
        })
    }

    fn write(&self) -> Value {
        let mut fields = json!({});
        for path in &self.fields {
            let mut at = &mut fields;
            for key in path {
                let Value::Object(map) = at else { break };
                at = map.entry(format!("f:{key}")).or_insert_with(|| json!({}));
            }
        }
        let mut entry = json!({
            "manager": self.manager,
            "operation": if self.applies { "Apply" } else { "Update" },
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        });
        if let (true, Some(entry)) = (self.status, entry.as_object_mut()) {
            entry.insert("subresource".to_owned(), json!("status"));
        }
        entry
    }

    fn printed(&self) -> String {
        let mut text = format!("\"{}\"", self.manager);
        if self.status {
            text += " with subresource \"status\"";
        }
        if !self.applies {
            text += &format!(" using {}", self.api_version);
        }
        text
    }

    fn is(&self, request: &Request, applies: bool) -> bool {
        self.manager == request.manager()
            && self.applies == applies
            && self.status == request.status
    }

    fn new(request: &Request, applies: bool) -> Self {
        Self {
            manager: request.manager().to_owned(),
            applies,
            status: request.status,
            api_version: request.resource.api_version(),
            time: String::new(),
            fields: BTreeSet::new(),
        }
    }
}

fn read_fields(value: &Value, path: &mut Path, into: &mut BTreeSet<Path>) {
    let children = value.as_object().into_iter().flatten();
    let mut leaf = true;
    for (key, child) in children {
        let Some(key) = key.strip_prefix("f:") else { continue };
        leaf = false;
        path.push(key.to_owned());
        read_fields(child, path, into);
        path.pop();
    }
    if leaf && !path.is_empty() {
        into.insert(path.clone());
    }
}

fn owners(object: &Value) -> Vec<Owner> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(Owner::parse).collect()
}

fn write_owners(object: &mut Value, owners: &[Owner]) {
    let entries: Vec<Value> =
        owners.iter().filter(|owner| !owner.fields.is_empty()).map(Owner::write).collect();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// The fields that can have an owner, with their values.
fn leaves(object: &Value) -> BTreeMap<Path, &Value> {
    let mut found = BTreeMap::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                let metadata = value.as_object().into_iter().flatten();
                for (name, value) in metadata.filter(|(name, _)| !is_unowned(name)) {
                    collect(value, &mut vec![key.clone(), name.clone()], &mut found);
                }
            }
            _ => collect(value, &mut vec![key.clone()], &mut found),
        }
    }
    found
}

fn is_unowned(name: &str) -> bool {
    UNOWNED_METADATA.contains(&name)
}

fn collect<'a>(value: &'a Value, path: &mut Path, into: &mut BTreeMap<Path, &'a Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                path.push(key.clone());
                collect(value, path, into);
                path.pop();
            }
        }
        _ => {
            into.insert(path.clone(), value);
        }
    }
}

/// After a creation, update or patch: changed fields belong to the manager that changed them.
pub(crate) fn after_update(old: &Value, new: &mut Value, request: &Request, now: Timestamp) {
    let mut all = owners(old);
    let (before, after) = (leaves(old), leaves(new));
    let changed: BTreeSet<Path> = after
        .iter()
        .filter(|(path, value)| before.get(*path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    let removed = before.keys().any(|path| !after.contains_key(path));
    if !changed.is_empty() || removed {
        if !all.iter().any(|owner| owner.is(request, false)) {
            all.push(Owner::new(request, false));
        }
        for owner in &mut all {
            owner.fields.retain(|path| after.contains_key(path) && !changed.contains(path));
            if owner.is(request, false) {
                owner.fields.extend(changed.iter().cloned());
                owner.time = now.rfc3339();
            }
        }
    }
    write_owners(new, &all);
}

/// `old` after the manager of `request` has applied its fields.
pub(crate) fn apply(
    old: &Value,
    wanted: &Value,
    request: &Request,
    now: Timestamp,
) -> Result<Value, Status> {
    let mut all = owners(old);
    let (before, mine) = (leaves(old), leaves(wanted));
    let conflicting: BTreeSet<&Path> = mine
        .iter()
        .filter(|(path, value)| before.get(*path) != Some(value))
        .map(|it| it.0)
        .collect();
    let mut conflicts = Vec::new();
    for owner in all.iter_mut().filter(|owner| !owner.is(request, true)) {
        for path in &conflicting {
            if owner.fields.contains(*path) {
                conflicts.push((owner.printed(), format!(".{}", path.join("."))));
            }
        }
        if request.query.force {
            owner.fields.retain(|path| !conflicting.contains(path));
        }
    }
    if !conflicts.is_empty() && !request.query.force {
        return Err(Status::apply_conflict(&conflicts));
    }
    if !all.iter().any(|owner| owner.is(request, true)) {
        all.push(Owner::new(request, true));
    }
    let mut new = old.clone();
    let elsewhere: BTreeSet<Path> = all
        .iter()
        .filter(|owner| !owner.is(request, true))
        .flat_map(|owner| owner.fields.iter().cloned())
        .collect();
    for owner in all.iter_mut().filter(|owner| owner.is(request, true)) {
        for path in owner.fields.iter().filter(|path| !mine.contains_key(*path)) {
            if !elsewhere.contains(path) {
                remove(&mut new, path);
            }
        }
        let fields: BTreeSet<Path> = mine.keys().cloned().collect();
        if owner.fields != fields || !conflicting.is_empty() {
            owner.time = now.rfc3339();
        }
        owner.fields = fields;
    }
    merge(&mut new, wanted);
    write_owners(&mut new, &all);
    Ok(new)
}

/// Removes a field, and the objects around it that become empty.
fn remove(object: &mut Value, path: &[String]) {
    let (Some((key, rest)), Value::Object(fields)) = (path.split_first(), object) else { return };
    if rest.is_empty() {
        fields.shift_remove(key);
        return;
    }
    if let Some(child) = fields.get_mut(key) {
        remove(child, rest);
        if child.as_object().is_some_and(Map::is_empty) {
            fields.shift_remove(key);
        }
    }
}
