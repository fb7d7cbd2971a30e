//! The neighbours: `show bgp vrf all neighbors json`, and the summary for what that lacks.

use std::net::{Ipv4Addr, Ipv6Addr};

use fairway_ground::{
    AddressFamily, InterfaceName, ListenRange, NextHop, PeerKey, PerFamily, Remote,
};
use fairway_seam::{Desired, ListenRangeView, PeerConfig, PeerView};
use serde_json::{Map, Value};

use super::answer::{AnswerError, Fields, object};
use super::neighbor;
use super::words::{VRF_DEFAULT, family_word};
use crate::owner::VIEW;

/// The command for all neighbours.
pub const NEIGHBORS: &str = "show bgp vrf all neighbors json";
/// The command for the summary of all neighbours.
pub const SUMMARY: &str = "show bgp vrf all summary json";

/// The neighbours as bgpd reports them.
#[derive(Debug, Default)]
pub struct Sessions {
    summary: Map<String, Value>,
    neighbors: Map<String, Value>,
}

impl Sessions {
    /// Parses the answers to [`SUMMARY`] and [`NEIGHBORS`].
    pub fn parse(summary: &str, neighbors: &str) -> Result<Self, AnswerError> {
        Ok(Self { summary: object(SUMMARY, summary)?, neighbors: object(NEIGHBORS, neighbors)? })
    }

    /// The name of the BGP instance that has our neighbours of a VRF. Our view, where it exists, has those of the
    /// default VRF.
    pub fn instance<'a>(&self, vrf: Option<&'a InterfaceName>) -> &'a str {
        let has_view = Fields::from(&self.neighbors).below(VIEW).exists();
        vrf.map_or(if has_view { VIEW } else { VRF_DEFAULT }, InterfaceName::as_str)
    }

    fn neighbor(&self, key: PeerKey) -> Fields<'_> {
        let instance = Fields::from(&self.neighbors).below(self.instance(key.vrf.as_ref()));
        instance.below(&key.remote.to_string())
    }

    fn summary(&self, key: PeerKey) -> PerFamily<Fields<'_>> {
        let instance = Fields::from(&self.summary).below(self.instance(key.vrf.as_ref()));
        let remote = key.remote.to_string();
        let of = |family| instance.below(family_word(family)).below("peers").below(&remote);
        PerFamily { ipv4: of(AddressFamily::Ipv4Unicast), ipv6: of(AddressFamily::Ipv6Unicast) }
    }

    /// Whether there is a BGP instance in the VRF.
    pub(super) fn has_instance(&self, vrf: Option<&InterfaceName>) -> bool {
        Fields::from(&self.neighbors).below(self.instance(vrf)).exists()
    }

    /// Prefixes in the tables of all instances.
    pub(super) fn prefixes(&self) -> PerFamily<usize> {
        let mut prefixes = PerFamily::default();
        for (_, instance) in Fields::from(&self.summary).entries() {
            for family in AddressFamily::ALL {
                let said = Fields::from(instance).below(family_word(family));
                let count: &mut usize = prefixes.of_mut(family);
                *count = count.saturating_add(said.number("ribCount").unwrap_or(0));
            }
        }
        prefixes
    }

    /// All neighbours of `desired` in the order of their keys, including dynamic ones of its ranges, and the
    /// ranges.
    pub(super) fn peers(&self, desired: &Desired) -> (Vec<PeerView>, Vec<ListenRangeView>) {
        let (mut peers, mut ranges) = (Vec::new(), Vec::new());
        for config in &desired.peers {
            match (config.key.remote, config.listen_range) {
                (Remote::Range(_), Some(range)) => {
                    let members = self.members(config, range);
                    ranges.push(ListenRangeView {
                        config: config.clone(),
                        limit: range.limit,
                        members: u32::try_from(members.len()).unwrap_or(u32::MAX),
                        not_accepted: None,
                    });
                    peers.extend(members.into_iter().map(|member| self.peer(member)));
                }
                _ => peers.push(self.peer(config.clone())),
            }
        }
        peers.sort_by_key(|peer| peer.config.key);
        ranges.sort_by_key(|range| range.config.key);
        (peers, ranges)
    }

    fn peer(&self, config: PeerConfig) -> PeerView {
        let (neighbor, summary) = (self.neighbor(config.key), self.summary(config.key));
        if neighbor.exists() {
            neighbor::view(config, neighbor, summary)
        } else {
            neighbor::unknown(config)
        }
    }

    /// The settings of the dynamic neighbours of a range.
    fn members(&self, config: &PeerConfig, range: ListenRange) -> Vec<PeerConfig> {
        let instance = Fields::from(&self.neighbors).below(self.instance(config.key.vrf.as_ref()));
        let prefix = range.prefix.to_string();
        let member = |(remote, neighbor): (&str, &Value)| {
            let group = Fields::from(neighbor).text("peerSubnetRangeGroup")?;
            let remote = Remote::Address(remote.parse().ok()?);
            let key = PeerKey { remote, vrf: config.key.vrf };
            (group == prefix).then(|| PeerConfig { key, ..config.clone() })
        };
        instance.entries().filter_map(member).collect()
    }

    /// Our end of the session with `key`, as a next hop.
    pub(super) fn own_next_hop(&self, key: PeerKey, family: AddressFamily) -> Option<NextHop> {
        let neighbor = self.neighbor(key);
        let global = || neighbor.parsed::<Ipv6Addr>("nexthopGlobal");
        let local_end = neighbor.parsed::<std::net::IpAddr>("hostLocal");
        let over_ipv6 = local_end.is_some_and(|it| it.is_ipv6());
        match family {
            AddressFamily::Ipv4Unicast if !over_ipv6 => {
                neighbor.parsed::<Ipv4Addr>("nexthop").map(NextHop::Ipv4)
            }
            _ => {
                let local = neighbor.parsed("nexthopLocal");
                global().map(|global| NextHop::ipv6(global, local.filter(|_| over_ipv6)))
            }
        }
    }
}
