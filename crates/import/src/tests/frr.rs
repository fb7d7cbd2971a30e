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

/// What lines about one external neighbor come to; it needs no policy.
fn neighbor(lines: &str, more: &str) -> Outcome {
    imported(&format!(
        "router bgp 65001\n no bgp ebgp-requires-policy\n neighbor 192.0.2.2 remote-as 65002\n{lines}\nexit\n{more}"
    ))
}

#[test]
fn a_family_that_is_not_exchanged_lets_nothing_through_on_a_session_that_has_it() {
    let lines = "router bgp 65001\n no bgp ebgp-requires-policy\n neighbor eth0 interface remote-as external\n";
    let yaml = imported(lines).yaml();
    assert!(yaml.contains("mode: filtered") && yaml.contains("0.0.0.0/0"), "{yaml}");
    assert!(!yaml.contains("mode: all") && !yaml.contains("::/0"), "{yaml}");
}

#[test]
fn an_address_family_is_unicast_without_the_word() {
    let lines =
        " address-family ipv4\n  neighbor 192.0.2.2 prefix-list P out\n exit-address-family";
    let yaml = neighbor(lines, "ip prefix-list P permit 10.0.0.0/8\n").yaml();
    assert!(yaml.contains("10.0.0.0/8"), "{yaml}");
}

#[test]
fn communities_of_two_kinds_are_not_one_of_them() {
    let lists = "bgp community-list standard A permit 65001:1\nbgp large-community-list standard B permit 1:1:1\n\
                 route-map IN permit 10\n match community A\n match large-community B\nexit\n";
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 route-map IN in";
    let outcome = neighbor(lines, lists);
    let said = outcome.untranslated_lines();
    assert!(said.iter().any(|it| it.to_string().contains("one of each kind")), "{said:?}");
    assert!(!outcome.yaml().contains("toReceive"), "{}", outcome.yaml());
}

#[test]
fn a_later_line_of_a_kind_takes_the_place_of_the_earlier_one() {
    let lists = "route-map IN permit 10\n set community 1:1\n set community 2:2\nexit\n";
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 route-map IN in";
    let yaml = neighbor(lines, lists).yaml();
    assert!(yaml.contains("2:2") && !yaml.contains("1:1"), "{yaml}");
}

#[test]
fn a_neighbor_keeps_what_its_group_says() {
    let lines = "router bgp 65001\n no bgp ebgp-requires-policy\n neighbor G peer-group\n neighbor G remote-as 65002\n \
                 neighbor G shutdown\n neighbor 192.0.2.2 peer-group G\n no neighbor 192.0.2.2 shutdown\n address-family ipv4 \
                 unicast\n  neighbor G prefix-list P in\n  no neighbor 192.0.2.2 prefix-list P in\nexit\nip prefix-list P permit \
                 10.0.0.0/8\n";
    let yaml = imported(lines).yaml();
    assert!(yaml.contains("shutdown: {}") && yaml.contains("10.0.0.0/8"), "{yaml}");
}

#[test]
fn a_setting_of_one_family_is_not_one_of_the_session() {
    let lines = " address-family ipv6 unicast\n  neighbor 192.0.2.2 allowas-in 5\n  neighbor 192.0.2.2 route-server-client";
    let yaml = neighbor(lines, "").yaml();
    assert!(
        !yaml.contains("allowASIn") && !yaml.contains("routeServerClient"),
        "not activated: {yaml}"
    );
    let outcome = neighbor(&format!("{lines}\n  neighbor 192.0.2.2 activate"), "");
    assert!(!outcome.yaml().contains("allowASIn"), "{}", outcome.yaml());
    assert_eq!(outcome.untranslated_lines().len(), 2, "{:?}", outcome.untranslated_lines());
}

#[test]
fn the_last_line_about_a_network_counts() {
    let networks = |lines: &str| {
        neighbor(&format!(" address-family ipv4 unicast\n{lines}"), "route-map D deny 1\n").yaml()
    };
    assert!(networks("  network 10.0.0.0/8").contains("10.0.0.0/8"));
    for last in ["no network 10.0.0.0/8", "network 10.0.0.0/8 route-map D"] {
        let yaml = networks(&format!("  network 10.0.0.0/8\n  {last}"));
        assert!(!yaml.contains("10.0.0.0/8"), "{last}: {yaml}");
    }
}

