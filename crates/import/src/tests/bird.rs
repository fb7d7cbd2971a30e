//! Configurations of BIRD.

use crate::{Outcome, Program, import};

fn imported(text: &str) -> Outcome {
    import("sample", text, Some(Program::Bird)).expect("a program that is said is not guessed")
}

/// The shapes are those of `doc/bird.conf.example` and `doc/bird.conf.example2` in BIRD's source, of its wiki (route servers with
/// one table of routes, filters of providers, RPKI), and of hosts and switches of a rack.
#[test]
fn each_configuration_of_bird_comes_to_what_its_file_says() {
    for name in ["edge", "example", "multiprotocol", "route-server", "rpki", "rack"] {
        super::compare("bird", name, "conf");
    }
}

/// What a session with these policies comes to.
fn session(policies: &str, more: &str) -> Outcome {
    imported(&format!(
        "{more}\nprotocol bgp a {{ local as 65001; neighbor 192.0.2.2 as 65002; ipv4 {{ {policies} }}; }}"
    ))
}

#[test]
fn what_of_a_filter_has_no_equal_lets_nothing_through() {
    for policy in [
        "filter F",
        "where gw = 192.0.2.1",
        "filter { if bgp_path ~ [= 1 * 2 =] then accept; }",
        "filter { preference = 200; accept; }",
        "filter { case net.len { 8: reject; } accept; }",
        "filter { if net ~ [ 10.0.0.0/8 ] || bgp_med > 5 && net.len = 8 then accept; reject; }",
        "filter { if defined(bgp_med) then accept; }",
    ] {
        let outcome =
            session(&format!("import all; export all; import {policy}; export {policy};"), "");
        let yaml = outcome.yaml();
        assert!(!yaml.contains("toReceive") && !yaml.contains("toAdvertise"), "{policy}: {yaml}");
        let said = outcome.untranslated_lines();
        assert!(!said.is_empty(), "{policy}: {said:?}");
    }
}

/// What is learned with this filter, as `toReceive`, and what is said.
fn received(code: &str, more: &str) -> (String, String) {
    let outcome = session(&format!("import filter {{ {code} }}; export none;"), more);
    let said: Vec<String> = outcome.untranslated_lines().iter().map(ToString::to_string).collect();
    let yaml = outcome.yaml();
    let received = yaml.split_once("toReceive:").map(|it| it.1.to_owned()).unwrap_or_default();
    (received, said.join("\n"))
}

const BOGONS: &str = "function bogons() { if net ~ [10.0.0.0/8+] then reject; return true; }\n";

#[test]
fn what_a_called_function_rejects_is_not_lost_with_what_it_returns() {
    for (code, more) in [
        ("checks(); accept;", "function checks() { return bogons(); }"),
        ("bool x = bogons(); accept;", ""),
        ("bool x; x = bogons(); accept;", ""),
        ("checks(bogons()); accept;", "function checks(bool x) { return true; }"),
        ("checks(); accept;", "function checks() { bool x = bogons(); return true; }"),
        ("if checks() then accept;", "function checks() { bool x = bogons(); return true; }"),
        ("print bogons(); accept;", ""),
        ("accept bogons();", ""),
    ] {
        let (received, said) = received(code, &format!("{BOGONS}{more}"));
        assert!(received.is_empty() && !said.is_empty(), "{code} {more}: {received}");
    }
    let (received, said) = received("bogons(); accept;", BOGONS);
    assert!(received.contains("10.0.0.0/8") && said.is_empty(), "{received}{said}");
}

#[test]
fn a_variable_with_what_an_attribute_was_is_not_taken_for_the_attribute() {
    let late =
        "function late(clist c) { bgp_community.empty; if (65001, 666) ~ c then reject; accept; }";
    for (code, more) in [
        (
            "clist saved = bgp_community; bgp_community.empty; if (65001, 666) ~ saved then reject; accept;",
            "",
        ),
        ("late(bgp_community);", late),
        ("clist my_community; my_community.empty; accept;", ""),
        ("int x = 24; { int x = 32; } if net.len > x then reject; accept;", ""),
        ("int x = 24; { int x; x = 32; } if net.len > x then reject; accept;", ""),
        ("clist my_community; my_community = -empty-; my_community.empty; accept;", ""),
    ] {
        let (received, said) = received(code, more);
        assert!(received.is_empty() && !said.is_empty(), "{code}: {received}");
    }
    let fixed = "int x = 24; prefix p = 10.0.0.0/8; prefix six = fc00::/7; clist none = -empty-; \
                 if net ~ p || net.len > x then reject; accept;";
    let (received, said) = received(fixed, "");
    assert!(received.contains("10.0.0.0/8") && said.is_empty(), "{received}{said}");
    let pure = "function has(clist c) { return (65001, 1) ~ c; }";
    let (received, said) = self::received("if has(bgp_community) then reject; accept;", pure);
    assert!(received.contains("65001:1") && said.is_empty(), "{received}{said}");
}

