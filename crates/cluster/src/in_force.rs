//! Which version of each object is in force, and the index of their facts.
//!
//! Objects that configure Fairway go through the catalog, as files do: the rules between them apply, and of a
//! faulty one the last good version stays. Services, EndpointSlices and Namespaces depend on no others and
//! there are many, so each is put into the index by itself, at a cost that does not grow with their number.
//! Knows no API server; the belief of a process owns one, and the simulation compares it with another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{Changes, ClusterIndex, Kind, ObjectChange, ObjectKey, ObjectName};
use fairway_resources::{self as resources, BackendKind, Catalog, Finding, FindingObject};
use serde_json::Value;

use super::object_text::ObjectText;
use super::reflector::name_of;

/// Objects as received from an API server, by kind and name.
type Texts = BTreeMap<ObjectKey, ObjectText>;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct InForce {
    catalog: Catalog,
    backend: BackendKind,
    /// Objects that came into force or went, for a reader who has an index of its own.
    changed: Option<Vec<ObjectChange>>,
    findings: Vec<Finding>,
    stale: BTreeSet<ObjectKey>,
    /// The latest versions of the kinds that the catalog settles.
    latest: Texts,
    /// The versions in force of those kinds.
    settled: Texts,
    /// The versions in force of the other kinds.
    direct: Texts,
    /// The faults of the latest versions of the latter; most have none.
    faults: BTreeMap<ObjectKey, Vec<Finding>>,
    index: Arc<ClusterIndex>,
    /// The catalog has changed since it was last resolved.
    is_unsettled: bool,
    /// The versions in force changed since the last call of `take_is_other`.
    is_other: bool,
}

/// Whether no rule relates this kind to another object.
fn is_direct(kind: Kind) -> bool {
    matches!(kind, Kind::Service | Kind::EndpointSlice | Kind::Namespace)
}

impl InForce {
    /// Empty. What `backend` does not support is a fault.
    pub fn for_backend(backend: BackendKind) -> Self {
        Self { catalog: Catalog::for_backend(backend), backend, ..Self::default() }
    }

    /// For the service proxy, which has an index of its own: hands out each object that changes.
    pub fn for_proxy() -> Self {
        Self { changed: Some(Vec::new()), ..Self::for_backend(BackendKind::Proxy) }
    }

    /// The objects that changed since the last call; none without [`Self::for_proxy`].
    pub fn take_changed(&mut self) -> Vec<ObjectChange> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Continues from the objects of an earlier run.
    pub fn restore(&mut self, objects: impl IntoIterator<Item = ObjectText>) -> Changes {
        let mut changes = Changes::default();
        for text in objects {
            let Some(key) = text.key() else { continue };
            if is_direct(key.kind) {
                changes.absorb(self.put(key, text));
            } else {
                self.catalog.object_restored(&key, &text.value());
                self.latest.insert(key, text);
                self.is_unsettled = true;
            }
        }
        changes.absorb(self.settle());
        changes
    }

    /// An object is new, or has a new version. Returns what changed by that alone.
    pub fn read(&mut self, kind: Kind, text: &ObjectText) -> Changes {
        let key = ObjectKey { kind, name: text.name() };
        if is_direct(kind) {
            return self.put(key, text.clone());
        }
        self.is_unsettled |= self.catalog.object_read(&key, &text.value());
        self.latest.insert(key, text.clone());
        Changes::default()
    }

    /// An object was deleted. Returns what changed by that alone.
    pub fn gone(&mut self, key: &ObjectKey) -> Changes {
        if is_direct(key.kind) {
            self.faults.remove(key);
            return self.forget(key);
        }
        self.is_unsettled |= self.catalog.object_gone(key);
        self.latest.remove(key);
        Changes::default()
    }

    /// Applies the rules between all objects; to be called after each batch of changes.
    pub fn settle(&mut self) -> Changes {
        if !std::mem::take(&mut self.is_unsettled) {
            return Changes::default();
        }
        let resolution = self.catalog.resolve_changes();
        if let Some(changed) = &mut self.changed {
            changed.extend(resolution.objects.iter().cloned());
        }
        let index = Arc::make_mut(&mut self.index);
        let mut changes = index.follow(resolution.objects);
        let pools = resolution.left_out.into_iter().filter(|key| key.kind == Kind::IpAddressPool);
        changes.absorb(index.set_unknown_pools(pools.map(|key| key.name).collect()));
        self.stale = resolution.stale.into_iter().map(|it| it.key).collect();
        self.findings = resolution.findings.into_iter().map(without_place).collect();
        let texts = self.catalog.keys().filter_map(|key| {
            let earlier = self.settled.get(key).filter(|_| self.stale.contains(key));
            let text = earlier.or_else(|| self.latest.get(key))?.clone();
            Some((key.clone(), text))
        });
        let settled = texts.collect();
        self.is_other |= self.settled != settled;
        self.settled = settled;
        changes
    }

