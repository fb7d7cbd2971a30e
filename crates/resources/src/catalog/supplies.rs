//! Which objects satisfy the references of others, and what stays of an object that no longer does.
//!
//! A session does not end because its Secret or BFDProfile is deleted, nor is a route withdrawn
//! because its community's name is: the referenced object stays in force as it was. Knows no files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{AoKeyReference, BfdKeyReference, Kind, Object, ObjectName};

use super::needs::{Need, needs};
use super::version::Version;

/// Whether other objects refer to objects of this kind by name.
pub(super) fn is_supplier(kind: Kind) -> bool {
    matches!(kind, Kind::Secret | Kind::BfdProfile | Kind::Community)
}

/// Whether objects of this kind refer to others by name.
pub(super) fn is_supplied(kind: Kind) -> bool {
    matches!(kind, Kind::BgpPeer | Kind::BfdProfile | Kind::BgpAdvertisement)
}

/// The objects by the names under which they are referenced.
#[derive(Default)]
pub(super) struct Supplies {
    secrets: BTreeMap<ObjectName, Arc<Version>>,
    profiles: BTreeMap<String, Arc<Version>>,
    aliases: BTreeMap<String, Arc<Version>>,
}

impl Supplies {
    /// What these versions provide. Of several that provide the same, the first counts.
    pub(super) fn of<'a>(versions: impl Iterator<Item = &'a Arc<Version>>) -> Self {
        let mut supplies = Self::default();
        for version in versions {
            match &*version.object {
                Object::Secret(it) => {
                    supplies.secrets.insert(it.name.clone(), Arc::clone(version));
                }
                Object::BfdProfile(it) => {
                    let name = it.name.name.clone();
                    supplies.profiles.entry(name).or_insert_with(|| Arc::clone(version));
                }
                Object::Community(it) => {
                    for alias in it.aliases.keys() {
                        let entry = supplies.aliases.entry(alias.clone());
                        entry.or_insert_with(|| Arc::clone(version));
                    }
                }
                _ => {}
            }
        }
        supplies
    }

    /// The object that satisfies the reference.
    pub(super) fn supplier(&self, need: &Need<'_>) -> Option<&Arc<Version>> {
        match need {
            Need::Password(secret) => self.secrets.get(*secret).filter(|it| has_password(it)),
            Need::AoKey(_, reference) => {
                let has_key = |it: &&Arc<Version>| {
                    it.secret().is_some_and(|it| it.values.contains_key(&reference.key))
                };
                self.secrets.get(&reference.secret).filter(has_key)
            }
            Need::BfdKey(reference) => {
                let has_key = |it: &&Arc<Version>| {
                    let key = it.secret().and_then(|it| it.values.get(&reference.key));
                    key.is_some_and(|key| reference.with(key).is_some())
                };
                self.secrets.get(&reference.secret).filter(has_key)
            }
            Need::Profile(name) => self.profiles.get(*name),
            Need::Alias(alias) => self.aliases.get(*alias),
        }
    }
}

fn has_password(version: &Version) -> bool {
    version.secret().is_some_and(|it| it.password.is_some())
}

/// The references of some objects, to find which others must not be forgotten.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    secrets: BTreeSet<&'a ObjectName>,
    profiles: BTreeSet<&'a str>,
    aliases: BTreeSet<&'a str>,
}

impl<'a> Wanted<'a> {
    /// The references of these versions.
    pub(super) fn by(versions: impl Iterator<Item = &'a Version>) -> Self {
        let mut wanted = Self::default();
        for need in versions.flat_map(needs) {
            match need {
                Need::Password(secret) => wanted.secrets.insert(secret),
                Need::AoKey(_, reference) => wanted.secrets.insert(&reference.secret),
                Need::BfdKey(reference) => wanted.secrets.insert(&reference.secret),
                Need::Profile(name) => wanted.profiles.insert(name),
                Need::Alias(alias) => wanted.aliases.insert(alias),
            };
        }
        wanted
    }

    /// Whether `version` may satisfy one of them.
    pub(super) fn includes(&self, version: &Version) -> bool {
        match &*version.object {
            Object::Secret(it) => self.secrets.contains(&it.name),
            Object::BfdProfile(it) => self.profiles.contains(it.name.name.as_str()),
            Object::Community(it) => {
                it.aliases.keys().any(|alias| self.aliases.contains(alias.as_str()))
            }
            _ => false,
        }
    }
}

/// The current version of an object, with the referenced parts of its former version.
pub(super) fn united(current: &Version, former: &Version, need: &Need<'_>) -> Version {
    let object = match (&*current.object, &*former.object, need) {
        (Object::Secret(now), Object::Secret(before), Need::Password(_)) => {
            let mut secret = now.clone();
            secret.password.clone_from(&before.password);
            Object::Secret(secret)
        }
        (
            Object::Secret(now),
            Object::Secret(before),
            Need::AoKey(_, AoKeyReference { key, .. }),
        )
        | (
            Object::Secret(now),
            Object::Secret(before),
            Need::BfdKey(BfdKeyReference { key, .. }),
        ) => {
            let mut secret = now.clone();
            let value = before.values.get(key).cloned();
            secret.values.extend(value.map(|value| (key.clone(), value)));
            Object::Secret(secret)
        }
        (Object::Community(now), Object::Community(before), Need::Alias(alias)) => {
            let mut community = now.clone();
            let value = before.aliases.get(*alias).copied();
            community.aliases.extend(value.map(|value| ((*alias).to_owned(), value)));
            Object::Community(community)
        }
        (now, _, _) => now.clone(),
    };
    current.with(object)
}
