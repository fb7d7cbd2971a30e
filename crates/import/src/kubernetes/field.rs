//! Objects of the source, field by field.
//!
//! Answers the value and the line of a field, and remembers which fields were asked for, so that none is dropped without
//! a word. Knows no kind; the modules of the projects read with it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fairway_resources::PlainDocument;
use serde_json::{Map, Value};

use crate::outcome::Outcome;

/// Fields of an object that have no effect on routing.
const WITHOUT_EFFECT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// An object of the text.
#[derive(Debug)]
pub(super) struct SourceObject {
    document: Rc<PlainDocument>,
    /// Where the object is in its document.
    pointer: String,
    /// Pointers of the fields that were asked for.
    read: RefCell<BTreeSet<String>>,
    /// Pointers of the fields of which no part is looked at any more.
    settled: RefCell<BTreeSet<String>>,
    remarks: RefCell<Vec<Said>>,
}

#[derive(Debug)]
struct Said {
    line: usize,
    subject: String,
    why: String,
    is_note: bool,
}

impl SourceObject {
    pub(super) fn new(document: Rc<PlainDocument>, pointer: String) -> Self {
        let (read, settled, remarks) = Default::default();
        Self { document, pointer, read, settled, remarks }
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.document.value.pointer(&format!("{}{pointer}", self.pointer))
    }

    fn word(&self, pointer: &str) -> &str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The API group, which is empty for Kubernetes' own kinds.
    pub(super) fn group(&self) -> &str {
        self.word("/apiVersion").split_once('/').map_or("", |(group, _)| group)
    }

    pub(super) fn kind(&self) -> &str {
        self.word("/kind")
    }

    pub(super) fn name(&self) -> &str {
        self.word("/metadata/name")
    }

    /// `Kind/name`.
    pub(super) fn subject(&self) -> String {
        format!("{}/{}", self.kind(), self.name())
    }

    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.at("/metadata/labels").and_then(Value::as_object);
        let text =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        labels.into_iter().flatten().filter_map(text).collect()
    }

    pub(super) fn line(&self) -> usize {
        self.document.line(&self.pointer)
    }

    /// The object as a whole; its `spec` is one of its fields.
    pub(super) fn root(&self) -> Section<'_> {
        let fields = self.at("").and_then(Value::as_object);
        Section { object: self, pointer: String::new(), path: String::new(), fields }
    }

    /// Its `spec`, which may be missing.
    pub(super) fn spec(&self) -> Section<'_> {
        self.root().section("spec").unwrap_or(Section {
            object: self,
            pointer: "/spec".to_owned(),
            path: "spec".to_owned(),
            fields: None,
        })
    }

    /// No part of it is looked at.
    pub(super) fn skip(&self) {
        self.settled.borrow_mut().insert(String::new());
    }

    /// Says what was said about its fields, and names those that nobody asked for.
    pub(super) fn report(&self, outcome: &mut Outcome) {
        if let Some(value) = self.at("") {
            self.report_unread(value, "", "", outcome);
        }
        for said in self.remarks.borrow().iter() {
            if said.is_note {
                outcome.note(said.line, &said.subject, said.why.clone());
            } else {
                outcome.untranslated(said.line, &said.subject, said.why.clone());
            }
        }
    }

    fn report_unread(&self, value: &Value, pointer: &str, path: &str, outcome: &mut Outcome) {
        if self.settled.borrow().contains(pointer) {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    if path.is_empty() && WITHOUT_EFFECT.contains(&key.as_str()) || value.is_null()
                    {
                        continue;
                    }
                    let inner = below(pointer, key);
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    if self.read.borrow().contains(&inner) {
                        self.report_unread(value, &inner, &path, outcome);
                    } else {
                        let line = self.document.line(&format!("{}{inner}", self.pointer));
                        let subject = format!("{}: {path}", self.subject());
                        let why = "is no field that is known here: check its name, and set by hand what it does";
                        outcome.untranslated(line, &subject, why);
                    }
                }
            }
            Value::Array(elements) => {
                for (position, value) in elements.iter().enumerate() {
                    let inner = format!("{pointer}/{position}");
                    self.report_unread(value, &inner, &format!("{path}[{position}]"), outcome);
                }
            }
            _ => {}
        }
    }

    fn say(&self, pointer: &str, path: &str, why: String, is_note: bool) {
        let line = self.document.line(&format!("{}{pointer}", self.pointer));
        let subject = match path {
            "" => self.subject(),
            path => format!("{}: {path}", self.subject()),
        };
        self.remarks.borrow_mut().push(Said { line, subject, why, is_note });
    }
}

fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A mapping in an object.
#[derive(Clone)]
pub(super) struct Section<'a> {
    object: &'a SourceObject,
    pointer: String,
    path: String,
    fields: Option<&'a Map<String, Value>>,
}

