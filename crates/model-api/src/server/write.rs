//! Create, update, patch, apply, delete: their preconditions, and what the server itself adds.

use super::ApiServer;
use crate::definition::{FirstStatus, ResourceDefinition};
use crate::ownership;
use crate::patch::merge;
use crate::request::{Request, Resource, Response, Verb};
use crate::status::Status;
use crate::storage::Key;
use crate::time::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Metadata that the server writes, and that no update changes.
const FIXED_METADATA: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "managedFields",
];

impl ApiServer {
    pub(crate) fn create(
        &mut self,
        resource: usize,
        now: Timestamp,
        request: &Request,
    ) -> Result<Response, Status> {
        let definition = self.definition(resource)?;
        let mut object = named_body(&definition, request, request.body.clone())?;
        if text(&object, "resourceVersion").is_some_and(|it| !it.is_empty()) {
            return Err(Status::version_on_create());
        }
        let name = self.name_for(&definition, &object)?;
        self.check_namespace(&definition, &request.namespace)?;
        let key = Key::new(resource, &request.namespace, &name);
        if self.storage.get(&key).is_some() {
            return Err(Status::already_exists(&request.resource, &name));
        }
        let generate_name = text(&object, "generateName").map(str::to_owned);
        let uid = self.next_uid();
        set(&mut object, "name", json!(name));
        FIXED_METADATA.iter().for_each(|field| unset(&mut object, field));
        if let Some(generate_name) = generate_name {
            set(&mut object, "generateName", json!(generate_name));
        }
        set(&mut object, "uid", json!(uid));
        set(&mut object, "creationTimestamp", json!(now.rfc3339()));
        if definition.has_generation {
            set(&mut object, "generation", json!(1));
        }
        match &definition.first_status {
            FirstStatus::Kept => {}
            FirstStatus::Dropped => set_top(&mut object, "status", None),
            FirstStatus::Set(status) => set_top(&mut object, "status", Some(status.clone())),
        }
        if self.settings.managed_fields {
            if request.verb == Verb::Apply {
                object = ownership::apply(&skeleton(&object), &object, request, now)?;
            } else {
                ownership::after_update(&Value::Null, &mut object, request, now);
            }
        }
        let stored = self.storage.put(key, object);
        Ok(Response { code: 201, body: Value::clone(&stored) })
    }

    /// Update, merge patch and apply: each yields the new object, and the rest is the same.
    pub(crate) fn change(
        &mut self,
        resource: usize,
        now: Timestamp,
        request: &Request,
    ) -> Result<Response, Status> {
        let definition = self.definition(resource)?;
        if request.status && !definition.has_status {
            return Err(Status::unknown_resource());
        }
        let key = Key::new(resource, &request.namespace, &request.name);
        let Some(old) = self.storage.get(&key).cloned() else {
            return self.change_of_nothing(resource, &definition, now, request);
        };
        let new = match request.verb {
            Verb::MergePatch => {
                let mut patched = Value::clone(&old);
                merge(&mut patched, &request.body);
                named_body(&definition, request, patched)?
            }
            Verb::Apply => {
                let wanted = named_body(&definition, request, request.body.clone())?;
                if text(&wanted, "managedFields").is_some() {
                    return Err(Status::bad_request("metadata.managedFields must be nil"));
                }
                let wanted = written_part(&definition, request, wanted);
                ownership::apply(&old, &wanted, request, now)?
            }
            _ => named_body(&definition, request, request.body.clone())?,
        };
        check_preconditions(&definition, request, &old, &new)?;
        let mut new = joined(&definition, request, &old, new);
        check_finalizers(&definition, request, &old, &new)?;
        if definition.has_generation && differs_in_spec(&definition, &old, &new) {
            let generation = old.pointer("/metadata/generation").and_then(Value::as_u64);
            let generation = generation.unwrap_or(0).saturating_add(1);
            set(&mut new, "generation", json!(generation));
        }
        if self.settings.managed_fields && request.verb != Verb::Apply {
            ownership::after_update(&old, &mut new, request, now);
        }
        let leaving = text(&new, "deletionTimestamp").is_some() && !has_finalizers(&new);
        if leaving {
            // The last finalizer is removed, and with it the object; the answer has its old version.
            self.storage.remove(&key);
            return Ok(Response { code: 200, body: new });
        }
        if *old == new || self.settings.managed_fields && same_but_times(&old, &new) {
            return Ok(Response { code: 200, body: Value::clone(&old) });
        }
        let stored = self.storage.put(key, new);
        Ok(Response { code: 200, body: Value::clone(&stored) })
    }

