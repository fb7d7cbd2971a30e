//! Where do our answers differ from FRR's, and why? Every difference needs a reason, and every
//! reason a difference. Makes the part of docs/vtysh.md that lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::commands::{COMMANDS, Known};
use crate::frr::{NEW, OLD, shapes, split};
use crate::reasons::{REASONS, Reason};
use crate::shape::{Place, Shape};

use anyhow::{Context, Result, ensure};

/// In which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// FRR has it, we never.
    Missing,
    /// FRR always has it, we sometimes.
    Sometimes,
    /// We have it, FRR never.
    Ours,
    /// We have it as something else.
    Otherwise,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    way: Way,
    path: String,
}

/// Keys that are there or not by the moment: before and after the first attempt to connect, and
/// while one is waited for.
const OF_THE_MOMENT: [&str; 7] = [
    "lastReset",
    "lastResetCode",
    "lastResetDueTo",
    "lastResetTimerMsecs",
    "nextConnectInMsec",
    "nextConnectTimerDueInMsecs",
    "nextStartTimerDueInMsecs",
];

/// The differences of each command, or what is wrong with the reasons.
pub(crate) fn document(ours: &BTreeMap<&'static str, Shape>) -> Result<String> {
    let (old, new) = (shapes(OLD)?, shapes(NEW)?);
    let mut rows: BTreeMap<usize, BTreeMap<String, BTreeSet<&'static str>>> = BTreeMap::new();
    let (mut unexplained, mut added) = (Vec::new(), BTreeSet::new());
    let mut table = "| command | answer |\n|---|---|\n".to_owned();
    for command in COMMANDS {
        let words = command.words;
        let frr = match command.known {
            Known::Both => &old,
            Known::BothAsNew | Known::OnlyNew => &new,
        };
        let frr = frr.get(&command.json()).with_context(|| format!("FRR's shape of {words}"))?;
        let shape = ours.get(words).with_context(|| format!("our shape of {words}"))?;
        let (own, newer) = (shape.places(), new.get(&command.json()));
        let is_added = |path: &&String| !frr.contains_key(*path) && !own.contains_key(*path);
        let paths = newer.into_iter().flat_map(BTreeMap::keys).filter(is_added);
        added.extend(
            paths.filter(|path| has_parent(&own, path)).map(|path| format!("`{}`", split(path).1)),
        );
        let differences = differences(frr, &own, newer);
        let count = differences.len();
        for Difference { way, path } in differences {
            let reason = REASONS.iter().position(|reason| reason.explains(way, words, &path));
            match reason {
                Some(reason) => {
                    let key = split(&path).1.to_owned();
                    rows.entry(reason).or_default().entry(key).or_default().insert(words);
                }
                None => unexplained.push(format!("{words}: {way:?}: {path}")),
            }
        }
        let release = if command.known == Known::Both { "" } else { " (FRR 10.3's)" };
        let _ = match count {
            0 => writeln!(table, "| `{words}` | all keys of FRR{release} |"),
            1 => writeln!(table, "| `{words}` | differs in 1 place{release} |"),
            count => writeln!(table, "| `{words}` | differs in {count} places{release} |"),
        };
    }
    ensure!(unexplained.is_empty(), "without a reason:\n{}", unexplained.join("\n"));
    let mut idle = Vec::new();
    for (index, reason) in REASONS.iter().enumerate() {
        let found = rows.get(&index);
        let is_idle = |key: &&&str| found.is_none_or(|found| !found.contains_key(**key));
        idle.extend(reason.keys.iter().filter(is_idle).map(|key| (reason.way, *key)));
    }
    ensure!(idle.is_empty(), "reasons for nothing: {idle:?}");
    let added: Vec<String> = added.into_iter().collect();
    Ok(format!(
        "{table}{}\n### Keys that FRR 10.3 added and Fairway has not here\n\n{}. The words are those of \
         8.4; `hostname` and `softwareVersion` are there when the neighbor says what they are.\n",
        sections(&rows),
        added.join(" ")
    ))
}

fn sections(rows: &BTreeMap<usize, BTreeMap<String, BTreeSet<&'static str>>>) -> String {
    let mut text = String::new();
    for (way, title) in [
        (Way::Missing, "Keys that FRR has and Fairway does not"),
        (Way::Sometimes, "Keys that FRR always has, and Fairway when there is something to say"),
        (Way::Otherwise, "Keys with another kind of value"),
        (Way::Ours, "Keys that Fairway has and FRR 8.4 does not"),
    ] {
        let of_way: Vec<_> = REASONS.iter().enumerate().filter(|(_, it)| it.way == way).collect();
        if of_way.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {title}\n\n| keys | in | why |\n|---|---|---|");
        for (index, reason) in of_way {
            let Some(keys) = rows.get(&index) else { continue };
            let names: Vec<_> = keys.keys().map(|key| format!("`{key}`")).collect();
            let commands: BTreeSet<_> = keys.values().flatten().collect();
            let places = match commands.len() {
                count @ 4.. => format!("{count} commands"),
                _ => commands.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", "),
            };
            let _ = writeln!(text, "| {} | {places} | {} |", names.join(" "), reason.why);
        }
    }
    text
}

/// What `ours` lacks or has beside; `newer` is what a later FRR has, so that a key which only that
/// one has is none of ours.
fn differences(
    frr: &BTreeMap<String, Place>,
    ours: &BTreeMap<String, Place>,
    newer: Option<&BTreeMap<String, Place>>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |way, path: &str| {
        if !OF_THE_MOMENT.contains(&split(path).1) {
            found.push(Difference { way, path: path.to_owned() });
        }
    };
    for (path, place) in frr {
        match ours.get(path) {
            None if has_parent(ours, path) => note(Way::Missing, path),
            None => {}
            Some(own) if !own.kinds.is_subset(&place.kinds) => note(Way::Otherwise, path),
            Some(own) if own.is_optional && !place.is_optional => note(Way::Sometimes, path),
            Some(_) => {}
        }
    }
    let is_newer = |path: &str| newer.is_some_and(|newer| newer.contains_key(path));
    for path in ours.keys() {
        if !frr.contains_key(path) && has_parent(frr, path) && !is_newer(path) {
            note(Way::Ours, path);
        }
    }
    found
}

/// Whether what holds `path` is there: else it is the parent that is missing.
fn has_parent(places: &BTreeMap<String, Place>, path: &str) -> bool {
    places.contains_key(split(path).0)
}

impl Reason {
    fn explains(&self, way: Way, command: &str, path: &str) -> bool {
        let (_, key) = split(path);
        self.way == way && command.contains(self.command) && self.keys.contains(&key)
    }
}
