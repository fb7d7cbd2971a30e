//! Our definitions against MetalLB's fields, and against our own parsers.

mod metallb_page;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::metallb::METALLB_FIELDS;
use super::*;
use crate::yaml::documents;
use crate::yaml::write::flow;

/// The fields of a LabelSelector.
const SELECTOR: [&str; 6] = [
    "matchLabels object of string",
    "matchExpressions array",
    "matchExpressions[] object",
    "matchExpressions[].key string required",
    "matchExpressions[].operator string required",
    "matchExpressions[].values array",
];

/// The sections of the table: their headings and lines.
fn expected() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut sections: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut head = None;
    for line in METALLB_FIELDS.lines().filter(|line| !line.starts_with('#')) {
        match (line.is_empty(), head) {
            (true, _) => head = None,
            (false, None) => head = Some(line),
            (false, Some(head)) => sections.entry(head).or_default().push(line),
        }
    }
    sections
}

/// The same for our definitions.
fn present() -> BTreeMap<String, Vec<String>> {
    let mut sections = BTreeMap::new();
    for CustomResourceDefinition { object, .. } in CustomResourceDefinition::all() {
        if object["spec"]["group"] == FAIRWAY {
            continue; // MetalLB has no such kind.
        }
        let kind = object["spec"]["names"]["kind"].as_str().unwrap();
        for version in object["spec"]["versions"].as_array().unwrap() {
            let name = version["name"].as_str().unwrap();
            let stored = if version["storage"] == true { "stored" } else { "deprecated" };
            assert_eq!(version["deprecated"] == true, stored == "deprecated");
            let mut lines = columns(version);
            let schema = &version["schema"]["openAPIV3Schema"];
            for part in ["spec", "status"] {
                flatten(part, &schema["properties"][part], is_required(schema, part), &mut lines);
            }
            sections.insert(format!("{kind} {name} {stored}"), lines);
        }
    }
    sections
}

fn columns(version: &Value) -> Vec<String> {
    let columns = version["additionalPrinterColumns"].as_array();
    let line = |column: &Value| {
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        let priority = column["priority"].as_u64().map(|it| format!(" {it}")).unwrap_or_default();
        format!("| {} {} {}{priority}", text("name"), text("type"), text("jsonPath"))
    };
    columns.into_iter().flatten().map(line).collect()
}

fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == field))
}

/// One line for the field at `path`, and one for each below it.
fn flatten(path: &str, schema: &Value, is_required: bool, lines: &mut Vec<String>) {
    let is_selector = schema["properties"].get("matchExpressions").is_some();
    let kind = match schema["type"].as_str() {
        None if schema["x-kubernetes-int-or-string"] == true => "integer-or-string",
        _ if is_selector => "selector",
        kind => kind.unwrap_or("nothing"),
    };
    let mut line = format!("{path} {kind}");
    let mut say = |words: String| line.extend([" ", &words]);
    if let Some(values) = schema.get("additionalProperties") {
        say(format!("of {}", values["type"].as_str().unwrap()));
    }
    if is_required {
        say("required".to_owned());
    }
    if let Some(default) = schema.get("default") {
        say(format!("={}", default.as_str().map_or(default.to_string(), str::to_owned)));
    }
    let bound = |name: &str| schema.get(name).map(Value::to_string).unwrap_or_default();
    if schema.get("minimum").is_some() || schema.get("maximum").is_some() {
        say(format!("{}..{}", bound("minimum"), bound("maximum")));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
        say(format!("{{{}}}", words.join(" ")));
    }
    if let Some(least) = schema.get("minItems") {
        say(format!("{least} or more"));
    }
    if let Some(rules) = schema["x-kubernetes-validations"].as_array() {
        say(format!("{} rules", rules.len()));
    }
    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() {
        say(format!("keyed by {}", keys[0].as_str().unwrap()));
    }
    lines.push(line);
    if is_selector && path != "selector" {
        let mut parts = Vec::new();
        flatten("selector", schema, false, &mut parts);
        let parts: Vec<_> = parts.iter().filter_map(|it| it.strip_prefix("selector.")).collect();
        assert!(parts.starts_with(&SELECTOR), "{path}: {parts:#?}");
        if parts.len() == SELECTOR.len() + 1 {
            assert_eq!(parts[SELECTOR.len()], "matchExpressions[].values[] string");
        }
        return;
    }
    if let Some(items) = schema.get("items") {
        flatten(&format!("{path}[]"), items, false, lines);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        flatten(&format!("{path}.{name}"), field, self::is_required(schema, name), lines);
    }
}

