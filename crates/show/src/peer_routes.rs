//! `show bgp neighbors PEER advertised-routes` and its like: the routes sent to one neighbour, and those
//! accepted from it.
//!
//! FRR shows advertised routes as they were before the last changes: next hop 0.0.0.0, an empty path. Here
//! they are as sent: our next hop, our AS in the path, and MED and LOCAL_PREF only if they were in the
//! UPDATE. Received routes are the accepted and the refused ones, as in an FRR with soft reconfiguration; of the
//! refused ones only the first are kept, and none if the backend is FRR. Unless the query names a family, both are in
//! one table. Ours in JSON: `nextHopLinkLocal`, `community`, `largeCommunity`, `pathId`, `refusedBecause`, `refusedByRule`,
//! `hasMoreRefused`, and `otherPaths` of a prefix that has several (RFC 7911), of which FRR shows one.

use fairway_ground::{AddressFamily, Asn, NextHop, PathId, PeerKey};
use fairway_seam::{PeerRoute, PeerView, Refusal};
use serde_json::Value;

use super::document::{self, Document, Text, Wanted};
use super::instance::{Instance, LOCAL_PREF_DEFAULT};
use super::object::Object;
use super::route::{Row, communities, large_communities};
use super::table::{self, Selection};
use super::{PeerRoutes, ShowError, Snapshot, neighbor};

/// The direction of the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Routes sent to the neighbour.
    Advertised,
    /// Routes announced by the neighbour.
    Received,
    /// Those of them that were refused.
    Filtered,
}

fn accepted(routes: &[PeerRoute]) -> impl Iterator<Item = Judged<'_>> {
    routes.iter().map(|it| (it, None))
}

/// A route, and the rule that refused it.
type Judged<'a> = (&'a PeerRoute, Option<&'a Refusal>);

impl Direction {
    /// In the order of their prefixes.
    fn routes(self, peer: &PeerView) -> Vec<Judged<'_>> {
        let refused = peer.refused.iter().flat_map(|it| &it.routes);
        let refused = refused.map(|it| (&it.route, Some(&it.refusal)));
        match self {
            Self::Advertised => accepted(&peer.advertised).collect(),
            Self::Received => {
                let mut all: Vec<Judged<'_>> = accepted(&peer.received).chain(refused).collect();
                all.sort_by_key(|(route, _)| (route.prefix, route.path_id));
                all
            }
            Self::Filtered => refused.collect(),
        }
    }

    /// FRR gives a weight to what it originates, and nearly all that is advertised here is.
    fn weight(self) -> u32 {
        match self {
            Self::Advertised => 32_768,
            Self::Received | Self::Filtered => 0,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Advertised => "advertisedRoutes",
            Self::Received | Self::Filtered => "receivedRoutes",
        }
    }
}

/// The instance as `peer` sees it.
fn instance<'a>(snapshot: &Snapshot<'a>, peer: &PeerView) -> Instance<'a> {
    Instance {
        asn: Some(peer.config.local_asn),
        router_id: peer.config.router_id,
        ..Instance::of(snapshot, None)
    }
}

/// The neighbour and the direction; or the answer if there are no such routes.
enum Asked<'a> {
    Routes(&'a PeerView, Direction),
    Rows(PeerKey),
}

/// The selected neighbour, if it has those routes.
fn find<'a>(
    snapshot: &Snapshot<'a>,
    wanted: &str,
    family: Option<AddressFamily>,
    routes: PeerRoutes,
) -> Result<Asked<'a>, ShowError> {
    let peers = neighbor::find(snapshot, Some(wanted));
    let peer = *peers.first().ok_or(ShowError::NoSuchNeighbor)?;
    if family.is_some_and(|family| !peer.config.families.contains(family)) {
        return Err(ShowError::NoSuchFamily);
    }
    match routes {
        PeerRoutes::Advertised => Ok(Asked::Routes(peer, Direction::Advertised)),
        PeerRoutes::Received => Ok(Asked::Routes(peer, Direction::Received)),
        PeerRoutes::Accepted => Ok(Asked::Rows(peer.config.key)),
        PeerRoutes::Filtered if peer.refused.is_none() => Err(ShowError::RefusedRoutesNotKept),
        PeerRoutes::Filtered => Ok(Asked::Routes(peer, Direction::Filtered)),
    }
}

