//! What does FRR answer? Its shapes, from `frr-shapes.txt`, and how that file is made from answers
//! that were written down.
//!
//! A line is the path of an object or a list and what is in it: names, each with the kinds of
//! value, and with the version if only one of them has it so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::commands::{COMMANDS, Command};
use crate::shape::{Place, Shape};

const SHAPES: &str = include_str!("frr-shapes.txt");
pub(crate) const OLD: &str = "8.4";
pub(crate) const NEW: &str = "10.3";

type Places = BTreeMap<String, Place>;

/// The shapes of one version by command.
pub(crate) fn shapes(version: &str) -> Result<BTreeMap<String, Places>> {
    let mut shapes: BTreeMap<String, Places> = BTreeMap::new();
    let mut command = String::new();
    for line in SHAPES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (parent, children) = line.split_once(": ").with_context(|| line.to_owned())?;
        if let Some(name) = parent.strip_prefix("== ") {
            command = name.to_owned();
        }
        for child in children.split(", ") {
            let (name, kinds) = child.rsplit_once(' ').with_context(|| line.to_owned())?;
            let (kinds, only) = kinds.split_once('@').unwrap_or((kinds, version));
            if only != version {
                continue;
            }
            let place = Place {
                kinds: kinds.trim_end_matches('?').chars().collect(),
                is_optional: kinds.ends_with('?'),
            };
            let is_item = name.starts_with('[');
            let path = match parent {
                "." => name.to_owned(),
                parent if parent.starts_with("== ") => ".".to_owned(),
                parent if is_item => format!("{parent}{name}"),
                parent => format!("{parent}.{name}"),
            };
            shapes.entry(command.clone()).or_default().insert(path, place);
        }
    }
    // A neighbour looks the same there; only this one was asked for in every state.
    let neighbors = shapes.get("show bgp neighbors json").cloned().unwrap_or_default();
    let by_vrf = shapes.entry("show bgp vrf all neighbors json".to_owned()).or_default();
    let is_neighbor = |(path, _): &(String, Place)| path != ".";
    by_vrf.extend(
        neighbors.into_iter().filter(is_neighbor).map(|(path, it)| (format!("default.{path}"), it)),
    );
    Ok(shapes)
}

/// The object or list that holds `path`, and what it is called there.
pub(crate) fn split(path: &str) -> (&str, &str) {
    let at = match path.strip_suffix(']').and_then(|it| it.rfind('[')) {
        Some(at) => path.split_at_checked(at),
        None => path.rsplit_once('.'),
    };
    match at.unwrap_or(("", path)) {
        ("", name) => (".", name),
        (parent, name) => (parent, name),
    }
}

/// The text of `frr-shapes.txt` from folders of answers, one for each version. A file is called as
/// its command, with `-` for blanks, colons and slashes; those of other states are in folders
/// below.
pub(crate) fn describe(old: &Path, new: &Path) -> Result<String> {
    let mut text =
        "# What FRR 8.4 and 10.3 answer in the topology of lab/, by the rules of shape.rs.\n\
                    # o object, a list, s text, n number, b flag; ? not always there.\n"
            .to_owned();
    for command in COMMANDS {
        let (old, new) = (places_in(old, *command)?, places_in(new, *command)?);
        let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for path in paths {
            let (parent, name) = match path.as_str() {
                "." => (format!("== {}", command.json()), "it"),
                path => {
                    let (parent, name) = split(path);
                    (parent.to_owned(), name)
                }
            };
            let children = children.entry(parent).or_default();
            match (old.get(path), new.get(path)) {
                (Some(one), Some(other)) if one == other => children.push(format!("{name} {one}")),
                (one, other) => {
                    for (place, version) in [(one, OLD), (other, NEW)] {
                        children.extend(place.map(|place| format!("{name} {place}@{version}")));
                    }
                }
            }
        }
        let (mut head, mut lines) = (String::new(), String::new());
        for (parent, children) in children {
            let line = format!("{parent}: {}\n", children.join(", "));
            *(if parent.starts_with("==") { &mut head } else { &mut lines }) += &line;
        }
        text += &format!("\n{head}{lines}");
    }
    Ok(text)
}

fn places_in(folder: &Path, command: Command) -> Result<Places> {
    let name = |words: &str| words.replace([' ', ':', '/'], "-") + ".json";
    let mut names = vec![name(command.words)];
    // In other states only the neighbour in question was asked for.
    if command.words == "show bgp neighbors" {
        names.extend(["10.1.1.2", "10.1.2.2"].map(|it| name(&format!("{} {it}", command.words))));
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut folders = vec![folder.to_owned()];
    folders.extend(entries.filter_map(|entry| entry.ok().map(|it| it.path())));
    let mut shape = Shape::default();
    for path in folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))) {
        if let Ok(text) = fs::read_to_string(&path) {
            let value: Value =
                serde_json::from_str(&text).with_context(|| path.display().to_string())?;
            shape.add(&value);
        }
    }
    Ok(shape.places())
}