#[test]
fn what_a_line_takes_back_opens_nothing() {
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 prefix-list P in\n  neighbor 192.0.2.2 route-map M out";
    let more = "ip prefix-list P seq 5 permit any\nno ip prefix-list P seq 5\nroute-map M permit 10\nexit\nno route-map M permit 10\n";
    let outcome = neighbor(lines, more);
    assert!(!outcome.yaml().contains("mode: "), "{}", outcome.yaml());
    assert_eq!(outcome.untranslated_lines().len(), 4, "{:?}", outcome.untranslated_lines());
    let gone = neighbor(" no neighbor 192.0.2.2", "").yaml();
    assert!(!gone.contains("BGPPeer"), "{gone}");
}

#[test]
fn numbered_lists_of_communities_above_99_are_expressions() {
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 route-map IN in";
    let more = "bgp community-list 100 permit 65001:1\nroute-map IN deny 10\n match community 100\nexit\nroute-map IN permit 20\n";
    let outcome = neighbor(lines, more);
    assert!(!outcome.yaml().contains("toReceive"), "{}", outcome.yaml());
}

#[test]
fn a_session_that_is_shut_down_stays_so_with_a_limit_of_its_round_trip_time() {
    let yaml =
        neighbor(" neighbor 192.0.2.2 shutdown\n neighbor 192.0.2.2 shutdown rtt 100", "").yaml();
    assert!(yaml.contains("shutdown: {}"), "{yaml}");
}

#[test]
fn own_routes_meet_their_prepended_path_and_no_next_hop() {
    let out = |map: &str| {
        let lines = " address-family ipv4 unicast\n  network 10.0.0.0/8 route-map PRE\n  neighbor 192.0.2.2 route-map OUT out";
        let lists = "bgp as-path access-list EMPTY permit ^$\nip prefix-list ANY permit 0.0.0.0/0 le 32\nroute-map PRE permit 10\n \
                     set as-path prepend 65001\nexit\n";
        neighbor(lines, &format!("{lists}{map}"))
    };
    let yaml = out("route-map OUT permit 10\n match as-path EMPTY\nexit\n").yaml();
    assert!(!yaml.contains("BGPAdvertisement"), "{yaml}");
    let hop = out(
        "route-map OUT deny 10\n match ip next-hop prefix-list ANY\nexit\nroute-map OUT permit 20\nexit\n",
    );
    assert!(!hop.yaml().contains("BGPAdvertisement"), "{}", hop.yaml());
    assert!(!hop.untranslated_lines().is_empty());
}

#[test]
fn what_a_list_denies_at_its_end_is_denied_without_it() {
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 prefix-list P in\n  neighbor 192.0.2.2 route-map M in";
    let more = "ip prefix-list P permit 10.0.0.0/8\nip prefix-list P deny any\nroute-map M permit 10\n match ip address prefix-list \
                P\nexit\n";
    let outcome = neighbor(lines, more);
    assert_eq!(outcome.untranslated_lines(), Vec::<&crate::Remark>::new());
    assert!(outcome.yaml().contains("10.0.0.0/8"), "{}", outcome.yaml());
}

#[test]
fn each_line_of_a_map_is_named_also_behind_one_that_rejects_everything() {
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 route-map M in";
    let more =
        "route-map M permit 10\n match tag 1\nexit\nroute-map M permit 20\n match metric 5\nexit\n";
    assert_eq!(neighbor(lines, more).untranslated_lines().len(), 2);
}

#[test]
fn values_that_a_peer_does_not_take_are_named_with_their_line() {
    for line in ["port 20179", "local-as 65002 no-prepend replace-as", "update-source lo"] {
        let outcome = neighbor(&format!(" neighbor 192.0.2.2 {line}"), "");
        assert_eq!(outcome.untranslated_lines().len(), 1, "{line}");
        assert_eq!(crate::faults(&outcome.yaml()), Vec::<String>::new(), "{line}");
    }
    for line in ["timers 30 20", "timers connect 0"] {
        let outcome = neighbor(&format!(" neighbor 192.0.2.2 {line}"), "");
        assert_eq!(
            crate::faults(&outcome.yaml()),
            Vec::<String>::new(),
            "{line}: {}",
            outcome.yaml()
        );
    }
}

#[test]
fn long_lists_are_read_in_their_time() {
    use std::fmt::Write as _;
    let mut list = String::new();
    for number in 0..100_000_u32 {
        let [_, high, low, last] = number.to_be_bytes();
        writeln!(list, "ip prefix-list L permit 10.{high}.{low}.{last}/32").unwrap();
    }
    let lines = " address-family ipv4 unicast\n  neighbor 192.0.2.2 prefix-list L in";
    assert!(neighbor(lines, &list).yaml().contains("10.1.134.159/32"));
}
