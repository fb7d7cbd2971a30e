//! What FRR's configuration says of one neighbor or peer group, setting by setting.
//!
//! Answers which words a setting has, in which line, and what a neighbor inherits from its group. Knows no meaning.

use std::collections::BTreeMap;

use fairway_frr::configuration::without_secrets;

/// Where a setting is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Session,
    Ipv4,
    Ipv6,
}

impl Scope {
    pub(super) fn of_family(ipv6: bool) -> Self {
        if ipv6 { Self::Ipv6 } else { Self::Ipv4 }
    }
}

/// The setting, as one line has it.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// What follows the keyword.
    pub(super) words: Vec<String>,
    /// False where the line begins with `no`.
    pub(super) is_on: bool,
    pub(super) line: usize,
    pub(super) text: String,
}

impl Setting {
    /// The words, for patterns.
    pub(super) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }
}

/// Keywords of sessions. Longer ones come before those that they begin with.
const OF_SESSION: &[&str] = &[
    "advertisement-interval",
    "bfd profile",
    "bfd check-control-plane-failure",
    "bfd",
    "capability dynamic",
    "capability extended-nexthop",
    "capability link-local",
    "capability software-version",
    "description",
    "disable-connected-check",
    "disable-link-bw-encoding-ieee",
    "ebgp-multihop",
    "enforce-first-as",
    "enforce-multihop",
    "extended-optional-parameters",
    "graceful-restart-disable",
    "graceful-restart-helper",
    "graceful-restart",
    "graceful-shutdown",
    "interface",
    "ip-transparent",
    "local-as",
    "local-role",
    "passive",
    "password",
    "path-attribute",
    "peer-group",
    "port",
    "remote-as",
    "sender-as-path-loop-detection",
    "shutdown rtt",
    "shutdown",
    "solo",
    "strict-capability-match",
    "tcp-mss",
    "timers connect",
    "timers delayopen",
    "timers",
    "ttl-security",
    "update-source",
];

/// Keywords of address families. Those that end in `in` or `out` have a name between.
const OF_FAMILY: &[&str] = &[
    "activate",
    "addpath-tx-all-paths",
    "addpath-tx-best-selected",
    "addpath-tx-bestpath-per-AS",
    "allowas-in",
    "as-override",
    "attribute-unchanged",
    "default-originate",
    "disable-addpath-rx",
    "maximum-prefix-out",
    "maximum-prefix",
    "next-hop-self",
    "nexthop-local unchanged",
    "remove-private-AS",
    "route-reflector-client",
    "route-server-client",
    "send-community all",
    "send-community both",
    "send-community extended",
    "send-community large",
    "send-community standard",
    "send-community",
    "soft-reconfiguration inbound",
    "soo",
    "unsuppress-map",
    "weight",
];

/// Filters, each with a name and a direction.
const FILTERS: &[&str] = &["route-map", "prefix-list", "filter-list", "distribute-list"];

/// All settings of one neighbor or group.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings(BTreeMap<(Scope, String), Setting>);

impl Settings {
    /// Reads what follows `neighbor NAME`. Returns false if the keyword is unknown.
    pub(super) fn read(
        &mut self,
        scope: Scope,
        is_on: bool,
        words: &[&str],
        line: usize,
        text: &str,
    ) -> bool {
        let joined = words.join(" ");
        let keywords = if scope == Scope::Session { OF_SESSION } else { OF_FAMILY };
        let found = keywords.iter().find(|keyword| {
            joined.strip_prefix(**keyword).is_some_and(|it| it.is_empty() || it.starts_with(' '))
        });
        let (key, words) = match (found, words) {
            (Some(keyword), words) => {
                let count = keyword.split(' ').count();
                (
                    (*keyword).to_owned(),
                    words.iter().skip(count).map(|it| (*it).to_owned()).collect(),
                )
            }
            (None, [filter, name, direction @ ("in" | "out")])
                if FILTERS.contains(filter) && scope != Scope::Session =>
            {
                (format!("{filter} {direction}"), vec![(*name).to_owned()])
            }
            _ => return false,
        };
        let text = without_secrets(text);
        self.0.insert((scope, key), Setting { words, is_on, line, text });
        true
    }

    /// Sets what another line implies.
    pub(super) fn imply(&mut self, key: &str, words: &[&str], line: usize, text: &str) {
        let words = words.iter().map(|it| (*it).to_owned()).collect();
        let setting = Setting { words, is_on: true, line, text: text.to_owned() };
        self.0.insert((Scope::Session, key.to_owned()), setting);
    }

    /// These, and what a group has beside them.
    pub(super) fn over(&self, group: Option<&Self>) -> Self {
        let mut all = group.cloned().unwrap_or_default();
        for (key, value) in &self.0 {
            // `no` takes back what the neighbor itself has, and it has that of the group again; but for one.
            let takes_back = !value.is_on && key.1 != "activate";
            if !(takes_back && all.0.get(key).is_some_and(|it| it.is_on)) {
                all.0.insert(key.clone(), value.clone());
            }
        }
        all
    }

    /// The setting, where it is on.
    pub(super) fn on(&self, scope: Scope, key: &str) -> Option<&Setting> {
        self.any(scope, key).filter(|it| it.is_on)
    }

    /// The setting, also where a line turns it off.
    pub(super) fn any(&self, scope: Scope, key: &str) -> Option<&Setting> {
        self.0.get(&(scope, key.to_owned()))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Scope, &str, &Setting)> {
        self.0.iter().map(|((scope, key), setting)| (*scope, key.as_str(), setting))
    }
}
