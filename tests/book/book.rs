//! Is the book whole? Its table of contents, its links, its words, and mdBook's own opinion. Used by main.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::suite::Cell;

use crate::page::Page;

const CONTENTS: &str = "docs/SUMMARY.md";
const METRICS: &str = "docs/metrics.md";

/// Pages where the other spelling is quoted, or that are made from the source, which has it.
const KEPT: [&str; 5] = [
    "CONTRIBUTING.md",
    "docs/conformance.md",
    "docs/corpus.md",
    "docs/interop.md",
    "docs/rules.md",
];

fn none(what: &str, offences: &[String]) -> Result<()> {
    ensure!(offences.is_empty(), "{what}:\n  {}", offences.join("\n  "));
    Ok(())
}

/// A page that is not in it is not built.
pub(crate) fn contents() -> Result<()> {
    let pages = Page::of_book()?;
    let contents = pages.iter().find(|it| it.path == Path::new(CONTENTS)).context(CONTENTS)?;
    let mut offences = Vec::new();
    let mut listed = BTreeSet::new();
    for link in &contents.links {
        let path = Path::new("docs").join(link);
        if !listed.insert(path.clone()) {
            offences.push(format!("{}: is there twice", path.display()));
        }
    }
    let present: BTreeSet<PathBuf> = pages.iter().map(|page| page.path.clone()).collect();
    for path in present.difference(&listed).filter(|path| *path != Path::new(CONTENTS)) {
        offences.push(format!("{}: is missing", path.display()));
    }
    for path in listed.difference(&present) {
        offences.push(format!("{}: is no page", path.display()));
    }
    none(CONTENTS, &offences)
}

/// The file that a link leads to, from the checkout on, and the anchor in it.
fn target_of(page: &Page, link: &str) -> (PathBuf, Option<String>) {
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor.to_owned())),
        None => (link, None),
    };
    if file.is_empty() {
        return (page.path.clone(), anchor);
    }
    let mut path = PathBuf::new();
    for part in page.path.parent().unwrap_or(Path::new("")).join(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    (path, anchor)
}

fn is_elsewhere(link: &str) -> bool {
    link.starts_with("https://") || link.starts_with("http://")
}

/// A link names a file of the repository, and a heading that is there.
pub(crate) fn links() -> Result<()> {
    let pages = Page::all()?;
    let mut offences = Vec::new();
    let mut count = 0;
    for page in &pages {
        for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
            count += 1;
            let (path, anchor) = target_of(page, link);
            if !path.exists() {
                offences.push(format!("{}: {link}: there is no such file", page.path.display()));
            }
            let Some(anchor) = anchor else { continue };
            let target = pages.iter().find(|it| it.path == path);
            if !target.is_some_and(|it| it.anchors.contains(&anchor)) {
                offences.push(format!("{}: {link}: there is no such heading", page.path.display()));
            }
        }
    }
    ensure!(count > 300, "only {count} links are found");
    none("links", &offences)
}

/// The word of FRR's commands, which users search for.
pub(crate) fn spelling() -> Result<()> {
    let mut offences = Vec::new();
    for page in Page::all()?.iter().filter(|it| !KEPT.iter().any(|kept| it.path.ends_with(kept))) {
        let mut is_generated = false;
        for (number, line) in page.text.lines().enumerate() {
            // Tables of the source are between two of these.
            if line.starts_with("<!--") && !line.contains("walk:") {
                is_generated = !line.contains("end");
            }
            let is_path = line.contains("neighbour.rs") || line.contains("/neighbour");
            if line.to_lowercase().contains("neighbour") && !is_generated && !is_path {
                offences.push(format!("{}:{}: {line}", page.path.display(), number + 1));
            }
        }
    }
    none("neighbour", &offences)
}

/// Metrics have names that are easily misspelt, or that are renamed.
pub(crate) fn metrics() -> Result<()> {
    let pages = Page::of_book()?;
    let known = pages.iter().find(|it| it.path == Path::new(METRICS)).context(METRICS)?;
    let known: BTreeSet<&str> = known.inline.iter().map(String::as_str).collect();
    let is_name = |code: &&str| {
        (code.starts_with("fairway_") || code.starts_with("metallb_"))
            && !code.contains(['*', ':', '.'])
    };
    let mut offences = Vec::new();
    for page in &pages {
        let names =
            page.inline.iter().map(|code| code.split(['{', ' ']).next().unwrap_or_default());
        for name in names.filter(is_name) {
            if !known.contains(name) {
                offences.push(format!("{}: {name}", page.path.display()));
            }
        }
    }
    none("metrics that nobody counts", &offences)
}

/// Why mdBook cannot be run here.
pub(crate) fn without_mdbook() -> Option<&'static str> {
    let found = Command::new("mdbook").arg("--version").output();
    found.is_err().then_some("there is no mdbook; `make book` says how to get it")
}

/// As `make book` does it, without a warning; links of the pages lead to files.
pub(crate) fn is_built(cell: &Cell) -> Result<()> {
    let folder = cell.directory.join("book");
    let mut command = Command::new("scripts/book.sh");
    let output = command.arg(&folder).output().context("scripts/book.sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_quiet = !said.contains("WARN") && !said.contains("ERROR");
    ensure!(output.status.success() && is_quiet, "{said}");
    let mut offences = Vec::new();
    for page in Page::of_book()?.iter().filter(|page| page.path != Path::new(CONTENTS)) {
        let built = folder.join(page.path.with_extension("html"));
        let text = fs::read_to_string(&built).with_context(|| built.display().to_string())?;
        let links = ["href=\"", "src=\""].into_iter().flat_map(|mark| text.split(mark).skip(1));
        let links = links.filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| !is_elsewhere(link) && !link.starts_with('#')) {
            let file = link.split('#').next().unwrap_or_default();
            let target = built.parent().context("a folder")?.join(file);
            if !target.exists() {
                offences.push(format!("{}: {link}", built.display()));
            }
        }
    }
    none("links of the built book", &offences)
}
