//! What do the text lines look like? Each line with its values taken out: `A` for an address or a prefix, `T`
//! for a time, `N` for a number; rows of tables by how they begin.
//!
//! FRR's lines are in `frr-lines.txt`; what we print beside them, and what we leave out, needs a
//! reason, as a key does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use ipnet::IpNet;

use crate::compare::Way;
use crate::reasons::LINES;

const FRR: &str = include_str!("frr-lines.txt");

/// Commands for which lines are compared. One neighbour was captured alone in other states.
pub(crate) const COMMANDS: &[&str] = &[
    "show bgp summary",
    "show bgp neighbors",
    "show bgp ipv4 unicast",
    "show bgp ipv4 unicast 10.20.0.0/16",
    "show bgp ipv4 unicast 198.51.100.128/25",
    "show bgp ipv4 unicast 203.0.113.10/32",
    "show bgp ipv4 unicast neighbors 10.1.1.2 received-routes",
    "show bgp ipv4 unicast neighbors 10.1.1.2 prefix-counts",
    "show bgp ipv4 neighbors 10.1.2.2 graceful-restart",
    "show bgp nexthop",
];

/// What follows is a name, a text or a date.
const CUT_BEHIND: [&str; 8] = [
    "BGP state =",
    "Description:",
    "Last error:",
    "Last reset",
    "Last update:",
    "Not announced:",
    "Refused announcements:",
    "Status codes:",
];

/// There or not by the moment: while an attempt to connect is waited for.
const OF_THE_MOMENT: &str = "Next ";

pub(crate) type Lines = BTreeMap<&'static str, BTreeSet<String>>;

/// Adds the lines of an answer to `command`.
pub(crate) fn add(lines: &mut Lines, command: &'static str, answer: &str) {
    lines.entry(command).or_default().extend(answer.lines().filter_map(general));
}

/// A line without its values; none of an empty one.
fn general(line: &str) -> Option<String> {
    let line = line.trim();
    if line.starts_with(OF_THE_MOMENT) {
        return None;
    }
    if let Some(head) = CUT_BEHIND.iter().find(|head| line.starts_with(**head)) {
        return Some((*head).to_owned());
    }
    let words: Vec<String> = line.split_whitespace().map(general_word).collect();
    match words.first().map(String::as_str) {
        None => None,
        Some("A") if words.len() > 8 => Some("A (row)".to_owned()),
        Some(status)
            if status.starts_with(['*', 'S']) && words.get(1).is_some_and(|it| it == "A") =>
        {
            Some(format!("{status} (row)"))
        }
        Some(_) => Some(words.join(" ")),
    }
}

fn general_word(word: &str) -> String {
    if ["KiB", "MiB"].contains(&word) {
        return "bytes".to_owned();
    }
    let core = word.trim_matches(|it: char| "(),;".contains(it));
    let letter = if core.parse::<IpAddr>().is_ok() || core.parse::<IpNet>().is_ok() {
        Some("A")
    } else if core.len() == 8 && core.split(':').count() == 3 {
        Some("T")
    } else {
        None
    };
    if let Some(letter) = letter {
        return word.replace(core, letter);
    }
    let mut general = String::new();
    for character in word.chars() {
        match character.is_ascii_digit() {
            true if general.ends_with('N') => {}
            true => general.push('N'),
            false => general.push(character),
        }
    }
    general
}

/// The text of `frr-lines.txt`, from a folder as `frr::describe` reads it.
pub(crate) fn describe(folder: &Path) -> Result<String> {
    let mut text =
        "# The lines of FRR 8.4 in the topology of lab/, by the rules of lines.rs.\n".to_owned();
    for command in COMMANDS {
        let name = |words: &str| words.replace([' ', ':', '/'], "-") + ".txt";
        let mut names = vec![name(command)];
        if *command == "show bgp neighbors" {
            names.extend(["10.1.1.2", "10.1.2.2"].map(|it| name(&format!("{command} {it}"))));
        }
        let mut folders = vec![folder.to_owned()];
        let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        folders.extend(entries.filter_map(|entry| entry.ok().map(|it| it.path())));
        let mut lines = Lines::new();
        for path in folders.iter().flat_map(|folder| names.iter().map(|it| folder.join(it))) {
            if let Ok(answer) = fs::read_to_string(path) {
                add(&mut lines, command, &answer);
            }
        }
        let _ = writeln!(text, "\n== {command}");
        for line in lines.values().flatten() {
            let _ = writeln!(text, "{line}");
        }
    }
    Ok(text)
}

fn frr() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut lines: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut command = "";
    for line in FRR.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("== ") {
            Some(name) => command = name,
            None => drop(lines.entry(command).or_default().insert(line)),
        }
    }
    lines
}

/// The differences by reason, or what is wrong with the reasons.
pub(crate) fn document(ours: &Lines) -> Result<String> {
    let frr = frr();
    let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for command in COMMANDS {
        let theirs = frr.get(command).with_context(|| format!("FRR's lines of {command}"))?;
        let own = ours.get(command).with_context(|| format!("our lines of {command}"))?;
        let missing = theirs.iter().filter(|it| !own.contains(**it));
        let missing = missing.map(|line| (Way::Missing, (*line).to_owned()));
        let beside = own.iter().filter(|it| !theirs.contains(it.as_str()));
        let beside = beside.map(|line| (Way::Ours, line.clone()));
        for (way, line) in missing.chain(beside) {
            let explains = |(of, begins, _): &&(Way, &[&str], &str)| {
                *of == way && begins.iter().any(|it| line.starts_with(it))
            };
            match LINES.iter().position(|reason| explains(&reason)) {
                Some(reason) => drop(found.entry(reason).or_default().insert(line)),
                None => unexplained.push(format!("{command}: {way:?}: {line}")),
            }
        }
    }
    ensure!(unexplained.is_empty(), "lines without a reason:\n{}", unexplained.join("\n"));
    let mut idle = Vec::new();
    for (index, (way, begins, _)) in LINES.iter().enumerate() {
        let lines = found.get(&index);
        let is_idle = |begin: &&&str| {
            lines.is_none_or(|lines| !lines.iter().any(|line| line.starts_with(**begin)))
        };
        idle.extend(begins.iter().filter(is_idle).map(|begin| (*way, *begin)));
    }
    ensure!(idle.is_empty(), "reasons for no line: {idle:?}");
    let mut text =
        "\n### Lines for people\n\n| lines that begin with | | why |\n|---|---|---|\n".to_owned();
    for (way, begins, why) in LINES {
        let begins: Vec<_> = begins.iter().map(|begin| format!("`{begin}`")).collect();
        let who = if *way == Way::Missing { "FRR only" } else { "Fairway only" };
        let _ = writeln!(text, "| {} | {who} | {why} |", begins.join(", "));
    }
    Ok(text)
}
