//! What is wanted, in the words of `fairway proxy plan`: for people and as JSON, whole or as the difference to another.
//!
//! Decides nothing.

use std::collections::BTreeMap;

use fairway_ground::Prefix;
use fairway_ground::columns::{NONE, aligned};
use serde_json::{Value, json};

use crate::wanted::{Entry, FilterRule, Masquerade, NoEndpoints, VirtualAddress, Wanted};

impl NoEndpoints {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Drop => "drop",
        }
    }
}

impl Masquerade {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::OffCluster => "offCluster",
            Self::Never => "never",
        }
    }
}

/// The whole plan as JSON.
pub fn json(wanted: &Wanted) -> Value {
    let entries = || wanted.entries.iter();
    let checks = wanted.health_checks.iter();
    json!({
        "virtualServers": entries().map(virtual_server_json).collect::<Vec<_>>(),
        "filter": entries().map(filter_json).collect::<Vec<_>>(),
        "boundAddresses": wanted.bound_addresses,
        "healthChecks": checks
            .map(|(port, (service, count))| {
                json!({ "port": port, "service": service.to_string(), "localEndpoints": count })
            })
            .collect::<Vec<_>>(),
    })
}

fn virtual_server_json((at, Entry { server, .. }): (&VirtualAddress, &Entry)) -> Value {
    let real_server =
        |it: &crate::RealServer| json!({ "address": it.address, "port": it.port, "weight": 1 });
    json!({
        "address": at.address,
        "port": at.port,
        "protocol": at.protocol.name(),
        "scheduler": server.scheduler.name(),
        "persistentTimeoutSeconds": server.persistence.map(|it| it.as_secs()),
        "realServers": server.real_servers.iter().map(real_server).collect::<Vec<_>>(),
    })
}

fn filter_json((at, Entry { rule, .. }): (&VirtualAddress, &Entry)) -> Value {
    json!({
        "address": at.address,
        "port": at.port,
        "protocol": at.protocol.name(),
        "allowedSources": rule.allowed_sources,
        "noEndpoints": rule.no_endpoints.map(NoEndpoints::word),
        "masquerade": rule.masquerade.word(),
    })
}

/// The whole plan as tables.
pub fn text(wanted: &Wanted) -> String {
    if wanted.entries.is_empty() && wanted.health_checks.is_empty() {
        return "No virtual servers.\n".to_owned();
    }
    let heads =
        ["VIRTUAL SERVER", "SERVICE", "REAL SERVERS", "SCHEDULER", "FILTER"].map(str::to_owned);
    let rows = wanted.entries.iter().map(|(at, entry)| {
        [
            at.to_string(),
            entry.service.to_string(),
            real_servers(entry),
            scheduling(entry),
            filter(&entry.rule),
        ]
    });
    let mut sections = vec![aligned(&std::iter::once(heads).chain(rows).collect::<Vec<_>>())];
    let bound: Vec<_> = wanted.bound_addresses.iter().map(ToString::to_string).collect();
    sections.push(format!("Addresses on the node: {}\n", or_none(bound)));
    if !wanted.health_checks.is_empty() {
        let heads = ["HEALTH CHECK PORT", "SERVICE", "LOCAL ENDPOINTS"].map(str::to_owned);
        let rows = wanted.health_checks.iter().map(|(port, (service, count))| {
            [port.to_string(), service.to_string(), count.to_string()]
        });
        sections.push(aligned(&std::iter::once(heads).chain(rows).collect::<Vec<_>>()));
    }
    sections.join("\n")
}

fn real_servers(entry: &Entry) -> String {
    or_none(entry.server.real_servers.iter().map(ToString::to_string).collect())
}

fn scheduling(entry: &Entry) -> String {
    let scheduler = entry.server.scheduler.name();
    match entry.server.persistence {
        Some(persistence) => format!("{scheduler}, persistent {} s", persistence.as_secs()),
        None => scheduler.to_owned(),
    }
}

fn filter(rule: &FilterRule) -> String {
    let mut words = vec![
        match rule.masquerade {
            Masquerade::Always => "masquerade",
            Masquerade::OffCluster => "masquerade off-cluster",
            Masquerade::Never => "keep source",
        }
        .to_owned(),
    ];
    if let Some(sources) = &rule.allowed_sources {
        words.push(format!(
            "only from {}",
            sources.iter().map(Prefix::to_string).collect::<Vec<_>>().join(",")
        ));
    }
    words.extend(rule.no_endpoints.map(|it| it.word().to_owned()));
    words.join("; ")
}

fn or_none(list: Vec<String>) -> String {
    if list.is_empty() { NONE.to_owned() } else { list.join(",") }
}

