//! `docs/metallb-fields.md`: the fields of MetalLB's definitions beside ours.
//!
//! Made from `metallb.txt`. Whether our definitions are as that table says is for `tests`, so the page
//! cannot differ from what `fairway crds` prints.

use std::fmt::Write;
use std::path::Path;

use super::METALLB_FIELDS;

const PAGE: &str = "docs/metallb-fields.md";

/// The version of MetalLB that the table is about.
const METALLB_VERSION: &str = "0.16.2";

const HEAD: &str = "\
Fairway's CustomResourceDefinitions replace MetalLB's, and accept what those accept. This page compares
both, field by field: types, defaults and bounds of the schemas, which the API server checks. The parsers
check more: [rules.md](rules.md) has every rule with its message, and [resources.md](resources.md) says what
each field does.

- **the same**: Fairway's schema has the field with the same type, default and bounds.
- **-**: MetalLB has no such field. Fairway's own fields are optional, and an object without them means what
  it means to MetalLB. MetalLB's definitions drop them from objects that are written after
  [the way back](migrate-from-metallb.md#the-way-back).
- A rule is a condition in CEL, as \"cannot be changed after creation\".

This page is made by `make docs` from a list of MetalLB's fields; a test compares the list with
`fairway crds`.
";

/// A line of the table: MetalLB's side, ours, and the reason for the difference.
struct Row<'a> {
    metallb: Option<&'a str>,
    ours: &'a str,
    why: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Self {
        if let Some(ours) = line.strip_prefix("+ ") {
            return Self { metallb: None, ours, why: "" };
        }
        let Some(difference) = line.strip_prefix("~ ") else {
            return Self { metallb: Some(line), ours: line, why: "" };
        };
        let (metallb, rest) = difference.split_once(" => ").unwrap();
        let (ours, why) = rest.split_once(" # ").unwrap();
        Self { metallb: Some(metallb), ours, why }
    }

    fn print(&self, page: &mut String) {
        let (name, ours) = described(self.ours);
        let metallb = self.metallb.map_or_else(|| "-".to_owned(), |line| described(line).1);
        let ours = if metallb == ours { "the same".to_owned() } else { ours };
        let why = if self.why.is_empty() { String::new() } else { format!(". {}", self.why) };
        writeln!(page, "| {name} | {metallb} | {ours}{why} |").unwrap();
    }
}

/// The name of a field or column, and its type with default and bounds, in words.
fn described(line: &str) -> (String, String) {
    if let Some(column) = line.strip_prefix("| ") {
        let (heading, path) = column.split_once(" .").unwrap();
        let heading = heading.rsplit_once(' ').unwrap().0;
        return (format!("column {heading} of `kubectl get`"), format!("`.{path}`"));
    }
    let (path, rest) = line.split_once(' ').unwrap();
    let (rest, choices) = match rest.split_once(" {") {
        Some((before, choices)) => (before, choices.split_once('}').unwrap().0),
        None => (rest, ""),
    };
    let words: Vec<&str> = rest.split(' ').collect();
    let mut parts: Vec<String> = Vec::new();
    let mut position = 0;
    while let Some(word) = words.get(position) {
        let next = words.get(position + 1).copied().unwrap_or_default();
        let (part, taken) = match *word {
            "selector" => ("LabelSelector".to_owned(), 1),
            "with" | "keyed" => (words[position..].join(" "), words.len()),
            count if next == "rules" && count == "1" => ("1 rule".to_owned(), 2),
            count if next == "rules" => (format!("{count} rules"), 2),
            word if word.starts_with('=') => {
                (format!("default `{}`", word.trim_start_matches('=')), 1)
            }
            word if word.contains("..") => (bounds(word), 1),
            word => (word.to_owned(), 1),
        };
        parts.push(part);
        position += taken;
    }
    if !choices.is_empty() {
        let choices: Vec<_> = choices.split(' ').map(|it| format!("`{it}`")).collect();
        parts.push(choices.join(" or "));
    }
    (format!("`{path}`"), parts.join(", "))
}

fn bounds(text: &str) -> String {
    match text.split_once("..").unwrap() {
        (least, "") => format!("{least} or more"),
        (least, most) => format!("{least} to {most}"),
    }
}

/// The page: a section for each version of a kind.
fn page() -> String {
    let mut page = format!("# Fields of MetalLB {METALLB_VERSION} and of Fairway\n\n{HEAD}");
    let mut is_head = true;
    for line in METALLB_FIELDS.lines().filter(|line| !line.starts_with('#')) {
        if line.is_empty() {
            is_head = true;
        } else if is_head {
            is_head = false;
            let (kind, more) = line.split_once(' ').unwrap();
            let version = more.replace(" stored", "").replace(" deprecated", " (deprecated)");
            writeln!(page, "\n## {kind} {version}\n").unwrap();
            writeln!(page, "| field | MetalLB {METALLB_VERSION} | Fairway |\n|---|---|---|")
                .unwrap();
        } else if !line.starts_with('|') {
            Row::of(line).print(&mut page);
        }
    }
    page
}

#[test]
fn the_page_about_metallbs_fields_is_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = page();
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == page, "{PAGE} is stale: run make docs");
}

#[test]
fn the_page_says_where_the_bounds_differ() {
    let page = page();
    for row in [
        "| `spec.asPathPrepend` | integer, 1 to 10 | integer, 0 to 16. MetalLB has it in frr-k8s mode only",
        "| `spec.peerPort` | integer, 0 to 16384 | the same |",
        "| `spec.peerPort` | integer, default `179`, 1 to 16384 | the same |",
        "| `spec.med` | - | integer, 0 to 4294967295 |",
        "| `spec.aggregationLength` | integer, default `32`, 1 or more | the same |",
        "| `spec.dynamicASN` | string, `internal` or `external` | the same |",
    ] {
        assert!(page.contains(row), "{row}\n{page}");
    }
}