    /// Whether [`Self::settle`] has something to do.
    pub fn is_unsettled(&self) -> bool {
        self.is_unsettled
    }

    /// The index.
    pub fn index(&self) -> &Arc<ClusterIndex> {
        &self.index
    }

    /// The objects that the index was built from.
    pub fn texts(&self) -> impl Iterator<Item = &ObjectText> {
        self.settled.values().chain(self.direct.values())
    }

    /// Whether [`Self::texts`] has changed since the last call.
    pub fn take_is_other(&mut self) -> bool {
        std::mem::take(&mut self.is_other)
    }

    /// Whether this version of a Service, EndpointSlice or Namespace is in force.
    pub fn is_version(&self, key: &ObjectKey, object: &ObjectText) -> bool {
        self.direct.get(key) == Some(object)
    }

    /// The keys of all known objects.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.latest.keys().chain(self.direct.keys())
    }

    /// Faults and warnings of the objects that configure Fairway: without files and lines.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The faults and warnings of an object of a kind that configures Fairway, if this were its latest
    /// version. Changes nothing.
    pub fn findings_if(&self, kind: Kind, value: &Value) -> Vec<Finding> {
        let key = ObjectKey { kind, name: name_of(value) };
        self.catalog.findings_if(&key, value).into_iter().map(without_place).collect()
    }

    /// The objects with an earlier version in force, because the last one is faulty.
    pub fn stale(&self) -> &BTreeSet<ObjectKey> {
        &self.stale
    }

    /// The faults of the latest version of a Service, EndpointSlice or Namespace.
    pub fn faults(&self, key: &ObjectKey) -> &[Finding] {
        self.faults.get(key).map_or(&[], Vec::as_slice)
    }

    /// The faults of the latest versions of all of them.
    pub fn all_faults(&self) -> impl Iterator<Item = &Finding> {
        self.faults.values().flatten().filter(|it| it.is_fault())
    }

    /// The Secrets that are referenced.
    pub fn secrets_named(&self) -> BTreeSet<ObjectName> {
        self.catalog.secrets_named()
    }

    /// The same with the keys that are named of each.
    pub fn keys_named(&self) -> BTreeMap<ObjectName, BTreeSet<String>> {
        self.catalog.keys_named()
    }

    /// The objects that refer to one of these Secrets, as findings name them.
    pub fn naming(&self, secrets: &BTreeSet<ObjectName>) -> BTreeSet<FindingObject> {
        let keys = self.catalog.naming(secrets).into_iter();
        keys.map(|key| FindingObject { kind: key.kind.to_string(), name: key.name.name.clone() })
            .collect()
    }

    fn put(&mut self, key: ObjectKey, text: ObjectText) -> Changes {
        let parsed = resources::parse_text_for(self.backend, text.as_str());
        if parsed.is_broken() {
            self.faults.insert(key, parsed.findings);
            return Changes::default();
        }
        self.faults.remove(&key);
        match parsed.object {
            Some(object) => {
                self.direct.insert(key.clone(), text);
                self.is_other = true;
                if let Some(changed) = &mut self.changed {
                    changed.push((Arc::new(key), Some(Arc::new(object))));
                    return Changes::default();
                }
                Arc::make_mut(&mut self.index).apply(object)
            }
            None => self.forget(&key),
        }
    }

    fn forget(&mut self, key: &ObjectKey) -> Changes {
        if self.direct.remove(key).is_none() {
            return Changes::default();
        }
        self.is_other = true;
        if let Some(changed) = &mut self.changed {
            changed.push((Arc::new(key.clone()), None));
            return Changes::default();
        }
        Arc::make_mut(&mut self.index).delete(key)
    }
}

/// An object of an API server is identified by kind and name alone.
fn without_place(finding: Finding) -> Finding {
    Finding { file: String::new(), line: None, ..finding }
}
