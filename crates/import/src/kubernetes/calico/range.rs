//! Ranges of prefixes.
//!
//! Answers which prefixes two ranges have in common. Knows no filter.

use ipnet::IpNet;
use serde_json::{Value, json};

/// The prefixes inside a network whose length is in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) network: IpNet,
    minimum: u8,
    maximum: u8,
}

impl Range {
    /// None where no prefix has such a length.
    pub(super) fn new(network: IpNet, minimum: u8, maximum: u8) -> Option<Self> {
        let minimum = minimum.max(network.prefix_len());
        let maximum = maximum.min(network.max_prefix_len());
        (minimum <= maximum).then(|| Self { network: network.trunc(), minimum, maximum })
    }

    /// The network itself.
    pub(super) fn exactly(network: IpNet) -> Self {
        let (minimum, maximum) = (network.prefix_len(), network.prefix_len());
        Self { network: network.trunc(), minimum, maximum }
    }

    /// The network and all in it.
    pub(super) fn inside(network: IpNet) -> Self {
        let (minimum, maximum) = (network.prefix_len(), network.max_prefix_len());
        Self { network: network.trunc(), minimum, maximum }
    }

    /// The addresses of the network, each as a prefix of its own.
    pub(super) fn hosts(network: IpNet) -> Self {
        let (minimum, maximum) = (network.max_prefix_len(), network.max_prefix_len());
        Self { network: network.trunc(), minimum, maximum }
    }

    pub(super) fn intersection(self, other: Self) -> Option<Self> {
        let network = if self.network.contains(&other.network) {
            other.network
        } else if other.network.contains(&self.network) {
            self.network
        } else {
            return None;
        };
        Self::new(network, self.minimum.max(other.minimum), self.maximum.min(other.maximum))
    }

    /// Whether all of `other` is in it.
    pub(super) fn covers(self, other: Self) -> bool {
        self.intersection(other) == Some(other)
    }

    /// As in `prefixes` of a BGPPeer.
    pub(super) fn value(self) -> Value {
        let Self { network, minimum, maximum } = self;
        let prefix = network.to_string();
        let length = network.prefix_len();
        match (minimum == length, maximum == length) {
            (true, true) => json!({"prefix": prefix}),
            (true, false) => json!({"prefix": prefix, "le": maximum}),
            (false, _) => json!({"prefix": prefix, "ge": minimum, "le": maximum}),
        }
    }
}
