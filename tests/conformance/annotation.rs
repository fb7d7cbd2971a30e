//! From annotations to rows: one requirement, its level, and the tests that show it. Every fault
//! is reported with file and line. Called by main; knows no page.

use std::collections::BTreeMap;
use std::fmt;

use crate::source::SourceFile;

const MAKES_A_ROW: &str = "//= ";
const SHOWS_IT_TOO: &str = "//+ ";

/// How much an RFC insists (RFC 2119). SHALL is MUST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Must,
    MustNot,
    Should,
    ShouldNot,
    May,
}

impl Level {
    pub(crate) const ALL: [Self; 5] =
        [Self::Must, Self::MustNot, Self::Should, Self::ShouldNot, Self::May];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::MustNot => "MUST NOT",
            Self::Should => "SHOULD",
            Self::ShouldNot => "SHOULD NOT",
            Self::May => "MAY",
        }
    }
}

/// What is required, and where that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) rfc: u32,
    pub(crate) section: String,
    pub(crate) text: String,
}

impl Requirement {
    /// The order of the page: by RFC, then by section as people count, then by text.
    fn key(&self) -> (u32, Vec<(u32, String)>, &str) {
        let part = |part: &str| (part.parse().unwrap_or(u32::MAX), part.to_owned());
        let parts = self.section.split(['.', ' ']).map(part);
        (self.rfc, parts.collect(), &self.text)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RFC {} §{}: {}", self.rfc, self.section, self.text)
    }
}

/// A test that shows a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) path: String,
    pub(crate) test: String,
    /// The name of the row, when it is one of a table.
    pub(crate) case: Option<String>,
}

/// A row of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) requirement: Requirement,
    pub(crate) level: Level,
    pub(crate) proofs: Vec<Proof>,
}

