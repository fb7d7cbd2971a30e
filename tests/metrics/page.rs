//! A page of metrics as Prometheus reads it, and nothing that it would only put up with.

use std::collections::{BTreeMap, BTreeSet};

/// The labels of a number.
pub(crate) type Labels = BTreeMap<String, String>;

/// One family, as the page has it.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// The name of each number with its labels, and the number.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

/// All families by name.
#[derive(Debug)]
pub(crate) struct Page(pub(crate) BTreeMap<String, Family>);

impl Page {
    /// Reads the format (text, version 0.0.4): HELP, TYPE and numbers of a family stand together,
    /// and no number is there twice.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let (mut current, mut seen) = (String::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                let family = Family { help: help.to_owned(), ..Family::default() };
                assert!(families.insert(name.to_owned(), family).is_none(), "twice: {line}");
                name.clone_into(&mut current);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current, "{line}");
                kind.clone_into(&mut families.get_mut(name).unwrap().kind);
            } else {
                let (name, labels, number) = sample(line);
                assert!(seen.insert((name.clone(), labels.clone())), "twice: {line}");
                let family = families.get_mut(&current).unwrap();
                let is_its_own = match family.kind.as_str() {
                    "histogram" => ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|it| name.strip_suffix(it) == Some(current.as_str())),
                    _ => name == current,
                };
                assert!(is_its_own, "{line} stands in {current}");
                family.samples.push((name, labels, number));
            }
        }
        Self(families)
    }

    /// The number with this name of which these labels are true; `None` where there is none.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let samples = self.0.values().flat_map(|family| &family.samples);
        let is_it = |(its_name, its_labels, _): &&(String, Labels, f64)| {
            let has = |(label, value): &(&str, &str)| {
                its_labels.get(*label).is_some_and(|it| it == value)
            };
            its_name == name && labels.iter().all(has)
        };
        let mut found = samples.filter(is_it);
        let first = found.next().map(|(_, _, number)| *number);
        assert!(found.next().is_none(), "{name} with {labels:?} is more than one");
        first
    }

    /// The same, where there has to be one.
    pub(crate) fn number(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).unwrap_or_else(|| panic!("no {name} with {labels:?}: {self:#?}"))
    }
}

/// `name{label="value",...} number`
fn sample(line: &str) -> (String, Labels, f64) {
    let (series, number) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no number: {line}"));
    let number = number.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let Some((name, labels)) = series.split_once('{') else {
        return (series.to_owned(), Labels::new(), number);
    };
    let mut labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("no end: {line}"));
    let mut all = Labels::new();
    while !labels.is_empty() {
        let (label, rest) = labels.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        let (value, rest) = value(rest).unwrap_or_else(|| panic!("no end: {line}"));
        assert!(all.insert(label.to_owned(), value).is_none(), "twice: {line}");
        labels = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name.to_owned(), all, number)
}

/// A value up to its quote, and what follows that.
fn value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}
