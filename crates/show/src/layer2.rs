//! `show l2`: the addresses that are answered for on the local segment, by which node and on which interfaces.
//!
//! The plan names the owner; what the owner does is known only for this node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Utc;
use fairway_model::ObjectName;
use fairway_plan::{Layer2Verdict, Reason};
use fairway_seam::{AddressAnswer, AnsweredAddress, ForeignClaim};
use serde_json::Value;

use super::Snapshot;
use super::columns::{aligned, or_none};
use super::object::Object;

/// For so long the claim of a foreign host is named: one that goes on claims again meanwhile.
const CLAIM_AGE_MAX: Duration = Duration::from_secs(600);

/// An address that an L2Advertisement selects.
pub(super) struct Item<'a> {
    pub(super) address: IpAddr,
    /// `None` where nobody answers.
    pub(super) owner: Option<&'a str>,
    pub(super) is_mine: bool,
    pub(super) services: Vec<&'a ObjectName>,
    /// Why this node does not answer.
    reason: Option<&'a Reason>,
    /// What this node does, if it answers.
    pub(super) answered: Option<&'a AnsweredAddress>,
}

/// All of them, in the order of their addresses.
pub(super) fn items<'a>(snapshot: &Snapshot<'a>) -> Vec<Item<'a>> {
    let mut items: BTreeMap<IpAddr, Item<'a>> = BTreeMap::new();
    for (service, announcement) in &snapshot.plan.services {
        for verdict in &announcement.layer2 {
            for address in &verdict.addresses {
                let new = || item(snapshot, *address, verdict);
                let item = items.entry(*address).or_insert_with(new);
                item.services.push(service);
                if verdict.answer.is_ok() && !item.is_mine {
                    let services = std::mem::take(&mut item.services);
                    *item = Item { services, ..new() };
                }
            }
        }
    }
    items.into_values().collect()
}

fn item<'a>(snapshot: &Snapshot<'a>, address: IpAddr, verdict: &'a Layer2Verdict) -> Item<'a> {
    let answered = snapshot.layer2.and_then(|it| it.addresses.get(&address));
    let (owner, reason) = match &verdict.answer {
        Ok(_) => (Some(snapshot.node.name.as_str()), None),
        Err(reason @ Reason::NotOwner { owner, .. }) => (Some(owner.as_str()), Some(reason)),
        Err(reason) => (None, Some(reason)),
    };
    let is_mine = verdict.answer.is_ok();
    Item { address, owner, is_mine, services: Vec::new(), reason, answered }
}

impl Item<'_> {
    /// When this node became the owner.
    fn began(&self, snapshot: &Snapshot<'_>) -> Option<Utc> {
        let age = self.answered?.age.as_secs();
        Some(Utc(snapshot.now_epoch_seconds.saturating_sub(age)))
    }

    pub(super) fn interfaces(&self) -> Vec<String> {
        self.answered.map(|it| it.interfaces.clone()).unwrap_or_default()
    }

    /// What keeps the address from being answered for.
    pub(super) fn trouble(&self, snapshot: &Snapshot<'_>) -> String {
        match (self.reason, self.answered) {
            (Some(Reason::NotOwner { .. }), _) => {
                failed_check(snapshot, self.address).unwrap_or_default()
            }
            (Some(reason), _) => reason.to_string(),
            (None, None) => "this node does not answer for it yet".to_owned(),
            (None, Some(answered)) => trouble(snapshot, answered).unwrap_or_default(),
        }
    }
}

/// What is wrong with an address of another node, if this node has asked for it.
pub(super) fn failed_check(snapshot: &Snapshot<'_>, address: IpAddr) -> Option<String> {
    let check = snapshot.layer2?.checks.get(&address)?;
    let has_failed = check.answer != AddressAnswer::Owner;
    has_failed.then(|| format!("this node asked for it: {}", check.answer))
}