/// All rows in the order of the page, or all faults.
pub(crate) fn collect(sources: &[SourceFile]) -> Result<Vec<Row>, Vec<String>> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut too = Vec::new();
    let mut faults = Vec::new();
    for source in sources {
        for (at, line) in source.lines.iter().enumerate() {
            let line = line.trim();
            if !line.starts_with("//=") && !line.starts_with("//+") {
                continue;
            }
            let place = format!("{}:{}", source.path, at + 1);
            let Some(proof) = proof(source, at) else {
                faults.push(format!("{place}: belongs to no test"));
                continue;
            };
            match parse(line) {
                Ok((requirement, Some(level))) => {
                    let key = requirement.to_string();
                    let row = Row { requirement, level, proofs: vec![proof] };
                    if rows.insert(key.clone(), row).is_some() {
                        faults.push(format!("{place}: is there already: {key}"));
                    }
                }
                Ok((requirement, None)) => too.push((place, requirement.to_string(), proof)),
                Err(what) => faults.push(format!("{place}: {what}")),
            }
        }
    }
    for (place, key, proof) in too {
        match rows.get_mut(&key) {
            Some(row) => row.proofs.push(proof),
            None => faults.push(format!("{place}: no row says: {key}")),
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by(|a, b| a.requirement.key().cmp(&b.requirement.key()));
    if faults.is_empty() { Ok(rows) } else { Err(faults) }
}

/// A level where the line makes a row, none where it points to one.
pub(crate) fn parse(line: &str) -> Result<(Requirement, Option<Level>), String> {
    let form = "expected «//= RFC 4271 §6.5 MUST: what is required.» or «//+ RFC 4271 §6.5: ...»";
    let makes_a_row = line.starts_with(MAKES_A_ROW);
    let rest = line.strip_prefix(MAKES_A_ROW).or_else(|| line.strip_prefix(SHOWS_IT_TOO));
    let (head, text) = rest.and_then(|it| it.split_once(": ")).ok_or(form)?;
    let (rfc, place) = head.strip_prefix("RFC ").and_then(|it| it.split_once(" §")).ok_or(form)?;
    let rfc: u32 = rfc.parse().map_err(|_| form)?;
    // MUST would end MUST NOT, too, if the longer one were not looked for first.
    let mut levels = Level::ALL;
    levels.sort_by_key(|level| std::cmp::Reverse(level.name().len()));
    let named = levels.into_iter().find_map(|level| {
        let section = place.strip_suffix(level.name())?.strip_suffix(' ')?;
        Some((section, level))
    });
    let (section, level) = match (named, makes_a_row) {
        (Some((section, level)), true) => (section, Some(level)),
        (None, false) => (place, None),
        (None, true) => {
            return Err("names no level: MUST, MUST NOT, SHOULD, SHOULD NOT, MAY".into());
        }
        (Some(_), false) => return Err("names a level; only the row itself does".into()),
    };
    if section.is_empty() || section.ends_with(['.', ' ']) {
        return Err(format!("§{section} is no section"));
    }
    if !text.ends_with('.') || text.trim() != text || text.len() < 10 {
        return Err("expected one sentence that ends with a full stop".to_owned());
    }
    let (section, text) = (section.to_owned(), text.to_owned());
    Ok((Requirement { rfc, section, text }, level))
}

fn proof(source: &SourceFile, at: usize) -> Option<Proof> {
    let test = source.test_of(at)?.to_owned();
    let below = source.lines[at..].iter().map(|line| line.trim());
    let next = below.skip_while(|line| line.starts_with("//")).take(2).collect::<String>();
    let case = cell(&next).or_else(|| named_row(&next));
    Some(Proof { path: source.path.clone(), test, case })
}

/// A cell of the state machine begins with state and event: `(Idle, ManualStart, `.
fn cell(row: &str) -> Option<String> {
    let mut words = row.strip_prefix('(')?.split(", ");
    let (state, event) = (words.next()?, words.next()?);
    let is_word = |text: &str| text.chars().all(char::is_alphabetic);
    (is_word(state) && is_word(event)).then(|| format!("{state} × {event}"))
}

/// Another row begins with its name, or with little more before it: `row("...", `,
/// `entry(InsteadOfOpen, "...", `, `old(established("...", `.
fn named_row(row: &str) -> Option<String> {
    let (call, rest) = row.split_once('"')?;
    let is_call = call.contains('(')
        && call.chars().all(|it| it.is_alphanumeric() || matches!(it, '(' | ',' | ' '));
    is_call.then(|| rest.split('"').next().map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_a_test(annotations: &[&str]) -> SourceFile {
        let text = format!("#[test]\nfn shows_it() {{\n    {}\n}}\n", annotations.join("\n    "));
        SourceFile::new("tests/x.rs", &text)
    }

    fn faults(annotations: &[&str]) -> Vec<String> {
        collect(&[in_a_test(annotations)]).unwrap_err()
    }

    #[test]
    fn a_row_has_its_requirement_level_and_tests() {
        let annotations = [
            "//= RFC 4271 §6.5 MUST NOT: it is never done.",
            "//+ RFC 4271 §6.5: it is never done.",
        ];
        let rows = collect(&[in_a_test(&annotations)]).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].requirement.rfc, rows[0].level), (4271, Level::MustNot));
        assert_eq!(rows[0].requirement.section, "6.5");
        assert_eq!(rows[0].proofs.len(), 2);
        assert_eq!(rows[0].proofs[0].test, "shows_it");
    }

    #[test]
    fn the_row_of_a_table_is_named() {
        let text = "#[test]\nfn runs() {\n    check(&table());\n}\nfn table() {\n    \
                    //= RFC 4271 §6.5 MUST: it is done.\n    rows(\n        \"a name\", 1),\n}\n";
        let rows = collect(&[SourceFile::new("tests/x.rs", text)]).unwrap();
        assert_eq!(rows[0].proofs[0].case.as_deref(), Some("a name"));
        for row in ["row(\"a name\", 1),", "old(entry(Late, \"a name\", \"x\")),"] {
            assert_eq!(named_row(row).as_deref(), Some("a name"), "{row}");
        }
        let of_a_state = "(Idle, ManualStop, Goes(Idle, \"\", \"\")),";
        assert_eq!(cell(of_a_state).as_deref(), Some("Idle × ManualStop"));
        for code in ["assert_eq!(a, \"b\");", "let told = told(\"b\");", "#[test]fn it() {"] {
            assert_eq!(cell(code).or_else(|| named_row(code)), None, "{code}");
        }
    }

    #[test]
    fn malformed_double_and_homeless_annotations_are_told_with_file_and_line() {
        for (line, what) in [
            ("//= RFC 4271 6.5 MUST: it is done.", "expected «//= RFC"),
            ("//=RFC 4271 §6.5 MUST: it is done.", "expected «//= RFC"),
            ("//= RFC x §6.5 MUST: it is done.", "expected «//= RFC"),
            ("//= RFC 4271 §6.5: it is done.", "names no level"),
            ("//= RFC 4271 §6.5 must: it is done.", "names no level"),
            ("//= RFC 4271 §6.5 MUST: it is done", "full stop"),
            ("//= RFC 4271 § MUST: it is done.", "is no section"),
            ("//+ RFC 4271 §6.5 MUST: it is done.", "names a level"),
            ("//+ RFC 4271 §6.5: it is done.", "no row says"),
        ] {
            let faults = faults(&[line]);
            assert_eq!(faults.len(), 1, "{line}: {faults:?}");
            assert!(faults[0].starts_with("tests/x.rs:3: "), "{faults:?}");
            assert!(faults[0].contains(what), "{line}: {faults:?}");
        }
        let twice = ["//= RFC 4271 §6.5 MUST: it is done."; 2];
        assert!(faults(&twice)[0].contains("tests/x.rs:4: is there already"));
        let homeless = SourceFile::new("tests/x.rs", "//= RFC 4271 §6.5 MUST: it is done.\n\n");
        assert!(collect(&[homeless]).unwrap_err()[0].contains("belongs to no test"));
    }

    #[test]
    fn rows_stand_in_the_order_of_sections() {
        let annotations = ["9.1", "10", "6.2", "3 (g)", "6.10", "E", "6"]
            .map(|section| format!("//= RFC 4271 §{section} MUST: it is done."));
        let annotations: Vec<&str> = annotations.iter().map(String::as_str).collect();
        let rows = collect(&[in_a_test(&annotations)]).unwrap();
        let sections: Vec<_> = rows.iter().map(|row| row.requirement.section.as_str()).collect();
        assert_eq!(sections, ["3 (g)", "6", "6.2", "6.10", "9.1", "10", "E"]);
    }
}
