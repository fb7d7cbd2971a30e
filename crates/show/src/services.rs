//! `show services`: the addresses of each Service, the peers they are announced to, and what is missing.
//!
//! The plan names the planned peers, the backend those that have the route; a planned peer without the route
//! is a reason. So "announced to" means that an UPDATE has been sent.

use std::collections::BTreeSet;

use fairway_allocator::Outcome;
use fairway_model::ObjectName;
use fairway_plan::{AddressAnnouncement, PrefixAnnouncement, Reason};
use serde_json::Value;

use super::Snapshot;
use super::columns::{aligned, or_none};
use super::object::Object;
use super::told::Told;

/// One prefix of one address.
struct Line {
    address: String,
    prefix: String,
    peers: BTreeSet<String>,
    reasons: Vec<String>,
}

/// A Service.
pub(super) struct Item<'a> {
    pub(super) name: &'a ObjectName,
    pub(super) outcome: &'a Outcome,
    lines: Vec<Line>,
    /// Why it has no address, fewer than requested, or is not announced.
    reasons: Vec<String>,
}

fn line(told: &Told<'_>, address: &AddressAnnouncement, prefix: &PrefixAnnouncement) -> Line {
    let keys = || prefix.peers.iter().copied();
    let silent = keys().flat_map(|key| told.silence(key, prefix.prefix));
    let reasons = prefix.reason.iter().map(ToString::to_string);
    Line {
        address: address.address.to_string(),
        prefix: prefix.prefix.to_string(),
        peers: keys()
            .filter(|key| told.is_told(*key, prefix.prefix))
            .map(|key| told.name(key))
            .collect(),
        reasons: reasons.chain(silent).collect(),
    }
}

/// All Services, in the order of their names.
pub(super) fn items<'a>(snapshot: &'a Snapshot<'a>) -> Vec<Item<'a>> {
    let told = Told::new(snapshot);
    snapshot.outcomes.iter().map(|(name, outcome)| item(&told, name, outcome)).collect()
}

fn item<'a>(told: &Told<'a>, name: &'a ObjectName, outcome: &'a Outcome) -> Item<'a> {
    let announcement = told.snapshot().plan.services.get(name);
    let mut reasons: Vec<String> = outcome.reason.iter().map(ToString::to_string).collect();
    let whole = announcement.and_then(|announcement| announcement.reason.as_ref());
    match whole {
        // Repeats the reason that is already there.
        Some(Reason::NotAllocated(_)) if !reasons.is_empty() => {}
        Some(reason) => reasons.push(reason.to_string()),
        None => {}
    }
    let mut lines = Vec::new();
    for address in announcement.into_iter().flat_map(|it| &it.addresses) {
        lines.extend(address.prefixes.iter().map(|prefix| line(told, address, prefix)));
        if address.prefixes.is_empty() {
            let layer2 = announcement.and_then(|it| it.layer2_verdict(address.address));
            let reason = match layer2 {
                None => address.reason.as_ref().or(whole),
                // No BGPAdvertisement has to select what is answered for on layer 2.
                Some(verdict) => {
                    verdict.answer.as_ref().err().filter(|it| !it.is_for_another_node())
                }
            };
            lines.push(Line {
                address: address.address.to_string(),
                prefix: String::new(),
                peers: BTreeSet::new(),
                reasons: reason.iter().map(ToString::to_string).collect(),
            });
        }
    }
    Item { name, outcome, lines, reasons }
}

/// Why a Service lacks addresses, or why planned peers lack its routes: each reason once, from the whole to
/// the parts.
pub(super) fn missing(told: &Told<'_>, name: &ObjectName, outcome: &Outcome) -> Vec<String> {
    item(told, name, outcome).all_reasons().into_iter().map(str::to_owned).collect()
}

impl Item<'_> {
    pub(super) fn addresses(&self) -> Vec<String> {
        self.outcome.addresses.iter().map(ToString::to_string).collect()
    }

    fn pool(&self) -> String {
        self.outcome.pool.clone().unwrap_or_default()
    }

    /// Every reason once, from the whole to the parts.
    fn all_reasons(&self) -> Vec<&str> {
        let mut distinct: Vec<&str> = Vec::new();
        let parts = self.lines.iter().flat_map(|line| &line.reasons);
        for reason in self.reasons.iter().chain(parts) {
            if !distinct.contains(&reason.as_str()) {
                distinct.push(reason);
            }
        }
        distinct
    }

    /// The same in one line.
    pub(super) fn reason(&self) -> String {
        self.all_reasons().join("; ")
    }

    /// The neighbours that have a route to it.
    pub(super) fn peers(&self) -> BTreeSet<&str> {
        self.lines.iter().flat_map(|line| &line.peers).map(String::as_str).collect()
    }

    fn row(&self) -> [String; 6] {
        let addresses = if self.outcome.is_pending() {
            "<pending>".to_owned()
        } else {
            self.addresses().join(",")
        };
        [
            self.name.namespace.clone(),
            self.name.name.clone(),
            addresses,
            or_none(self.pool()),
            or_none(self.peers().into_iter().collect::<Vec<_>>().join(",")),
            self.reason(),
        ]
    }

    fn object(&self) -> Object {
        let announced: Vec<Value> = self
            .lines
            .iter()
            .map(|line| {
                Object::new()
                    .field("address", line.address.as_str())
                    .field("prefix", line.prefix.as_str())
                    .field("peers", line.peers.iter().cloned().collect::<Vec<_>>())
                    .field("reason", line.reasons.join("; "))
                    .into()
            })
            .collect();
        Object::new()
            .field("namespace", self.name.namespace.as_str())
            .field("name", self.name.name.as_str())
            .field("addresses", self.addresses())
            .field("pool", self.pool())
            .field("reason", self.reason())
            .field("announced", announced)
    }
}

/// One row per Service.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let items = items(snapshot);
    if items.is_empty() {
        return "No services found.\n".to_owned();
    }
    let heads = ["NAMESPACE", "NAME", "ADDRESSES", "POOL", "ANNOUNCED TO", "REASON"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(items.iter().map(Item::row));
    aligned(&rows)
}

/// One object per Service. `reason` is empty for one that lacks nothing; `pool` is empty without addresses,
/// and `prefix` if no advertisement covers an address.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let items: Vec<Value> = items(snapshot).iter().map(|item| item.object().into()).collect();
    Object::new().field("items", items)
}
