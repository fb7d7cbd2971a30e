//! Are the planted mistakes of `tests/mutants` still mistakes of this source? Each is a text and what replaces
//! it; the suite that compiles them runs in `make test-all` alone. Used by main.

use std::collections::BTreeSet;
use std::fs;

use crate::variants::{VARIANTS, Variant};
use crate::{assert_none, root};

/// Why a mistake cannot be planted in this checkout.
fn fault_of(variant: &Variant) -> Option<String> {
    let path = root().join(variant.path());
    match fs::read_to_string(&path) {
        Ok(text) => variant.plant(&text).err().map(|error| error.to_string()),
        Err(error) => Some(format!("{}: {}: {error}", variant.name, path.display())),
    }
}

#[test]
fn a_planted_mistake_names_a_text_that_is_there() {
    assert!(VARIANTS.len() > 70, "the mistakes moved: only {} found", VARIANTS.len());
    assert_none(&VARIANTS.iter().filter_map(fault_of).collect::<Vec<_>>());
}

#[test]
fn a_planted_mistake_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    let twice = VARIANTS.iter().filter(|variant| !names.insert(variant.name));
    assert_none(&twice.map(|variant| variant.name.to_owned()).collect::<Vec<_>>());
}

#[test]
fn the_rule_about_planted_mistakes_would_notice() {
    let variant = |file, right, wrong| Variant { name: "a mistake", file, right, wrong };
    let is_faulty = |variant: &Variant, words: &str| {
        let fault = fault_of(variant);
        assert!(fault.as_ref().is_some_and(|it| it.contains(words)), "{fault:?}");
    };
    is_faulty(&variant("no_such_file.rs", "right", "wrong"), "No such file");
    is_faulty(&variant("lib.rs", "a text that is not there", "wrong"), "occurs 0 times");
    is_faulty(&variant("lib.rs", "mod ", "wrong"), "and must once");
    let text = variant("lib.rs", "one", "one").plant("one text");
    assert!(text.is_err_and(|error| error.to_string().contains("by itself")));
}
