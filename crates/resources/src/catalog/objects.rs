//! Objects of an API server: each is a file of its own, with the same rules between them.
//!
//! Answers what came, what went, and which Secrets somebody has to get. What an earlier run had in
//! force is in force at once: the API server may be away. Knows no connection.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_model::{ObjectKey, ObjectName};
use serde_json::Value as Json;

use super::file::FileState;
use super::needs::secrets_named;
use super::{Catalog, Held};
use crate::finding::Finding;

/// Where an object stands: nobody else has a file of this name.
fn place(key: &ObjectKey) -> Arc<str> {
    format!("{}/{}", key.kind, key.name).into()
}

impl Catalog {
    /// The API server has `value` under `key` now. Answers whether [`Self::resolve`] may come to
    /// something else than before: most writes change nothing that is asked for.
    pub fn object_read(&mut self, key: &ObjectKey, value: &Json) -> bool {
        let place = place(key);
        let mut state = FileState::of_object(&place, value, self.backend);
        let known = self.files.get(&place);
        let is_other = known.is_none_or(|known| !state.take_over(known));
        self.files.insert(place, state);
        is_other
    }

    /// The API server has nothing under `key` any more. Answers as [`Self::object_read`].
    pub fn object_gone(&mut self, key: &ObjectKey) -> bool {
        let place = place(key);
        let is_known = self.files.contains_key(&place);
        self.file_gone(&place);
        is_known
    }

    /// `value` was in force in an earlier run, and is as long as nobody says otherwise.
    pub fn object_restored(&mut self, key: &ObjectKey, value: &Json) {
        let place = place(key);
        let state = FileState::of_object(&place, value, self.backend);
        for version in state.entries.iter().filter_map(|entry| entry.version.as_ref()) {
            let held = Held { version: Arc::clone(version), is_restored: false };
            self.held.insert(version.key.clone(), held);
        }
        self.files.insert(place, state);
    }

    /// What would be wrong or odd with an object if the API server had `value` under `key`. Changes
    /// nothing.
    pub fn findings_if(&self, key: &ObjectKey, value: &Json) -> Vec<Finding> {
        let place = place(key);
        let mut other = self.clone();
        other.object_read(key, value);
        let mut findings = other.resolve_shared().findings;
        findings.retain(|finding| *finding.file == *place);
        findings
    }

    /// The Secrets that the peers and BFD profiles name, those in force and those that wait to be.
    pub fn secrets_named(&self) -> BTreeSet<ObjectName> {
        let entries = self.files.values().flat_map(|file| &file.entries);
        let current = entries.filter_map(|entry| entry.version.as_deref());
        let held = self.held.values().map(|held| &*held.version);
        current.chain(held).flat_map(secrets_named).cloned().collect()
    }

    /// The objects whose latest version names one of these Secrets.
    pub fn naming(&self, secrets: &BTreeSet<ObjectName>) -> BTreeSet<ObjectKey> {
        let entries = self.files.values().flat_map(|file| &file.entries);
        let versions = entries.filter_map(|entry| entry.version.as_deref());
        let naming = versions.filter(|it| secrets_named(it).any(|name| secrets.contains(name)));
        naming.map(|version| version.key.clone()).collect()
    }
}

/// When the spec of an object was changed last, as the API server has it: by the newest of those
/// who own some of it, else when it was made. Of such texts the later one is the greater one.
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