#[test]
fn communities_of_one_kind_are_not_removed_with_those_of_another() {
    for code in [
        "bgp_large_community = -empty-; if (65001, 666) ~ bgp_community then reject; accept;",
        "bgp_large_community.empty; accept;",
        "bgp_ext_community.empty; accept;",
        "bgp_community.empty; if (65001, 6, 6) ~ bgp_large_community then reject; accept;",
        "bgp_community.empty; if (rt, 65001, 6) ~ bgp_ext_community then reject; accept;",
        "bgp_community.empty; if net ~ 10.0.0.0/8 then { if (ro, 65001, 6) ~ bgp_ext_community then reject; } accept;",
    ] {
        let (received, said) = received(code, "");
        let lets_through = received.contains("mode: all") && !received.contains("action: reject");
        assert!(!lets_through && !said.is_empty(), "{code}: {received}");
    }
    let code = "bgp_community.empty; if (65001, 666) ~ bgp_community then reject; accept;";
    let (received, said) = received(code, "");
    assert!(received.contains("replace: []") && said.is_empty(), "{received}{said}");
}

#[test]
fn communities_that_an_export_filter_looks_at_are_not_removed_on_import() {
    let import = "import filter { bgp_community.empty; accept; };";
    let function = "function secret() { return (65001, 6, 6) ~ bgp_large_community; }";
    for (export, more, is_received) in [
        ("if (65001, 6) ~ bgp_community then reject; accept;", "", true),
        ("if (65001, 6, 6) ~ bgp_large_community then reject; accept;", "", false),
        ("if (rt, 65001, 6) ~ bgp_ext_community then reject; accept;", "", false),
        ("if secret() then reject; accept;", function, false),
    ] {
        let outcome = session(&format!("{import} export filter {{ {export} }};"), more);
        let yaml = outcome.yaml();
        assert_eq!(yaml.contains("toReceive"), is_received, "{export}: {yaml}");
        assert!(yaml.contains("toAdvertise"), "{export}: {yaml}");
    }
}

#[test]
fn a_protocol_that_is_disabled_by_a_number_is_off() {
    for (word, is_off) in [("", true), ("1", true), ("0", false), ("off", false)] {
        let text = format!(
            "protocol bgp a {{ disabled {word}; local as 65001; neighbor 192.0.2.2 as 65002; ipv4; }}"
        );
        assert_eq!(imported(&text).yaml().contains("shutdown"), is_off, "{word}");
    }
}

#[test]
fn an_own_route_keeps_its_large_communities_where_the_others_are_removed() {
    let sets = "bgp_community.add((65001, 1)); bgp_large_community.add((65001, 2, 3));";
    let own = format!("protocol static {{ ipv4; route 198.51.100.0/24 blackhole {{ {sets} }}; }}");
    let yaml = session("import none; export filter { bgp_community.empty; accept; };", &own).yaml();
    assert!(yaml.contains("large:65001:2:3") && !yaml.contains("\"65001:1"), "{yaml}");
}

#[test]
fn the_smaller_limit_of_two_families_holds_and_is_named() {
    for (ipv4, ipv6, limit, is_named) in [
        ("import limit 10 action restart;", "import limit 20 action restart;", Some(10), true),
        ("import limit 20 action restart;", "import limit 10 action restart;", Some(10), true),
        ("import limit 20 action restart;", "", Some(20), true),
        ("import limit 20 action restart;", "import limit 20 action restart;", Some(20), false),
        ("", "", None, false),
    ] {
        let outcome = imported(&format!(
            "protocol bgp a {{ local as 65001; neighbor 192.0.2.2 as 65002; ipv4 {{ import all; {ipv4} }}; \
             ipv6 {{ import all; {ipv6} }}; }}"
        ));
        let yaml = outcome.yaml();
        let found = yaml.split_once("limit: ").map(|it| it.1.lines().next().unwrap());
        assert_eq!(found, limit.map(|it: u32| it.to_string()).as_deref(), "{ipv4} {ipv6}");
        assert_eq!(!outcome.untranslated_lines().is_empty(), is_named, "{ipv4} {ipv6}");
    }
    let one = session("import all; import limit 20 action restart;", "");
    assert!(one.untranslated_lines().is_empty() && one.yaml().contains("limit: 20"));
}

