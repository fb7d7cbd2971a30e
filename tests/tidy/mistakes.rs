//! Are the planted mistakes of `tests/mutants` still mistakes of this source? Each is a text and what replaces
//! it; the suite that compiles them runs in `make test-all` alone. Used by main.

use std::collections::BTreeSet;
use std::fs;

use crate::variants::{BGP, Subject, Variant, subjects};
use crate::{assert_none, root};

/// Why a mistake cannot be planted in this checkout.
fn fault_of(subject: &Subject, variant: &Variant) -> Option<String> {
    let path = root().join(subject.path(variant));
    match fs::read_to_string(&path) {
        Ok(text) => variant.plant(&text).err().map(|error| error.to_string()),
        Err(error) => Some(format!("{}: {}: {error}", variant.name, path.display())),
    }
}

#[test]
fn a_planted_mistake_names_a_text_that_is_there() {
    let count: usize = subjects().map(|it| it.variants.len()).sum();
    assert!(count > 90, "the mistakes moved: only {count} found");
    let faults = |subject: &'static Subject| {
        subject.variants.iter().filter_map(|variant| fault_of(subject, variant))
    };
    assert_none(&subjects().flat_map(faults).collect::<Vec<_>>());
}

#[test]
fn what_holds_planted_mistakes_is_a_crate_with_tests_to_run() {
    let fault_of = |subject: &'static Subject| {
        let Subject { folder, package, rounds, seeds, .. } = subject;
        let path = root().join(folder).join("Cargo.toml");
        let manifest = fs::read_to_string(&path).unwrap_or_default();
        let is_package = manifest.contains(&format!("name = \"{package}\"\n"));
        let has_rounds = !rounds.is_empty() && seeds.parse::<u32>().is_ok();
        (!is_package || !has_rounds).then(|| format!("{folder} is not {package}, or has no rounds"))
    };
    assert_none(&subjects().filter_map(fault_of).collect::<Vec<_>>());
}

#[test]
fn a_story_that_is_to_notice_mistakes_is_there() {
    let read = |file: &str| fs::read_to_string(root().join("tests/attack").join(file)).unwrap();
    let (stories, fields) = (read("main.rs"), read("trials/mod.rs"));
    let is_there = |words: &&str| match words.strip_prefix("trials of ") {
        Some(field) => fields.contains(&format!("name: \"{field}\"")),
        None => stories.contains(&format!("::{}:", words.replace(' ', "_"))),
    };
    let words = subjects().filter(|it| it.is_story).flat_map(|it| it.rounds.concat());
    let lost = words.filter(|it| !is_there(it)).map(str::to_owned);
    assert_none(&lost.collect::<Vec<_>>());
}

#[test]
fn a_planted_mistake_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    let all = subjects().flat_map(|it| it.variants);
    let twice = all.filter(|variant| !names.insert(variant.name));
    assert_none(&twice.map(|variant| variant.name.to_owned()).collect::<Vec<_>>());
}

#[test]
fn the_rule_about_planted_mistakes_would_notice() {
    let variant = |file, right, wrong| Variant { name: "a mistake", file, right, wrong };
    let is_faulty = |variant: &Variant, words: &str| {
        let fault = fault_of(&BGP, variant);
        assert!(fault.as_ref().is_some_and(|it| it.contains(words)), "{fault:?}");
    };
    is_faulty(&variant("no_such_file.rs", "right", "wrong"), "No such file");
    is_faulty(&variant("lib.rs", "a text that is not there", "wrong"), "occurs 0 times");
    is_faulty(&variant("lib.rs", "mod ", "wrong"), "and must once");
    let text = variant("lib.rs", "one", "one").plant("one text");
    assert!(text.is_err_and(|error| error.to_string().contains("by itself")));
}
