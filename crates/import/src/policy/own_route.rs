//! Routes of the router itself, and the BGPAdvertisements that announce them.
//!
//! Answers one object for all prefixes with the same attributes and peers. Knows no source: what its policies make of each
//! route is worked out before.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde_json::json;

use super::rule::Settings;
use crate::object::{Fields, Names, Translated};

/// The attributes of a route that this router originates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct OwnRoute {
    pub(crate) local_pref: Option<u32>,
    pub(crate) med: Option<u32>,
    pub(crate) communities: Vec<String>,
    pub(crate) prepend: usize,
    /// A static route drops what arrives for it and is for no address in use.
    pub(crate) is_blackhole: bool,
}

impl OwnRoute {
    /// What a rule with these settings makes of it.
    pub(crate) fn set(&mut self, set: &Settings) {
        self.local_pref = set.local_pref.or(self.local_pref);
        self.med = set.med.or(self.med);
        self.prepend = self.prepend.saturating_add(set.prepend.unwrap_or(0));
        if let Some(replace) = &set.replace {
            self.communities.clone_from(replace);
        }
        self.communities.retain(|it| !set.remove.contains(it));
        self.communities.extend(set.add.iter().cloned());
        self.communities.sort();
        self.communities.dedup();
    }
}

/// What is announced alike.
#[derive(Debug, Default)]
pub(crate) struct Advertisements {
    /// By the attributes: the peers of each prefix.
    routes: BTreeMap<OwnRoute, BTreeMap<IpNet, BTreeSet<String>>>,
}

impl Advertisements {
    /// A peer is told of a prefix.
    pub(crate) fn announce(&mut self, route: OwnRoute, prefix: IpNet, peer: &str) {
        let peers = self.routes.entry(route).or_default().entry(prefix).or_default();
        peers.insert(peer.to_owned());
    }

    /// One object for all prefixes with the same attributes and peers, each with a name after `name`.
    pub(crate) fn objects(self, name: &str) -> Vec<Translated> {
        let (mut objects, mut names) = (Vec::new(), Names::default());
        for (route, prefixes) in self.routes {
            let mut by_peers: BTreeMap<BTreeSet<String>, Vec<String>> = BTreeMap::new();
            for (prefix, peers) in prefixes {
                by_peers.entry(peers).or_default().push(prefix.to_string());
            }
            for (peers, prefixes) in by_peers {
                let mut spec = Fields::default();
                spec.set("prefixes", json!(prefixes));
                spec.set("peers", json!(peers));
                spec.set("localPref", route.local_pref.filter(|it| *it > 0).map(|it| json!(it)));
                spec.set("med", route.med.map(|it| json!(it)));
                spec.set("asPathPrepend", (route.prepend > 0).then(|| json!(route.prepend)));
                let communities = &route.communities;
                spec.set("communities", (!communities.is_empty()).then(|| json!(communities)));
                spec.set_if("blackhole", route.is_blackhole);
                let name = names.give(name);
                objects.push(Translated::new(
                    "metallb.io/v1beta1",
                    "BGPAdvertisement",
                    &name,
                    spec,
                ));
            }
        }
        objects
    }
}