#[test]
fn what_a_neighbor_switches_off_its_template_does_not_switch_on() {
    let rest = "local as 65001; neighbor 192.0.2.2 as 65002; ipv4 { import all; };";
    for (on, off, field) in [
        ("rr client", "rr client off", "routeReflectorClient"),
        ("rs client", "rs client no", "routeServerClient"),
        ("passive", "passive off", "passive"),
        ("ttl security", "ttl security off", "ttlSecurityHops"),
        ("graceful restart", "graceful restart off", "enableGracefulRestart"),
        ("graceful restart", "graceful restart aware", "enableGracefulRestart"),
        (
            "graceful restart; long lived graceful restart",
            "long lived graceful restart off",
            "longLivedStaleTime",
        ),
        ("require roles", "require roles off", "roleStrict"),
        ("multihop", "direct", "ebgpMultiHop"),
        ("vrf \"red\"", "vrf default", "vrf:"),
        ("bfd", "bfd off", "bfdProfile"),
    ] {
        let peer = |own: &str| {
            let text =
                format!("template bgp t {{ {on}; }}\nprotocol bgp a from t {{ {own} {rest} }}");
            imported(&text).yaml()
        };
        assert!(peer("").contains(field), "{field}: {}", peer(""));
        let off = peer(&format!("{off};"));
        assert!(!off.contains(field), "{field}: {off}");
    }
}

#[test]
fn tables_of_rpki_that_other_caches_fill_are_not_one() {
    let cache = |name: &str, inside: &str| format!("protocol rpki {name} {{ {inside} }}\n");
    let policy = "import where roa_check(r, net, bgp_path.last) = ROA_VALID;";
    for (caches, is_known) in [
        (cache("a", "roa4 { table r; }; remote \"one\";"), true),
        (
            cache("a", "roa4 { table r; }; remote \"one\";")
                + &cache("b", "roa4 { table r; }; remote \"two\";"),
            true,
        ),
        (
            cache("a", "roa4 { table r; }; remote \"one\";")
                + &cache("b", "roa6 { table s; }; remote \"one\";"),
            true,
        ),
        (
            cache("a", "roa4 { table r; }; remote \"one\";")
                + &cache("b", "roa4 { table s; }; remote \"two\";"),
            false,
        ),
        (
            cache("a", "roa4 { table r; }; remote \"one\";")
                + &cache("b", "roa4 { table r; }; remote \"two\"; transport ssh;"),
            false,
        ),
    ] {
        let yaml = session(policy, &caches).yaml();
        assert_eq!(yaml.contains("toReceive"), is_known, "{caches}: {yaml}");
    }
}

#[test]
fn a_filter_that_ends_without_a_verdict_rejects() {
    let yaml =
        session("import filter { if net ~ 10.0.0.0/8 then bgp_med = 5; }; export none;", "").yaml();
    assert!(!yaml.contains("toReceive"), "{yaml}");
    let yaml =
        session("import filter { if net ~ 10.0.0.0/8 then accept; }; export none;", "").yaml();
    assert!(
        yaml.contains("10.0.0.0/8") && yaml.contains("le: 32") && !yaml.contains("rules"),
        "{yaml}"
    );
}

#[test]
fn a_step_without_an_equal_rejects_only_what_comes_that_far() {
    let code = "if net ~ 10.0.0.0/8 then accept; if net ~ 192.0.2.0/24 then { gw = 192.0.2.9; accept; } accept;";
    let outcome = session(&format!("import filter {{ {code} }}; export none;"), "");
    let rules = outcome.yaml();
    let (_, rules) = rules.split_once("rules:").unwrap();
    let places = ["10.0.0.0/8", "192.0.2.0/24", "action: reject"].map(|it| rules.find(it).unwrap());
    assert!(places.is_sorted(), "{rules}");
    assert_eq!(outcome.untranslated_lines().len(), 1);
}