    fn change_of_nothing(
        &mut self,
        resource: usize,
        definition: &ResourceDefinition,
        now: Timestamp,
        request: &Request,
    ) -> Result<Response, Status> {
        let versioned = text(&request.body, "resourceVersion").is_some_and(|it| !it.is_empty());
        let creates = match request.verb {
            Verb::Apply => text(&request.body, "uid").is_none() && !request.status,
            Verb::Update => definition.create_on_update && !request.status,
            _ => false,
        };
        if !creates || versioned {
            return Err(Status::not_found(&request.resource, &request.name));
        }
        let mut request = request.clone();
        request.body = named_body(definition, &request, request.body.clone())?;
        self.create(resource, now, &request)
    }

    pub(crate) fn delete(
        &mut self,
        resource: usize,
        now: Timestamp,
        request: &Request,
    ) -> Result<Response, Status> {
        let definition = self.definition(resource)?;
        let key = Key::new(resource, &request.namespace, &request.name);
        let old = self.storage.get(&key).cloned();
        let old = old.ok_or_else(|| Status::not_found(&request.resource, &request.name))?;
        let preconditions = request.body.get("preconditions");
        for (field, name, fate) in [
            ("uid", "UID", "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "modified"),
        ] {
            let wanted = preconditions.and_then(|it| it.get(field)).and_then(Value::as_str);
            let actual = text(&old, field).unwrap_or_default();
            if let Some(wanted) = wanted.filter(|wanted| *wanted != actual) {
                let why = format!(
                    "the {name} in the precondition ({wanted}) does not match the {name} in record \
                     ({actual}). The object might have been {fate}"
                );
                let mut subject = definition.resource.clone();
                subject.plural.clone_from(&definition.kind);
                return Err(Status::conflict(&subject, &request.name, &why));
            }
        }
        if has_finalizers(&old) {
            if text(&old, "deletionTimestamp").is_some() {
                return Ok(Response { code: 200, body: Value::clone(&old) });
            }
            let mut new = Value::clone(&old);
            set(&mut new, "deletionGracePeriodSeconds", json!(0));
            set(&mut new, "deletionTimestamp", json!(now.rfc3339()));
            if let Some(generation) = old.pointer("/metadata/generation").and_then(Value::as_u64) {
                set(&mut new, "generation", json!(generation.saturating_add(1)));
            }
            let stored = self.storage.put(key, new);
            return Ok(Response { code: 200, body: Value::clone(&stored) });
        }
        self.storage.remove(&key);
        Ok(Response { code: 200, body: success(&request.resource, &old) })
    }

    fn definition(&self, resource: usize) -> Result<Arc<ResourceDefinition>, Status> {
        self.definitions.get(resource).cloned().ok_or_else(Status::unknown_resource)
    }

    fn check_namespace(
        &self,
        definition: &ResourceDefinition,
        namespace: &str,
    ) -> Result<(), Status> {
        let namespaces = Resource::core("namespaces");
        let there = |resource| self.storage.get(&Key::new(resource, "", namespace)).is_some();
        match self.resource(&namespaces) {
            Some(resource) if definition.namespaced && !there(resource) => {
                Err(Status::not_found(&namespaces, namespace))
            }
            _ => Ok(()),
        }
    }

    fn name_for(
        &mut self,
        definition: &ResourceDefinition,
        object: &Value,
    ) -> Result<String, Status> {
        if let Some(name) = text(object, "name").filter(|name| !name.is_empty()) {
            return Ok(name.to_owned());
        }
        let prefix = text(object, "generateName").filter(|prefix| !prefix.is_empty());
        let prefix = prefix.ok_or_else(|| {
            let why = "Required value: name or generateName is required";
            let group = &definition.resource.group;
            Status::invalid(group, &definition.kind, "", "metadata.name", why)
        })?;
        self.identities += 1;
        Ok(format!("{prefix}{:05}", self.identities))
    }

    fn next_uid(&mut self) -> String {
        self.identities += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.identities)
    }
}