/// A foreign host that has claimed an address of this node a short while ago.
pub(super) fn claim(snapshot: &Snapshot<'_>, address: IpAddr) -> Option<String> {
    let answered = snapshot.layer2?.addresses.get(&address)?;
    let ForeignClaim { mac, interface, age } = answered.last_conflict.as_ref()?;
    let ago = age.as_secs();
    (*age <= CLAIM_AGE_MAX).then(|| {
        format!("another host, {mac} on {interface}, claimed {address} {ago} s ago: it has the address, too")
    })
}

/// Why an address of this node is answered on fewer interfaces than planned, or on none.
pub(super) fn trouble(snapshot: &Snapshot<'_>, answered: &AnsweredAddress) -> Option<String> {
    let view = snapshot.layer2?;
    let of = |(interface, why): (&String, &String)| format!("{interface}: {why}");
    let troubles: Vec<String> = view
        .troubles
        .iter()
        .filter(|(interface, _)| answered.interfaces.contains(interface))
        .map(of)
        .collect();
    if !troubles.is_empty() {
        return Some(troubles.join("; "));
    }
    if answered.interfaces.is_empty() {
        let unsuited: Vec<String> = view.unsuited.iter().map(of).collect();
        return Some(format!("no interface can be answered on ({})", unsuited.join("; ")));
    }
    let why_not = answered.why_not_bound.as_ref();
    why_not.map(|why| format!("the address is not put on an interface (bind): {why}"))
}

/// A row for each address.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let items = items(snapshot);
    if items.is_empty() {
        return "No L2Advertisement selects an address.\n".to_owned();
    }
    let heads =
        ["ADDRESS", "OWNER", "SINCE", "INTERFACES", "SERVICES", "REQUESTS", "CONFLICTS", "REASON"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(items.iter().map(|item| {
        let services: Vec<String> = item.services.iter().map(ToString::to_string).collect();
        let count = |of: fn(&AnsweredAddress) -> u64| {
            item.answered.map(|it| of(it).to_string()).unwrap_or_default()
        };
        [
            item.address.to_string(),
            or_none(item.owner.unwrap_or_default().to_owned()),
            or_none(item.began(snapshot).map(|it| it.to_string()).unwrap_or_default()),
            or_none(item.interfaces().join(",")),
            services.join(","),
            or_none(count(|it| it.requests)),
            or_none(count(|it| it.conflicts)),
            item.trouble(snapshot),
        ]
    }));
    aligned(&rows)
}

/// An object for each address.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let items = items(snapshot);
    let object = |item: &Item<'_>| -> Value {
        let services: Vec<String> = item.services.iter().map(ToString::to_string).collect();
        let check = snapshot.layer2.and_then(|it| it.checks.get(&item.address));
        let conflict = item.answered.and_then(|it| it.last_conflict.as_ref());
        Object::new()
            .field("address", item.address.to_string())
            .field("owner", item.owner)
            .field("mine", item.is_mine)
            .field("since", item.began(snapshot).map(Utc::rfc3339))
            .field("interfaces", item.interfaces())
            .field("bound", item.answered.is_some_and(|it| it.is_bound))
            .field("services", services)
            .field("requests", item.answered.map_or(0, |it| it.requests))
            .field("responses", item.answered.map_or(0, |it| it.responses))
            .field("announcements", item.answered.map_or(0, |it| it.announcements))
            .field("conflicts", item.answered.map_or(0, |it| it.conflicts))
            .field(
                "lastConflict",
                conflict.map(|it| {
                    Value::from(
                        Object::new()
                            .field("mac", it.mac.to_string())
                            .field("interface", it.interface.as_str())
                            .field("ageSeconds", it.age.as_secs()),
                    )
                }),
            )
            .field(
                "check",
                check.map(|it| {
                    Value::from(
                        Object::new()
                            .field("answer", it.answer.word())
                            .field("ageSeconds", it.age.as_secs()),
                    )
                }),
            )
            .field("reason", item.trouble(snapshot))
            .into()
    };
    Object::new().field("items", items.iter().map(object).collect::<Vec<Value>>())
}
