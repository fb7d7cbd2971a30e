//! Stories, and samples of each source with what they come to.

mod bird;
mod frr;
mod keepalived;
mod kubernetes;
mod program;

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::{Outcome, faults, import};

/// What a text comes to.
fn imported(text: &str) -> Outcome {
    import("sample", text, None).expect("the text tells what it is")
}

fn folder(source: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests").join(source)
}

/// A sample, for as long as the tests run.
fn sample(source: &str, name: &str, extension: &str) -> &'static str {
    let path = folder(source).join(format!("{name}.{extension}"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Box::leak(text.into_boxed_str())
}

/// Compares what a sample comes to with the file `NAME.out`: what is said, then the objects. The objects have no faults.
fn compare(source: &str, name: &str, extension: &str) {
    let outcome = imported(sample(source, name, extension));
    let mut text = String::new();
    for line in outcome.untranslated_lines() {
        writeln!(text, "# not translated: {line}").unwrap();
    }
    for line in outcome.notes() {
        writeln!(text, "# note: {line}").unwrap();
    }
    text += &outcome.yaml();
    assert_eq!(faults(&outcome.yaml()), Vec::<String>::new(), "{source}/{name}");
    let path = folder(source).join(format!("{name}.out"));
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text,
        known,
        "{}: FAIRWAY_WRITE=1 cargo test -p fairway-import writes it",
        path.display()
    );
}
