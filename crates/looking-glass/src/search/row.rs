//! One route of the answer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::Prefix;
use fairway_seam::{DesiredRoute, LearnedRoute};
use fairway_show::Snapshot;
use serde::Serialize;

use super::Route;
use crate::names::{Named, Names, called};

/// A path of a thousand ASes is cut: nobody reads it, and everybody can announce it.
const PATH_CHARACTERS_MAX: usize = 300;
/// A route may carry thousands.
const COMMUNITIES_MAX: usize = 50;

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RouteRow {
    prefix: String,
    /// The longest match.
    is_longest: bool,
    /// The name of a neighbor; empty for a route of this node.
    from: String,
    is_best: bool,
    /// The step of the route selection at which it lost.
    lost_at: Option<String>,
    is_stale: bool,
    next_hop: String,
    as_path: String,
    origin: String,
    local_pref: Option<u32>,
    med: Option<u32>,
    /// What RPKI says.
    validation: Option<String>,
    communities: Vec<Named>,
    /// Communities that are left out.
    more_communities: usize,
    /// Services with addresses in it.
    services: Vec<String>,
    /// Neighbors that were sent a route to it.
    told: Vec<String>,
}

impl RouteRow {
    pub(super) fn of(
        snapshot: &Snapshot<'_>,
        names: &Names,
        route: Route<'_>,
        told: &BTreeMap<Prefix, Vec<String>>,
        longest: Option<Prefix>,
    ) -> Self {
        let prefix = route.prefix();
        let mut row = match route {
            Route::Originated(route) => originated(names, route),
            Route::Learned(route) => learned(snapshot, names, route),
        };
        row.more_communities = row.communities.len().saturating_sub(COMMUNITIES_MAX);
        row.communities.truncate(COMMUNITIES_MAX);
        row.prefix = prefix.to_string();
        row.is_longest = longest == Some(prefix);
        if row.is_best {
            row.told = told.get(&prefix).cloned().unwrap_or_default();
        }
        if matches!(route, Route::Originated(_)) {
            row.services = services(snapshot, prefix);
        }
        row
    }
}

fn originated(names: &Names, route: &DesiredRoute) -> RouteRow {
    let attributes = &route.attributes;
    let standard = attributes.communities.iter().map(|it| names.standard(*it));
    let large = attributes.large_communities.iter().map(|it| names.large(*it));
    RouteRow {
        is_best: true,
        local_pref: attributes.local_pref,
        med: attributes.med,
        communities: standard.chain(large).collect(),
        ..RouteRow::default()
    }
}

fn learned(snapshot: &Snapshot<'_>, names: &Names, route: &LearnedRoute) -> RouteRow {
    let (source, attributes) = (&route.path.source, &route.path.attributes);
    let peer = snapshot.bgp.peers.iter().find(|it| it.config.key == source.key);
    let standard = attributes.communities.iter().map(|it| names.standard(*it));
    let large = attributes.large_communities.iter().map(|it| names.large(*it));
    let extended = attributes.extended_communities.iter().map(|it| Names::extended(*it));
    let path = attributes.as_path.to_string();
    let cut: String = path.chars().take(PATH_CHARACTERS_MAX).collect();
    RouteRow {
        from: peer.map_or_else(|| source.key.to_string(), called),
        is_best: route.lost_at.is_none(),
        lost_at: route.lost_at.map(|it| it.to_string()),
        is_stale: route.stale,
        next_hop: attributes.next_hop.address().to_string(),
        as_path: if cut.len() < path.len() { format!("{cut}…") } else { path },
        origin: attributes.origin.to_string(),
        local_pref: attributes.local_pref,
        med: attributes.med,
        validation: route.origin_validation.map(|it| it.to_string()),
        communities: standard.chain(large).chain(extended).collect(),
        ..RouteRow::default()
    }
}

/// A hundred names are enough for an aggregate.
const SERVICES_MAX: usize = 100;

fn services(snapshot: &Snapshot<'_>, prefix: Prefix) -> Vec<String> {
    let inside = |address: &IpAddr| prefix.contains(*address);
    let outcomes = snapshot.outcomes.iter();
    let inside = outcomes.filter(|(_, outcome)| outcome.addresses.iter().any(inside));
    inside.take(SERVICES_MAX).map(|(name, _)| name.to_string()).collect()
}
