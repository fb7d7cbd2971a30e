//! `show bgp ipv4|ipv6 unicast PREFIX`: one prefix, its attributes, and the peers it is advertised to.
//!
//! Left out: `lastUpdate`, since the time of the last change of an entry is not kept; for the same reason
//! `version` is that of the table.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, AsPath, AsPathSegment, PathId, PeerKey, PeerKind, Prefix};
use fairway_seam::{
    DesiredRoute, LearnedRoute, Path, PathAttributes, StalePhase, UnknownAttribute,
};
use ipnet::IpNet;
use serde_json::Value;

use super::document::{Document, Text};
use super::hex::hex;
use super::instance::Instance;
use super::object::Object;
use super::path_next_hops::Detail;
use super::route::{
    Entry, EntryPath, communities, extended_communities, joined, large_communities, table,
    table_of, unspecified,
};
use super::{ShowError, Snapshot, rpki, table};

/// The entry for `text`: the prefix itself, or the longest one that covers an address.
fn find<'a>(
    snapshot: &Snapshot<'a>,
    family: AddressFamily,
    text: &str,
) -> Result<Option<Entry<'a>>, ShowError> {
    let malformed = || ShowError::MalformedPrefix { text: text.to_owned(), family };
    let address = text.parse::<IpAddr>().ok();
    // Bits after the prefix length are ignored, as in FRR.
    let prefix = text.parse::<IpNet>().ok().and_then(|net| Prefix::try_from(net).ok());
    let wanted = address.map(Prefix::host).or(prefix).ok_or_else(malformed)?;
    if wanted.family() != family {
        return Err(malformed());
    }
    let table = table_of(snapshot, |prefix| match address {
        Some(address) => prefix.family() == family && prefix.contains(address),
        None => prefix == wanted,
    });
    Ok(table.entries().max_by_key(|entry| entry.prefix.length()))
}

/// The neighbours that `prefix` is advertised to.
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
    let told = advertised_to(snapshot, entry.prefix);
    Ok(lines(snapshot, &Instance::of(snapshot, Some(family)), &entry, &told))
}

/// `show bgp ipv4|ipv6 unicast detail`: all entries, one after the other.
pub(super) fn all_texts<'a>(snapshot: &Snapshot<'a>, family: AddressFamily) -> Text<'a> {
    let (snapshot, table, told) = (*snapshot, table(snapshot, family), told(snapshot));
    let instance = Instance::of(&snapshot, Some(family));
    Text::lines(move |out| {
        let mut count = 0_usize;
        for entry in table.entries() {
            count = count.saturating_add(1);
            let told = told.get(&entry.prefix).map_or(&[][..], Vec::as_slice);
            out.write_str(&lines(&snapshot, &instance, &entry, told))?;
        }
        match count {
            0 => out.write_str("No BGP prefixes displayed, 0 exist\n"),
            _ => {
                let paths = table.path_count();
                writeln!(out, "\nDisplayed  {count} routes and {paths} total paths")
            }
        }
    })
}

/// The neighbours that each prefix is advertised to.
fn told(snapshot: &Snapshot<'_>) -> BTreeMap<Prefix, Vec<PeerKey>> {
    let mut told: BTreeMap<Prefix, Vec<PeerKey>> = BTreeMap::new();
    for peer in &snapshot.bgp.peers {
        for route in &peer.advertised {
            let peers = told.entry(route.prefix).or_default();
            if peers.last() != Some(&peer.config.key) {
                peers.push(peer.config.key);
            }
        }
    }
    told
}

