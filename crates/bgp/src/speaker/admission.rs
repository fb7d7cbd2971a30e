//! Which remote addresses may connect, and as which neighbour.
//!
//! A table without a socket: made from the desired state. The listeners of `fairway-sessions` read it; the
//! speaker uses it to determine the range of a neighbour.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, InterfaceName, PeerKey, Prefix, Remote};
use fairway_seam::PeerConfig;

/// A neighbour that may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Its key. That of a range stands for all addresses in it.
    pub key: PeerKey,
    /// The TTL (or hop limit) that its packets must arrive with at least (RFC 5082).
    pub ttl_min: Option<u8>,
}

/// What is known of a neighbour's admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is administratively down, or its keys could not be set on a listener. It is listed so that no
    /// wider range admits it.
    Refused,
    /// It may connect, with packets of this TTL at least.
    Admitted(Option<u8>),
}

/// All neighbours that may connect, in every VRF.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Admission {
    known: BTreeMap<PeerKey, Verdict>,
    /// The lengths that ranges have: one lookup for each, however many ranges there are.
    range_lengths: BTreeSet<u8>,
}

impl Admission {
    /// The neighbour that `remote` is, on a connection over `interface` in `vrf`, if it may connect.
    pub fn find(
        &self,
        vrf: Option<InterfaceName>,
        remote: IpAddr,
        interface: Option<InterfaceName>,
    ) -> Option<Admitted> {
        match self.look_up(vrf, remote, interface)? {
            (key, Verdict::Admitted(ttl_min)) => Some(Admitted { key, ttl_min }),
            (_, Verdict::Refused) => None,
        }
    }

    /// The neighbour with this address, whether it may connect or not.
    pub fn name(
        &self,
        vrf: Option<InterfaceName>,
        remote: IpAddr,
        interface: Option<InterfaceName>,
    ) -> Option<PeerKey> {
        self.look_up(vrf, remote, interface).map(|(key, _)| key)
    }

    /// `key` may not connect after all: its keys cannot be checked.
    pub fn refuse(&mut self, key: PeerKey) {
        self.known.insert(key, Verdict::Refused);
    }

    /// An exact address comes before all ranges, and a smaller range before a larger one. A link-local
    /// address means nothing without its link, so it is matched by the interface and never by a range.
    fn look_up(
        &self,
        vrf: Option<InterfaceName>,
        remote: IpAddr,
        interface: Option<InterfaceName>,
    ) -> Option<(PeerKey, Verdict)> {
        let known = |remote| {
            let key = PeerKey { remote, vrf };
            self.known.get(&key).map(|verdict| (key, *verdict))
        };
        known(Remote::Address(remote)).or_else(|| match remote {
            IpAddr::V6(address) if address.is_unicast_link_local() => {
                known(Remote::Interface(interface?))
            }
            _ => {
                let mut lengths = self.range_lengths.iter().rev();
                lengths.find_map(|length| known(Remote::Range(Prefix::new(remote, *length).ok()?)))
            }
        })
    }

    /// The minimum TTL for all packets that arrive at a listener of `family` in `vrf`: the least of all
    /// neighbours that may connect there, 0 as soon as one of them may be any number of hops away.
    pub fn ttl_min_of_all(&self, vrf: Option<InterfaceName>, family: AddressFamily) -> u8 {
        let concerns = |key: &PeerKey| {
            let of_key = match key.remote {
                Remote::Address(address) => AddressFamily::of(address),
                Remote::Range(range) => range.family(),
                Remote::DefaultGateway(family) => family,
                Remote::Interface(_) => AddressFamily::Ipv6Unicast,
            };
            key.vrf == vrf && of_key == family
        };
        let these = self.known.iter().filter(|(key, _)| concerns(key));
        let admitted = these.filter_map(|(_, verdict)| match verdict {
            Verdict::Admitted(ttl_min) => Some(ttl_min.unwrap_or(0)),
            Verdict::Refused => None,
        });
        admitted.min().unwrap_or(0)
    }
}

impl<'a> FromIterator<&'a PeerConfig> for Admission {
    fn from_iter<T: IntoIterator<Item = &'a PeerConfig>>(configs: T) -> Self {
        let mut admission = Self::default();
        for config in configs {
            let is_down = config.shutdown.is_some();
            let admitted = Verdict::Admitted(config.ttl_min());
            admission.known.insert(config.key, if is_down { Verdict::Refused } else { admitted });
            if let Remote::Range(range) = config.key.remote {
                admission.range_lengths.insert(range.length());
            }
        }
        admission
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use super::*;
    use crate::example::Example as _;
    use fairway_ground::ShutdownMessage;

    fn key(text: &str) -> PeerKey {
        let (remote, vrf) = text.split_once(" vrf ").unwrap_or((text, ""));
        let remote = remote
            .parse()
            .map(Remote::Address)
            .or_else(|_| remote.parse().map(Remote::Range))
            .unwrap_or_else(|_| Remote::Interface(remote.parse().unwrap()));
        PeerKey { remote, vrf: vrf.parse().ok() }
    }

