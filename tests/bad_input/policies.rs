//! `toReceive` and `toAdvertise` of a BGPPeer: invalid values are faults, valid ones have the intended
//! meaning.

use fairway_ground::{Community, MaximumPrefixes, Prefix, RuleAction};
use fairway_model::{Object, Peer};

use super::{SOUND_PEER, beside_good, check, one_fault, peer};

/// A peer with `field` and its `allowed` on line 10, which has these lines from line 11 on.
fn allowing(field: &str, lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    peer(&format!("{SOUND_PEER}{field}:\n  allowed:\n{lines}"))
}

/// As [`allowing`] with one prefix, on line 13.
fn listing(field: &str, entry: &str) -> String {
    allowing(field, &format!("mode: filtered\nprefixes:\n- {entry}"))
}

fn receiving(rest: &str) -> String {
    peer(&format!("{SOUND_PEER}toReceive:\n  allowed: {{mode: all}}\n{rest}"))
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_filters_are_told_in_both_directions() {
    for field in ["toReceive", "toAdvertise"] {
        for (what, text, line, rest, says) in [
            ("no mode", allowing(field, "mode: some"), 11, "allowed.mode", "\"some\" is not a \
              mode; expected filtered or all"),
            ("capital", allowing(field, "mode: All"), 11, "allowed.mode", "expected filtered or all"),
            ("number", allowing(field, "mode: 5"), 11, "allowed.mode", "in quotes"),
            ("mode list", allowing(field, "mode: [all]"), 11, "allowed.mode", "expected"),
            ("both", allowing(field, "mode: all\nprefixes:\n- {prefix: 10.0.0.0/8}"), 12, "allowed.prefixes", "and mode all cannot both be given"),
            ("ge is short", listing(field, "{prefix: 10.0.0.0/8, ge: 7}"), 13, "allowed.prefixes[0]", "8 <= ge <= le <= 32"),
            ("le is short", listing(field, "{prefix: 10.0.0.0/8, le: 7}"), 13, "allowed.prefixes[0]", "8 <= ge <= le <= 32"),
            ("le is long", listing(field, "{prefix: 10.0.0.0/8, le: 33}"), 13, "allowed.prefixes[0]", "8 <= ge <= le <= 32"),
            ("ge is long", listing(field, "{prefix: 10.0.0.0/8, ge: 33}"), 13, "allowed.prefixes[0]", "8 <= ge <= le <= 32"),
            ("reversed", listing(field, "{prefix: 10.0.0.0/8, ge: 24, le: 16}"), 13, "allowed.prefixes[0]", "the lengths 24 to 16 are not a range inside 10.0.0.0/8"),
            ("IPv6", listing(field, "{prefix: '2001:db8::/32', ge: 31}"), 13, "allowed.prefixes[0]", "32 <= ge <= le <= 128"),
            ("129", listing(field, "{prefix: '2001:db8::/32', le: 129}"), 13, "allowed.prefixes[0].le", "129 is not allowed; expected a prefix length from 0 to 128"),
            ("negative", listing(field, "{prefix: 10.0.0.0/8, ge: -1}"), 13, "allowed.prefixes[0].ge", "0 to 128"),
            ("text", listing(field, "{prefix: 10.0.0.0/8, le: '16'}"), 13, "allowed.prefixes[0].le", "without quotes"),
            ("host bits", listing(field, "{prefix: 10.0.0.1/8}"), 13, "allowed.prefixes[0].prefix", "10.0.0.0/8"),
            ("no length", listing(field, "{prefix: 10.0.0.0}"), 13, "allowed.prefixes[0].prefix", "192.0.2.0/24"),
            ("length 33", listing(field, "{prefix: 10.0.0.0/33}"), 13, "allowed.prefixes[0].prefix", "at most 32"),
            ("no prefix", listing(field, "{ge: 24}"), 13, "allowed.prefixes[0].prefix", "is missing; expected a prefix"),
            ("bare prefix", listing(field, "10.0.0.0/8"), 13, "allowed.prefixes[0]", "a mapping"),
            ("no list", allowing(field, "prefixes: {prefix: 10.0.0.0/8}"), 11, "allowed.prefixes", "a list"),
            ("unknown length", listing(field, "{prefix: 10.0.0.0/8, lt: 9}"), 13, "allowed.prefixes[0].lt", "le?"),
            ("unknown in allowed", allowing(field, "modes: all"), 11, "allowed.modes", "mode?"),
            ("allowed is text", peer(&format!("{SOUND_PEER}{field}:\n  allowed: all")), 10, "allowed", "a mapping"),
            ("unknown", peer(&format!("{SOUND_PEER}{field}:\n  allow: {{mode: all}}")), 10, "allow", "allowed?"),
        ] {
            one_fault(&format!("{field}, {what}"), &text, line, &format!("spec.{field}.{rest}"), says);
        }
        let what = format!("{field} is text");
        one_fault(&what, &peer(&format!("{SOUND_PEER}{field}: all")), 9, &format!("spec.{field}"), "a mapping");
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_maxima_and_next_hops_are_told() {
    let advertising = |rest: &str| peer(&format!("{SOUND_PEER}toAdvertise:\n  allowed: {{mode: all}}\n{rest}"));
    for (what, text, line, field, says) in [
        ("limit 0", receiving("  maxPrefixes: {limit: 0}"), 11, "spec.toReceive.maxPrefixes.limit", "0 is not allowed; expected a number from 1 to 4294967295"),
        ("huge limit", receiving("  maxPrefixes: {limit: 4294967296}"), 11, "spec.toReceive.maxPrefixes.limit", "1 to 4294967295"),
        ("text limit", receiving("  maxPrefixes: {limit: '5'}"), 11, "spec.toReceive.maxPrefixes.limit", "without quotes"),
        ("no limit", receiving("  maxPrefixes: {warnPercent: 50}"), 11, "spec.toReceive.maxPrefixes.limit", "is missing"),
        ("0 %", receiving("  maxPrefixes: {limit: 5, warnPercent: 0}"), 11, "spec.toReceive.maxPrefixes.warnPercent", "1 to 100"),
        ("few bytes", receiving("  maxPrefixes: {limit: 5, attributeBytes: 1000}"), 11, "spec.toReceive.maxPrefixes.attributeBytes", "1000 is not allowed; expected a number of bytes from 65536 to 4294967295"),
        ("101 %", receiving("  maxPrefixes: {limit: 5, warnPercent: 101}"), 11, "spec.toReceive.maxPrefixes.warnPercent", "1 to 100"),
        ("number", receiving("  maxPrefixes: 5"), 11, "spec.toReceive.maxPrefixes", "a mapping"),
        ("unknown", receiving("  maxPrefixes: {limit: 5, warn: 50}"), 11, "spec.toReceive.maxPrefixes.warn", "expected one of limit, warnPercent, attributeBytes"),
        ("kept", receiving("  keepFiltered: all"), 11, "spec.toReceive.keepFiltered", "true or false"),
        ("kept of ours", advertising("  keepFiltered: true"), 11, "spec.toAdvertise.keepFiltered", "not a known field"),
        ("not this way", advertising("  maxPrefixes: {limit: 5}"), 11, "spec.toAdvertise.maxPrefixes", "not a known field"),
        ("other family", advertising("  nextHop: {ipv4: '2001:db8::9'}"), 11, "spec.toAdvertise.nextHop.ipv4", "is not an IPv4 address"),
        ("IPv4 for IPv6", advertising("  nextHop: {ipv6: 192.0.2.9}"), 11, "spec.toAdvertise.nextHop.ipv6", "is not an IPv6 address"),
        ("multicast", advertising("  nextHop: {ipv4: 224.0.0.5}"), 11, "spec.toAdvertise.nextHop.ipv4", "unicast"),
        ("link-local", advertising("  nextHop: {ipv6: 'fe80::1'}"), 11, "spec.toAdvertise.nextHop.ipv6", "expected a global address"),
        ("plain next hop", advertising("  nextHop: 192.0.2.9"), 11, "spec.toAdvertise.nextHop", "a mapping"),
        ("unknown next hop", advertising("  nextHop: {v4: 192.0.2.9}"), 11, "spec.toAdvertise.nextHop.v4", "expected one of ipv4, ipv6"),
        ("received next hop", receiving("  nextHop: {ipv4: 192.0.2.9}"), 11, "spec.toReceive.nextHop", "not a known field"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

/// A peer with one rule on line 12.
fn ruling(field: &str, rule: &str) -> String {
    peer(&format!("{SOUND_PEER}{field}:\n  allowed: {{mode: all}}\n  rules:\n  - {rule}\n"))
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_rules_are_told_in_both_directions() {
    for field in ["toReceive", "toAdvertise"] {
        let many = "{action: continue, set: {med: 1}}\n  - ".repeat(64);
        for (what, text, line, rest, says) in [
            ("action", ruling(field, "{action: deny}"), 12, "[0].action", "\"deny\" is not an action; expected accept, reject or continue"),
            ("name", ruling(field, "{name: no spaces}"), 12, "[0].name", "expected 1 to 63 letters"),
            ("long name", ruling(field, &format!("{{name: {}}}", "x".repeat(64))), 12, "[0].name", "expected 1 to 63 letters"),
            ("name twice", ruling(field, "{name: a, action: continue, set: {med: 1}}\n  - {name: a}"), 13, "[1].name", "is given twice"),
            ("open group", ruling(field, "{match: {asPath: '(65010'}}"), 12, "[0].match.asPath", "is not a regular expression: unclosed group; expected one as in ^65010_"),
            ("huge expression", ruling(field, "{match: {asPath: '((1{999}){999}){999}'}}"), 12, "[0].match.asPath", "it takes too much memory"),
            ("state", ruling(field, "{match: {originValidation: unknown}}"), 12, "[0].match.originValidation", "is not a state of origin validation: valid, invalid or notFound"),
            ("prefix", ruling(field, "{match: {prefixes: [{prefix: 10.0.0.0/8, le: 7}]}}"), 12, "[0].match.prefixes[0]", "8 <= ge <= le <= 32"),
            ("no prefix", ruling(field, "{match: {prefixes: [{le: 7}]}}"), 12, "[0].match.prefixes[0].prefix", "is missing"),
            ("no prefixes", ruling(field, "{match: {prefixes: []}}"), 12, "[0].match.prefixes", "is empty; expected at least one, or no such field"),
            ("no communities", ruling(field, "{match: {communities: []}}"), 12, "[0].match.communities", "is empty"),
            ("community", ruling(field, "{match: {communities: [65536:1]}}"), 12, "[0].match.communities[0]", "0 to 65535"),
            ("three numbers", ruling(field, "{match: {communities: ['1:2:3']}}"), 12, "[0].match.communities[0]", "large:65001:1:2"),
            ("extended", ruling(field, "{match: {communities: ['rt:65536:65536']}}"), 12, "[0].match.communities[0]", "rt:192.0.2.1:100"),
            ("next hop", ruling(field, "{match: {nextHops: [192.0.2.1]}}"), 12, "[0].match.nextHops[0]", "192.0.2.0/24"),
            ("unknown match", ruling(field, "{match: {prefix: 10.0.0.0/8}}"), 12, "[0].match.prefix", "prefixes?"),
            ("LOCAL_PREF", ruling(field, "{set: {localPref: -1}}"), 12, "[0].set.localPref", "0 to 4294967295"),
            ("MED", ruling(field, "{set: {med: '5'}}"), 12, "[0].set.med", "without quotes"),
            ("prepend", ruling(field, "{set: {asPathPrepend: 17}}"), 12, "[0].set.asPathPrepend", "0 to 16"),
            ("plain list", ruling(field, "{set: {communities: [65001:1]}}"), 12, "[0].set.communities", "a mapping"),
            ("replace and add", ruling(field, "{set: {communities: {replace: [65001:1], add: [65001:2]}}}"), 12, "[0].set.communities.replace", "cannot both be given"),
            ("unknown setting", ruling(field, "{set: {weight: 7}}"), 12, "[0].set.weight", "expected one of localPref, med, communities, asPathPrepend"),
            ("next hop", ruling(field, "{set: {nextHop: 192.0.2.1}}"), 12, "[0].set.nextHop", "a mapping"),
            ("65 rules", ruling(field, &format!("{many}{{}}")), 11, "", "has too many rules; expected at most 64"),
        ] {
            one_fault(&format!("{field}, {what}"), &text, line, &format!("spec.{field}.rules{rest}"), says);
        }
        let text = peer(&format!("{SOUND_PEER}{field}:\n  allowed: {{mode: all}}\n  rules: {{action: reject}}\n"));
        one_fault("no list", &text, 11, &format!("spec.{field}.rules"), "a list");
    }
}

#[test]
fn rules_mean_what_they_say() {
    let text = ruling(
        "toReceive",
        "{name: bogons, match: {prefixes: [{prefix: 10.0.0.0/8, le: 32}]}, action: reject}\n  - \
         match: {asPath: '_65010$', communities: [65001:1, 'large:65001:1:2', 'rt:65001:3'], \
         nextHops: [192.0.2.0/24]}\n    set: {localPref: 200, med: 0, asPathPrepend: 2, \
         communities: {add: [no-export], remove: ['soo:65001:4']}}\n    action: continue\n  - \
         {set: {communities: {replace: []}}}",
    );
    let peer = settings("three rules", &text);
    let [bogons, marked, bare] = &*peer.import.rules else { panic!("{:?}", peer.import.rules) };
    assert_eq!((bogons.name.as_deref(), bogons.action), (Some("bogons"), RuleAction::Reject));
    assert!(bogons.matches.has_prefix(prefix("10.1.0.0/16")));
    assert!(!bogons.matches.has_prefix(prefix("11.0.0.0/8")));
    assert_eq!((marked.name.as_deref(), marked.action), (None, RuleAction::Continue));
    assert!(marked.matches.as_path.as_ref().is_some_and(|it| it.is_in("65001 65010")));
    let wanted = &marked.matches.communities;
    assert_eq!((wanted.standard.len(), wanted.large.len(), wanted.extended.len()), (1, 1, 1));
    let set = &marked.settings;
    assert_eq!((set.local_pref, set.med, set.prepend), (Some(200), Some(0), 2));
    assert_eq!(set.added.standard, [Community::NO_EXPORT]);
    assert_eq!((set.removed.extended.len(), set.removes_communities), (1, false));
    assert_eq!(bare.action, RuleAction::Accept);
    assert!(bare.settings.removes_communities && bare.settings.added.is_empty());
    assert!(peer.pass_on_rules.is_empty(), "the other direction is another matter");

    let peer = settings("sent", &ruling("toAdvertise", "{set: {med: 5}}"));
    assert_eq!((peer.pass_on_rules.len(), peer.import.rules.len()), (1, 0));
}

#[rustfmt::skip] // One line for each input.
#[test]
fn filters_without_effect_are_warnings() {
    let nothing = "allows nothing: mode is filtered and prefixes is empty";
    for (what, text, line, field, says) in [
        ("filtered", allowing("toReceive", "mode: filtered"), 10, "spec.toReceive.allowed", nothing),
        ("empty", allowing("toReceive", "mode: filtered\nprefixes: []"), 10, "spec.toReceive.allowed", nothing),
        ("no mode", allowing("toAdvertise", "prefixes: []"), 10, "spec.toAdvertise.allowed", nothing),
        ("no route for rules", peer(&format!("{SOUND_PEER}toReceive:\n  rules:\n  - {{action: reject}}")), 10, "spec.toReceive.rules", "has no effect: allowed lets no route through"),
        ("behind the last rule", ruling("toAdvertise", "{set: {med: 1}}\n  - {action: reject}"), 13, "spec.toAdvertise.rules[1]", "has no effect: a rule before it accepts or rejects every route"),
        ("rejected with settings", ruling("toReceive", "{set: {med: 1}, action: reject}"), 12, "spec.toReceive.rules[0].set", "has no effect: the rule rejects the route"),
        ("idle rule", ruling("toReceive", "{action: continue}"), 12, "spec.toReceive.rules[0]", "has no effect: it sets nothing"),
        ("idle maximum", peer(&format!("{SOUND_PEER}toReceive:\n  maxPrefixes: {{limit: 5}}")), 10, "spec.toReceive.maxPrefixes", "has no effect"),
    ] {
        let resolution = beside_good(what, &text);
        let [warning] = resolution.findings.as_slice() else {
            panic!("{what}: {:#?}", resolution.findings)
        };
        assert!(!warning.is_fault(), "{warning}");
        check(what, warning, line, field, says);
        assert_eq!(resolution.objects.len(), 7, "{what}");
    }
}

/// The settings of the new peer, which has no findings.
pub(super) fn settings(what: &str, text: &str) -> Peer {
    let resolution = beside_good(what, text);
    assert_eq!(resolution.findings, [], "{what}");
    let peers = resolution.objects.into_iter().filter_map(|object| match object {
        Object::Peer(peer) if peer.name.name == "new" => Some(*peer),
        _ => None,
    });
    let [peer] = <[Peer; 1]>::try_from(peers.collect::<Vec<_>>()).unwrap();
    peer
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

#[test]
fn filters_mean_what_they_say() {
    let text = allowing(
        "toReceive",
        "mode: filtered\nprefixes:\n- {prefix: 10.0.0.0/8, ge: 16, le: 24}\n- {prefix: \
         '2001:db8::/32'}\n- {prefix: 0.0.0.0/0, le: 0}",
    );
    let peer = settings("both families", &text);
    let passes = |text: &str| peer.import.allowed.allows(prefix(text));
    assert!(passes("10.1.0.0/16") && passes("10.1.2.0/24") && !passes("10.1.2.0/25"));
    assert!(passes("2001:db8::/32") && !passes("2001:db8::/48"));
    assert!(passes("0.0.0.0/0") && !passes("::/0") && !passes("10.0.0.0/8"));
    assert!(!peer.pass_on.allows(prefix("10.1.0.0/16")), "the other direction is another matter");

    // The default mode is filtered.
    let peer = settings("default mode", &allowing("toAdvertise", "prefixes:\n- {prefix: '::/0'}"));
    assert!(peer.pass_on.allows(prefix("::/0")) && !peer.pass_on.allows(prefix("2001:db8::/32")));
    assert!(!peer.import.allowed.allows(prefix("::/0")));

    let peer = settings("all", &allowing("toAdvertise", "mode: all\nprefixes: []"));
    assert!(peer.pass_on.allows(prefix("0.0.0.0/0")) && peer.pass_on.allows(prefix("::1/128")));
}

#[test]
fn nothing_passes_where_nothing_is_said() {
    let empty = "toReceive: {}\ntoAdvertise: {allowed: , nextHop: }\n";
    for text in [peer(SOUND_PEER), peer(&format!("{SOUND_PEER}{empty}"))] {
        let peer = settings("silent", &text);
        assert!(!peer.import.allowed.allows(prefix("10.0.0.0/8")));
        assert!(!peer.pass_on.allows(prefix("10.0.0.0/8")));
        assert_eq!(peer.import.maximum, None);
    }
}

#[test]
fn a_maximum_warns_at_three_quarters_unless_told_otherwise() {
    let peer = settings("default", &receiving("  maxPrefixes: {limit: 1000}"));
    let maximum = MaximumPrefixes { limit: 1000, warn_percent: 75, attribute_bytes: None };
    assert_eq!(peer.import.maximum, Some(maximum));
    assert_eq!(maximum.warn_at(), 750);
    let text = receiving("  maxPrefixes: {limit: 1, warnPercent: 100}");
    let maximum = MaximumPrefixes { limit: 1, warn_percent: 100, attribute_bytes: None };
    assert_eq!(settings("least", &text).import.maximum, Some(maximum));
}