fn lines(
    snapshot: &Snapshot<'_>,
    instance: &Instance,
    entry: &Entry<'_>,
    told: &[PeerKey],
) -> String {
    let best = entry.paths.first().is_some_and(|it| it.is_best(0));
    let mut text = format!(
        "BGP routing table entry for {}, version {}\nPaths: ({} available, {}, table default)\n",
        entry.prefix,
        instance.table_version,
        entry.paths.len(),
        if best { "best #1" } else { "no best path" }
    );
    if told.is_empty() {
        text.push_str("  Not advertised to any peer\n");
    } else {
        let _ = writeln!(text, "  Advertised to non peer-group peers:\n  {}", joined(told));
    }
    let reason = entry.selection_reason();
    for (position, path) in entry.paths.iter().enumerate() {
        text.push_str(&path_lines(*path, position, &reason, instance));
        if let Some((title, _, left)) = removal(snapshot, *path) {
            let _ = writeln!(text, "      Time until {title} stale route deleted: {left}");
        }
    }
    text
}

/// When a stale path is removed, in seconds, while its neighbour is away: FRR's title and key for it.
fn removal(
    snapshot: &Snapshot<'_>,
    path: EntryPath<'_>,
) -> Option<(&'static str, &'static str, u64)> {
    let EntryPath::Learned(LearnedRoute { path, stale: true, .. }) = path else { return None };
    let mut peers = snapshot.bgp.peers.iter();
    let stale = peers.find(|peer| peer.config.key == path.source.key)?.stale.as_ref()?;
    let (title, key) = match stale.phase {
        StalePhase::Away => ("Graceful Restart", "gracefulRestartSecondsRemaining"),
        StalePhase::LongLived => ("Long-lived", "llgrSecondsRemaining"),
        StalePhase::Back => return None,
    };
    Some((title, key, stale.phase_ends_in.as_secs()))
}

/// One path in FRR's lines. Ours: why a path is not the best, and attributes that are not interpreted.
fn path_lines(path: EntryPath<'_>, position: usize, reason: &str, instance: &Instance) -> String {
    let (head, next_hop, from, router_id, kind) = match path {
        EntryPath::Originated(_) => {
            let here = path.next_hop();
            ("Local".to_owned(), here.clone(), here, instance.router_id, "sourced, local")
        }
        EntryPath::Learned(LearnedRoute { path: Path { source, attributes, .. }, .. }) => (
            match attributes.as_path.length() {
                0 => "Local".to_owned(),
                _ => attributes.as_path.to_string(),
            },
            attributes.next_hop.to_string(),
            source.key.interface().map_or_else(|| source.address.to_string(), |it| it.to_string()),
            source.router_id,
            match source.kind {
                PeerKind::External => "external",
                PeerKind::Internal => "internal",
            },
        ),
    };
    let mut text = format!(
        "  {head}{}{}\n    {next_hop}{} from {from} ({router_id}){}\n      Origin {}",
        if path.is_from_client() { ", (Received from a RR-client)" } else { "" },
        if path.is_stale() { ", (stale)" } else { "" },
        if path.is_accessible() { "" } else { " (inaccessible)" },
        path.link_local().map(|it| format!("\n    ({it}) (used)")).unwrap_or_default(),
        path.origin()
    );
    let number = |name: &str, value: Option<u32>| {
        value.map(|value| format!(", {name} {value}")).unwrap_or_default()
    };
    text.push_str(&number("metric", path.metric()));
    text.push_str(&number("localpref", path.local_pref()));
    text.push_str(&number("weight", Some(path.weight()).filter(|weight| *weight > 0)));
    text.push_str(&number("otc", path.only_to_customer()));
    text.push_str(if path.is_accessible() { ", valid" } else { "" });
    let _ = write!(text, ", {kind}");
    match path {
        _ if path.is_best(position) => drop(write!(text, ", best ({reason})")),
        EntryPath::Originated(_) => text.push_str(", multipath"),
        EntryPath::Learned(learned) => {
            let lost_at = learned.lost_at.map(|step| step.to_string()).unwrap_or_default();
            let _ = write!(text, ", not best ({lost_at})");
        }
    }
    if let Some(state) = path.origin_validation() {
        let _ = write!(text, ", rpki validation-state: {}", rpki::words(state));
    }
    text.push('\n');
    if !path.communities().is_empty() {
        let _ = writeln!(text, "      Community: {}", joined(path.communities()));
    }
    if !path.extended_communities().is_empty() {
        let _ = writeln!(text, "      Extended Community: {}", joined(path.extended_communities()));
    }
    if !path.large_communities().is_empty() {
        let _ = writeln!(text, "      Large Community: {}", joined(path.large_communities()));
    }
    if let EntryPath::Learned(learned) = path {
        text.push_str(&remaining_lines(&learned.path));
    }
    text
}

