//! Which lines did we set outside of what carries our mark, and what did they replace?
//!
//! Such lines cannot tell whose they are: a line of the operator's extras, a router, a setting of zebra. The record of
//! them is itself configuration, a route map that nothing uses, so that it is where the lines are: it survives our disk,
//! and goes when FRR forgets. An entry is written before its line, and removed after it. Knows no socket. Called by
//! [`crate::application`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Context, Statement};
use crate::daemon::Daemon;
use crate::difference::Place;
use crate::owner::Hash;

/// Between the lines of a place.
const WITHIN: &str = " / ";
/// Before the line that was replaced.
const WAS: &str = " was ";

/// The line of an entry, and its daemon.
pub(crate) type EntryKey = (Daemon, Place);

/// The entries: lines of daemons, with the line that each replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Record(pub(crate) BTreeMap<EntryKey, Option<Arc<str>>>);

impl Record {
    /// The record in the running configuration of bgpd.
    pub(crate) fn read(bgpd: &Configuration, mark: &str) -> Self {
        let map = format!("route-map {mark}record ");
        let entries = bgpd.statements.iter().filter_map(|it| {
            let is_here = it.context.first().is_some_and(|opener| opener.starts_with(&map));
            entry(it.line.strip_prefix("description ").filter(|_| is_here)?)
        });
        Self(entries.collect())
    }

    /// The record as configuration.
    pub(crate) fn statements(&self, mark: &str) -> Vec<Statement> {
        let mut places: BTreeMap<u32, String> = BTreeMap::new();
        for ((daemon, place), before) in &self.0 {
            let text = text(*daemon, place, before.as_deref());
            // A number of the text, so that a new entry leaves the others in place.
            let hashes = (0..).map(|attempt| Hash::of(&text, attempt).short() % 65_535);
            let mut free =
                hashes.map(|it| it.saturating_add(1)).filter(|it| !places.contains_key(it));
            if places.len() < usize::from(u16::MAX)
                && let Some(sequence) = free.next()
            {
                places.insert(sequence, text);
            }
        }
        let mut statements = Vec::new();
        for (sequence, text) in places {
            let opener: Arc<str> = format!("route-map {mark}record permit {sequence}").into();
            let line = format!("description {text}").into();
            let outer: Context = [].into();
            statements.push(Statement { context: outer, line: opener.clone(), origin: None });
            statements.push(Statement { context: [opener].into(), line, origin: None });
        }
        statements
    }

    pub(crate) fn contains(&self, daemon: Daemon, place: &Place) -> bool {
        self.0.contains_key(&(daemon, place.clone()))
    }

    /// The lines of a daemon.
    pub(crate) fn of(&self, daemon: Daemon) -> impl Iterator<Item = (&Place, Option<&Arc<str>>)> {
        let of_it = self.0.iter().filter(move |((it, _), _)| *it == daemon);
        of_it.map(|((_, place), before)| (place, before.as_ref()))
    }

    /// The lines of a daemon, without what they replaced.
    pub(crate) fn places(&self, daemon: Daemon) -> BTreeSet<Place> {
        self.of(daemon).map(|(place, _)| place.clone()).collect()
    }

    /// What the lines of a daemon replaced.
    pub(crate) fn replaced(&self, daemon: Daemon) -> BTreeMap<Place, Arc<str>> {
        self.of(daemon)
            .filter_map(|(place, before)| Some((place.clone(), before?.clone())))
            .collect()
    }
}

fn text(daemon: Daemon, (context, line): &Place, before: Option<&str>) -> String {
    let lines: Vec<String> = context.iter().chain([line]).map(|it| escaped(it)).collect();
    let before = before.map(|it| format!("{WAS}{}", escaped(it))).unwrap_or_default();
    format!("{}: {}{before}", daemon.name(), lines.join(WITHIN))
}

fn entry(text: &str) -> Option<(EntryKey, Option<Arc<str>>)> {
    let (name, rest) = text.split_once(": ")?;
    let daemon = Daemon::ALL.into_iter().find(|it| it.name() == name)?;
    let (place, before) = match rest.split_once(WAS) {
        Some((place, before)) => (place, Some(plain(before)?.into())),
        None => (rest, None),
    };
    let lines: Option<Vec<Arc<str>>> =
        place.split(WITHIN).map(|it| Some(plain(it)?.into())).collect();
    let mut lines = lines?;
    let line = lines.pop()?;
    Some(((daemon, (lines.into(), line)), before))
}

/// The line with everything replaced that FRR changes in a description, or that separates our parts: `\x7c`.
fn escaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let bytes = line.as_bytes();
    for (place, byte) in bytes.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|it| bytes.get(it));
        let is_special = match byte {
            b'\\' | b'|' => true,
            // A blank at the end or behind a blank; a part of a separator.
            b' ' => before.is_none_or(|it| *it == b' ') || place.saturating_add(1) == bytes.len(),
            b'/' | b'w' => before == Some(&b' '),
            it => !it.is_ascii_graphic(),
        };
        match is_special {
            true => text.push_str(&format!("\\x{byte:02x}")),
            false => text.push(char::from(*byte)),
        }
    }
    text
}

fn plain(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split("\\x");
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "fairway-00000000-";

    fn place(lines: &[&str]) -> Place {
        let (line, context) = lines.split_last().unwrap();
        (context.iter().map(|it| Arc::from(*it)).collect(), Arc::from(*line))
    }

    #[test]
    fn what_is_recorded_is_read() {
        let entries = [
            (Daemon::Zebra, place(&["ip nht resolve-via-default"]), None),
            (
                Daemon::Bgpd,
                place(&["router bgp 65001", "bgp router-id 192.0.2.9"]),
                Some("bgp router-id 192.0.2.1"),
            ),
            (
                Daemon::Bgpd,
                place(&[
                    "router bgp 65001",
                    "neighbor 192.0.2.7 description a | b \\ c  / was w\u{fc}st ",
                ]),
                Some(" / "),
            ),
            (Daemon::Staticd, place(&["ip route 10.0.0.0/8 192.0.2.1"]), Some("x was y")),
        ];
        let entries =
            entries.map(|(daemon, place, before)| ((daemon, place), before.map(Arc::from)));
        let record = Record(entries.into_iter().collect());
        let configuration = Configuration { statements: record.statements(MARK) };
        assert_eq!(Record::read(&configuration, MARK), record);
        assert_eq!(Record::read(&configuration, "fairway-00000001-"), Record::default());
        // As FRR shows it.
        let mut text = String::new();
        for it in &configuration.statements {
            text.push_str(if it.context.is_empty() { "" } else { " " });
            text.push_str(&it.line);
            text.push('\n');
        }
        assert_eq!(Record::read(&Configuration::parse(&text), MARK), record, "{text}");
        assert!(!text.contains('|'), "{text}");
    }

    #[test]
    fn what_others_wrote_there_is_no_entry() {
        for text in
            ["", "bgpd", "bgpd:", "ospfd: line", "bgpd: a\\x", "bgpd: a\\xzz", "bgpd: \\xff"]
        {
            let statements = vec![Statement {
                context: [Arc::from(format!("route-map {MARK}record permit 5"))].into(),
                line: format!("description {text}").into(),
                origin: None,
            }];
            let read = Record::read(&Configuration { statements }, MARK);
            assert_eq!(read, Record::default(), "{text}");
        }
    }
}
