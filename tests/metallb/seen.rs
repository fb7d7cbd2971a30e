//! What do the users of a cluster see? Addresses and annotations of Services, what routers were told, events and the objects that say
//! who is told. Compares two such views; knows no software.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::bird::Bird;
use lab::cluster::Cluster;

use crate::cluster::NAMESPACES;
use crate::differences::Known;
use crate::services::SHORT_OF_ADDRESSES;

/// All that is compared, each as lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Of each Service, in their order.
    addresses: BTreeMap<String, Vec<String>>,
    annotations: BTreeSet<String>,
    /// Of Services.
    conditions: BTreeSet<String>,
    routes: BTreeSet<String>,
    events: BTreeSet<String>,
    statuses: BTreeSet<String>,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Annotation,
    Condition,
    Route,
    Event,
    Status,
}

/// A line that only one of two has.
#[derive(PartialEq, Eq)]
pub(crate) struct Difference {
    kind: Kind,
    /// Of the second one.
    is_new: bool,
    line: String,
}

impl std::fmt::Debug for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = if self.is_new { "the second one" } else { "the first one" };
        write!(formatter, "{:?} of {who} alone: {}", self.kind, self.line)
    }
}

impl Difference {
    pub(crate) fn is_event(&self) -> bool {
        self.kind == Kind::Event
    }
}

