//! What is selected, and what is no selector.

use fairway_model::Labels;

use crate::{Selector, SelectorError};

fn labels() -> Labels {
    let pairs = [("rack", "a1"), ("zone", "west"), ("kubernetes.io/os", "linux"), ("empty", "")];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn selects(text: &str) -> bool {
    match Selector::parse(text) {
        Ok(selector) => selector.matches(&labels()),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn each_test_holds_for_what_it_says() {
    for text in [
        "",
        "  ",
        "all()",
        "has(rack)",
        "has( empty )",
        "rack == 'a1'",
        "rack = \"a1\"",
        "rack=='a1'",
        "kubernetes.io/os == 'linux'",
        "rack != 'b'",
        "rack in {'b', 'a1'}",
        "rack in {\"a1\"}",
        "rack not in {'b'}",
        "rack not  in { }",
        "rack contains '1'",
        "rack starts with 'a'",
        "rack  ends  with '1'",
        "!has(disk)",
        "!(rack == 'b')",
        "! ! has(rack)",
        "rack == 'b' || zone == 'west'",
        "rack == 'a1' && zone == 'west' && !has(disk)",
        "(rack == 'b' || rack == 'a1') && zone == 'west'",
        "empty == ''",
    ] {
        assert!(selects(text), "{text}");
    }
    for text in [
        "has(disk)",
        "rack == 'a'",
        "rack in {'b'}",
        "rack in {}",
        "rack not in {'a1'}",
        "zone contains 'E'",
        "rack starts with '1'",
        "rack ends with 'a'",
        "!all()",
        "rack == 'b' || zone == 'east'",
    ] {
        assert!(!selects(text), "{text}");
    }
}

#[test]
fn and_binds_closer_than_or() {
    assert!(selects("zone == 'west' || has(disk) && has(disk)"));
    assert!(!selects("(zone == 'west' || has(disk)) && has(disk)"));
}

#[test]
fn what_a_missing_label_is_unlike() {
    assert!(selects("disk != 'ssd' && disk not in {'ssd'}"));
    assert!(!selects("disk == '' || disk in {''} || disk contains '' || disk starts with ''"));
}

#[test]
fn what_is_no_selector_is_named_with_its_place() {
    for (text, expected) in [
        (
            "rack",
            "at character 5: expected `==`, `!=`, `in`, `not in`, `contains`, `starts with`, `ends with` or `(`, found \"\"",
        ),
        ("rack == a", "at character 9: expected a value in quotes, found \"a\""),
        ("rack == 'a", "at character 9: expected a value with a quote at its end, found \"'a\""),
        ("rack == 'a' zone", "at character 13: expected `&&`, `||` or the end, found \"zone\""),
        ("&& has(a)", "at character 1: expected a label, found \"&& has(a)\""),
        ("has(a", "at character 6: expected `)`, found \"\""),
        ("global()", "at character 8: expected `all()` or `has(LABEL)`, found \")\""),
        ("rack in 'a'", "at character 9: expected `{`, found \"'a'\""),
        ("rack in {'a' 'b'}", "at character 14: expected `,` or `}`, found \"'b'}\""),
        (
            "rack inside {'a'}",
            "at character 6: expected `==`, `!=`, `in`, `not in`, `contains`, `starts with`, `ends with` or `(`, found \"inside {'a'}\"",
        ),
        ("(has(a)", "at character 8: expected `)`, found \"\""),
        (
            "größe == 'a'",
            "at character 3: expected `==`, `!=`, `in`, `not in`, `contains`, `starts with`, `ends with` or `(`, found \"öße == 'a'\"",
        ),
    ] {
        let error = Selector::parse(text).map(drop).map_err(|it| it.to_string());
        assert_eq!(error, Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn a_selector_has_bounds() {
    let long = format!("rack == '{}'", "a".repeat(1024));
    assert_eq!(Selector::parse(&long), Err(SelectorError::TooLong(1034)));
    for deep in ["!".repeat(500) + "all()", "(".repeat(500) + "all()" + &")".repeat(500)] {
        assert_eq!(Selector::parse(&deep), Err(SelectorError::TooDeep));
    }
    let wide = vec!["all()"; 100].join(" && ");
    assert!(selects(&wide));
}
