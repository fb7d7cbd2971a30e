//! The tables: `show bgp vrf V ipv4|ipv6 unicast json detail`, and the advertised routes of each neighbour,
//! `... neighbors X advertised-routes [detail] json`.
//!
//! FRR shows the decision step at which the best path beat the one before it, and no others; the step at
//! which each of the others lost is computed here, against the best. FRR prefers an older path before it
//! compares identifiers: a path that lost that way counts as having lost at those. 8.4 has no
//! `advertised-routes detail`: the communities of a route are those that it should have.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{AddressFamily, ClientKind, InterfaceName, PathId, PeerKind, Prefix, Remote};
use fairway_seam::{DecisionStep, LearnedRoute, Path, PathAttributes, PathSource, PeerView};
use serde_json::Value;

use super::answer::{AnswerError, Fields, object};
use super::attributes::{as_path_of_text, attributes, flat_next_hop, is_here, origin};

/// The word for a family in commands.
pub fn show_word(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4Unicast => "ipv4",
        AddressFamily::Ipv6Unicast => "ipv6",
    }
}

/// The command for the table of a BGP instance.
pub(super) fn table_question(instance: &str, family: AddressFamily) -> String {
    format!("show bgp vrf {instance} {} unicast json detail", show_word(family))
}

/// The command for the advertised routes of a neighbour; the plain form for releases without `detail`.
pub(super) fn advertised_question(
    instance: &str,
    remote: Remote,
    family: AddressFamily,
    detail: bool,
) -> String {
    let detail = if detail { " detail" } else { "" };
    format!(
        "show bgp vrf {instance} {} unicast neighbors {remote} advertised-routes{detail} json",
        show_word(family)
    )
}

/// A path of a table, with its source.
#[derive(Debug, Clone)]
pub(super) struct TablePath {
    pub(super) prefix: Prefix,
    pub(super) from: From,
    pub(super) path_id: PathId,
    pub(super) attributes: Arc<PathAttributes>,
    pub(super) is_best: bool,
    pub(super) stale: bool,
}

/// The source of a path of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    Here,
    Address(IpAddr),
    Interface(InterfaceName),
}

/// Parses `text`, the answer to [`table_question`].
pub(super) fn table(question: &str, text: &str) -> Result<Vec<TablePath>, AnswerError> {
    let answer = object(question, text)?;
    let mut all = Vec::new();
    for (prefix, entry) in Fields::from(&answer).below("routes").entries() {
        let Ok(prefix) = prefix.parse::<Prefix>() else { continue };
        // FRR 10 shows an object with `paths`; 8.4 a list with the prefix itself first.
        let paths = match entry.as_array() {
            Some(list) => list,
            None => Fields::from(entry).list("paths"),
        };
        all.extend(paths.iter().filter_map(|path| table_path(prefix, path.into())));
    }
    Ok(all)
}

fn table_path(prefix: Prefix, path: Fields<'_>) -> Option<TablePath> {
    let peer = path.below("peer");
    let address: IpAddr = peer.parsed("peerId")?;
    let from = match peer.parsed::<InterfaceName>("interface") {
        _ if is_here(address) || path.is("local") => From::Here,
        Some(interface) => From::Interface(interface),
        None => From::Address(address),
    };
    Some(TablePath {
        prefix,
        from,
        path_id: path.number("addpathRxId").map_or(PathId::NONE, PathId::new),
        attributes: Arc::new(attributes(path)?),
        is_best: path.below("bestpath").is("overall"),
        stale: path.is("stale"),
    })
}

/// The paths of a VRF that were learned from known neighbours.
pub(super) fn learned(
    paths: &[TablePath],
    vrf: Option<InterfaceName>,
    peers: &[PeerView],
) -> Vec<LearnedRoute> {
    let sources = sources(vrf, peers);
    let source_of = |path: &TablePath| sources.get(&path.from);
    let mut learned = Vec::new();
    for group in paths.chunk_by(|one, other| one.prefix == other.prefix) {
        let best = group.iter().find(|path| path.is_best);
        for path in group {
            let Some(source) = source_of(path) else { continue };
            let lost_at = match best {
                _ if path.is_best => None,
                Some(best) if best.from == From::Here => Some(DecisionStep::Originated),
                Some(best) => Some(lost_at((best, source_of(best)), (path, source))),
                // None of the paths has a reachable next hop.
                None => Some(DecisionStep::Originated),
            };
            learned.push(LearnedRoute {
                prefix: path.prefix,
                path: Path {
                    source: Arc::clone(source),
                    path_id: path.path_id,
                    attributes: Arc::clone(&path.attributes),
                },
                lost_at,
                stale: path.stale,
                origin_validation: None,
            });
        }
    }
    learned
}