    fn config(text: &str) -> PeerConfig {
        PeerConfig { key: key(text), ..PeerConfig::example(1) }
    }

    fn secured(text: &str, hops: u8) -> PeerConfig {
        PeerConfig { ttl_security_hops: NonZeroU8::new(hops), ..config(text) }
    }

    /// The neighbour that `admission` finds for `remote`.
    fn found(admission: &Admission, remote: &str) -> String {
        let (remote, vrf) = remote.split_once(" vrf ").unwrap_or((remote, ""));
        let (remote, interface) = remote.split_once('%').unwrap_or((remote, ""));
        let admitted =
            admission.find(vrf.parse().ok(), remote.parse().unwrap(), interface.parse().ok());
        admitted.map_or_else(|| "none".to_owned(), |it| it.key.to_string())
    }

    #[test]
    fn an_address_goes_before_a_range_and_a_small_range_before_a_large_one() {
        let peers = ["10.0.0.1", "10.0.0.0/24", "10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"];
        let admission: Admission = peers.map(config).iter().collect();
        assert_eq!(found(&admission, "10.0.0.1"), "10.0.0.1");
        assert_eq!(found(&admission, "10.0.0.2"), "10.0.0.0/24");
        assert_eq!(found(&admission, "10.0.1.1"), "10.0.0.0/8");
        assert_eq!(found(&admission, "192.0.2.1"), "0.0.0.0/0");
        assert_eq!(found(&admission, "2001:db8::9"), "2001:db8::/32");
        assert_eq!(found(&admission, "2001:db9::9"), "none");
    }

    #[test]
    fn a_link_local_address_is_known_by_its_interface() {
        let admission: Admission = ["eth0", "::/0", "fe80::7"].map(config).iter().collect();
        assert_eq!(found(&admission, "fe80::1%eth0"), "eth0");
        assert_eq!(found(&admission, "fe80::1%eth1"), "none");
        assert_eq!(found(&admission, "fe80::1"), "none");
        assert_eq!(found(&admission, "fe80::7%eth1"), "fe80::7");
        assert_eq!(found(&admission, "2001:db8::1%eth0"), "::/0");
    }

    #[test]
    fn each_vrf_has_its_own_neighbours() {
        let peers = ["10.0.0.1 vrf blue", "10.0.0.0/24", "eth0 vrf blue"];
        let admission: Admission = peers.map(config).iter().collect();
        assert_eq!(found(&admission, "10.0.0.1"), "10.0.0.0/24");
        assert_eq!(found(&admission, "10.0.0.1 vrf blue"), "10.0.0.1 vrf blue");
        assert_eq!(found(&admission, "10.0.0.2 vrf blue"), "none");
        assert_eq!(found(&admission, "fe80::1%eth0 vrf blue"), "eth0 vrf blue");
        assert_eq!(found(&admission, "fe80::1%eth0"), "none");
    }

    #[test]
    fn who_is_shut_down_is_nobody() {
        let shutdown = Some(ShutdownMessage::default());
        let admission: Admission =
            [PeerConfig { shutdown, ..config("10.0.0.1") }, config("10.0.0.0/8")].iter().collect();
        // Nor does a range admit it: the address belongs to a configured neighbour.
        assert_eq!(found(&admission, "10.0.0.1"), "none");
        assert_eq!(found(&admission, "10.0.0.2"), "10.0.0.0/8");
    }

    #[test]
    fn who_cannot_be_asked_for_its_key_does_not_come_in_by_a_wider_range() {
        let peers = ["10.0.0.1", "10.0.0.0/24", "10.0.0.0/8"];
        let mut admission: Admission = peers.map(config).iter().collect();
        admission.refuse(key("10.0.0.1"));
        admission.refuse(key("10.0.0.0/24"));
        assert_eq!(found(&admission, "10.0.0.1"), "none");
        assert_eq!(found(&admission, "10.0.0.2"), "none");
        assert_eq!(found(&admission, "10.0.1.1"), "10.0.0.0/8");
    }

    #[test]
    fn a_listener_asks_for_no_more_than_suits_all() {
        let peers = [secured("10.0.0.1", 1), secured("10.0.0.2", 3), config("10.0.0.3 vrf blue")];
        let admission: Admission = peers.iter().collect();
        let blue = "blue".parse().ok();
        let of = |vrf, family| admission.ttl_min_of_all(vrf, family);
        assert_eq!(of(None, AddressFamily::Ipv4Unicast), 253);
        assert_eq!(of(None, AddressFamily::Ipv6Unicast), 0);
        assert_eq!(of(blue, AddressFamily::Ipv4Unicast), 0);
        let ttl_min = |remote: [u8; 4]| admission.find(None, remote.into(), None).unwrap().ttl_min;
        assert_eq!((ttl_min([10, 0, 0, 1]), ttl_min([10, 0, 0, 2])), (Some(255), Some(253)));
    }
}
