//! Can everything be shown, whatever was kept? Both as text and as JSON. Used by the trials.

use anyhow::{Context, Result, ensure};

use crate::daemon::Daemon;
use crate::entry::KEPT;

/// Runs every `fairway show`; each must succeed, print nothing that a terminal would obey, and print JSON
/// where JSON was requested.
pub(crate) fn show_everything(daemon: &Daemon, peer: &str, about: &[&str]) -> Result<()> {
    let neighbour = ["bgp", "neighbors", peer];
    let advertised = [&neighbour[..], &["advertised-routes"]].concat();
    let received = [&neighbour[..], &["received-routes"]].concat();
    let looks: [&[&str]; 11] = [
        &["bgp", "summary"],
        &["bgp", "neighbors"],
        &neighbour,
        &advertised,
        &received,
        &["bgp", "ipv4", "unicast"],
        &["bgp", "ipv4", "unicast", "statistics"],
        &["bgp", "ipv6", "unicast"],
        &["config"],
        &["services"],
        &["pools"],
    ];
    for words in looks {
        shown(daemon, words)?;
    }
    for prefix in about.iter().chain(&[KEPT]) {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let words = ["bgp", family, "unicast", prefix];
        daemon.show_json(&words)?;
        // What is not in the table is no success as text.
        let answer = daemon.ask(&[&["show"], &words[..]].concat())?;
        ensure!(answer.status.code().is_some_and(|code| code <= 1), "{}", answer.errors);
        is_harmless(&answer.output).with_context(|| words.join(" "))?;
    }
    Ok(())
}

fn shown(daemon: &Daemon, words: &[&str]) -> Result<()> {
    daemon.show_json(words)?;
    let text = daemon.show(words)?;
    is_harmless(&text).with_context(|| format!("show {}", words.join(" ")))
}

fn is_harmless(text: &str) -> Result<()> {
    let obeyed = text.chars().find(|letter| letter.is_control() && *letter != '\n');
    ensure!(obeyed.is_none(), "the text has {obeyed:?} in it: {text:?}");
    Ok(())
}
