//! Passwords of sessions, which Secrets hold.
//!
//! Answers the Secret of Fairway's form for a reference of the source. A Secret that is not in the text gets an object
//! with a placeholder, with which no session comes up. Knows no peer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field::{Section, SourceObject};
use crate::object::{Names, Translated};

/// What stands for a password that the text does not have.
const PLACEHOLDER: &str = "PUT-THE-PASSWORD-HERE";

/// The Secrets of the text, and those that were written.
pub(super) struct Secrets {
    /// Type and content by name.
    found: BTreeMap<String, Found>,
    names: Names,
    /// The names of those that were written, by name and key of the source.
    written: BTreeMap<(String, String), String>,
    /// The same of passwords in the source itself, by peer and password.
    written_plain: BTreeMap<(String, String), String>,
}

struct Found {
    is_basic_auth: bool,
    plain: BTreeMap<String, String>,
    base64: BTreeMap<String, String>,
}

impl Secrets {
    pub(super) fn of(objects: &[SourceObject]) -> Self {
        let secrets = objects.iter().filter(|it| it.group().is_empty() && it.kind() == "Secret");
        let found = secrets.map(|object| {
            let root = object.root();
            let texts = |key: &str| -> BTreeMap<String, String> {
                let fields = root.get(key).and_then(Value::as_object).into_iter().flatten();
                let text = |(key, value): (&String, &Value)| {
                    Some((key.clone(), value.as_str()?.to_owned()))
                };
                fields.filter_map(text).collect()
            };
            let is_basic_auth = root.text("type").as_deref() == Some("kubernetes.io/basic-auth");
            let (plain, base64) = (texts("stringData"), texts("data"));
            (object.name().to_owned(), Found { is_basic_auth, plain, base64 })
        });
        let (names, written, written_plain) = Default::default();
        Self { found: found.collect(), names, written, written_plain }
    }

    /// The name of the Secret that holds what the source has in the Secret `name` under `key`; `field` of `section` refers
    /// to it.
    pub(super) fn password(
        &mut self,
        section: &Section<'_>,
        field: &str,
        (name, key): (&str, &str),
        objects: &mut Vec<Translated>,
    ) -> String {
        let written = (name.to_owned(), key.to_owned());
        let found = self.found.get(name);
        let plain = found.and_then(|it| it.plain.get(key));
        let base64 = found.and_then(|it| it.base64.get(key));
        if plain.is_none() && base64.is_none() {
            section.untranslated(
                field,
                format!(
                    "the text has no Secret {name} with the key {key}: put the password into the Secret of the result, \
                     which has a placeholder"
                ),
            );
        } else if !found.is_some_and(|it| it.is_basic_auth) || key != "password" {
            section.note(
                field,
                "Fairway's Secret is of type kubernetes.io/basic-auth and has the key password, in the namespace of the \
                 BGPPeers: the result has it",
            );
        }
        if let Some(name) = self.written.get(&written) {
            return name.clone();
        }
        let given = self.names.give(name);
        let object = match (plain, base64) {
            (Some(password), _) => Translated::password(&given, password),
            (None, Some(password)) => Translated::encoded_password(&given, password),
            (None, None) => Translated::password(&given, PLACEHOLDER).comment(
                "The password is not known. Leave this out where the Secret is there already.",
            ),
        };
        objects.push(object);
        self.written.insert(written, given.clone());
        given
    }

    /// A Secret for a password that is known.
    pub(super) fn plain(
        &mut self,
        name: &str,
        password: &str,
        objects: &mut Vec<Translated>,
    ) -> String {
        let written = (name.to_owned(), password.to_owned());
        if let Some(name) = self.written_plain.get(&written) {
            return name.clone();
        }
        let given = self.names.give(name);
        objects.push(Translated::password(&given, password));
        self.written_plain.insert(written, given.clone());
        given
    }
}
