//! Configurations of FRR: what they come to, and which lines are named.

use crate::{Outcome, Program, import};

/// Each with the file that has what it comes to: `FAIRWAY_WRITE=1` writes them.
const SAMPLES: &[&str] = &["edge", "leaf", "reflector", "exchange", "branch", "policies"];

fn imported(text: &str) -> Outcome {
    import("sample", text, Some(Program::Frr)).expect("a source that is said is not guessed")
}

#[test]
fn each_configuration_of_frr_comes_to_what_its_file_says() {
    for name in SAMPLES {
        super::compare("frr", name, "conf");
    }
}

#[test]
fn an_external_neighbor_without_a_policy_exchanges_nothing_unless_frr_would() {
    let lines = "router bgp 65001\n neighbor 192.0.2.2 remote-as 65002\n address-family ipv4 unicast\n  network 10.0.0.0/8\n";
    for (head, passes) in [
        ("frr version 8.4\nfrr defaults traditional\n", false),
        ("frr version 8.4\nfrr defaults datacenter\n", true),
        ("frr version 7.3\nfrr defaults traditional\n", true),
        ("", false),
    ] {
        let text = imported(&format!("{head}{lines}")).yaml();
        assert_eq!(text.contains("toReceive"), passes, "{head}: {text}");
        assert_eq!(text.contains("10.0.0.0/8"), passes, "{head}: {text}");
    }
}

#[test]
fn a_password_is_in_a_secret_and_in_no_message() {
    let outcome = imported(
        "router bgp 65001\n neighbor 192.0.2.2 remote-as 65002\n neighbor 192.0.2.2 password canary\n neighbor 192.0.2.3 \
         password canary\n",
    );
    let yaml = outcome.yaml();
    assert!(yaml.contains("password: canary") && yaml.contains("passwordSecret"), "{yaml}");
    let said = outcome.untranslated_lines().into_iter().chain(outcome.notes());
    let said: Vec<String> = said.map(ToString::to_string).collect();
    assert!(!said.is_empty(), "the second neighbor has no remote-as");
    assert!(!said.join("\n").contains("canary"), "{said:?}");
}

/// FRR looks at the lines of a list in the order of their numbers; a later deny of what was permitted has no effect.
#[test]
fn a_prefix_list_with_denies_keeps_its_order() {
    let outcome = imported(
        "router bgp 65001\n no bgp ebgp-requires-policy\n neighbor 192.0.2.2 remote-as 65002\n address-family ipv4 unicast\n  \
         neighbor 192.0.2.2 prefix-list L in\n exit-address-family\nexit\nip prefix-list L seq 20 deny 10.0.0.0/8 le 32\n\
         ip prefix-list L seq 10 permit 10.1.0.0/16\nip prefix-list L seq 30 permit any\n",
    );
    assert_eq!(outcome.untranslated_lines(), Vec::<&crate::Remark>::new());
    let yaml = outcome.yaml();
    let places = ["10.1.0.0/16", "10.0.0.0/8", "0.0.0.0/0"].map(|it| yaml.find(it).unwrap());
    assert!(places.is_sorted(), "{yaml}");
}

#[test]
fn text_of_any_kind_comes_to_an_end() {
    let mut rng = fairway_ground::Rng::seeded(29);
    let lines: Vec<&str> =
        SAMPLES.iter().flat_map(|it| super::sample("frr", it, "conf").lines()).collect();
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..rng.next_u64() % 60 {
            let line = lines[usize::try_from(rng.next_u64()).unwrap() % lines.len()];
            let mut words: Vec<&str> = line.split(' ').collect();
            if rng.next_u64().is_multiple_of(3) {
                words.remove(usize::try_from(rng.next_u64()).unwrap() % words.len());
            }
            text += &words.join(" ");
            text.push('\n');
        }
        // What is translated is always valid.
        let outcome = imported(&text);
        let faults = crate::faults(&outcome.yaml());
        assert!(faults.iter().all(|it| is_of_a_value(it)), "{faults:#?}\n{text}");
    }
}

/// A value that FRR may take and a BGPPeer does not is told by the rules of the BGPPeer.
fn is_of_a_value(fault: &str) -> bool {
    ["expected", "must", "is already", "cannot", "same"].iter().any(|it| fault.contains(it))
}