/// The fields of `object.metadata`, which every object has at this point.
fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = metadata(object) {
        fields.insert(field.to_owned(), value);
    }
}

fn unset(object: &mut Value, field: &str) {
    if let Some(fields) = metadata(object) {
        fields.shift_remove(field);
    }
}

fn set_top(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(fields) = object.as_object_mut() {
        match value {
            Some(value) => fields.insert(field.to_owned(), value),
            None => fields.shift_remove(field),
        };
    }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_str)
}

fn has_finalizers(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// A body that is an object of this kind, with the namespace and name of the URL.
fn named_body(
    definition: &ResourceDefinition,
    request: &Request,
    mut body: Value,
) -> Result<Value, Status> {
    if !body.is_object() {
        return Err(Status::bad_request("the body of the request was not an object"));
    }
    let api_version = definition.resource.api_version();
    for (field, expected) in [("apiVersion", &api_version), ("kind", &definition.kind)] {
        match body.get(field).and_then(Value::as_str) {
            Some(actual) if actual != expected => {
                return Err(Status::bad_request(&format!(
                    "{} in version \"{}\" cannot be handled as a {}: {field} is {actual}, not {expected}",
                    definition.kind, definition.resource.version, definition.kind
                )));
            }
            _ => {}
        }
    }
    set_top(&mut body, "apiVersion", Some(json!(api_version)));
    set_top(&mut body, "kind", Some(json!(definition.kind)));
    if let Some(namespace) = text(&body, "namespace").filter(|it| !it.is_empty())
        && namespace != request.namespace
    {
        let why =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    if let Some(name) = text(&body, "name").filter(|_| !request.name.is_empty())
        && name != request.name
    {
        let why = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            request.name
        );
        return Err(Status::bad_request(&why));
    }
    if !body.get("metadata").is_some_and(Value::is_object) {
        set_top(&mut body, "metadata", Some(json!({})));
    }
    if !request.name.is_empty() {
        set(&mut body, "name", json!(request.name));
    }
    if definition.namespaced {
        set(&mut body, "namespace", json!(request.namespace));
    } else if !request.namespace.is_empty() {
        return Err(Status::unknown_resource());
    }
    Ok(body)
}

/// The fields that name an object, and nothing else: the beginning of an apply that creates.
fn skeleton(object: &Value) -> Value {
    let mut fields = json!({});
    for name in ["name", "generateName", "namespace", "uid", "creationTimestamp", "generation"] {
        if let (Some(value), Some(fields)) =
            (object.pointer(&format!("/metadata/{name}")), fields.as_object_mut())
        {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind"), "metadata": fields})
}

/// The part of an apply that this (sub)resource writes.
fn written_part(definition: &ResourceDefinition, request: &Request, wanted: Value) -> Value {
    if !definition.has_status {
        return wanted;
    }
    let mut part = wanted;
    if let Some(fields) = part.as_object_mut() {
        fields.retain(|key, _| match key.as_str() {
            "apiVersion" | "kind" | "metadata" => true,
            "status" => request.status,
            _ => !request.status,
        });
    }
    if let (true, true, Some(fields)) = (request.status, definition.custom, metadata(&mut part)) {
        let keeps = ["name", "namespace", "uid", "resourceVersion"];
        fields.retain(|key, _| keeps.contains(&key.as_str()));
    }
    part
}

fn check_preconditions(
    definition: &ResourceDefinition,
    request: &Request,
    old: &Value,
    new: &Value,
) -> Result<(), Status> {
    let (old_uid, new_uid) = (text(old, "uid"), text(new, "uid").filter(|uid| !uid.is_empty()));
    if let (Some(actual), Some(wanted)) = (old_uid, new_uid)
        && actual != wanted
    {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}",
            storage_path(&request.resource, &request.namespace, &request.name)
        );
        return Err(Status::conflict(&request.resource, &request.name, &why));
    }
    match text(new, "resourceVersion").filter(|version| !version.is_empty()) {
        None | Some("0") if definition.unconditional_update => Ok(()),
        None | Some("0") => Err(Status::invalid(
            &request.resource.group,
            &request.resource.plural,
            &request.name,
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        )),
        version if version == text(old, "resourceVersion") => Ok(()),
        Some(_) => Err(Status::stale(&request.resource, &request.name)),
    }
}

/// The path in etcd, which some messages contain.
fn storage_path(resource: &Resource, namespace: &str, name: &str) -> String {
    let place = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => "services/specs".to_owned(),
        ("", plural) => plural.to_owned(),
        ("coordination.k8s.io" | "discovery.k8s.io", plural) => plural.to_owned(),
        (group, plural) => format!("{group}/{plural}"),
    };
    format!("/registry/{place}/{namespace}/{name}")
}