/// The source for each peer that FRR names in a path.
fn sources(vrf: Option<InterfaceName>, peers: &[PeerView]) -> BTreeMap<From, Arc<PathSource>> {
    let of_vrf = peers.iter().filter(|peer| peer.config.key.vrf == vrf);
    of_vrf
        .filter_map(|peer| {
            let key = peer.config.key;
            let from = match key.remote {
                Remote::Address(address) => From::Address(address),
                Remote::Interface(interface) => From::Interface(interface),
                Remote::Range(_) | Remote::DefaultGateway(_) => return None,
            };
            let session = peer.session.as_ref();
            let address = session.map(|it| it.remote.ip()).or(key.address());
            let source = PathSource {
                key,
                address: address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)),
                kind: peer.config.kind(),
                remote_asn: session.map_or(peer.config.local_asn, |it| it.remote_asn),
                router_id: session.map_or(peer.config.router_id, |it| it.remote_router_id),
                is_client: peer.config.client == Some(ClientKind::Reflector),
            };
            Some((from, Arc::new(source)))
        })
        .collect()
}

/// The first step at which the two differ.
fn lost_at(
    (best, best_source): (&TablePath, Option<&Arc<PathSource>>),
    (path, source): (&TablePath, &Arc<PathSource>),
) -> DecisionStep {
    let (ours, theirs) = (&best.attributes, &path.attributes);
    let is_internal =
        |source: Option<&Arc<PathSource>>| source.is_some_and(|it| it.kind == PeerKind::Internal);
    let router = |source: Option<&Arc<PathSource>>| source.map(|it| it.router_id);
    let local_pref = |it: &PathAttributes| it.local_pref.unwrap_or(LOCAL_PREF_DEFAULT);
    let med = |it: &PathAttributes| it.med.unwrap_or(0);
    let steps = [
        (DecisionStep::LocalPref, local_pref(ours) != local_pref(theirs)),
        (DecisionStep::AsPathLength, ours.as_path.length() != theirs.as_path.length()),
        (DecisionStep::Origin, ours.origin != theirs.origin),
        (
            DecisionStep::MultiExitDiscriminator,
            ours.as_path.first() == theirs.as_path.first() && med(ours) != med(theirs),
        ),
        (DecisionStep::PeerKind, is_internal(best_source) != is_internal(Some(source))),
        (DecisionStep::RouterId, router(best_source) != router(Some(source))),
        (DecisionStep::PeerAddress, best.from != path.from),
    ];
    let differing = steps.into_iter().find(|(_, differs)| *differs);
    differing.map_or(DecisionStep::PathId, |(step, _)| step)
}

/// The preference of a path without LOCAL_PREF.
const LOCAL_PREF_DEFAULT: u32 = 100;

/// A route as advertised to a neighbour: with its attributes, except those that FRR does not show.
#[derive(Debug, Clone)]
pub(super) struct AdvertisedRoute {
    pub(super) prefix: Prefix,
    /// `None` if FRR does not show it.
    pub(super) path_id: Option<PathId>,
    pub(super) attributes: PathAttributes,
    /// Whether the communities are known.
    pub(super) has_communities: bool,
}

/// Parses `text`, the answer to [`advertised_question`].
pub(super) fn advertised(question: &str, text: &str) -> Result<Vec<AdvertisedRoute>, AnswerError> {
    let answer = object(question, text)?;
    let mut all = Vec::new();
    for (prefix, entry) in Fields::from(&answer).below("advertisedRoutes").entries() {
        let Ok(prefix) = prefix.parse::<Prefix>() else { continue };
        let entry_fields = Fields::from(entry);
        match entry_fields.value("paths").and_then(Value::as_array) {
            Some(paths) => all.extend(paths.iter().filter_map(|path| {
                let path = Fields::from(path);
                let path_id = path.number("addpathTxIdAll").map(PathId::new);
                let attributes = attributes(path)?;
                Some(AdvertisedRoute { prefix, path_id, attributes, has_communities: true })
            })),
            None => all.extend(flat(prefix, entry_fields)),
        }
    }
    Ok(all)
}

fn flat(prefix: Prefix, route: Fields<'_>) -> Option<AdvertisedRoute> {
    let path = as_path_of_text(route.text("path").unwrap_or_default());
    let mut attributes = PathAttributes::originated(path, flat_next_hop(route)?);
    let code = route.text("origin").or_else(|| route.text("bgpOriginCode"));
    attributes.origin = origin(code.unwrap_or_default());
    attributes.med = route.number("metric");
    attributes.local_pref = route.number("locPrf");
    Some(AdvertisedRoute { prefix, path_id: None, attributes, has_communities: false })
}
