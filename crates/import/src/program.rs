//! Which program a text was written for.

use std::fmt;
use std::str::FromStr;

/// What can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `frr.conf`, or what `vtysh -c 'show running-config'` prints.
    Frr,
    /// `bird.conf`, of BIRD 2 and 3.
    Bird,
    /// `keepalived.conf`.
    Keepalived,
    /// Objects of Cilium, Calico or frr-k8s, as kubectl prints them.
    Kubernetes,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Frr, Self::Bird, Self::Keepalived, Self::Kubernetes];

    /// What the text looks like.
    pub fn of(text: &str) -> Option<Self> {
        if is_kubernetes(text) {
            return Some(Self::Kubernetes);
        }
        if is_keepalived(text) {
            return Some(Self::Keepalived);
        }
        if is_bird(text) {
            return Some(Self::Bird);
        }
        is_frr(text).then_some(Self::Frr)
    }
}

/// The words of each line that has any.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let words = |line| str::split_ascii_whitespace(line).collect::<Vec<_>>();
    text.lines().map(words).filter(|it| !it.is_empty())
}

/// YAML or JSON of objects, the latter in any number of lines.
fn is_kubernetes(text: &str) -> bool {
    let is_in_braces = text.trim_start().starts_with('{');
    let names = ["\"apiVersion\"", "apiVersion:"];
    is_in_braces && names.iter().any(|it| text.contains(it))
        || lines(text).any(|words| match words.as_slice() {
            ["-", "apiVersion:", ..]
            | ["apiVersion:" | "\"apiVersion\":" | "kind:" | "items:", ..] => true,
            [first, ..] => first.starts_with("{\"apiVersion\"") || *first == "{apiVersion:",
            [] => false,
        })
}

/// A block that only keepalived has, or nothing but the names of other files.
fn is_keepalived(text: &str) -> bool {
    let is_block = |word: &str| {
        let starts = ["vrrp_", "virtual_server", "static_ipaddress", "static_route", "static_rule"];
        word == "global_defs" || starts.iter().any(|it| word.starts_with(it))
    };
    let is_include =
        |words: &[&str]| matches!(words, ["include", path] if !path.ends_with([';', '"']));
    let mut others =
        lines(text).filter(|words| !words.iter().take(1).any(|it| it.starts_with(['#', '!'])));
    lines(text).any(|words| words.first().is_some_and(|it| is_block(it)))
        || others
            .next()
            .is_some_and(|first| is_include(&first) && others.all(|words| is_include(&words)))
}

/// A protocol in braces, with its kind; only BIRD has those.
fn is_bird(text: &str) -> bool {
    let kinds = ["bgp", "static", "device", "kernel", "direct", "bfd"];
    lines(text).any(|words| match words.as_slice() {
        ["protocol" | "template", kind, rest @ ..] => {
            kinds.contains(&kind.trim_end_matches('{')) && (kind.ends_with('{') || !rest.is_empty())
        }
        _ => false,
    })
}

/// A line that only FRR has, or a router for BGP with a line that FRR has in it. A router of another vendor has the same lines
/// in part, and more that FRR does not have.
fn is_frr(text: &str) -> bool {
    let (mut has_router, mut has_route_lines, mut is_foreign) = (false, false, false);
    for words in lines(text) {
        match words.as_slice() {
            ["frr", "version" | "defaults", ..]
            | ["service", "integrated-vtysh-config"]
            | ["no", "service", "integrated-vtysh-config"] => return true,
            ["router", "bgp", ..] => has_router = true,
            ["address-family", "ipv4" | "ipv6" | "l2vpn", ..]
            | ["neighbor", _, "remote-as" | "interface" | "peer-group", ..] => {
                has_route_lines = true;
            }
            ["network", prefix, ..] if prefix.contains('/') => has_route_lines = true,
            ["version", _]
            | ["service", "timestamps", ..]
            | ["boot-start-marker"]
            | ["feature", _]
            | ["!!", "IOS", ..]
            | ["ip", "cef", ..] => is_foreign = true,
            ["ip", "address", address, _] if !address.contains('/') => is_foreign = true,
            _ => {}
        }
    }
    has_router && has_route_lines && !is_foreign
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frr => "frr",
            Self::Bird => "bird",
            Self::Keepalived => "keepalived",
            Self::Kubernetes => "kubernetes",
        })
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.to_string() == text);
        found.ok_or_else(|| {
            format!("{text:?} cannot be imported; expected frr, bird, keepalived or kubernetes")
        })
    }
}
