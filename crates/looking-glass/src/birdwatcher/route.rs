//! `routes`.

use std::collections::BTreeMap;

use fairway_ground::PeerKey;
use fairway_seam::{LearnedRoute, PathAttributes, PeerView};
use fairway_show::Snapshot;
use serde::Serialize;

use super::protocol::{address, changed, name};
use super::{BirdwatcherError, PARTS_MAX, ROUTES_MAX};

/// The preference of BIRD's routes of BGP.
const PREFERENCE: u32 = 100;
/// LOCAL_PREF of a route that carries none.
const LOCAL_PREF_DEFAULT: u32 = 100;

#[derive(Serialize)]
pub(super) struct Routes<'a> {
    routes: Vec<Route<'a>>,
}

#[derive(Serialize)]
struct Route<'a> {
    network: String,
    from_protocol: &'a str,
    learnt_from: &'a str,
    gateway: String,
    interface: &'static str,
    age: &'a str,
    metric: u32,
    primary: bool,
    #[serde(rename = "type")]
    kind: [&'static str; 3],
    bgp: Attributes,
    /// Ours: the reason of a refused one.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_because: Option<String>,
}

#[derive(Serialize)]
struct Attributes {
    origin: &'static str,
    as_path: Vec<String>,
    next_hop: String,
    local_pref: String,
    med: String,
    communities: Vec<[u32; 2]>,
    large_communities: Vec<[u32; 3]>,
    ext_communities: Vec<[String; 3]>,
}

/// What all routes of one neighbor share.
#[derive(Default)]
pub(super) struct Announcer {
    name: String,
    address: String,
    since: String,
}

impl Announcer {
    fn of(snapshot: &Snapshot<'_>, peer: &PeerView) -> Self {
        Self {
            name: name(snapshot, peer),
            address: address(peer).map(|it| it.to_string()).unwrap_or_default(),
            since: changed(snapshot, peer),
        }
    }
}

/// The neighbors by their keys.
pub(super) fn announcers(snapshot: &Snapshot<'_>) -> BTreeMap<PeerKey, Announcer> {
    let peers = snapshot.bgp.peers.iter();
    peers.map(|peer| (peer.config.key, Announcer::of(snapshot, peer))).collect()
}

impl<'a> Routes<'a> {
    /// Those of the table that `is_wanted` wants.
    pub(super) fn learned(
        snapshot: &Snapshot<'_>,
        announcers: &'a BTreeMap<PeerKey, Announcer>,
        is_wanted: impl Fn(&LearnedRoute) -> bool,
    ) -> Result<Self, BirdwatcherError> {
        let wanted = || snapshot.bgp.learned.iter().filter(|it| is_wanted(it));
        let count = wanted().count();
        if count > ROUTES_MAX {
            return Err(BirdwatcherError::TooMany(count));
        }
        let parts = wanted().map(|it| parts(&it.path.attributes)).fold(0, usize::saturating_add);
        if parts > PARTS_MAX {
            return Err(BirdwatcherError::TooLong(count));
        }
        let route = |it: &LearnedRoute| {
            let announcer = announcers.get(&it.path.source.key)?;
            let is_best = it.lost_at.is_none();
            Some(route(announcer, it.prefix.to_string(), &it.path.attributes, is_best))
        };
        Ok(Self { routes: wanted().filter_map(route).collect() })
    }

    /// Those that were refused of `peers`.
    pub(super) fn refused(
        peers: &[&PeerView],
        announcers: &'a BTreeMap<PeerKey, Announcer>,
    ) -> Result<Self, BirdwatcherError> {
        let mut routes = Vec::new();
        let mut all_parts: usize = 0;
        for peer in peers {
            let Some(announcer) = announcers.get(&peer.config.key) else { continue };
            for refused in peer.refused.iter().flat_map(|it| &it.routes) {
                if routes.len() >= ROUTES_MAX {
                    return Err(BirdwatcherError::TooMany(routes.len().saturating_add(1)));
                }
                let (prefix, attributes) = (refused.route.prefix, &refused.route.attributes);
                all_parts = all_parts.saturating_add(parts(attributes));
                if all_parts > PARTS_MAX {
                    return Err(BirdwatcherError::TooLong(routes.len().saturating_add(1)));
                }
                let refused_because = Some(refused.refusal.to_string());
                let route = route(announcer, prefix.to_string(), attributes, false);
                routes.push(Route { refused_because, ..route });
            }
        }
        Ok(Self { routes })
    }
}

/// How many texts and numbers a route has in its JSON. Routes share their attributes in the table, and not there.
fn parts(attributes: &PathAttributes) -> usize {
    let communities = attributes.communities.len();
    let large = attributes.large_communities.len().saturating_mul(3);
    let extended = attributes.extended_communities.len().saturating_mul(3);
    let path = attributes.as_path.asns().count();
    [path, communities, large, extended].into_iter().fold(16, usize::saturating_add)
}

fn route<'a>(
    announcer: &'a Announcer,
    network: String,
    attributes: &PathAttributes,
    primary: bool,
) -> Route<'a> {
    let next_hop = attributes.next_hop.address().to_string();
    let standard = attributes.communities.iter().map(|it| [it.0 >> 16, it.0 & 0xFFFF]);
    let large = attributes.large_communities.iter();
    let extended = attributes.extended_communities.iter().map(|it| three(&it.to_string()));
    Route {
        network,
        from_protocol: &announcer.name,
        learnt_from: &announcer.address,
        gateway: next_hop.clone(),
        interface: "",
        age: &announcer.since,
        metric: PREFERENCE,
        primary,
        kind: ["BGP", "unicast", "univ"],
        bgp: Attributes {
            origin: match attributes.origin.code() {
                'i' => "IGP",
                'e' => "EGP",
                _ => "Incomplete",
            },
            as_path: attributes.as_path.asns().map(|it| it.to_string()).collect(),
            next_hop,
            local_pref: attributes.local_pref.unwrap_or(LOCAL_PREF_DEFAULT).to_string(),
            med: attributes.med.map(|it| it.to_string()).unwrap_or_default(),
            communities: standard.collect(),
            large_communities: large.map(|it| [it.global, it.local1, it.local2]).collect(),
            ext_communities: extended.collect(),
        },
        refused_because: None,
    }
}

/// `rt:64512:1` in three parts, as BIRD has them; what has other parts is the last one.
fn three(text: &str) -> [String; 3] {
    let mut parts = text.splitn(3, ':').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind), Some(first), Some(second)) => [kind.to_lowercase(), first, second],
        _ => ["generic".to_owned(), String::new(), text.to_owned()],
    }
}
