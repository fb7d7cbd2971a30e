//! The chain of reasons as text and as JSON.
//!
//! Decides nothing; both formats carry the same facts.

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Utc;
use fairway_node::drain::DrainStatus;
use fairway_node::history::{Change, Routes};
use fairway_plan::{Answer, Layer2Verdict, Obstacle};
use fairway_seam::{AnsweredAddress, PathAttributes};
use serde_json::Value;

use super::super::section::sections;
use super::pools::Stand;
use super::{Explanation, PeerState, PrefixVerdict};
use crate::Snapshot;
use crate::object::Object;
use crate::route::joined;
use crate::time::clock;

/// As text: a sentence, then a section for each link of the chain.
pub(super) fn text(explanation: &Explanation<'_>) -> String {
    let mut text = format!("Service {} {}\n", explanation.service.name, explanation.verdict());
    text.push_str(&sections([
        ("Asks for", vec![explanation.wishes().join(", ")]),
        ("Pools", pools(explanation)),
        ("Addresses", addresses(explanation)),
        ("Endpoints", vec![explanation.served()]),
        ("Node", node(explanation)),
        ("Data path", data_path(explanation)),
        ("BGP", bgp(explanation)),
        ("Layer 2", layer2(explanation)),
        ("Faults", faults(explanation)),
        ("Missing", missing(explanation)),
    ]));
    text
}

fn faults(explanation: &Explanation<'_>) -> Vec<String> {
    [&explanation.faults[..], &explanation.faults_elsewhere].concat()
}

fn missing(explanation: &Explanation<'_>) -> Vec<String> {
    let is_complete = explanation.missing.is_empty() && explanation.outcome.is_some();
    if is_complete { vec!["nothing".to_owned()] } else { explanation.missing.clone() }
}

fn pools(explanation: &Explanation<'_>) -> Vec<String> {
    if explanation.pools.is_empty() {
        return vec!["there is no IPAddressPool".to_owned()];
    }
    let line = |stand: Stand, name: &str, why: &str| match stand {
        Stand::Gave => format!("{name}: gave {why}"),
        Stand::Possible => format!("{name}: {why}"),
        Stand::Full | Stand::Refused => format!("{name}: {}, {why}", stand.word()),
    };
    explanation.pools.iter().map(|it| line(it.stand, it.name, &it.why)).collect()
}

fn addresses(explanation: &Explanation<'_>) -> Vec<String> {
    let Some(outcome) = explanation.outcome else { return Vec::new() };
    let given = match &outcome.pool {
        Some(pool) => format!("{} from {pool}", listed(&outcome.addresses)),
        None => "none".to_owned(),
    };
    let mut lines = vec![given];
    lines.extend(outcome.reason.as_ref().map(ToString::to_string));
    let last = explanation.history.and_then(|it| it.addresses.last.as_ref());
    lines.push(since(explanation, last, |before| listed(before)));
    lines
}

/// When the last change was, and what was before it.
fn since<T>(
    explanation: &Explanation<'_>,
    last: Option<&Change<T>>,
    show: impl FnOnce(&T) -> String,
) -> String {
    let snapshot = explanation.snapshot;
    let appeared_at = explanation.history.and_then(|it| it.appeared_at_epoch_seconds);
    match (last, appeared_at) {
        (Some(change), _) => format!(
            "since {}, {} ago; before that {}",
            Utc(change.at_epoch_seconds),
            ago(snapshot, change.at_epoch_seconds),
            show(&change.before)
        ),
        (None, Some(at)) => {
            format!("unchanged since the Service appeared, {} ago", ago(snapshot, at))
        }
        (None, None) => format!(
            "unchanged since the daemon started, {} ago",
            ago(snapshot, snapshot.started_epoch_seconds)
        ),
    }
}

fn ago(snapshot: &Snapshot<'_>, epoch_seconds: u64) -> String {
    clock(Duration::from_secs(snapshot.now_epoch_seconds.saturating_sub(epoch_seconds)))
}

fn listed<T: Display>(values: &[T]) -> String {
    let words: Vec<_> = values.iter().map(ToString::to_string).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" and ") }
}

/// Whether this node may announce it.
fn node(explanation: &Explanation<'_>) -> Vec<String> {
    let snapshot = explanation.snapshot;
    let whole = explanation.announcement.and_then(|it| it.reason.as_ref());
    let mut lines = vec![match whole {
        Some(reason) => reason.to_string(),
        None => format!("{} may announce it", snapshot.node.name),
    }];
    if snapshot.drain != DrainStatus::InService {
        lines.push(snapshot.drain.to_string());
    }
    lines
}