#[test]
fn every_field_of_metallb_is_there_as_it_has_it() {
    let (expected, present) = (expected(), present());
    let heads: Vec<_> = expected.keys().map(|head| (*head).to_owned()).collect();
    assert_eq!(heads, present.keys().cloned().collect::<Vec<_>>());
    let mut differences = Vec::new();
    for (head, lines) in expected {
        let ours: Vec<&str> = present[head].iter().map(String::as_str).collect();
        let wanted: Vec<&str> = lines.iter().map(|line| ours_of(line)).collect();
        let columns = |lines: &[&'_ str]| -> Vec<String> {
            lines.iter().filter(|it| it.starts_with('|')).map(|it| (*it).to_owned()).collect()
        };
        if columns(&wanted) != columns(&ours) {
            differences.push(format!("{head}: the columns, or their order"));
        }
        let (wanted, ours) = (BTreeSet::from_iter(wanted), BTreeSet::from_iter(ours));
        differences.extend(wanted.difference(&ours).map(|it| format!("{head}: missing: {it}")));
        differences.extend(ours.difference(&wanted).map(|it| format!("{head}: unexpected: {it}")));
    }
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}

/// The part of a line of the table that is about our definition.
fn ours_of(line: &str) -> &str {
    if let Some(field) = line.strip_prefix("+ ") {
        return field;
    }
    let Some(difference) = line.strip_prefix("~ ") else { return line };
    let (metallb, ours) = difference.split_once(" => ").unwrap();
    let (ours, why) = ours.split_once(" # ").expect("each difference has a reason");
    assert!(metallb != ours && !why.is_empty());
    ours
}

#[test]
fn fields_of_ours_are_never_required_of_who_does_not_use_them() {
    for line in METALLB_FIELDS.lines().filter_map(|line| line.strip_prefix("+ ")) {
        let is_top = line.split_whitespace().next().unwrap().matches('.').count() == 1;
        assert!(!(is_top && line.contains(" required")), "{line}");
        assert!(!(is_top && line.contains(" =")), "a default would write it into objects: {line}");
    }
}

/// All schemas in all our specs, with their paths.
fn schemas_of(schema: &Value) -> Vec<(Vec<String>, Value)> {
    let mut found = Vec::new();
    let mut waiting = vec![(Vec::new(), schema.clone())];
    while let Some((path, schema)) = waiting.pop() {
        let below = |step: &str| [path.as_slice(), &[step.to_owned()]].concat();
        if let Some(items) = schema.get("items") {
            waiting.push((below("[]"), items.clone()));
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            waiting.push((below(name), field.clone()));
        }
        found.push((path, schema));
    }
    found
}

/// An object with only this field in it.
fn only(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |value, step| match step.as_str() {
        "[]" => json!([value]),
        name => json!({ name: value }),
    })
}

/// Where MetalLB's schema accepts what neither its parser nor ours does.
const LOOSER: [&str; 5] = [
    "myASN below the minimum",
    "myASN at the minimum",
    "aggregationLength",
    "aggregationLengthV6",
    "serviceAllocation.priority",
];

/// Where an object of an older version reads as an object that this version does not allow.
const OLDER: [&str; 1] = ["peerPort below the minimum"];

