//! Which routes a text means, and what is known of them.
//!
//! An address or a prefix finds the longest match, what is around it, and what it contains; an AS number, a community, a Service
//! and a neighbor find the routes that have to do with it. Bounded.

mod meaning;
mod row;

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Prefix;
use fairway_seam::{AdvertisedScope, DesiredRoute, LearnedRoute, ViewScope};
use fairway_show::Snapshot;
use serde::Serialize;

use crate::names::{Names, called};
use meaning::Meaning;
use row::RouteRow;

/// Routes on a page: more than anybody reads.
const ROUTES_MAX: usize = 200;
/// More than the longest name of a Service with its namespace.
const QUERY_CHARACTERS_MAX: usize = 320;

/// What somebody searches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query(String);

impl Query {
    /// What the search reads.
    pub const SCOPE: ViewScope = ViewScope {
        originated: true,
        learned: true,
        advertised: AdvertisedScope::All,
        ..ViewScope::SESSIONS
    };

    /// Of a text without its spaces; `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.chars().take(QUERY_CHARACTERS_MAX).collect()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// How the text was understood; empty if it means nothing here.
    meanings: Vec<String>,
    rows: Vec<RouteRow>,
    /// Routes that match beside these.
    more: usize,
    /// Unix time of the answer, as RFC 3339.
    at: String,
}

/// A route of the table.
#[derive(Clone, Copy)]
enum Route<'a> {
    Originated(&'a DesiredRoute),
    Learned(&'a LearnedRoute),
}

impl Route<'_> {
    fn prefix(self) -> Prefix {
        match self {
            Self::Originated(route) => route.prefix,
            Self::Learned(route) => route.prefix,
        }
    }
}

impl Found {
    /// In a snapshot with [`Query::SCOPE`].
    pub fn of(snapshot: &Snapshot<'_>, query: &Query) -> Self {
        let names = Names::of(snapshot.index);
        let meanings = meaning::of(snapshot, &names, &query.0);
        let originated = snapshot.bgp.routes.iter().map(Route::Originated);
        let routes = originated.chain(snapshot.bgp.learned.iter().map(Route::Learned));
        // At most one prefix of each length covers another.
        let mut around: Vec<Route<'_>> = Vec::new();
        let mut others: Vec<Route<'_>> = Vec::new();
        let mut more: usize = 0;
        for route in routes {
            let is_around = meanings.iter().any(|it| it.is_around(route.prefix()));
            if !is_around && !meanings.iter().any(|it| it.includes(route)) {
                continue;
            }
            let list = if is_around { &mut around } else { &mut others };
            if list.len() < ROUTES_MAX { list.push(route) } else { more = more.saturating_add(1) }
        }
        around.sort_by_key(|it| std::cmp::Reverse(it.prefix().length()));
        let longest = around.first().map(|it| it.prefix());
        let found = around.len().saturating_add(others.len());
        let shown: Vec<Route<'_>> = around.into_iter().chain(others).take(ROUTES_MAX).collect();
        let more = more.saturating_add(found.saturating_sub(shown.len()));
        let told = told(snapshot, &shown);
        let row = |route: &Route<'_>| RouteRow::of(snapshot, &names, *route, &told, longest);
        Self {
            meanings: meanings.iter().map(Meaning::words).collect(),
            rows: shown.iter().map(row).collect(),
            more,
            at: fairway_ground::Utc(snapshot.now_epoch_seconds).rfc3339(),
        }
    }
}

/// Which neighbors were sent these prefixes.
fn told(snapshot: &Snapshot<'_>, routes: &[Route<'_>]) -> BTreeMap<Prefix, Vec<String>> {
    let wanted: BTreeSet<Prefix> = routes.iter().map(|it| it.prefix()).collect();
    let mut told: BTreeMap<Prefix, Vec<String>> = BTreeMap::new();
    for peer in &snapshot.bgp.peers {
        let sent: BTreeSet<Prefix> =
            peer.advertised.iter().map(|it| it.prefix).filter(|it| wanted.contains(it)).collect();
        for prefix in sent {
            told.entry(prefix).or_default().push(called(peer));
        }
    }
    told
}
