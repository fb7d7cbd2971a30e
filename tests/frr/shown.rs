//! Does FRR show what it was sent, and nothing else of ours? Lines are compared with their context, and with
//! the order that they have there. Used by the story of the goldens.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

/// Lines that FRR has of its own, and those that another of ours stands for.
const ITS_OWN: &[&str] = &[
    "Building configuration...",
    "Current configuration:",
    "frr ",
    "hostname ",
    "log ",
    "ip forwarding",
    "ipv6 forwarding",
    "no ip forwarding",
    "no ipv6 forwarding",
    "service ",
    "end",
];

/// What stands in the same place, in its order.
type Places = BTreeMap<Vec<String>, Vec<String>>;

pub(crate) fn as_sent(sent: &str, shown: &str) -> Result<()> {
    let (sent, shown) = (places(sent), places(shown));
    for (place, lines) in &sent {
        let there = shown.get(place).cloned().unwrap_or_default();
        if place.is_empty() {
            // Each version has an order of its own at the top; what is there must be the same.
            let missing: Vec<_> = lines.iter().filter(|line| !there.contains(line)).collect();
            ensure!(missing.is_empty(), "sent and not shown: {missing:#?}");
            let new: Vec<_> = there.iter().filter(|line| !lines.contains(line)).collect();
            ensure!(new.is_empty(), "shown and not sent: {new:#?}");
        } else if !is_raw(lines, &there) {
            ensure!(*lines == there, "{place:?}: sent {lines:#?}, shown {there:#?}");
        }
    }
    Ok(())
}

/// The operator's own lines come after ours, and FRR puts them in between.
fn is_raw(sent: &[String], shown: &[String]) -> bool {
    let sorted = |lines: &[String]| {
        let mut lines = lines.to_vec();
        lines.sort();
        lines
    };
    sent.iter().any(|line| line.contains("advertisement-interval")) && sorted(sent) == sorted(shown)
}

fn places(text: &str) -> Places {
    let mut places = Places::from([(Vec::new(), Vec::new())]);
    let mut above: Vec<String> = Vec::new();
    for line in text.lines() {
        let words = line.trim();
        let depth = line.len() - line.trim_start().len();
        let ends = ["exit", "exit-address-family"].contains(&words);
        if words.is_empty() || words.starts_with('!') || ends {
            continue;
        }
        if depth == 0 && ITS_OWN.iter().any(|own| words.starts_with(own)) {
            continue;
        }
        above.truncate(depth);
        let lines = places.entry(above.clone()).or_default();
        // What is opened for a second time is the same place.
        if !lines.iter().any(|it| it == words) {
            lines.push(words.to_owned());
        }
        above.push(words.to_owned());
    }
    places
}
