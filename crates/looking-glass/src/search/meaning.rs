//! What a text of the search means.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::{Asn, PeerKey, Prefix};
use fairway_model::CommunityValue;
use fairway_show::{Snapshot, neighbors_called};

use super::Route;
use crate::names::{Names, called};

/// One of the things that a text means.
pub(super) enum Meaning {
    /// The routes around it, and those inside.
    Prefix(Prefix),
    /// The routes that passed it.
    As(u32),
    /// The routes that carry it.
    Community(CommunityValue, String),
    /// The routes to these addresses.
    Service { name: String, addresses: Vec<IpAddr>, prefixes: BTreeSet<Prefix> },
    /// What it announces, and what it was sent of our own.
    Neighbor { name: String, key: PeerKey, sent: BTreeSet<Prefix> },
}

/// Everything that `text` means here.
pub(super) fn of(snapshot: &Snapshot<'_>, names: &Names, text: &str) -> Vec<Meaning> {
    let mut meanings = Vec::new();
    let host = || text.parse::<IpAddr>().ok().map(Prefix::host);
    let prefix = || {
        let (address, length) = text.split_once('/')?;
        Prefix::new(address.parse().ok()?, length.parse().ok()?).ok()
    };
    meanings.extend(host().or_else(prefix).map(Meaning::Prefix));
    let number =
        text.get(..2).filter(|it| it.eq_ignore_ascii_case("as")).and_then(|_| text.get(2..));
    let asn = number.unwrap_or(text).trim().parse::<Asn>().ok();
    meanings.extend(asn.map(|it| Meaning::As(it.get())));
    let community = names.meaning(text);
    meanings.extend(community.map(|it| Meaning::Community(it, text.to_owned())));
    for peer in neighbors_called(snapshot.bgp, Some(text)) {
        let sent = peer.advertised.iter().map(|it| it.prefix).collect();
        meanings.push(Meaning::Neighbor { name: called(peer), key: peer.config.key, sent });
    }
    for (name, outcome) in snapshot.outcomes.iter() {
        let full = name.to_string();
        if full != text && name.name != text {
            continue;
        }
        let plan = snapshot.plan.services.get(name);
        let told = plan.into_iter().flat_map(|it| it.told()).map(|(prefix, _)| prefix);
        let addresses = outcome.addresses.clone();
        meanings.push(Meaning::Service { name: full, addresses, prefixes: told.collect() });
    }
    meanings
}

impl Meaning {
    /// It lies inside `prefix`, or is the same.
    pub(super) fn is_around(&self, prefix: Prefix) -> bool {
        let Self::Prefix(wanted) = self else { return false };
        prefix.length() <= wanted.length() && prefix.contains(wanted.address())
    }

    pub(super) fn includes(&self, route: Route<'_>) -> bool {
        let prefix = route.prefix();
        match self {
            Self::Prefix(wanted) => {
                prefix.length() > wanted.length() && wanted.contains(prefix.address())
            }
            Self::As(number) => match route {
                Route::Originated(_) => false,
                Route::Learned(it) => {
                    it.path.source.remote_asn.get() == *number
                        || it.path.attributes.as_path.asns().any(|asn| asn == *number)
                }
            },
            Self::Community(value, _) => carries(route, *value),
            Self::Service { addresses, prefixes, .. } => {
                prefixes.contains(&prefix) || addresses.iter().any(|it| Prefix::host(*it) == prefix)
            }
            Self::Neighbor { key, sent, .. } => match route {
                Route::Originated(_) => sent.contains(&prefix),
                Route::Learned(it) => it.path.source.key == *key,
            },
        }
    }

    /// For a user, as in `Routes with community no-export`.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Prefix(prefix) if *prefix == Prefix::host(prefix.address()) => {
                format!("routes to {}, the longest match first", prefix.address())
            }
            Self::Prefix(prefix) => {
                format!("routes to {prefix}, the longest match first, and then those inside it")
            }
            Self::As(number) => format!("routes through AS {number}"),
            Self::Community(_, text) => format!("routes with community {text}"),
            Self::Service { name, addresses, .. } if addresses.is_empty() => {
                format!("routes to Service {name}, which has no address")
            }
            Self::Service { name, .. } => format!("routes to Service {name}"),
            Self::Neighbor { name, .. } => {
                format!("routes from neighbor {name}, and those of this node that it was sent")
            }
        }
    }
}

fn carries(route: Route<'_>, value: CommunityValue) -> bool {
    let (standard, large) = match route {
        Route::Originated(it) => (&*it.attributes.communities, &*it.attributes.large_communities),
        Route::Learned(it) => {
            (&*it.path.attributes.communities, &*it.path.attributes.large_communities)
        }
    };
    match value {
        CommunityValue::Standard(community) => standard.contains(&community),
        CommunityValue::Large(community) => large.contains(&community),
    }
}
