//! Pages of the documentation that are tables of the source. A page that is stale fails; `make docs`
//! writes it again.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use fairway_daemon::metrics::FAMILIES;
use fairway_model::Kind;
use fairway_resources::CustomResourceDefinition;
use fairway_resources::change::{Change, Part};

const CHANGES: &str = "docs/changes.md";

const HEAD: &str = "\
# What a change does while the daemon runs

A file that is written, moved in place or removed takes effect at once, and nothing has to be
restarted. This page says of each field what routers notice of its change. It is made from the source
by `make docs`; a test makes each of these changes under a running daemon, with a router at the other
end that sees everything, and looks that this happens and nothing else. A field that is missing here
fails a test, too.

What is said of a field is said of the peers, routes and Services that it is about. All others are
left alone: their sessions stay up, and their routes are not even sent again. Of several changes at
once the strongest counts.

- **Nothing** means no UPDATE at all.
- **One UPDATE in place of a route**: BGP replaces a route by naming it again (RFC 4271 §3.1), so the
  router has it all the time.
- **A new session** is a Cease 6/6 (Other Configuration Change) and a dial at once: what both sides
  agreed on, or the connection itself, was fixed when the session began. A router drops our routes for
  that moment, unless both sides have graceful restart (`BGPPeer.enableGracefulRestart`, RFC 4724): it
  then keeps our routes until the new session has told them again, and nothing is lost. Where the
  router would keep them over a lost connection but not over a NOTIFICATION (RFC 8538), the connection
  is closed without the Cease. A session that is down is tried again with the new settings at once.
- **A fault** changes nothing: the last good version of the object stays in force, across restarts
  too, and `fairway show config` lists it as stale. The log names file, line and field.
- **Addresses** of Services stay while they fit, whatever changes around them.
";

/// The page: a section for each kind, and in it a line for each run of lines that say the same.
fn changes() -> String {
    let mut page = HEAD.to_owned();
    for kind in Kind::ALL {
        let _ = writeln!(page, "\n## {kind}\n\n| field | what its change does |\n|---|---|");
        let same = |one: &Change, next: &Change| {
            let are_fields = [one, next].iter().all(|it| matches!(it.part, Part::Field(_)));
            are_fields && (one.when, one.effect) == (next.when, next.effect)
        };
        for lines in Change::all(kind).chunk_by(same) {
            let Some(first) = lines.first() else { continue };
            let names: Vec<_> = lines.iter().map(|line| name(line.part)).collect();
            let when =
                if first.when.is_empty() { String::new() } else { format!(" ({})", first.when) };
            let _ = writeln!(page, "| {}{when} | {} |", names.join(", "), first.effect.words());
        }
    }
    page
}

/// What a part is called; most fields are in `spec`, and are written without it.
fn name(part: Part) -> String {
    match part {
        Part::Field(path) => format!("`{}`", path.strip_prefix("spec.").unwrap_or(path)),
        Part::Key(map, key) => format!("`{key}` in `{map}`"),
        Part::OtherFields => "*any other field*".to_owned(),
        Part::Appears => "*a new object*".to_owned(),
        Part::Vanishes => "*the object is removed*".to_owned(),
        Part::Breaks => "*the object has a fault*".to_owned(),
        Part::Moves => "*the object moves to another file*".to_owned(),
    }
}

#[test]
fn the_page_on_changes_is_the_table_of_the_source() {
    let page = changes();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(CHANGES);
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == page, "{CHANGES} is stale: run make docs");
}

#[test]
fn the_definitions_in_deploy_are_those_of_the_source() {
    are_those_of_the_source("deploy/crds", &["Kustomization"]);
    // The chart is whole by itself, wherever its folder is copied to.
    are_those_of_the_source("deploy/helm/fairway/files/crds", &[]);
}

/// `others` are written by hand.
fn are_those_of_the_source(folder: &str, others: &[&str]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut expected: BTreeSet<PathBuf> = others.iter().map(|it| folder.join(it)).collect();
    for definition in CustomResourceDefinition::all() {
        let path = folder.join(format!("{}.yaml", definition.file_name));
        if std::env::var_os("FAIRWAY_WRITE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, definition.yaml()).unwrap();
        }
        let present = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(present == definition.yaml(), "{} is stale: run make docs", path.display());
        expected.insert(path);
    }
    let present = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(present.collect::<BTreeSet<_>>(), expected, "files that nobody writes");
}

const METRICS: &str = "docs/metrics.md";

/// The page with the table as the source has it, between the two comments that mark its place.
fn with_metrics(page: &str) -> String {
    let (begin, end) = ("<!-- table of families -->\n", "<!-- end of the table -->\n");
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let mut table = "\n| name | type | labels | of | meaning |\n|---|---|---|---|---|\n".to_owned();
    for family in FAMILIES {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, of) = (family.name, family.kind.name(), family.shown.words());
        let (labels, help) = (labels.join(" "), family.help);
        let _ = writeln!(table, "| `{name}` | {kind} | {labels} | {of} | {help} |");
    }
    format!("{before}{begin}{table}\n{end}{after}")
}

#[test]
fn the_page_on_metrics_lists_those_of_the_source() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(METRICS);
    let present = std::fs::read_to_string(&path).unwrap();
    let page = with_metrics(&present);
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    } else {
        assert!(present == page, "{METRICS} is stale: run make docs");
    }
}

/// The pages with outputs of commands, and how many there are at least.
const PLANS: [(&str, usize); 2] = [("docs/plan.md", 4), ("docs/proxy.md", 2)];

/// The page with the output of each command in its `console` blocks as it is now.
fn with_output(page: &str) -> String {
    let mut written = String::new();
    let mut parts = page.split("```console\n");
    written.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let (prompt, _) = block.split_once('\n').unwrap();
        let command = prompt.strip_prefix("$ ").unwrap();
        let _ = write!(written, "```console\n{prompt}\n{}```{rest}", output(command));
    }
    written
}

/// What a command prints, on the folders that it names from here.
fn output(command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = match words.next().unwrap() {
        "fairway" => env!("CARGO_BIN_EXE_fairway"),
        other => other,
    };
    let output = std::process::Command::new(program)
        .args(words)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("FAIRWAY_NODE")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_pages_on_plans_show_what_is_printed() {
    for (name, commands) in PLANS {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
        let present = std::fs::read_to_string(&path).unwrap();
        let page = with_output(&present);
        assert!(page.matches("$ fairway ").count() >= commands, "{name}");
        if std::env::var_os("FAIRWAY_WRITE").is_some() {
            std::fs::write(&path, &page).unwrap();
        } else {
            assert!(present == page, "{name} is stale: run make docs");
        }
    }
}
