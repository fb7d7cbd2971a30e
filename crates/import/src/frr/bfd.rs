//! BFD profiles.
//!
//! Answers which BFDProfile a neighbor has. Knows no session.

use std::collections::BTreeMap;

use serde_json::json;

use super::lists::number;
use crate::object::{Fields, Names, Translated};

/// The profiles of the text, those that neighbors have without a name, and the names that they are given.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    written: BTreeMap<String, Fields>,
    /// What a neighbor refers to, and its object.
    used: BTreeMap<String, (String, Fields)>,
    names: Names,
}

impl Profiles {
    /// `profile NAME` in `bfd`.
    pub(super) fn open(&mut self, name: &str) {
        self.written.entry(name.to_owned()).or_default();
    }

    /// A line of a profile.
    pub(super) fn read(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(fields) = self.written.get_mut(name) else { return Ok(()) };
        let words: Vec<&str> = text.split(' ').collect();
        let (field, value) = match words.as_slice() {
            ["detect-multiplier", value] => ("detectMultiplier", json!(bounded(value, 2, 255)?)),
            ["receive-interval", value] => ("receiveInterval", json!(bounded(value, 10, 60_000)?)),
            ["transmit-interval", value] => {
                ("transmitInterval", json!(bounded(value, 10, 60_000)?))
            }
            ["echo-interval", value]
            | ["echo", "transmit-interval" | "receive-interval", value] => {
                ("echoInterval", json!(bounded(value, 10, 60_000)?))
            }
            ["minimum-ttl", value] => ("minimumTtl", json!(bounded(value, 1, 254)?)),
            ["echo-mode"] => ("echoMode", json!(true)),
            ["passive-mode"] => ("passiveMode", json!(true)),
            ["no", "echo-mode" | "passive-mode" | "shutdown"] => return Ok(()),
            ["log-session-changes"] => return Ok(()),
            _ => return Err("has no equal".to_owned()),
        };
        fields.set(field, value);
        Ok(())
    }

    /// The name of the BFDProfile of a neighbor that says `bfd` with these words, or names a profile.
    pub(super) fn of_neighbor(
        &mut self,
        profile: Option<&str>,
        words: &[&str],
    ) -> Result<String, String> {
        let (key, fields) = match (profile, words) {
            (Some(name), _) => {
                let fields = self.written.get(name).cloned();
                (
                    name.to_owned(),
                    fields.ok_or_else(|| format!("BFD profile {name} is not defined"))?,
                )
            }
            (None, []) => ("default".to_owned(), Fields::default()),
            (None, [multiplier, receive, transmit]) => {
                let mut fields = Fields::default();
                fields.set("detectMultiplier", json!(bounded(multiplier, 2, 255)?));
                fields.set("receiveInterval", json!(bounded(receive, 10, 60_000)?));
                fields.set("transmitInterval", json!(bounded(transmit, 10, 60_000)?));
                (format!("bfd-{multiplier}-{receive}-{transmit}"), fields)
            }
            _ => return Err("expected bfd [MULTIPLIER RECEIVE TRANSMIT]".to_owned()),
        };
        let names = &mut self.names;
        let (name, _) = self.used.entry(key.clone()).or_insert_with(|| (names.give(&key), fields));
        Ok(name.clone())
    }

    /// The objects of those that neighbors have.
    pub(super) fn objects(self) -> impl Iterator<Item = Translated> {
        let object = |(name, fields): (String, Fields)| {
            Translated::new("metallb.io/v1beta1", "BFDProfile", &name, fields)
        };
        self.used.into_values().map(object)
    }
}

fn bounded(word: &str, least: u32, most: u32) -> Result<u32, String> {
    let value: u32 = number(word)?;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value} is not in the range of a BFDProfile: {least} to {most}")),
    }
}