#[test]
fn internal_neighbors_are_heard_without_a_line_and_told_nothing() {
    let text = "protocol bgp a { local as 65001; neighbor 192.0.2.2 as 65001; ipv4; }";
    let yaml = imported(text).yaml();
    assert!(yaml.contains("toReceive") && !yaml.contains("toAdvertise"), "{yaml}");
}

#[test]
fn protocols_that_are_disabled_or_of_another_table_announce_nothing() {
    for inside in [
        "disabled; ipv4;",
        "ipv4 { table other; };",
        "ipv4 { import none; };",
        "ipv4 { import filter Q; };",
    ] {
        let more = format!("protocol static {{ {inside} route 198.51.100.0/24 blackhole; }}");
        let yaml = session("import none; export all;", &more).yaml();
        assert!(!yaml.contains("BGPAdvertisement"), "{inside}: {yaml}");
    }
    let yaml = session(
        "table other; import all; export all;",
        "protocol static { ipv4; route 198.51.100.0/24 blackhole; }",
    )
    .yaml();
    assert!(!yaml.contains("BGPAdvertisement") && !yaml.contains("toReceive"), "{yaml}");
}

#[test]
fn learned_routes_are_not_installed_in_another_table_of_the_kernel() {
    for (kernel, installs) in [
        ("ipv4 { export all; };", true),
        ("kernel table 100; ipv4 { export all; };", false),
        ("disabled; ipv4 { export all; };", false),
        ("ipv4 { export where net.len > 8; };", false),
        ("ipv4 { export filter { krt_prefsrc = 192.0.2.1; accept; }; };", true),
    ] {
        let outcome =
            session("import all; export none;", &format!("protocol kernel {{ {kernel} }}"));
        assert_eq!(outcome.yaml().contains("installRoutes"), installs, "{kernel}");
    }
}

#[test]
fn a_rule_that_needs_a_route_as_it_was_is_not_written() {
    let code = "if (65001, 1) ~ bgp_community then { bgp_community.delete((65001, 1)); if net ~ 10.0.0.0/8 then reject; accept; } \
                reject;";
    let outcome = session(&format!("import filter {{ {code} }}; export none;"), "");
    assert!(!outcome.yaml().contains("toReceive"), "{}", outcome.yaml());
    assert_eq!(outcome.untranslated_lines().len(), 1, "{:?}", outcome.untranslated_lines());
}

#[test]
fn code_of_any_kind_comes_to_an_end() {
    let nested = "if net ~ 10.0.0.0/8 then { ".repeat(2000) + &"}".repeat(2000);
    let chain = "if (65001, 1) ~ bgp_community then bgp_med = 1; else bgp_path.prepend(65002); "
        .repeat(200);
    let parentheses =
        format!("if {}net.len > 8{} then accept;", "(".repeat(5000), ")".repeat(5000));
    let doubled: String =
        (1..60).map(|it| format!("define X{it} = X{0}, X{0};\n", it - 1)).collect();
    // Each is written twice for the one around it.
    let apart = (1..30).fold("accept;".to_owned(), |inner, it| {
        format!("if (65001, {it}) ~ bgp_community && bgp_path ~ [= * {it} * =] && ! (net.len > 8) then reject; else {{ {inner} }}")
    });
    let called: String = (1..16)
        .map(|it| format!("function g{it}() {{ return g{0}() && (g{0}() || g{0}()); }}\n", it - 1))
        .collect();
    let called = format!("function g0() {{ return net.len > 8 && bgp_path.len > 3; }}\n{called}");
    let recursive = "function f() { f(); f(); accept; }\n";
    for (code, more) in [
        (nested.as_str(), String::new()),
        (&chain, String::new()),
        (&parentheses, String::new()),
        ("if net ~ [ X59 ] then accept;", format!("define X0 = 10.0.0.0/8;\n{doubled}")),
        ("f(); f(); f();", recursive.to_owned()),
        (&apart, String::new()),
        ("if g15() then accept;", called),
    ] {
        let outcome = session(&format!("import filter {{ {code} }}; export none;"), &more);
        assert!(crate::faults(&outcome.yaml()).is_empty(), "{}", outcome.yaml());
    }
}

#[test]
fn text_of_any_kind_comes_to_an_end() {
    let mut rng = fairway_ground::Rng::seeded(31);
    let names = ["edge", "example", "multiprotocol", "route-server", "rpki", "rack"];
    let lines: Vec<&str> =
        names.iter().flat_map(|it| super::sample("bird", it, "conf").lines()).collect();
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
        imported(&text);
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
