//! Which setting does a line set, and how is it unset? Two lines with the same setting replace each other.
//!
//! Knows FRR's grammar as far as our lines and operators' extras need it. An unknown line is a setting of its
//! own.

use std::sync::Arc;

/// Settings of a neighbour that have a one-word name and one value.
const OF_NEIGHBOR: &[&str] = &[
    "remote-as",
    "local-as",
    "port",
    "description",
    "password",
    "update-source",
    "ebgp-multihop",
    "interface",
    "advertisement-interval",
    "shutdown",
    "peer-group",
    "ttl-security",
    "weight",
    "maximum-prefix",
    "maximum-prefix-out",
    "allowas-in",
    "default-originate",
    "local-role",
    "tcp-mss",
    "send-community",
];
/// Settings that can be, or must be, unset by their name alone.
const UNSET_BY_NAME: &[&str] = &[
    "local-as",
    "port",
    "description",
    "password",
    "update-source",
    "ebgp-multihop",
    "shutdown",
    "maximum-prefix",
    "timers",
    "advertisement-interval",
    "allowas-in",
];
/// Settings of a router that end in their value.
const OF_ROUTER: &[&str] = &[
    "bgp router-id",
    "bgp cluster-id",
    "bgp listen limit",
    "bgp default local-preference",
    "bgp graceful-restart restart-time",
    "bgp graceful-restart stalepath-time",
    "bgp graceful-restart select-defer-time",
    "bgp graceful-restart rib-stale-time",
    "bgp long-lived-graceful-restart stale-time",
    "timers bgp",
    "coalesce-time",
    "maximum-paths ibgp",
    "maximum-paths",
    "table-map",
];
/// Defaults of a BFD profile. FRR shows none of them, and has no other way to unset their opposite.
const OF_PROFILE: &[&str] = &[
    "detect-multiplier 3",
    "receive-interval 300",
    "transmit-interval 300",
    "echo receive-interval 50",
    "echo transmit-interval 50",
    "no echo-mode",
    "no passive-mode",
    "no shutdown",
    "no minimum-ttl",
];

/// The setting of `line` in `context`: the line without its value. `no` makes no difference.
pub(crate) fn setting(context: &[Arc<str>], line: &str) -> String {
    let line = line.strip_prefix("no ").unwrap_or(line);
    let words: Vec<&str> = line.split(' ').collect();
    let first = |count: usize| words.iter().take(count).copied().collect::<Vec<_>>().join(" ");
    let Some(top) = context.first() else {
        return match words.as_slice() {
            ["ip" | "ipv6", "prefix-list", _, "seq", _, ..] => first(5),
            ["route-map", name, "permit" | "deny", sequence] => {
                format!("route-map {name} {sequence}")
            }
            ["hostname", ..] => first(1),
            ["log", ..] | ["ip" | "ipv6", "router-id", ..] => first(2),
            ["bgp", "route-map", "delay-timer", ..] => first(3),
            _ => line.to_owned(),
        };
    };
    match top.split(' ').next() {
        Some("router") => of_router(line, &words),
        Some("route-map") => of_entry(&words),
        Some("interface") if words.first() == Some(&"description") => first(1),
        Some("bfd") if context.len() > 1 => match words.as_slice() {
            ["echo", _, ..] => first(2),
            _ => first(1),
        },
        _ => line.to_owned(),
    }
}

fn of_router(line: &str, words: &[&str]) -> String {
    match words {
        ["neighbor", name, rest @ ..] => return format!("neighbor {name} {}", of_neighbor(rest)),
        ["network" | "aggregate-address", prefix, ..] => return format!("network {prefix}"),
        ["bgp", "listen", "range", range, ..] => return format!("bgp listen range {range}"),
        _ => {}
    }
    let of_router = |it: &&&str| line.strip_prefix(**it).is_some_and(|rest| rest.starts_with(' '));
    OF_ROUTER.iter().find(of_router).map_or_else(|| line.to_owned(), |it| (*it).to_owned())
}

fn of_neighbor(words: &[&str]) -> String {
    match words {
        ["timers", which @ ("connect" | "delayopen"), ..] => format!("timers {which}"),
        ["timers", ..] => "timers".to_owned(),
        ["bfd", "profile", ..] => "bfd profile".to_owned(),
        ["route-map" | "prefix-list" | "filter-list" | "distribute-list", _, way] => {
            format!("{} {way}", words.first().copied().unwrap_or_default())
        }
        ["graceful-restart" | "graceful-restart-helper" | "graceful-restart-disable"] => {
            "graceful-restart".to_owned()
        }
        [one, ..] if OF_NEIGHBOR.contains(one) => (*one).to_owned(),
        _ => words.join(" "),
    }
}

/// In an entry of a route map.
fn of_entry(words: &[&str]) -> String {
    let count = match words {
        ["set", "ipv6", "next-hop", ..] => 4,
        ["set", "as-path" | "extcommunity" | "ip", ..] => 3,
        ["match", "ip" | "ipv6", "address", "prefix-list" | "prefix-len", ..] => 4,
        ["match", "ip" | "ipv6", ..] => 3,
        ["set" | "match", ..] => 2,
        _ => 1,
    };
    words.iter().take(count).copied().collect::<Vec<_>>().join(" ")
}

/// An entry of a list without its number, which FRR gives to an entry that has none.
pub(crate) fn unnumbered(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let at = match words.as_slice() {
        ["access-list", _, "seq", ..] => 2,
        ["ip" | "ipv6", "prefix-list" | "access-list", _, "seq", ..] => 3,
        _ => return None,
    };
    let (before, from) = words.split_at_checked(at)?;
    Some([before, from.get(2..)?].concat().join(" "))
}

/// Whether `line` sets a default, which FRR does not show.
pub(crate) fn holds_anyway(context: &[Arc<str>], line: &str) -> bool {
    match context.first().and_then(|top| top.split(' ').next()) {
        Some("bfd") => context.len() > 1 && OF_PROFILE.contains(&line),
        Some("router") => line.starts_with("neighbor ") && line.ends_with(" port 179"),
        _ => false,
    }
}

/// The line that unsets the setting of `line`.
pub(crate) fn unset(context: &[Arc<str>], line: &str) -> String {
    if let Some(opposite) = line.strip_prefix("no ") {
        return opposite.to_owned();
    }
    if line.starts_with("description ") {
        return "no description".to_owned();
    }
    if line.starts_with("on-match goto ") {
        return "no on-match goto".to_owned();
    }
    let what = setting(context, line);
    let in_profile = context.len() > 1 && context.first().is_some_and(|top| &**top == "bfd");
    let default = OF_PROFILE.iter().find(|it| in_profile && setting(context, it) == what);
    if let Some(default) = default {
        return (*default).to_owned();
    }
    let mut words = what.split(' ').skip(2);
    if what.starts_with("neighbor ") && words.next().is_some_and(|it| UNSET_BY_NAME.contains(&it)) {
        return format!("no {what}");
    }
    format!("no {line}")
}
