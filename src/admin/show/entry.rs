//! `show bgp ipv4|ipv6 unicast PREFIX`: one prefix, its attributes, and who has been told.
//!
//! Left out: `lastUpdate`, since when an entry changed last is not kept; for the same reason
//! `version` is that of the table.

use std::fmt::Write;
use std::net::IpAddr;

use fairway_sessions::backend::DesiredRoute;
use fairway_sessions::types::{AddressFamily, PeerKey, Prefix};
use ipnet::IpNet;
use serde_json::Value;

use super::instance::Instance;
use super::neighbor::family_word;
use super::object::Object;
use super::route::{
    Entry, SELECTION_REASON, WEIGHT, communities, entries, joined, large_communities, unspecified,
};
use super::{ShowError, Snapshot};

/// The entry that `text` means: the prefix itself, or the longest one around an address.
fn find<'a>(
    snapshot: &Snapshot<'a>,
    family: AddressFamily,
    text: &str,
) -> Result<Option<Entry<'a>>, ShowError> {
    let malformed = || ShowError::MalformedPrefix { text: text.to_owned(), family };
    let address = text.parse::<IpAddr>().ok();
    // Bits behind the length do not matter here, as in FRR.
    let prefix = text.parse::<IpNet>().ok().and_then(|net| Prefix::try_from(net).ok());
    let wanted = address.map(Prefix::host).or(prefix).ok_or_else(malformed)?;
    if wanted.family() != family {
        return Err(malformed());
    }
    let entries = entries(snapshot, family).into_iter();
    Ok(match address {
        Some(address) => entries
            .filter(|entry| entry.prefix.contains(address))
            .max_by_key(|entry| entry.prefix.length()),
        None => entries.into_iter().find(|entry| entry.prefix == wanted),
    })
}

/// The neighbours that have been told of `prefix`.
fn advertised_to(snapshot: &Snapshot<'_>, prefix: Prefix) -> Vec<PeerKey> {
    let peers = snapshot.bgp.peers.iter();
    peers
        .filter(|peer| peer.advertised.iter().any(|route| route.prefix == prefix))
        .map(|peer| peer.config.key)
        .collect()
}

/// The entry in FRR's lines.
pub(super) fn text(
    snapshot: &Snapshot<'_>,
    family: AddressFamily,
    wanted: &str,
) -> Result<String, ShowError> {
    let entry = find(snapshot, family, wanted)?.ok_or(ShowError::NetworkNotInTable)?;
    let instance = Instance::of(snapshot, Some(family));
    let mut text = format!(
        "BGP routing table entry for {}, version {}\nPaths: ({} available, best #1, table default)\n",
        entry.prefix,
        instance.table_version,
        entry.paths.len()
    );
    let told = advertised_to(snapshot, entry.prefix);
    if told.is_empty() {
        text.push_str("  Not advertised to any peer\n");
    } else {
        let _ = writeln!(text, "  Advertised to non peer-group peers:\n  {}", joined(&told));
    }
    let here = unspecified(family);
    for (position, path) in entry.paths.iter().enumerate() {
        let attributes = &path.attributes;
        let local_pref = attributes.local_pref.map(|it| format!(" localpref {it},"));
        let rank = if position == 0 {
            format!("best ({SELECTION_REASON})")
        } else {
            "multipath".to_owned()
        };
        let _ = writeln!(
            text,
            "  Local\n    {here} from {here} ({})\n      \
             Origin IGP, metric 0,{} weight {WEIGHT}, valid, sourced, local, {rank}",
            instance.router_id,
            local_pref.unwrap_or_default()
        );
        if !attributes.communities.is_empty() {
            let _ = writeln!(text, "      Community: {}", joined(&attributes.communities));
        }
        if !attributes.large_communities.is_empty() {
            let large = joined(&attributes.large_communities);
            let _ = writeln!(text, "      Large Community: {large}");
        }
    }
    Ok(text)
}

/// The entry as an object; an empty one when there is none.
pub(super) fn json(
    snapshot: &Snapshot<'_>,
    family: AddressFamily,
    wanted: &str,
) -> Result<Object, ShowError> {
    let Some(entry) = find(snapshot, family, wanted)? else {
        return Ok(Object::new());
    };
    let instance = Instance::of(snapshot, Some(family));
    let told = advertised_to(snapshot, entry.prefix);
    let advertised_to: Object =
        told.iter().map(|peer| (peer.to_string(), Object::new().into())).collect();
    let paths: Vec<Value> = entry
        .paths
        .iter()
        .enumerate()
        .map(|(position, route)| path(snapshot, &instance, route, position == 0).into())
        .collect();
    Ok(Object::new()
        .field("prefix", entry.prefix.to_string())
        .field("version", instance.table_version)
        .optional("advertisedTo", (!told.is_empty()).then_some(advertised_to))
        .field("paths", paths))
}

fn path(
    snapshot: &Snapshot<'_>,
    instance: &Instance,
    route: &DesiredRoute,
    is_best: bool,
) -> Object {
    let family = route.prefix.family();
    let here = unspecified(family).to_string();
    let is_ipv6 = family == AddressFamily::Ipv6Unicast;
    let as_path = Object::new()
        .field("string", "Local")
        .field("segments", Vec::<Value>::new())
        .field("length", 0);
    let best = Object::new().field("overall", true).field("selectionReason", SELECTION_REASON);
    let next_hop = Object::new()
        .field("ip", here.as_str())
        .field("hostname", snapshot.node.name.as_str())
        .field("afi", family_word(family))
        .optional("scope", is_ipv6.then_some("global"))
        .field("metric", 0)
        .field("accessible", true)
        .field("used", true);
    let peer =
        Object::new().field("peerId", here).field("routerId", instance.router_id.to_string());
    let attributes = &route.attributes;
    Object::new()
        .field("aspath", as_path)
        .field("origin", "IGP")
        .field("metric", 0)
        .optional("locPrf", attributes.local_pref)
        .field("weight", WEIGHT)
        .field("valid", true)
        .field("version", instance.table_version)
        .field("sourced", true)
        .field("local", true)
        .flag("multipath", !is_best)
        .optional("bestpath", is_best.then_some(best))
        .optional("community", communities(&attributes.communities))
        .optional("largeCommunity", large_communities(&attributes.large_communities))
        .field("nexthops", vec![Value::from(next_hop)])
        .field("peer", peer)
}