/// Where a received path was reflected, what is not interpreted, and its identifier.
fn remaining_lines(Path { attributes, path_id, .. }: &Path) -> String {
    let mut text = String::new();
    if let Some(originator) = attributes.originator() {
        let clusters: Vec<_> = attributes.clusters().collect();
        let _ =
            writeln!(text, "      Originator: {originator}, Cluster list: {}", joined(&clusters));
    }
    for UnknownAttribute { flags, code, value } in uninterpreted(attributes) {
        let (length, value) = (value.len(), hex(value));
        let _ =
            writeln!(text, "      Attribute {code}, flags 0x{flags:02x}, {length} bytes: {value}");
    }
    if *path_id != PathId::NONE {
        let _ = writeln!(text, "      AddPath ID: RX {path_id}");
    }
    text
}

/// The attributes that are shown as bytes.
fn uninterpreted(attributes: &PathAttributes) -> impl Iterator<Item = &UnknownAttribute> {
    let shown = [UnknownAttribute::ORIGINATOR_ID, UnknownAttribute::CLUSTER_LIST];
    attributes.unknown.iter().filter(move |it| !shown.contains(&it.code))
}

/// The entry as an object; an empty one if there is no such entry.
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
    let paths = paths(snapshot, &instance, &entry);
    Ok(Object::new()
        .field("prefix", entry.prefix.to_string())
        .field("version", instance.table_version)
        .optional("advertisedTo", (!told.is_empty()).then_some(advertised_to))
        .field("paths", paths))
}

/// `show bgp ipv4|ipv6 unicast detail`: the head, and the paths by prefix, as FRR 10 has it.
pub(super) fn all_json<'a>(snapshot: &Snapshot<'a>, family: AddressFamily) -> Document<'a> {
    let (snapshot, instance) = (*snapshot, Instance::of(snapshot, Some(family)));
    table::document(instance, table(&snapshot, family), move |instance, entry| {
        Some(paths(&snapshot, instance, entry))
    })
}

fn paths(snapshot: &Snapshot<'_>, instance: &Instance, entry: &Entry<'_>) -> Vec<Value> {
    let reason = entry.selection_reason();
    let one = |(position, path): (usize, &EntryPath<'_>)| {
        let rank = |object: Object| match (path.is_best(position), path) {
            (true, _) => {
                let best = Object::new().field("overall", true);
                object.field("bestpath", best.field("selectionReason", reason.as_str()))
            }
            (_, EntryPath::Originated(_)) => object.field("multipath", true),
            (_, EntryPath::Learned(learned)) => {
                object.optional("lostAt", learned.lost_at.map(|step| step.to_string()))
            }
        };
        match path {
            EntryPath::Originated(route) => originated(snapshot, instance, route, rank),
            EntryPath::Learned(route) => learned(instance, route, rank, removal(snapshot, *path)),
        }
        .into()
    };
    entry.paths.iter().enumerate().map(one).collect()
}