/// Whether packets to its addresses reach an endpoint by way of this node; nothing where no service proxy is followed.
fn data_path(explanation: &Explanation<'_>) -> Vec<String> {
    let said = explanation.announcement.into_iter().flat_map(|it| &it.data_path);
    let line = |(address, obstacle): &(IpAddr, Option<Obstacle>)| match obstacle {
        None => format!("{address}: the service proxy of this node delivers packets to it"),
        Some(obstacle) => format!("{address}: {obstacle}"),
    };
    said.map(line).collect()
}

fn bgp(explanation: &Explanation<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let addresses = explanation.announcement.into_iter().flat_map(|it| &it.addresses);
    for address in addresses {
        lines.extend(address.reason.iter().map(|it| format!("{}: {it}", address.address)));
    }
    for prefix in &explanation.prefixes {
        lines.extend(prefix_lines(prefix));
    }
    let history = explanation.history.filter(|_| !explanation.prefixes.is_empty());
    if let Some(history) = history {
        let show = |before: &Routes| routes(explanation, before);
        lines.push(since(explanation, history.routes.last.as_ref(), show));
    }
    let mismatches = explanation.mismatches.iter();
    lines.extend(
        mismatches.map(|it| format!("not announced by BGPAdvertisement {}: {}", it.name, it.why)),
    );
    let elsewhere = explanation.elsewhere.iter();
    lines.extend(elsewhere.map(|(peer, why)| format!("no session with BGPPeer {peer}: {why}")));
    lines
}

fn prefix_lines(prefix: &PrefixVerdict<'_>) -> Vec<String> {
    let planned = prefix.planned;
    let names: Vec<_> = planned.advertisements.iter().map(ToString::to_string).collect();
    let mut lines = vec![format!("{}, by BGPAdvertisement {}", planned.prefix, names.join(", "))];
    lines.extend(planned.reason.iter().map(|reason| format!("  {reason}")));
    lines.extend(prefix.peers.iter().map(|peer| {
        let state = match &peer.state {
            PeerState::Told(attributes) => format!("advertised: {}", sent(attributes)),
            PeerState::Waits(why) => format!("not advertised: {why}"),
            PeerState::NotMeant(why) => format!("not planned: {why}"),
        };
        format!("  {}: {state}", peer.name)
    }));
    lines
}

/// The attributes of an UPDATE, in the words of `show bgp`.
fn sent(attributes: &PathAttributes) -> String {
    let mut parts = vec![format!("next hop {}", attributes.next_hop)];
    if attributes.as_path.length() > 0 {
        parts.push(format!("AS path {}", attributes.as_path));
    }
    parts.extend(attributes.local_pref.map(|it| format!("localpref {it}")));
    parts.extend(attributes.med.map(|it| format!("metric {it}")));
    for (word, values) in [
        ("community", joined(&attributes.communities)),
        ("large community", joined(&attributes.large_communities)),
        ("extended community", joined(&attributes.extended_communities)),
    ] {
        if !values.is_empty() {
            parts.push(format!("{word} {values}"));
        }
    }
    parts.join(", ")
}

/// Which prefixes were planned for which peers.
fn routes(explanation: &Explanation<'_>, routes: &Routes) -> String {
    if routes.is_empty() {
        return "no peer was planned".to_owned();
    }
    let words = routes.iter().map(|(prefix, peers)| {
        let names: Vec<_> = peers.iter().map(|key| explanation.told.name(*key)).collect();
        format!("{prefix} was planned for {}", names.join(", "))
    });
    words.collect::<Vec<_>>().join("; ")
}