/// The object to store: the part of `new` that this (sub)resource writes, the rest from `old`.
fn joined(definition: &ResourceDefinition, request: &Request, old: &Value, new: Value) -> Value {
    // An apply has determined the owners already.
    let applies = request.verb == Verb::Apply;
    let mut result = new;
    if request.status {
        let new = std::mem::replace(&mut result, old.clone());
        if !definition.custom {
            set_top(&mut result, "metadata", new.get("metadata").cloned());
        } else if let (true, Some(managed)) = (applies, new.pointer("/metadata/managedFields")) {
            set(&mut result, "managedFields", managed.clone());
        }
        set_top(&mut result, "status", new.get("status").cloned());
    } else if definition.has_status {
        set_top(&mut result, "status", old.get("status").cloned());
    }
    let fixed = FIXED_METADATA.iter().chain(&["resourceVersion"]);
    for field in fixed.filter(|field| !(applies && **field == "managedFields")) {
        match old.get("metadata").and_then(|metadata| metadata.get(field)) {
            Some(value) => set(&mut result, field, value.clone()),
            None => unset(&mut result, field),
        }
    }
    result
}

fn check_finalizers(
    definition: &ResourceDefinition,
    request: &Request,
    old: &Value,
    new: &Value,
) -> Result<(), Status> {
    let all = |object: &Value| -> Vec<Value> {
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        finalizers.cloned().unwrap_or_default()
    };
    let before = all(old);
    let added: Vec<String> = all(new)
        .iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(Value::to_string)
        .collect();
    if !added.is_empty() && text(old, "deletionTimestamp").is_some() {
        let why = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new \
             finalizers []string{{{}}}",
            added.join(", ")
        );
        let (group, kind) = (&definition.resource.group, &definition.kind);
        return Err(Status::invalid(group, kind, &request.name, "metadata.finalizers", &why));
    }
    Ok(())
}

fn differs_in_spec(definition: &ResourceDefinition, old: &Value, new: &Value) -> bool {
    let spec = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        let counts = |key: &str| key != "metadata" && !(definition.has_status && key == "status");
        let mut fields: Vec<_> = fields
            .filter(|(key, _)| counts(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        fields
    };
    spec(old) != spec(new)
}

/// Whether only the times of managers differ: then nothing is written.
fn same_but_times(old: &Value, new: &Value) -> bool {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.shift_remove("time");
        }
        object
    };
    timeless(old) == timeless(new)
}

/// The answer to a deletion.
fn success(resource: &Resource, object: &Arc<Value>) -> Value {
    let mut details = json!({
        "name": text(object, "name"), "kind": resource.plural, "uid": text(object, "uid"),
    });
    if !resource.group.is_empty() {
        set_top(&mut details, "group", Some(json!(resource.group)));
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}
