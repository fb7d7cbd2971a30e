//! `toReceive` of a neighbor: which routes it may send.
//!
//! Knows the parts of one neighbor. Refuses what would let a node accept more than its own configurations do.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::Part;
use crate::kubernetes::field::Section;
use crate::object::Fields;

/// What is accepted from a neighbor.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Received {
    All,
    /// Entries of `prefixes`; none for nothing.
    Listed(Vec<Value>),
}

impl Received {
    fn is_nothing(&self) -> bool {
        *self == Self::Listed(Vec::new())
    }

    /// Both, as frr-k8s merges them.
    fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Listed(mut all), Self::Listed(more)) => {
                for it in more {
                    if !all.contains(it) {
                        all.push(it.clone());
                    }
                }
                Self::Listed(all)
            }
            _ => Self::All,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Listed(_), Self::All) => false,
            (Self::Listed(all), Self::Listed(some)) => some.iter().all(|it| all.contains(it)),
        }
    }
}

pub(super) fn received(neighbor: &Section<'_>) -> Received {
    let allowed = neighbor.section("toReceive").and_then(|it| it.section("allowed"));
    let Some(allowed) = allowed else { return Received::Listed(Vec::new()) };
    let is_all = allowed.text("mode").as_deref() == Some("all");
    let mut listed = Vec::new();
    for section in allowed.sections("prefixes") {
        let network = section.text("prefix").and_then(|it| it.parse::<IpNet>().ok());
        let Some(network) = network else {
            section.untranslated_here("is not a prefix as in 192.0.2.0/24: it is not accepted");
            continue;
        };
        let mut entry = Fields::default();
        entry.set("prefix", json!(network.trunc().to_string()));
        for field in ["ge", "le"] {
            let length = section.number(field).filter(|it| *it > 0);
            entry.set(field, length.map(|it| json!(it)));
        }
        listed.extend(entry.some());
    }
    if is_all { Received::All } else { Received::Listed(listed) }
}

/// Sets what the peer may send.
pub(super) fn write(parts: &[Part<'_>], spec: &mut Fields) {
    let of_all_nodes = parts.iter().filter(|it| it.nodes.is_none()).map(|it| &it.received);
    let nothing = Received::Listed(Vec::new());
    let has_all_nodes = parts.iter().any(|it| it.nodes.is_none());
    let base = if has_all_nodes {
        of_all_nodes.fold(nothing, |all, it| all.and(it))
    } else {
        let first = parts.first().map(|it| &it.nodes);
        let same = |it: &&Part<'_>| Some(&it.nodes) == first;
        parts.iter().filter(same).fold(nothing, |all, it| all.and(&it.received))
    };
    let is_for_all = |part: &Part<'_>| base.covers(&part.received);
    // Nodes of another configuration must not accept what only the first ones do.
    let is_same = has_all_nodes
        || parts.iter().all(|part| {
            let of_nodes = parts.iter().filter(|it| it.nodes == part.nodes);
            let own = of_nodes.fold(Received::Listed(Vec::new()), |all, it| all.and(&it.received));
            own.covers(&base) && base.covers(&own)
        });
    for part in parts.iter().filter(|part| !is_same || !is_for_all(part)) {
        part.section.untranslated(
            "toReceive",
            "is for some of the nodes that have this neighbor: write a BGPPeer for these nodes by hand, with nodeSelectors that \
             exclude those of the others",
        );
    }
    if !is_same || base.is_nothing() {
        return;
    }
    if let Some(part) = parts.iter().find(|it| !it.received.is_nothing()) {
        let why = "routes are installed, as FRR does: installRoutes needs the capability NET_ADMIN (speaker.installRoutes of the \
                   chart)";
        part.section.note("toReceive", why);
    }
    spec.set_if("installRoutes", true);
    let allowed = match base {
        Received::All => json!({"mode": "all"}),
        Received::Listed(listed) => json!({"mode": "filtered", "prefixes": listed}),
    };
    spec.set("toReceive", json!({"allowed": allowed}));
}