impl<'a> Section<'a> {
    /// The value of a field, unless it is null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        let value = self.fields?.get(key).filter(|it| !it.is_null())?;
        self.object.read.borrow_mut().insert(below(&self.pointer, key));
        Some(value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.get(key)? {
            Value::String(text) => Some(text.clone()).filter(|it| !it.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            _ => self.refuse(key, "is not a text"),
        }
    }

    /// A whole number from 0.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        let text = || value.as_str().and_then(|it| it.parse().ok());
        value.as_u64().or_else(text).or_else(|| self.refuse(key, "is not a whole number from 0"))
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        value.as_bool().or_else(|| self.refuse(key, "is neither true nor false"))
    }

    /// Whether it is set to true.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.flag(key) == Some(true)
    }

    pub(super) fn section(&self, key: &str) -> Option<Section<'a>> {
        let value = self.get(key)?;
        let fields = value.as_object().or_else(|| self.refuse(key, "is not a mapping"))?;
        Some(self.inner(below(&self.pointer, key), self.path_of(key), fields))
    }

    /// The mappings of a list.
    pub(super) fn sections(&self, key: &str) -> Vec<Section<'a>> {
        let mut sections = Vec::new();
        for (position, value) in self.elements(key).iter().enumerate() {
            let pointer = format!("{}/{position}", below(&self.pointer, key));
            let path = format!("{}[{position}]", self.path_of(key));
            match value.as_object() {
                Some(fields) => sections.push(self.inner(pointer, path, fields)),
                None => self.object.say(&pointer, &path, "is not a mapping".to_owned(), false),
            }
        }
        sections
    }

    /// The texts of a list, each with its place in it.
    pub(super) fn texts(&self, key: &str) -> Vec<(usize, String)> {
        let mut texts = Vec::new();
        for (position, value) in self.elements(key).iter().enumerate() {
            match value {
                Value::String(text) => texts.push((position, text.clone())),
                Value::Number(number) => texts.push((position, number.to_string())),
                _ => self.untranslated_at(key, position, "is not a text"),
            }
        }
        texts
    }

    fn elements(&self, key: &str) -> &'a [Value] {
        let Some(value) = self.get(key) else { return &[] };
        let elements = value.as_array().or_else(|| self.refuse(key, "is not a list"));
        elements.map(Vec::as_slice).unwrap_or_default()
    }

    fn inner(&self, pointer: String, path: String, fields: &'a Map<String, Value>) -> Section<'a> {
        Section { object: self.object, pointer, path, fields: Some(fields) }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn refuse<T>(&self, key: &str, why: &str) -> Option<T> {
        self.untranslated(key, why);
        None
    }

    /// The field has no equal; no part of it is looked at any more. Nothing is said where it is missing.
    pub(super) fn untranslated(&self, key: &str, why: impl Into<String>) {
        if self.has(key) {
            let pointer = below(&self.pointer, key);
            self.object.say(&pointer, &self.path_of(key), why.into(), false);
            self.object.settled.borrow_mut().insert(pointer);
        }
    }

    /// An element of the list has no equal.
    pub(super) fn untranslated_at(&self, key: &str, position: usize, why: impl Into<String>) {
        let pointer = format!("{}/{position}", below(&self.pointer, key));
        let path = format!("{}[{position}]", self.path_of(key));
        self.object.say(&pointer, &path, why.into(), false);
        self.object.settled.borrow_mut().insert(pointer);
    }

    /// A field that should be there is not.
    pub(super) fn missing(&self, key: &str, why: impl Into<String>) {
        self.object.say(&self.pointer, &self.path_of(key), why.into(), false);
    }

    /// All of it has no equal.
    pub(super) fn untranslated_here(&self, why: impl Into<String>) {
        self.object.say(&self.pointer, &self.path, why.into(), false);
        self.settle();
    }

    /// The field is translated, and something about it is different. Nothing is said where it is missing.
    pub(super) fn note(&self, key: &str, why: impl Into<String>) {
        if self.has(key) {
            let pointer = below(&self.pointer, key);
            self.object.say(&pointer, &self.path_of(key), why.into(), true);
        }
    }

    pub(super) fn note_here(&self, why: impl Into<String>) {
        self.object.say(&self.pointer, &self.path, why.into(), true);
    }

    /// The fields have no effect here.
    pub(super) fn ignore(&self, keys: &[&str]) {
        for key in keys.iter().filter(|key| self.has(key)) {
            self.object.settled.borrow_mut().insert(below(&self.pointer, key));
        }
    }

    /// No part of it is looked at any more.
    pub(super) fn settle(&self) {
        self.object.settled.borrow_mut().insert(self.pointer.clone());
    }
}
