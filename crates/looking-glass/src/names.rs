//! Communities by name: well-known ones, and the aliases of Community objects; and what neighbors are called.

use std::collections::BTreeMap;

use fairway_ground::{Community, ExtendedCommunity, LargeCommunity};
use fairway_model::{ClusterIndex, CommunityValue};
use fairway_seam::PeerView;
use serde::Serialize;

/// A community with what it is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Named {
    /// As numbers.
    pub(crate) value: String,
    /// Its names; empty without any.
    pub(crate) names: Vec<String>,
}

/// The names that are in force.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<CommunityValue, Vec<String>>);

impl Names {
    pub(crate) fn of(index: &ClusterIndex) -> Self {
        let mut names: BTreeMap<CommunityValue, Vec<String>> = BTreeMap::new();
        for (alias, value) in index.communities.values().flat_map(|it| &it.aliases) {
            names.entry(*value).or_default().push(alias.clone());
        }
        Self(names)
    }

    /// What a text means: numbers, a well-known name, or an alias.
    pub(crate) fn meaning(&self, text: &str) -> Option<CommunityValue> {
        let alias = || self.0.iter().find(|(_, names)| names.iter().any(|it| it == text));
        let standard = || text.parse().ok().map(CommunityValue::Standard);
        let large = || text.parse().ok().map(CommunityValue::Large);
        alias().map(|(value, _)| *value).or_else(standard).or_else(large)
    }

    pub(crate) fn standard(&self, community: Community) -> Named {
        let value = format!("{}:{}", community.0 >> 16, community.0 & 0xFFFF);
        let well_known = community.to_string();
        let aliases = self.aliases(CommunityValue::Standard(community));
        let names = (well_known != value).then_some(well_known).into_iter().chain(aliases);
        Named { names: names.collect(), value }
    }

    pub(crate) fn large(&self, community: LargeCommunity) -> Named {
        let names = self.aliases(CommunityValue::Large(community)).collect();
        Named { value: community.to_string(), names }
    }

    pub(crate) fn extended(community: ExtendedCommunity) -> Named {
        Named { value: community.to_string(), names: Vec::new() }
    }

    fn aliases(&self, value: CommunityValue) -> impl Iterator<Item = String> {
        self.0.get(&value).into_iter().flatten().cloned()
    }
}

/// The name of a neighbor in text, else its address.
pub(crate) fn called(peer: &PeerView) -> String {
    match peer.config.name.as_str() {
        "" => peer.config.key.to_string(),
        name => name.to_owned(),
    }
}
