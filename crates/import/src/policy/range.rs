//! Prefixes inside a network, as the lists of other daemons and `prefixes` of a BGPPeer have them.
//!
//! Answers which prefixes are in a range. Knows no route.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::object::Fields;

/// Prefixes inside a network, by their lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) network: IpNet,
    pub(crate) ge: Option<u8>,
    pub(crate) le: Option<u8>,
}

impl Range {
    /// Every prefix of a family.
    pub(crate) fn everything(ipv6: bool) -> Self {
        let network = if ipv6 { "::/0" } else { "0.0.0.0/0" };
        let network: IpNet = network.parse().unwrap_or_default();
        Self { network, ge: None, le: Some(network.max_prefix_len()) }
    }

    pub(crate) fn shortest(self) -> u8 {
        self.ge.unwrap_or(self.network.prefix_len())
    }

    pub(crate) fn longest(self) -> u8 {
        let of_ge = self.ge.map_or(self.network.prefix_len(), |_| self.network.max_prefix_len());
        self.le.unwrap_or(of_ge)
    }

    pub(crate) fn contains(self, prefix: IpNet) -> bool {
        let length = prefix.prefix_len();
        self.network.contains(&prefix) && self.shortest() <= length && length <= self.longest()
    }

    /// Whether some prefix is in both.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let nested = self.network.contains(&other.network) || other.network.contains(&self.network);
        let inner = self.network.prefix_len().max(other.network.prefix_len());
        let shortest = self.shortest().max(other.shortest()).max(inner);
        nested && shortest <= self.longest().min(other.longest())
    }

    /// The prefixes that are in both.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        if !self.overlaps(other) {
            return None;
        }
        let (one, two) = (self.network, other.network);
        let network = if one.prefix_len() >= two.prefix_len() { one } else { two };
        let own = network.prefix_len();
        let from = self.shortest().max(other.shortest()).max(own);
        let to = self.longest().min(other.longest());
        let ge = (from > own).then_some(from);
        let le = (ge.is_some() || to > own).then_some(to);
        Some(Self { network, ge, le })
    }

    /// The network, if all addresses inside it are meant.
    pub(crate) fn host_network(self) -> Option<IpNet> {
        let of_hosts = self.longest() == self.network.max_prefix_len();
        of_hosts.then_some(self.network)
    }

    /// As in `prefixes` of a BGPPeer.
    pub(crate) fn value(self) -> Value {
        let mut fields = Fields::default();
        fields.set("prefix", json!(self.network.to_string()));
        fields.set("ge", self.ge.map(|it| json!(it)));
        fields.set("le", self.le.map(|it| json!(it)));
        Value::Object(fields.0)
    }
}

/// The ranges of a list by their networks: which of thousands contains a prefix is asked for thousands of prefixes.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeIndex {
    lengths: BTreeSet<u8>,
    /// The place of each range in the list.
    places: BTreeMap<IpNet, Vec<(usize, Range)>>,
}

impl RangeIndex {
    pub(crate) fn of(ranges: impl IntoIterator<Item = Range>) -> Self {
        let mut index = Self::default();
        for (place, range) in ranges.into_iter().enumerate() {
            index.lengths.insert(range.network.prefix_len());
            index.places.entry(range.network.trunc()).or_default().push((place, range));
        }
        index
    }

    /// The place of the first range that contains the prefix.
    pub(crate) fn first(&self, prefix: IpNet) -> Option<usize> {
        let around = |length: &u8| IpNet::new(prefix.addr(), *length).ok().map(|it| it.trunc());
        let shorter = self.lengths.range(..=prefix.prefix_len());
        let near = shorter.filter_map(around).filter_map(|it| self.places.get(&it)).flatten();
        near.filter(|(_, range)| range.contains(prefix)).map(|(place, _)| *place).min()
    }
}