impl Seen {
    pub(crate) fn of(cluster: &Cluster, routers: &mut [(&'static str, Bird)]) -> Result<Self> {
        let mut seen = Self::default();
        for namespace in NAMESPACES {
            seen.services(&list(cluster, &format!("/api/v1/namespaces/{namespace}/services"))?);
            seen.events(&list(cluster, &format!("/api/v1/namespaces/{namespace}/events"))?);
        }
        seen.statuses(&list(cluster, "/apis/metallb.io/v1beta1/servicebgpstatuses")?);
        for (name, bird) in routers {
            seen.routes(name, &bird.ask("show route all")?);
        }
        Ok(seen)
    }

    fn services(&mut self, all: &[Value]) {
        for service in all {
            let name = name_of(service);
            let ingress = service["status"]["loadBalancer"]["ingress"].as_array();
            let addresses = ingress.into_iter().flatten().map(|it| text(&it["ip"])).collect();
            self.addresses.insert(name.clone(), addresses);
            let conditions = service["status"]["conditions"].as_array();
            for condition in conditions.into_iter().flatten() {
                let [kind, status, reason] =
                    ["type", "status", "reason"].map(|key| text(&condition[key]));
                self.conditions.insert(format!("{name} {kind} {status} {reason}"));
            }
            let annotations = service["metadata"]["annotations"].as_object();
            let of_allocation = |key: &str| key.contains("ip-allocated-from-pool");
            for (key, value) in
                annotations.into_iter().flatten().filter(|(key, _)| of_allocation(key))
            {
                self.annotations.insert(format!("{name} {key} {}", text(value)));
            }
        }
    }

    fn events(&mut self, all: &[Value]) {
        for event in all {
            let about = &event["involvedObject"];
            let [reason, kind] = ["reason", "type"].map(|key| text(&event[key]));
            self.events.insert(format!(
                "{}/{} {kind} {reason}",
                text(&about["namespace"]),
                text(&about["name"])
            ));
        }
    }

    fn statuses(&mut self, all: &[Value]) {
        for object in all {
            let status = &object["status"];
            let of = |key: &str| text(&status[key]);
            let peers = status["peers"].as_array().into_iter().flatten().map(text);
            let peers: BTreeSet<String> = peers.collect();
            let peers = peers.into_iter().collect::<Vec<_>>().join(",");
            self.statuses.insert(format!(
                "{}/{} {} {peers}",
                of("serviceNamespace"),
                of("serviceName"),
                of("node")
            ));
        }
    }

    /// A line for each route of BIRD's answer, with all of its attributes.
    fn routes(&mut self, router: &str, lines: &[String]) {
        let (mut prefix, mut route) = (String::new(), None::<String>);
        let mut end = |route: &mut Option<String>| {
            if let Some(route) = route.take() {
                self.routes.insert(route);
            }
        };
        for line in lines {
            // A second route to the same prefix begins with blanks.
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some(from) = words.iter().position(|it| it.starts_with('[')) {
                end(&mut route);
                if line.starts_with(|it: char| it.is_ascii_hexdigit()) {
                    prefix = words.first().copied().unwrap_or_default().to_owned();
                }
                let node = words.get(from).copied().unwrap_or_default().trim_start_matches('[');
                route = Some(format!("{router} {node} {prefix}"));
            } else if let (Some(route), Some(attribute)) =
                (&mut route, line.trim().strip_prefix("BGP."))
            {
                *route += &format!(" {attribute}");
            }
        }
        end(&mut route);
    }

    pub(crate) fn summary(&self) -> String {
        let served = self.addresses.values().filter(|it| !it.is_empty()).count();
        format!(
            "{} Services, {served} of them with addresses, {} routes, {} events, {} statuses",
            self.addresses.len(),
            self.routes.len(),
            self.events.len(),
            self.statuses.len()
        )
    }

    /// Addresses that are not as they were.
    pub(crate) fn moved(&self, before: &Self) -> Vec<String> {
        let changed =
            self.addresses.iter().filter(|(name, now)| before.addresses.get(*name) != Some(*now));
        changed
            .map(|(name, now)| {
                format!("{name} had {:?} and has {now:?}", before.addresses.get(name))
            })
            .collect()
    }

    pub(crate) fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut all = Vec::new();
        for kind in [Kind::Annotation, Kind::Condition, Kind::Route, Kind::Event, Kind::Status] {
            let (ours, theirs) = (self.lines(kind), other.lines(kind));
            let mut add =
                |line: &String, is_new| all.push(Difference { kind, is_new, line: line.clone() });
            ours.difference(theirs).for_each(|line| add(line, false));
            theirs.difference(ours).for_each(|line| add(line, true));
        }
        all
    }

    /// Which pool each Service has its addresses from, of which families they are, and the Events about that.
    pub(crate) fn of_allocation(&self) -> Self {
        let mut seen = Self {
            annotations: self.annotations.clone(),
            events: self.events.clone(),
            ..Self::default()
        };
        for (service, addresses) in &self.addresses {
            let family = |it: &String| if it.contains(':') { "IPv6" } else { "IPv4" };
            let families: Vec<&str> = addresses.iter().map(family).collect();
            seen.annotations.insert(format!("{service} has {}", families.join(" and ")));
        }
        (seen.annotations, seen.events) = (together(&seen.annotations), together(&seen.events));
        seen
    }

    fn lines(&self, kind: Kind) -> &BTreeSet<String> {
        match kind {
            Kind::Annotation => &self.annotations,
            Kind::Condition => &self.conditions,
            Kind::Route => &self.routes,
            Kind::Event => &self.events,
            Kind::Status => &self.statuses,
        }
    }

    pub(crate) fn addresses_of(&self, service: &str) -> &[String] {
        self.addresses.get(service).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn conditions(&self) -> usize {
        self.conditions.len()
    }

    /// The same without a known difference, and whether it was there.
    pub(crate) fn without(&self, known: &Known) -> (Self, bool) {
        let before = self.lines(known.kind);
        let after: BTreeSet<String> =
            before.iter().filter_map(|line| (known.rewrite)(self, line)).collect();
        let is_there = after != *before;
        let mut seen = self.clone();
        let lines = match known.kind {
            Kind::Annotation => &mut seen.annotations,
            Kind::Condition => &mut seen.conditions,
            Kind::Route => &mut seen.routes,
            Kind::Event => &mut seen.events,
            Kind::Status => &mut seen.statuses,
        };
        *lines = after;
        (seen, is_there)
    }
}

/// Services that want more addresses than their pool has are counted: which of them comes first is decided by how
/// fast they are heard of.
fn together(lines: &BTreeSet<String>) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        let (service, rest) = line.split_once(' ').unwrap_or((line, ""));
        let service = match service.rsplit_once('-') {
            Some((group, _)) if SHORT_OF_ADDRESSES.contains(&group) => group,
            _ => service,
        };
        *counts.entry(format!("{service} {rest}")).or_default() += 1;
    }
    counts.into_iter().map(|(line, count)| format!("{line} ({count})")).collect()
}

fn list(cluster: &Cluster, path: &str) -> Result<Vec<Value>> {
    let reply = cluster.ask("GET", path, None)?;
    ensure!(reply.status == 200, "{path}: {}", reply.text);
    let items = reply.json()?["items"].take();
    serde_json::from_value(items).context("a list")
}

fn name_of(object: &Value) -> String {
    format!("{}/{}", text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