fn layer2(explanation: &Explanation<'_>) -> Vec<String> {
    let verdicts = explanation.announcement.map(|it| it.layer2.as_slice()).unwrap_or_default();
    if verdicts.is_empty() {
        let has_address = explanation.outcome.is_some_and(|it| !it.is_pending());
        let is_used = has_address && !explanation.snapshot.index.layer2_advertisements.is_empty();
        let silent = "no L2Advertisement selects it";
        return is_used.then(|| silent.to_owned()).into_iter().collect();
    }
    let snapshot = explanation.snapshot;
    let node = &snapshot.node.name;
    let line = |verdict: &Layer2Verdict| {
        let decided = match &verdict.answer {
            Ok(Answer { interfaces, bind }) => {
                let on = interfaces.as_ref().map(|it| {
                    let names: Vec<_> = it.iter().map(String::as_str).collect();
                    names.join(", ")
                });
                let on = on.unwrap_or_else(|| "all interfaces".to_owned());
                let bound = if *bind { ", and to have the address on an interface" } else { "" };
                format!("{node} is chosen to answer, on {on}{bound}")
            }
            Err(reason) => reason.to_string(),
        };
        let addresses = match verdicts {
            [_] => String::new(),
            _ => format!("{}: ", texts(&verdict.addresses).join(", ")),
        };
        let names = texts(&verdict.advertisements).join(", ");
        format!("{addresses}{decided}; by L2Advertisement {names}")
    };
    let owned = verdicts.iter().filter(|it| it.answer.is_ok()).flat_map(|it| &it.addresses);
    let answered = owned.filter_map(|it| Some((it, snapshot.layer2?.addresses.get(it)?)));
    let state = |(address, answered): (&IpAddr, &AnsweredAddress)| {
        let trouble = crate::layer2::trouble(snapshot, answered);
        trouble.unwrap_or_else(|| {
            format!(
                "{address} is answered for on {} ({} requests, {} conflicts)",
                answered.interfaces.join(", "),
                answered.requests,
                answered.conflicts
            )
        })
    };
    let checked = verdicts.iter().filter(|it| it.answer.is_err()).flat_map(|it| &it.addresses);
    let checked = checked.filter_map(|address| {
        Some(format!("{address}: {}", crate::layer2::failed_check(snapshot, *address)?))
    });
    verdicts.iter().map(line).chain(answered.map(state)).chain(checked).collect()
}

/// As JSON.
pub(super) fn json(explanation: &Explanation<'_>) -> Object {
    let snapshot = explanation.snapshot;
    let outcome = explanation.outcome;
    let announcement = explanation.announcement;
    let layer2 = announcement.map(|it| it.layer2.as_slice()).unwrap_or_default();
    let counts = explanation.endpoints;
    let reason = |text: Option<String>| text.unwrap_or_default();
    let whole = announcement.and_then(|it| it.reason.as_ref());
    let addresses: Vec<_> = outcome.map(|it| texts(&it.addresses)).unwrap_or_default();
    let (told, planned) = explanation.told_count();
    let pools: Vec<Value> = explanation
        .pools
        .iter()
        .map(|it| {
            let pool = Object::new().field("name", it.name).field("verdict", it.stand.word());
            pool.field("reason", it.why.as_str()).into()
        })
        .collect();
    Object::new()
        .field("namespace", explanation.service.name.namespace.as_str())
        .field("name", explanation.service.name.name.as_str())
        .field("verdict", explanation.verdict())
        .field("told", told)
        .field("planned", planned)
        .field("asksFor", explanation.wishes())
        .field("pools", pools)
        .field("addresses", addresses)
        .field("pool", outcome.and_then(|it| it.pool.clone()).unwrap_or_default())
        .field("allocationReason", reason(outcome.and_then(|it| it.reason.as_ref()).map(text_of)))
        .field("lastChange", last_changes(explanation))
        .field(
            "endpoints",
            Object::new()
                .field("slices", counts.slices)
                .field("endpoints", counts.all)
                .field("ready", counts.usable)
                .field("readyHere", counts.usable_here),
        )
        .field(
            "node",
            Object::new()
                .field("name", snapshot.node.name.as_str())
                .field("announces", whole.is_none() && announcement.is_some())
                .field("word", whole.map(|it| it.word()).unwrap_or_default())
                .field("reason", reason(whole.map(text_of))),
        )
        .field("dataPath", data_path_json(explanation))
        .field("bgp", prefixes(explanation))
        .field("advertisementsLeftOut", left_out(explanation))
        .field("peersLeftOut", peers_left_out(explanation))
        .field("layer2", layer2.iter().map(|it| layer2_json(it).into()).collect::<Vec<Value>>())
        .field("faults", faults(explanation))
        .field("missing", explanation.missing.clone())
}

fn data_path_json(explanation: &Explanation<'_>) -> Vec<Value> {
    let said = explanation.announcement.into_iter().flat_map(|it| &it.data_path);
    let object = |(address, obstacle): &(IpAddr, Option<Obstacle>)| {
        Object::new()
            .field("address", address.to_string())
            .field("isDelivered", obstacle.is_none())
            .field("reason", obstacle.as_ref().map(text_of).unwrap_or_default())
            .into()
    };
    said.map(object).collect()
}

fn text_of(value: &impl Display) -> String {
    value.to_string()
}

