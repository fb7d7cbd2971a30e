//! The whole effect of a plan.
//!
//! Knows one plan, and no earlier one.

use std::collections::{BTreeMap, BTreeSet};

use fairway_allocator::Outcome;
use fairway_model::ObjectName;
use serde_json::{Value, json};

use super::super::{ClusterPlan, Layer2Announcement, NodePlan, StatusChange};
use super::routes::{self, RouteToPeer, RoutesByPeer};
use super::{listed, section};
use fairway_ground::columns::or_none;

/// Services, then routes, then layer 2; nodes with equal results are shown as one.
pub(super) fn text(plan: &ClusterPlan) -> String {
    let mut sections = vec![services(plan)];
    sections.extend(status_changes(plan));
    sections.extend(silent(plan));
    sections.extend(sessions(plan));
    sections.extend(layer2(plan));
    sections.join("\n")
}

fn services(plan: &ClusterPlan) -> String {
    let rows: Vec<_> = plan
        .outcomes
        .iter()
        .map(|(name, outcome)| {
            let reason = outcome.reason.as_ref().map(ToString::to_string);
            [
                name.namespace.clone(),
                name.name.clone(),
                addresses(outcome),
                or_none(outcome.pool.clone().unwrap_or_default()),
                reason.unwrap_or_default(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "No services.\n".to_owned();
    }
    section("Services", ["NAMESPACE", "NAME", "ADDRESSES", "POOL", "REASON"], rows)
}

/// Services that get other addresses than those that clients use now.
fn status_changes(plan: &ClusterPlan) -> Option<String> {
    let row = |(name, change): (&ObjectName, &StatusChange)| [name.to_string(), change.to_string()];
    let rows: Vec<_> = plan.status_changes.iter().map(row).collect();
    (!rows.is_empty()).then(|| section("Changed from their status", ["SERVICE", "CHANGE"], rows))
}

/// The comma-separated addresses of an outcome.
pub(super) fn addresses(outcome: &Outcome) -> String {
    if outcome.is_pending() {
        return "<pending>".to_owned();
    }
    let addresses: Vec<_> = outcome.addresses.iter().map(ToString::to_string).collect();
    addresses.join(",")
}

/// Services with addresses that no node announces or answers for, and why.
fn silent(plan: &ClusterPlan) -> Option<String> {
    let told = plan.nodes.values().flat_map(|node| {
        let routes = routes::by_peer(node).into_values().flatten();
        let answered = node.layer2.iter().flat_map(|it| &it.services).map(ToString::to_string);
        routes.flat_map(|it| it.services).chain(answered)
    });
    let heard: BTreeSet<String> = told.collect();
    let silent = plan
        .outcomes
        .iter()
        .filter(|(name, outcome)| !outcome.is_pending() && !heard.contains(&name.to_string()));
    let rows: Vec<_> = silent.map(|(name, _)| [name.to_string(), why_silent(plan, name)]).collect();
    (!rows.is_empty()).then(|| section("Announced by no node", ["SERVICE", "REASON"], rows))
}

/// The first reason of each kind: those of other nodes differ in the name of the node.
fn why_silent(plan: &ClusterPlan, service: &ObjectName) -> String {
    let mut reasons: BTreeMap<&str, String> = BTreeMap::new();
    for announcement in plan.announcements(service) {
        let layer2 = announcement.layer2.iter().filter_map(|it| it.answer.as_ref().err());
        for reason in announcement.reasons().chain(layer2) {
            reasons.entry(reason.word()).or_insert_with(|| reason.to_string());
        }
    }
    if reasons.is_empty() {
        let families = "no session to a selected peer carries the family of its address";
        return families.to_owned();
    }
    reasons.into_values().collect::<Vec<_>>().join("; ")
}

/// The routes of each group of nodes with the same routes to the same peers.
fn sessions(plan: &ClusterPlan) -> Vec<String> {
    let mut groups: Vec<(RoutesByPeer<'_>, Vec<&str>)> = Vec::new();
    for (name, node) in &plan.nodes {
        let told = routes::by_peer(node);
        match groups.iter_mut().find(|(other, _)| *other == told) {
            Some((_, names)) => names.push(name),
            None => groups.push((told, vec![name])),
        }
    }
    let titled = groups.into_iter().map(|(told, names)| {
        let names = listed(names);
        let rows: Vec<_> = told.iter().flat_map(|(peer, routes)| rows(peer, routes)).collect();
        if rows.is_empty() {
            return format!("No BGP peers of {names}\n");
        }
        let heads = ["PEER", "PREFIX", "ATTRIBUTES", "SERVICES"];
        section(&format!("Routes from {names}"), heads, rows)
    });
    titled.collect()
}

fn rows(peer: &str, routes: &[RouteToPeer<'_>]) -> Vec<[String; 4]> {
    if routes.is_empty() {
        return vec![[peer.to_owned(), or_none(String::new()), String::new(), String::new()]];
    }
    let row = |told: &RouteToPeer<'_>| {
        [
            peer.to_owned(),
            told.prefix.to_string(),
            routes::attributes(told.attributes),
            listed(told.services.iter().map(String::as_str)),
        ]
    };
    routes.iter().map(row).collect()
}

fn layer2(plan: &ClusterPlan) -> Option<String> {
    let answers =
        plan.nodes.iter().flat_map(|(name, node)| node.layer2.iter().map(move |it| (name, it)));
    let mut answers: Vec<_> = answers.collect();
    answers.sort_by_key(|(name, answer)| (answer.address, *name));
    let row = |(node, answer): (&String, &Layer2Announcement)| {
        let services: BTreeSet<_> = answer.services.iter().map(ToString::to_string).collect();
        [
            answer.address.to_string(),
            node.clone(),
            routes::interfaces(answer),
            listed(services.iter().map(String::as_str)),
        ]
    };
    let rows: Vec<_> = answers.into_iter().map(row).collect();
    let heads = ["ADDRESS", "NODE", "INTERFACES", "SERVICES"];
    (!rows.is_empty()).then(|| section("Answered on layer 2", heads, rows))
}

/// Services, and for each node its routes to each peer and its layer 2 announcements.
pub(super) fn json(plan: &ClusterPlan) -> Value {
    let services = plan.outcomes.iter().map(|(name, outcome)| {
        let mut fields = super::edit_json::outcome(outcome);
        fields.shift_insert(0, "name".to_owned(), json!(name.name));
        fields.shift_insert(0, "namespace".to_owned(), json!(name.namespace));
        if let Some(change) = plan.status_changes.get(name) {
            let (added, lost) = (&change.added, &change.lost);
            fields.insert("changedFromStatus".to_owned(), json!({ "added": added, "lost": lost }));
        }
        Value::Object(fields)
    });
    let services: Vec<Value> = services.collect();
    let nodes = plan
        .nodes
        .iter()
        .map(|(name, node)| json!({ "name": name, "bgp": bgp(node), "layer2": answers(node) }));
    json!({ "services": services, "nodes": nodes.collect::<Vec<_>>() })
}

fn bgp(node: &NodePlan) -> Vec<Value> {
    let peers = routes::by_peer(node).into_iter().map(|(peer, told)| {
        let routes = told.into_iter().map(|it| {
            let mut fields = routes::fields(it.attributes);
            fields.shift_insert(0, "prefix".to_owned(), json!(it.prefix.to_string()));
            fields.insert("services".to_owned(), json!(it.services));
            Value::Object(fields)
        });
        json!({ "peer": peer, "routes": routes.collect::<Vec<_>>() })
    });
    peers.collect()
}

fn answers(node: &NodePlan) -> Vec<Value> {
    node.layer2.iter().map(|answer| Value::Object(super::edit_json::answer(answer))).collect()
}
