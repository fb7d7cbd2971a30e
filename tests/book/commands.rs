//! Does Fairway know what a page says to type? Each `fairway` of a block, and within a line, is parsed by the program: with
//! `--help` behind it, so that nothing is done. Words of `show`, `explain` and `clear` are parsed by the daemon; one runs, and is
//! asked. Used by main.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::fairway::Fairway;
use lab::namespace::Network;
use lab::process::bounded;
use lab::suite::Cell;

use crate::page::{Block, Page};

/// What an operator puts in place of a word.
const PLACEHOLDERS: [(&str, &str); 10] = [
    ("ID", "0123abcd"),
    ("ADDRESS", "192.0.2.1"),
    ("PREFIX", "192.0.2.0/24"),
    ("PEER", "tor"),
    ("PEER-1", "tor"),
    ("NODE", "node-a"),
    ("FILE...", "file"),
    ("PATH...", "file"),
    ("ADDRESS...", "192.0.2.1"),
    ("ipv4|ipv6", "ipv4"),
];

/// Where a shell's command ends.
const ENDS: [&str; 6] = ["|", "||", "&&", ";", "2>&1", "&"];
/// What may stand before a command on its line.
const BEFORE: [&str; 8] = ["sudo", "run", "exec", "then", "do", "if", "$", "--"];

pub(crate) fn are_known(cell: &Cell) -> Result<()> {
    let mut fairway = Fairway::prepare_in(&cell.directory)?;
    fairway.start_as(
        &Network::Own,
        &[
            "run",
            "--config",
            &fairway.directory_of("config"),
            "--bgp-listen",
            "none",
            "--metrics-listen",
            "none",
        ],
    )?;
    let (mut count, mut offences) = (0, Vec::new());
    for page in Page::all()? {
        for (words, is_mentioned) in printed(&page) {
            count += 1;
            if let Err(error) = parse(&fairway, &words) {
                // In a sentence a command need not be whole.
                let is_begun = ["is incomplete", "a value is required"];
                if is_mentioned && is_begun.iter().any(|it| error.to_string().contains(it)) {
                    continue;
                }
                let line = words.join(" ");
                offences.push(format!("{}: fairway {line}\n    {error:#}", page.path.display()));
            }
        }
    }
    ensure!(count > 200, "only {count} commands are found");
    ensure!(offences.is_empty(), "{}", offences.join("\n"));
    Ok(())
}

/// The words behind each `fairway` of a page, and whether they are only mentioned.
fn printed(page: &Page) -> Vec<(Vec<String>, bool)> {
    let is_typed = |block: &&Block| ["", "sh", "console"].contains(&block.kind.as_str());
    let blocks = page.blocks.iter().filter(is_typed).map(|it| it.text.replace("\\\n", " "));
    let typed = blocks.flat_map(|text| text.lines().flat_map(commands_of).collect::<Vec<_>>());
    let mentioned = page.inline.iter().flat_map(|line| commands_of(line));
    typed.map(|it| (it, false)).chain(mentioned.map(|it| (it, true))).collect()
}

/// The commands of one line: `... | fairway check - && ...` has one.
fn commands_of(line: &str) -> Vec<Vec<String>> {
    // A remark stands behind several spaces, or in parentheses. A quote that is not closed goes on in the next line.
    let plain = line.trim_start().replace("  ", " # ").replace(" (", " # (");
    let Some(words) = shlex::split(&plain) else { return Vec::new() };
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut open: Option<Vec<String>> = None;
    let mut before: Option<&str> = None;
    for word in &words {
        if ENDS.contains(&word.as_str()) || word.starts_with(['>', '<', '#']) {
            found.extend(open.take());
        } else if let Some(command) = &mut open {
            command.push(word.trim_end_matches(';').to_owned());
            if word.ends_with(';') {
                found.extend(open.take());
            }
        } else if word == "fairway" {
            open = match before {
                Some("kubectl") => Some(vec!["kubectl".to_owned()]),
                Some(it) if !BEFORE.contains(&it) && !ENDS.contains(&it) && !it.contains('=') => {
                    None
                }
                _ => Some(Vec::new()),
            };
        }
        before = Some(word);
    }
    found.extend(open);
    found.retain(|words| words.first().is_some_and(|word| word != "COMMAND" && word != "..."));
    found
}

fn parse(fairway: &Fairway, words: &[String]) -> Result<()> {
    let replaced = |word: &String| {
        let found = PLACEHOLDERS.iter().find(|(placeholder, _)| placeholder == word);
        found.map_or_else(|| word.clone(), |(_, value)| (*value).to_owned())
    };
    let words: Vec<String> = words.iter().filter(|it| *it != "...").map(replaced).collect();
    let mut command = bounded(lab::fairway::program());
    succeeds(command.args(&words).arg("--help").env_remove("FAIRWAY_CONFIG"))?;
    let asks_daemon = ["show", "explain", "clear"];
    let first = words.first().context("a command")?;
    if !asks_daemon.contains(&first.as_str()) || words.iter().any(|it| it == "--help") {
        return Ok(());
    }
    // A single word is the name of the command in a sentence; the socket is another one on the page.
    let mut words = words;
    if let Some(at) = words.iter().position(|it| it == "--socket") {
        words.drain(at..(at + 2).min(words.len()));
    }
    if words.len() == 1 {
        return Ok(());
    }
    let mut command = bounded(lab::fairway::program());
    let output = command.args(&words).arg("--socket").arg(fairway.socket()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() != Some(USAGE), "{}", said.trim_end());
    Ok(())
}

/// The exit code for words that are not understood.
const USAGE: i32 = 2;

fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.lines().next().unwrap_or_default());
    Ok(())
}