fn texts<T: Display>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// `addresses` and `routes`, each with the time of the last change and the earlier value; absent if the
/// daemon has seen no change.
fn last_changes(explanation: &Explanation<'_>) -> Object {
    let history = explanation.history;
    let addresses = history.and_then(|it| it.addresses.last.as_ref()).map(|change| {
        Object::new()
            .field("atEpochSeconds", change.at_epoch_seconds)
            .field("before", texts::<IpAddr>(&change.before))
    });
    let routes = history.and_then(|it| it.routes.last.as_ref()).map(|change| {
        let before = change.before.iter().map(|(prefix, peers)| {
            let names = peers.iter().map(|key| explanation.told.name(*key));
            (prefix.to_string(), names.collect::<Vec<_>>().into())
        });
        Object::new()
            .field("atEpochSeconds", change.at_epoch_seconds)
            .field("before", before.collect::<Object>())
    });
    Object::new().optional("addresses", addresses).optional("routes", routes)
}

fn prefixes(explanation: &Explanation<'_>) -> Vec<Value> {
    let prefix = |it: &PrefixVerdict<'_>| {
        let peers: Vec<Value> = it
            .peers
            .iter()
            .map(|peer| {
                let (verdict, reason, attributes) = match &peer.state {
                    PeerState::Told(attributes) => ("told", "", Some(*attributes)),
                    PeerState::Waits(why) => ("waiting", why.as_str(), None),
                    PeerState::NotMeant(why) => ("notMeant", why.as_str(), None),
                };
                Object::new()
                    .field("peer", peer.name.as_str())
                    .field("verdict", verdict)
                    .field("reason", reason)
                    .optional("sent", attributes.map(sent_json))
                    .into()
            })
            .collect();
        let reason = it.planned.reason.as_ref();
        Object::new()
            .field("address", it.address.to_string())
            .field("prefix", it.planned.prefix.to_string())
            .field("advertisements", texts(&it.planned.advertisements))
            .field("word", reason.map(|reason| reason.word()).unwrap_or_default())
            .field("reason", reason.map(text_of).unwrap_or_default())
            .field("peers", peers)
            .into()
    };
    let silent = explanation.announcement.into_iter().flat_map(|it| &it.addresses);
    let silent = silent.filter(|address| address.prefixes.is_empty()).map(|address| {
        let reason = address.reason.as_ref();
        Object::new()
            .field("address", address.address.to_string())
            .field("prefix", "")
            .field("advertisements", Vec::<String>::new())
            .field("word", reason.map(|reason| reason.word()).unwrap_or_default())
            .field("reason", reason.map(text_of).unwrap_or_default())
            .field("peers", Vec::<Value>::new())
            .into()
    });
    explanation.prefixes.iter().map(prefix).chain(silent).collect()
}

fn sent_json(attributes: &PathAttributes) -> Object {
    Object::new()
        .field("nextHop", attributes.next_hop.to_string())
        .field("asPath", attributes.as_path.to_string())
        .optional("localPref", attributes.local_pref)
        .optional("med", attributes.med)
        .field("communities", texts(&attributes.communities))
        .field("largeCommunities", texts(&attributes.large_communities))
        .field("extendedCommunities", texts(&attributes.extended_communities))
}

fn left_out(explanation: &Explanation<'_>) -> Vec<Value> {
    let object = |name: String, why: &str| -> Value {
        Object::new().field("name", name).field("reason", why).into()
    };
    explanation.mismatches.iter().map(|it| object(it.name.to_string(), &it.why)).collect()
}

fn peers_left_out(explanation: &Explanation<'_>) -> Vec<Value> {
    let peers = explanation.elsewhere.iter();
    peers
        .map(|(name, why)| {
            Object::new().field("name", name.to_string()).field("reason", why.as_str()).into()
        })
        .collect()
}

/// `interfaces` is null for all; absent if this node does not answer.
fn layer2_json(verdict: &Layer2Verdict) -> Object {
    let object = Object::new()
        .field("addresses", texts(&verdict.addresses))
        .field("advertisements", texts(&verdict.advertisements))
        .field("answers", verdict.answer.is_ok());
    match &verdict.answer {
        Ok(Answer { interfaces, bind }) => {
            let names = interfaces.as_ref().map(|it| it.iter().cloned().collect::<Vec<_>>());
            let object = if *bind { object.field("bind", true) } else { object };
            object.field("interfaces", names).field("word", "").field("reason", "")
        }
        Err(reason) => object.field("word", reason.word()).field("reason", reason.to_string()),
    }
}