fn of_family(
    peer: &PeerView,
    direction: Direction,
    family: Option<AddressFamily>,
) -> Vec<Judged<'_>> {
    let mut routes = direction.routes(peer);
    routes.retain(|(it, _)| family.is_none_or(|family| it.prefix.family() == family));
    routes
}

fn refused_count(routes: &[Judged<'_>]) -> usize {
    routes.iter().filter(|(_, refusal)| refusal.is_some()).count()
}

/// Whether there are refused routes that are not among the others.
fn has_more_refused(peer: &PeerView, direction: Direction) -> bool {
    direction != Direction::Advertised && peer.refused.as_ref().is_some_and(|it| it.has_more)
}

/// The routes in FRR's columns; empty if there are none, as in FRR.
pub(super) fn text<'a>(
    snapshot: &Snapshot<'a>,
    wanted: &str,
    family: Option<AddressFamily>,
    routes: PeerRoutes,
) -> Result<Text<'a>, ShowError> {
    let (peer, direction) = match find(snapshot, wanted, family, routes)? {
        Asked::Routes(peer, direction) => (peer, direction),
        Asked::Rows(peer) => {
            let families = AddressFamily::ALL.into_iter();
            let families = families.filter(|it| family.is_none_or(|family| *it == family));
            let of = |family| table::text(snapshot, family, Selection::From(peer));
            let tables: Vec<Text<'a>> = families.map(of).collect();
            return Ok(Text::lines(|out| tables.into_iter().try_for_each(|it| it.write(out))));
        }
    };
    let routes = of_family(peer, direction, family);
    if routes.is_empty() {
        return Ok(String::new().into());
    }
    let head = instance(snapshot, peer).table_head();
    Ok(Text::lines(move |out| {
        out.write_str(&head)?;
        for judged in &routes {
            out.write_str(&line(judged, direction))?;
        }
        let refused = refused_count(&routes);
        let filtered = if refused == 0 { String::new() } else { format!(" ({refused} filtered)") };
        writeln!(out, "\nTotal number of prefixes {}{filtered}", routes.len())?;
        if refused > 0 {
            out.write_str("\nRefused because\n")?;
        }
        for (PeerRoute { prefix, .. }, refusal) in &routes {
            if let Some(refusal) = refusal {
                let prefix = prefix.to_string();
                writeln!(out, "   {prefix:<17} {refusal}")?;
            }
        }
        if has_more_refused(peer, direction) {
            out.write_str(
                "   more were refused, which are not kept; `show bgp neighbors` counts all\n",
            )?;
        }
        Ok(())
    }))
}

fn line((route, refusal): &Judged<'_>, direction: Direction) -> String {
    let PeerRoute { prefix, attributes, stale, .. } = route;
    let row = Row {
        status: match (refusal, stale) {
            (Some(_), _) => "",
            (None, true) => "S>",
            (None, false) => "*>",
        },
        network: prefix.to_string(),
        next_hop: attributes.next_hop.to_string(),
        metric: attributes.med,
        local_pref: attributes.local_pref,
        weight: direction.weight(),
        path: attributes.as_path.to_string(),
        origin_code: attributes.origin.code(),
    };
    row.line()
}

/// The routes keyed by prefix. Without any, the head is absent, as in FRR 8.4.
pub(super) fn json<'a>(
    snapshot: &Snapshot<'a>,
    wanted: &str,
    family: Option<AddressFamily>,
    routes: PeerRoutes,
) -> Document<'a> {
    let (peer, direction) = match find(snapshot, wanted, family, routes) {
        Ok(Asked::Routes(peer, direction)) => (peer, direction),
        Ok(Asked::Rows(peer)) => {
            // One table at a time, as in FRR.
            let family = family.unwrap_or(AddressFamily::Ipv4Unicast);
            return table::json(snapshot, family, Selection::From(peer));
        }
        Err(error) => return warning(&error).into(),
    };
    let routes = of_family(peer, direction, family);
    let head = if routes.is_empty() { Object::new() } else { head(&instance(snapshot, peer)) };
    let tail = Object::new()
        .field("totalPrefixCounter", routes.len())
        .field("filteredPrefixCounter", refused_count(&routes))
        .flag("hasMoreRefused", has_more_refused(peer, direction));
    Document::Table(document::Table {
        head,
        key: direction.key(),
        entries: Box::new(move |take| by_prefix(&routes, direction, take)),
        count_key: None,
        tail,
    })
}