fn originated(
    snapshot: &Snapshot<'_>,
    instance: &Instance,
    route: &DesiredRoute,
    rank: impl FnOnce(Object) -> Object,
) -> Object {
    let here = unspecified(route.prefix.family()).to_string();
    let peer =
        Object::new().field("peerId", here).field("routerId", instance.router_id.to_string());
    let path = EntryPath::Originated(route);
    let object = Object::new()
        .field("aspath", as_path(&AsPath::default()))
        .field("origin", path.origin().name())
        .optional("metric", path.metric())
        .optional("locPrf", path.local_pref())
        .field("weight", path.weight())
        .field("valid", true)
        .field("version", instance.table_version)
        .field("sourced", true)
        .field("local", true);
    rank(object)
        .optional("community", communities(path.communities()))
        .optional("extendedCommunity", extended_communities(path.extended_communities()))
        .optional("largeCommunity", large_communities(path.large_communities()))
        .field("nexthops", path.next_hops(Some(snapshot.node.name.as_str()), Detail::Entry))
        .field("peer", peer)
}

/// `lostAt` and `unknownAttributes` are ours.
fn learned(
    instance: &Instance,
    route: &LearnedRoute,
    rank: impl FnOnce(Object) -> Object,
    removal: Option<(&str, &str, u64)>,
) -> Object {
    let Path { source, path_id, attributes } = &route.path;
    let path = EntryPath::Learned(route);
    let peer = Object::new()
        .field("peerId", source.address.to_string())
        .field("routerId", source.router_id.to_string())
        .optional("interface", source.key.interface().map(|interface| interface.to_string()))
        .field("type", if path.is_internal() { "internal" } else { "external" });
    let unknown: Vec<Value> = uninterpreted(attributes).map(|it| unknown(it).into()).collect();
    let clusters: Vec<Value> = attributes.clusters().map(|it| it.to_string().into()).collect();
    let clusters = (!clusters.is_empty()).then(|| Object::new().field("list", clusters));
    let aggregator = attributes.aggregator;
    let object = Object::new()
        .field("aspath", as_path(&attributes.as_path))
        .flag("stale", path.is_stale())
        .field("origin", path.origin().name())
        .optional("metric", path.metric())
        .optional("locPrf", path.local_pref())
        .flag("valid", path.is_accessible())
        .field("version", instance.table_version)
        .optional("rpkiValidationState", path.origin_validation().map(rpki::words))
        .flag("atomicAggregate", attributes.atomic_aggregate)
        .optional("aggregatorAs", aggregator.map(|it| it.asn))
        .optional("otc", attributes.only_to_customer)
        .optional("aggregatorId", aggregator.map(|it| it.router.to_string()))
        .flag("rxedFromRrClient", path.is_from_client())
        .optional("originatorId", attributes.originator().map(|it| it.to_string()))
        .optional("clusterList", clusters);
    rank(object)
        .optional("community", communities(path.communities()))
        .optional("extendedCommunity", extended_communities(path.extended_communities()))
        .optional("largeCommunity", large_communities(path.large_communities()))
        .optional("unknownAttributes", (!unknown.is_empty()).then_some(unknown))
        .optional("addpathRxId", Some(path_id.get()).filter(|number| *number > 0))
        .extend(removal.into_iter().map(|(_, key, left)| (key.to_owned(), left.into())).collect())
        .field("nexthops", path.next_hops(None, Detail::Entry))
        .field("peer", peer)
}

fn as_path(path: &AsPath) -> Object {
    let segment = |segment: &AsPathSegment| {
        let (kind, asns) = match segment {
            AsPathSegment::Sequence(asns) => ("as-sequence", asns),
            AsPathSegment::Set(asns) => ("as-set", asns),
        };
        Value::from(Object::new().field("type", kind).field("list", asns.clone()))
    };
    let text = if path.0.is_empty() { "Local".to_owned() } else { path.to_string() };
    Object::new()
        .field("string", text)
        .field("segments", path.0.iter().map(segment).collect::<Vec<_>>())
        .field("length", path.length())
}

fn unknown(attribute: &UnknownAttribute) -> Object {
    Object::new()
        .field("code", attribute.code)
        .field("flags", attribute.flags)
        .field("value", hex(&attribute.value))
}