fn assert_parser_agrees<T: for<'de> Deserialize<'de>>(schema: &Value, checked: &mut u32) {
    for (path, schema) in schemas_of(schema) {
        let name = path.join(".").replace(".[]", "[]");
        if LOOSER.contains(&&*name) {
            continue;
        }
        let mut check = |value: Value, is_allowed: bool, what: &str| {
            let said = format!("{name} {what}");
            if LOOSER.contains(&&*said) || OLDER.contains(&&*said) {
                return;
            }
            *checked += 1;
            let written = block::block(&only(&path, value));
            let read: Vec<_> = documents(&written).collect();
            let read = T::deserialize(read[0].root.as_ref().unwrap());
            assert_eq!(read.is_ok(), is_allowed, "{said}:\n{written}{:?}", read.err());
        };
        if schema["type"] == "integer" {
            let minimum = schema["minimum"].as_i64().expect(&name);
            let maximum = schema["maximum"].as_i64().expect(&name);
            check(minimum.into(), true, "at the minimum");
            check((minimum - 1).into(), false, "below the minimum");
            check(maximum.into(), true, "at the maximum");
            check((maximum + 1).into(), false, "above the maximum");
            check("1".into(), false, "as text");
        }
        for word in schema["enum"].as_array().into_iter().flatten() {
            check(word.clone(), true, "as one of its words");
        }
        if schema.get("enum").is_some() {
            check("no-such-word".into(), false, "as another word");
        }
        if schema["type"] == "boolean" {
            check(true.into(), true, "as true");
            check("true".into(), false, "as text");
        }
        if let Some(default) = schema.get("default") {
            check(default.clone(), true, "at its default");
        }
        if schema["type"] == "object" && schema.get("additionalProperties").is_none() {
            check(json!({ "noSuchField": 1 }), false, "with an unknown field");
        }
    }
}

#[test]
fn the_schemas_allow_what_the_parsers_allow() {
    let mut checked = 0;
    macro_rules! check {
        ($($module:ident),*) => {
            $(assert_parser_agrees::<$module::RawSpec>(
                &schema::<$module::RawSpec>(), &mut checked,
            );)*
        };
    }
    check!(bgp_peer, bfd_profile, ip_address_pool, bgp_advertisement, l2_advertisement, community);
    assert!(checked > 200, "only {checked} values were tried");
}

#[test]
fn every_keyword_is_one_that_the_api_server_knows() {
    for definition in CustomResourceDefinition::all() {
        for version in definition.object["spec"]["versions"].as_array().unwrap() {
            let schema = &version["schema"]["openAPIV3Schema"];
            for (path, schema) in schemas_of(schema) {
                let said = format!("{} {}", definition.file_name, path.join("."));
                let keywords = schema.as_object().unwrap().keys();
                let unknown: Vec<_> =
                    keywords.filter(|it| !structural::KEYWORDS.contains(&it.as_str())).collect();
                assert!(unknown.is_empty(), "{said}: {unknown:?}");
                let is_plain = ["apiVersion", "kind", "metadata", "spec", "status"];
                let needs_words = !path.is_empty()
                    && path.last().is_some_and(|it| it != "[]")
                    && !(path.len() == 1 && is_plain.contains(&path[0].as_str()));
                assert!(
                    !needs_words || schema.get("description").is_some(),
                    "{said}: has no effect"
                );
            }
        }
    }
}

#[test]
fn what_is_printed_reads_back_as_the_definition() {
    for definition in CustomResourceDefinition::all() {
        let yaml = definition.yaml();
        let read: Vec<_> = documents(&yaml).collect();
        assert!(read.len() == 1 && read[0].faults.is_empty(), "{:?}", read[0].faults);
        let root = read[0].root.as_ref().map(|root| flow(root, &|_, _| false));
        assert_eq!(root, Some(definition.object.to_string()));
    }
}

#[test]
fn an_object_of_an_older_version_is_one_of_the_newer_without_conversion() {
    let old = schema::<bgp_peer::v1beta1::RawSpecOld>();
    let new = schema::<bgp_peer::RawSpec>();
    let shapes = |schema: &Value| -> BTreeMap<String, Value> {
        let fields = schemas_of(schema).into_iter();
        fields.map(|(path, schema)| (path.join("."), schema["type"].clone())).collect()
    };
    let new = shapes(&new);
    for (path, kind) in shapes(&old) {
        assert_eq!(new.get(&path), Some(&kind), "{path}");
    }
}
