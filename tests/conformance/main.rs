//! Which requirement of which RFC is shown by which test? Reads the annotations of all tests and
//! keeps `docs/conformance.md` true to them: `cargo test --test conformance`, or `make docs` to
//! write it again.
//!
//! An annotation is a comment line above a test, in it, or above a row of a table that it runs:
//!
//! ```text
//! //= RFC 4271 §6.5 MUST: an expired hold timer is answered with 4/0.
//! //+ RFC 4271 §6.5: an expired hold timer is answered with 4/0.
//! ```
//!
//! The first form makes a row of the page, once for each requirement. The second says that this
//! test shows the same row, too.

// What fails here fails the test.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice)]

mod annotation;
mod exceptions;
mod page;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use annotation::Row;
use source::{RUN_ELSEWHERE, SourceFile};

/// Where tests are. This test is left out: its texts are about annotations.
const FOLDERS: &[&str] = &["crates", "tests"];
const LEFT_OUT: &str = "tests/conformance";
const PAGE: &str = "docs/conformance.md";
/// Fewer rows than this mean that the search for them is broken.
const ROWS_MIN: usize = 200;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(below) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths
        .into_iter()
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

fn sources() -> Vec<SourceFile> {
    let files = FOLDERS.iter().flat_map(|folder| rust_files(&root().join(folder)));
    let sources = files.map(|path| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        SourceFile::new(&name, &fs::read_to_string(&path).unwrap())
    });
    sources.filter(|source| !source.path.starts_with(LEFT_OUT)).collect()
}

fn rows() -> Vec<Row> {
    annotation::collect(&sources()).unwrap_or_else(|faults| panic!("\n{}\n", faults.join("\n")))
}

#[test]
fn every_annotation_is_well_formed_unique_and_belongs_to_a_test() {
    let rows = rows();
    assert!(rows.len() >= ROWS_MIN, "only {} rows found", rows.len());
    let unknown = rows.iter().find(|row| !page::is_known(row.requirement.rfc));
    assert!(unknown.is_none(), "the page has no section for {unknown:?}");
}

/// The corpus is left out: it has a harness of its own, and its test is all of it.
#[test]
fn the_test_that_is_said_to_run_a_table_exists() {
    let sources = sources();
    for (_, _, test) in RUN_ELSEWHERE.iter().filter(|(files, ..)| files.ends_with(".rs")) {
        let is_it = |line: &String| line.starts_with(&format!("fn {test}("));
        assert!(sources.iter().any(|it| it.lines.iter().any(is_it)), "no test is named {test}");
    }
}

#[test]
fn every_exception_has_a_reason_and_is_no_row() {
    let rows = rows();
    let faults = exceptions::faults(&rows);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn the_page_says_what_the_tests_show() {
    let page = page::render(&rows(), exceptions::EXCEPTIONS);
    let path = root().join(PAGE);
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    assert!(present == page, "{PAGE} is stale: run make docs");
}
