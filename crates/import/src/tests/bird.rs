//! Configurations of BIRD.

use crate::{Outcome, Program, import};

fn imported(text: &str) -> Outcome {
    import("sample", text, Some(Program::Bird)).expect("a program that is said is not guessed")
}

#[test]
fn a_configuration_of_bird_comes_to_what_its_file_says() {
    super::compare("bird", "edge", "conf");
}

#[test]
fn a_filter_lets_nothing_through() {
    for policy in ["filter F", "where net ~ [ 10.0.0.0/8 ]", "filter { accept; }"] {
        let outcome = imported(&format!(
            "protocol bgp a {{ local as 65001; neighbor 192.0.2.2 as 65002; ipv4 {{ import all; export all; import {policy}; \
             export {policy}; }}; }}"
        ));
        let yaml = outcome.yaml();
        assert!(!yaml.contains("toReceive") && !yaml.contains("toAdvertise"), "{policy}: {yaml}");
        assert_eq!(
            outcome.untranslated_lines().len(),
            2,
            "{policy}: {:?}",
            outcome.untranslated_lines()
        );
    }
}

#[test]
fn what_is_not_closed_is_named_with_its_line() {
    for (text, line) in [
        ("router id 192.0.2.1;\nprotocol bgp {\n", "sample:3:"),
        ("protocol bgp { local as 1 }\n", "sample:1:"),
        ("log \"a;\n", "sample:2:"),
        ("/* never\nends", "sample:1:"),
        ("}", "sample:1:"),
        (&"a {".repeat(100), "sample:1:"),
    ] {
        let outcome = imported(text);
        let said: Vec<String> =
            outcome.untranslated_lines().iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].starts_with(line), "{text:?}: {said:?}");
    }
}

#[test]
fn no_key_is_in_a_message() {
    let outcome = imported(
        "protocol bgp a { password \"canary\" id 1; neighbor 192.0.2.2 as 1; local as 2; keys { key { secret \"canary\"; }; }; }",
    );
    let said: Vec<String> = outcome.untranslated_lines().iter().map(ToString::to_string).collect();
    assert!(!said.is_empty() && !said.join("\n").contains("canary"), "{said:?}");
}