/// What an edit changes.
#[derive(Debug)]
pub struct Edit<'a> {
    before: &'a Wanted,
    after: &'a Wanted,
}

/// The virtual addresses of an edit whose view differs.
struct Differences<'a> {
    added: Vec<(&'a VirtualAddress, &'a Entry)>,
    removed: Vec<(&'a VirtualAddress, &'a Entry)>,
    changed: Vec<(&'a VirtualAddress, &'a Entry, &'a Entry)>,
}

impl<'a> Edit<'a> {
    /// The edit that makes one of the other.
    pub fn new(before: &'a Wanted, after: &'a Wanted) -> Self {
        Self { before, after }
    }

    fn differences(&self, differs: fn(&Entry, &Entry) -> bool) -> Differences<'a> {
        let lacks = |of: &'a BTreeMap<VirtualAddress, Entry>,
                     in_: &'a BTreeMap<VirtualAddress, Entry>| {
            of.iter().filter(|(at, _)| !in_.contains_key(at)).collect()
        };
        let both = self.after.entries.iter().filter_map(|(at, after)| {
            let before = self.before.entries.get(at)?;
            differs(before, after).then_some((at, before, after))
        });
        Differences {
            added: lacks(&self.after.entries, &self.before.entries),
            removed: lacks(&self.before.entries, &self.after.entries),
            changed: both.collect(),
        }
    }

    /// As JSON: entries as in the whole plan, under `added`, `removed` and, as they will be, `changed`.
    pub fn json(&self) -> Value {
        let list = |differences: &Differences<'_>, form: fn((&VirtualAddress, &Entry)) -> Value| {
            let all = |of: &[(&VirtualAddress, &Entry)]| -> Vec<Value> {
                of.iter().map(|(at, entry)| form((at, entry))).collect()
            };
            let changed: Vec<Value> =
                differences.changed.iter().map(|(at, _, after)| form((at, after))).collect();
            json!({
                "added": all(&differences.added),
                "removed": all(&differences.removed),
                "changed": changed,
            })
        };
        let servers = self.differences(|before, after| before.server != after.server);
        let rules = self.differences(|before, after| before.rule != after.rule);
        let (bound_before, bound_after) =
            (&self.before.bound_addresses, &self.after.bound_addresses);
        json!({
            "virtualServers": list(&servers, virtual_server_json),
            "filter": list(&rules, filter_json),
            "boundAddresses": {
                "added": bound_after.difference(bound_before).collect::<Vec<_>>(),
                "removed": bound_before.difference(bound_after).collect::<Vec<_>>(),
            },
        })
    }

    /// As lines: `+` for what comes, `-` for what goes, `~` for what changes and how.
    pub fn text(&self) -> String {
        let mut rows: Vec<[String; 3]> = Vec::new();
        let entries = self.differences(|before, after| before != after);
        let whole = |entry: &Entry| {
            format!("{} ({}; {})", real_servers(entry), scheduling(entry), filter(&entry.rule))
        };
        let mut add = |sign: &str, at: &VirtualAddress, entry: &Entry, change: String| {
            rows.push([format!("{sign} {at}"), entry.service.to_string(), change]);
        };
        for (at, entry) in &entries.removed {
            add("-", at, entry, whole(entry));
        }
        for (at, entry) in &entries.added {
            add("+", at, entry, whole(entry));
        }
        for (at, before, after) in &entries.changed {
            add("~", at, after, change(before, after));
        }
        let (bound_before, bound_after) =
            (&self.before.bound_addresses, &self.after.bound_addresses);
        for address in bound_before.difference(bound_after) {
            rows.push([format!("- {address}"), "on the node".to_owned(), String::new()]);
        }
        for address in bound_after.difference(bound_before) {
            rows.push([format!("+ {address}"), "on the node".to_owned(), String::new()]);
        }
        if rows.is_empty() { "No changes.\n".to_owned() } else { aligned(&rows) }
    }
}

/// What differs between two entries of one virtual address.
fn change(before: &Entry, after: &Entry) -> String {
    let mut words = Vec::new();
    if before.service != after.service {
        words.push(format!("was of {}", before.service));
    }
    let (old, new) = (&before.server.real_servers, &after.server.real_servers);
    words.extend(old.iter().filter(|it| !new.contains(it)).map(|it| format!("-{it}")));
    words.extend(new.iter().filter(|it| !old.contains(it)).map(|it| format!("+{it}")));
    for (old, new) in
        [(scheduling(before), scheduling(after)), (filter(&before.rule), filter(&after.rule))]
    {
        if old != new {
            words.push(format!("{old} becomes {new}"));
        }
    }
    words.join("; ")
}
