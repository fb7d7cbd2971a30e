//! Objects of an API server: each is a file of its own, under the same rules.
//!
//! Answers which objects were added, changed or deleted, and which Secrets must be fetched. Objects
//! restored from an earlier run are in force at once: the API server may be unreachable. Knows no
//! connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{ObjectKey, ObjectName};
use serde_json::Value as Json;

use super::Catalog;
use super::file::FileState;
use super::needs::keys_named;
use crate::finding::Finding;

/// The file name of an object; no other object has it.
fn place(key: &ObjectKey) -> Arc<str> {
    format!("{}/{}", key.kind, key.name).into()
}

impl Catalog {
    /// The API server has `value` under `key` now. Returns whether [`Self::resolve`] may return
    /// something different: most writes change no field that is read.
    pub fn object_read(&mut self, key: &ObjectKey, value: &Json) -> bool {
        let place = place(key);
        let mut state = FileState::of_object(&place, value, self.backend);
        let known = self.files.get(&place);
        let is_other = known.is_none_or(|known| !state.take_over(known));
        self.replace_file(place, Some(state));
        is_other
    }

    /// The API server has no object under `key` any more. Returns the same as [`Self::object_read`].
    pub fn object_gone(&mut self, key: &ObjectKey) -> bool {
        let place = place(key);
        let is_known = self.files.contains_key(&place);
        self.file_gone(&place);
        is_known
    }

    /// `value` was in force in an earlier run, and stays until the API server reports otherwise.
    pub fn object_restored(&mut self, key: &ObjectKey, value: &Json) {
        let place = place(key);
        let state = FileState::of_object(&place, value, self.backend);
        for version in state.entries.iter().filter_map(|entry| entry.version.as_ref()) {
            self.held.insert(Arc::clone(&version.key), Arc::clone(version));
        }
        self.replace_file(place, Some(state));
    }

    /// The findings of an object if the API server had `value` under `key`. Changes
    /// nothing.
    pub fn findings_if(&self, key: &ObjectKey, value: &Json) -> Vec<Finding> {
        let place = place(key);
        let mut other = self.clone();
        other.object_read(key, value);
        let mut findings = other.resolve_changes().findings;
        findings.retain(|finding| *finding.file == *place);
        findings
    }

    /// The Secrets named by peers and BFD profiles, in force or not yet.
    pub fn secrets_named(&self) -> BTreeSet<ObjectName> {
        self.keys_named().into_keys().collect()
    }

    /// The same with the keys that are named of each.
    pub fn keys_named(&self) -> BTreeMap<ObjectName, BTreeSet<String>> {
        let entries = self.files.values().flat_map(|file| &file.entries);
        let current = entries.filter_map(|entry| entry.version.as_deref());
        let held = self.held.values().map(|held| &**held);
        let mut named: BTreeMap<ObjectName, BTreeSet<String>> = BTreeMap::new();
        for (secret, key) in current.chain(held).flat_map(keys_named) {
            named.entry(secret.clone()).or_default().insert(key.to_owned());
        }
        named
    }

    /// The objects that name one of these Secrets in their latest version.
    pub fn naming(&self, secrets: &BTreeSet<ObjectName>) -> BTreeSet<ObjectKey> {
        let entries = self.files.values().flat_map(|file| &file.entries);
        let versions = entries.filter_map(|entry| entry.version.as_deref());
        let naming =
            versions.filter(|it| keys_named(it).any(|(secret, _)| secrets.contains(secret)));
        naming.map(|version| ObjectKey::clone(&version.key)).collect()
    }
}

/// When the spec of an object was changed last, according to the API server: by the newest manager
/// of any of its fields, else at creation. Such texts sort by time.
pub(super) fn changed_at(value: &Json) -> Option<&str> {
    let metadata = value.get("metadata")?;
    let entries = metadata.get("managedFields").and_then(Json::as_array);
    let owns_spec = |entry: &&Json| {
        let is_of_status = entry.get("subresource").is_some_and(|it| it != "");
        !is_of_status && entry.get("fieldsV1").is_some_and(|it| it.get("f:spec").is_some())
    };
    let owners = entries.into_iter().flatten().filter(owns_spec);
    let newest = owners.filter_map(|entry| entry.get("time")?.as_str()).max();
    newest.or_else(|| metadata.get("creationTimestamp")?.as_str())
}