/// Why there is no answer, as JSON.
pub(super) fn warning(error: &ShowError) -> Object {
    Object::new().field("warning", error.to_string().trim_start_matches("% "))
}

fn head(instance: &Instance) -> Object {
    let status_codes = Object::new()
        .field("suppressed", "s")
        .field("damped", "d")
        .field("history", "h")
        .field("valid", "*")
        .field("best", ">")
        .field("multipath", "=")
        .field("internal", "i")
        .field("ribFailure", "r")
        .field("stale", "S")
        .field("removed", "R");
    let origin_codes = Object::new().field("igp", "i").field("egp", "e").field("incomplete", "?");
    Object::new()
        .field("bgpTableVersion", instance.table_version)
        .field("bgpLocalRouterId", instance.router_id.to_string())
        .field("defaultLocPrf", LOCAL_PREF_DEFAULT)
        .optional("localAS", instance.asn.map(Asn::get))
        .field("bgpStatusCodes", status_codes)
        .field("bgpOriginCodes", origin_codes)
}

/// The rule that refused a route.
fn rule(refusal: &Refusal) -> Option<Object> {
    let Refusal::Rule { place, name } = refusal else { return None };
    let rule = Object::new().field("number", u16::from(*place).saturating_add(1));
    Some(rule.optional("name", name.as_deref()))
}

/// The routes, which come in the order of their prefixes.
fn by_prefix(
    routes: &[Judged<'_>],
    direction: Direction,
    take: &mut dyn FnMut(String, Value) -> Wanted,
) {
    for paths in routes.chunk_by(|one, next| one.0.prefix == next.0.prefix) {
        let Some((first, others)) = paths.split_first() else { continue };
        let others: Vec<Value> = others.iter().map(|it| route(it, direction).into()).collect();
        let entry = route(first, direction);
        let entry = entry.optional("otherPaths", (!others.is_empty()).then_some(others));
        if take(first.0.prefix.to_string(), entry.into()) == Wanted::Nothing {
            return;
        }
    }
}

fn route((route, refusal): &Judged<'_>, direction: Direction) -> Object {
    let PeerRoute { prefix, path_id, attributes, stale } = route;
    // FRR gives refused routes the same ones.
    let symbol = if *stale { "S" } else { "*" };
    let symbols = Object::new().field(symbol, true).field(">", true);
    let object = Object::new()
        .field("addrPrefix", prefix.address().to_string())
        .field("prefixLen", prefix.length())
        .field("network", prefix.to_string());
    let object = match attributes.next_hop {
        NextHop::Ipv4(address) => object.field("nextHop", address.to_string()),
        NextHop::Ipv6 { global, link_local } => object
            .field("nextHopGlobal", global.to_string())
            .optional("nextHopLinkLocal", link_local.map(|address| address.to_string())),
    };
    object
        .optional("metric", attributes.med)
        .optional("locPrf", attributes.local_pref)
        .field("weight", direction.weight())
        .field("path", attributes.as_path.to_string())
        .field("bgpOriginCode", attributes.origin.code().to_string())
        .field("appliedStatusSymbols", symbols)
        .optional("refusedBecause", refusal.map(Refusal::name))
        .optional("refusedByRule", refusal.and_then(rule))
        .optional("community", communities(&attributes.communities))
        .optional("largeCommunity", large_communities(&attributes.large_communities))
        .optional("pathId", (*path_id != PathId::NONE).then_some(path_id.get()))
}
