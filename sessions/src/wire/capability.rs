//! Capabilities of a speaker (RFC 5492). Unknown ones are kept as bytes.

use std::fmt;

use super::Reader;
use crate::types::{AddressFamily, GracefulRestart};

/// Which side may send several paths of a family (RFC 7911 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddPathOffer {
    /// The family.
    pub family: AddressFamilyPair,
    /// The sender of the capability can receive several paths.
    pub receive: bool,
    /// The sender of the capability wants to send several paths.
    pub send: bool,
}

impl AddPathOffer {
    fn parse(tuple: [u8; 4]) -> Option<Self> {
        let [afi_high, afi_low, safi, mode] = tuple;
        let family = AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi };
        // Other values are ignored.
        (1..=3).contains(&mode).then_some(Self {
            family,
            receive: mode & 1 != 0,
            send: mode & 2 != 0,
        })
    }

    fn encode(self) -> [u8; 4] {
        let [high, low] = self.family.afi.to_be_bytes();
        [high, low, self.family.safi, u8::from(self.receive) | u8::from(self.send) << 1]
    }
}

/// A family of routes that may have next hops of another family (RFC 8950 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopEncoding {
    /// The family of the routes.
    pub family: AddressFamilyPair,
    /// The address family identifier of the next hop.
    pub next_hop_afi: u16,
}

impl NextHopEncoding {
    /// IPv4 routes with IPv6 next hops.
    pub const IPV4_OVER_IPV6: Self =
        Self { family: AddressFamilyPair { afi: 1, safi: 1 }, next_hop_afi: 2 };

    /// RFC 8950 §4 gives the SAFI two octets.
    fn parse(tuple: [u8; 6]) -> Option<Self> {
        let [afi_high, afi_low, 0, safi, next_hop_high, next_hop_low] = tuple else { return None };
        let family = AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi };
        Some(Self { family, next_hop_afi: u16::from_be_bytes([next_hop_high, next_hop_low]) })
    }

    fn encode(self) -> [u8; 6] {
        let [afi_high, afi_low] = self.family.afi.to_be_bytes();
        let [next_hop_high, next_hop_low] = self.next_hop_afi.to_be_bytes();
        [afi_high, afi_low, 0, self.family.safi, next_hop_high, next_hop_low]
    }
}

/// An address family as two numbers, supported by us or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressFamilyPair {
    /// Address family identifier.
    pub afi: u16,
    /// Subsequent address family identifier.
    pub safi: u8,
}

impl AddressFamilyPair {
    /// The family, if we support it.
    pub fn family(self) -> Option<AddressFamily> {
        AddressFamily::from_afi_safi(self.afi, self.safi)
    }
}

impl From<AddressFamily> for AddressFamilyPair {
    fn from(family: AddressFamily) -> Self {
        Self { afi: family.afi(), safi: family.safi() }
    }
}

/// The graceful restart capability (RFC 4724 §3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestartOffer {
    /// R: it has just restarted; do not wait for its End-of-RIB markers.
    pub restarted: bool,
    /// N: graceful restart also applies after a NOTIFICATION (RFC 8538 §2).
    pub notifications: bool,
    /// Maximum duration of its restart, in seconds, 0 to 4095.
    pub restart_time_seconds: u16,
    /// Families with routes to keep during its restart.
    pub families: Vec<KeptFamily>,
}

/// A family in a [`RestartOffer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFamily {
    /// The family.
    pub family: AddressFamilyPair,
    /// F: forwarding state was preserved.
    pub forwarding: bool,
}

/// The F bit of both capabilities.
const FORWARDING: u8 = 0x80;

impl RestartOffer {
    fn parse(value: &[u8]) -> Option<Self> {
        let ([high, low], families) = value.split_first_chunk()?;
        let (families, []) = families.as_chunks() else { return None };
        let kept = |[afi_high, afi_low, safi, flags]: &[u8; 4]| KeptFamily {
            family: AddressFamilyPair {
                afi: u16::from_be_bytes([*afi_high, *afi_low]),
                safi: *safi,
            },
            forwarding: flags & FORWARDING != 0,
        };
        Some(Self {
            restarted: high & 0x80 != 0,
            notifications: high & 0x40 != 0,
            restart_time_seconds: u16::from_be_bytes([high & 0x0F, *low]),
            families: families.iter().map(kept).collect(),
        })
    }

    fn encode(&self) -> Vec<u8> {
        let time = self.restart_time_seconds.min(GracefulRestart::RESTART_TIME_SECONDS_MAX);
        let [high, low] = time.to_be_bytes();
        let flags = u8::from(self.restarted) << 7 | u8::from(self.notifications) << 6;
        let mut value = vec![flags | high, low];
        for KeptFamily { family, forwarding } in &self.families {
            let [afi_high, afi_low] = family.afi.to_be_bytes();
            value.extend([afi_high, afi_low, family.safi, u8::from(*forwarding) << 7]);
        }
        value
    }

    /// The entry of `family`; the first of several counts.
    pub fn of(&self, family: AddressFamily) -> Option<KeptFamily> {
        self.families.iter().find(|kept| kept.family.family() == Some(family)).copied()
    }
}

/// How long routes of a family may be used after the restart time of their speaker has expired (RFC 9494
/// §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongLivedOffer {
    /// The family.
    pub family: AddressFamilyPair,
    /// F, as in [`KeptFamily`].
    pub forwarding: bool,
    /// The long-lived stale time, in seconds, 24 bits.
    pub stale_time_seconds: u32,
}

impl LongLivedOffer {
    #[allow(clippy::unnecessary_wraps)] // Every tuple is valid here, unlike those of other capabilities.
    fn parse(tuple: [u8; 7]) -> Option<Self> {
        let [afi_high, afi_low, safi, flags, time @ ..] = tuple;
        let [high, middle, low] = time;
        Some(Self {
            family: AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi },
            forwarding: flags & FORWARDING != 0,
            stale_time_seconds: u32::from_be_bytes([0, high, middle, low]),
        })
    }

    fn encode(self) -> [u8; 7] {
        let [afi_high, afi_low] = self.family.afi.to_be_bytes();
        let time = self.stale_time_seconds.min(GracefulRestart::LONG_LIVED_STALE_TIME_SECONDS_MAX);
        let [_, high, middle, low] = time.to_be_bytes();
        let flags = u8::from(self.forwarding) << 7;
        [afi_high, afi_low, self.family.safi, flags, high, middle, low]
    }
}

/// One capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// 1: routes of a family (RFC 4760 §8).
    Multiprotocol(AddressFamilyPair),
    /// 2: supports ROUTE-REFRESH (RFC 2918 §2).
    RouteRefresh,
    /// 5: families of routes that may have next hops of another family (RFC 8950).
    ExtendedNextHop(Vec<NextHopEncoding>),
    /// 6: messages of up to 65,535 octets (RFC 8654).
    ExtendedMessage,
    /// 9: the sender's role, as its code (RFC 9234 §4.1).
    Role(u8),
    /// 64: graceful restart (RFC 4724 §3). Without a family it only means that the initial routes end with an
    /// End-of-RIB marker.
    GracefulRestart(RestartOffer),
    /// 65: four-octet AS numbers, and the sender's own (RFC 6793 §3).
    FourOctetAs(u32),
    /// 69: several paths to a prefix (RFC 7911 §4).
    AddPath(Vec<AddPathOffer>),
    /// 70: enhanced route refresh, with markers around the answer to a ROUTE-REFRESH (RFC 7313).
    EnhancedRouteRefresh,
    /// 71: long-lived graceful restart (RFC 9494 §3.1).
    LongLivedGracefulRestart(Vec<LongLivedOffer>),
    /// 73: the sender's host name (draft-walton-bgp-hostname-capability).
    HostName {
        /// Its name as received: usually UTF-8.
        host: Vec<u8>,
        /// Its domain, likewise; often empty.
        domain: Vec<u8>,
    },
    /// 75: the sender's software version, as received (draft-abraitis-bgp-version-capability).
    SoftwareVersion(Vec<u8>),
    /// Any other, and a malformed one of the above, as received.
    Other {
        /// Its code.
        code: u8,
        /// Its value.
        value: Vec<u8>,
    },
}

impl Capability {
    /// 64 without a family: the initial routes end with an End-of-RIB marker (RFC 4724 §3). Graceful restart
    /// is not offered. FRR 8.4 sends its own markers only to peers that advertise this, and with enhanced
    /// route refresh (RFC 7313) answers no request before them.
    pub fn end_of_rib() -> Self {
        Self::GracefulRestart(RestartOffer::default())
    }

    /// Whether it is a four-octet AS capability with an invalid value.
    pub(super) fn is_broken_four_octet_as(&self) -> bool {
        matches!(self, Self::Other { code: 65, .. })
    }

    /// The code of the role, if it is a role capability.
    pub fn role(&self) -> Option<u8> {
        match self {
            Self::Role(code) => Some(*code),
            _ => None,
        }
    }

    /// Parses one value. A known code with a value of the wrong size is kept as `Other`: its meaning is
    /// unclear, and one malformed capability is no reason to reject the rest.
    fn parse(code: u8, value: &[u8]) -> Self {
        let other = || Self::Other { code, value: value.to_vec() };
        match (code, value) {
            (1, [afi_high, afi_low, _reserved, safi]) => Self::Multiprotocol(AddressFamilyPair {
                afi: u16::from_be_bytes([*afi_high, *afi_low]),
                safi: *safi,
            }),
            (2, []) => Self::RouteRefresh,
            (5, value) => {
                tuples(value, NextHopEncoding::parse).map_or_else(other, Self::ExtendedNextHop)
            }
            (6, []) => Self::ExtendedMessage,
            (9, [role]) => Self::Role(*role),
            (64, value) => RestartOffer::parse(value).map_or_else(other, Self::GracefulRestart),
            (65, [a, b, c, d]) => Self::FourOctetAs(u32::from_be_bytes([*a, *b, *c, *d])),
            (69, value) => tuples(value, AddPathOffer::parse).map_or_else(other, Self::AddPath),
            (70, []) => Self::EnhancedRouteRefresh,
            // Zero or more tuples: a speaker without families only helps others (RFC 9494 §3.1).
            (71, []) => Self::LongLivedGracefulRestart(Vec::new()),
            (71, value) => tuples(value, LongLivedOffer::parse)
                .map_or_else(other, Self::LongLivedGracefulRestart),
            (73, value) => Self::parse_host_name(value).unwrap_or_else(other),
            (75, [length, text @ ..]) if usize::from(*length) == text.len() => {
                Self::SoftwareVersion(text.to_vec())
            }
            _ => other(),
        }
    }

    /// A length-prefixed host name, then a length-prefixed domain.
    fn parse_host_name(value: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let (host, domain) = (reader.counted_u8()?, reader.counted_u8()?);
        reader.is_empty().then(|| Self::HostName { host: host.to_vec(), domain: domain.to_vec() })
    }

    /// Parses the value of one optional parameter: capabilities up to its end.
    pub(super) fn parse_all(parameter: &[u8]) -> Option<Vec<Self>> {
        let mut reader = Reader::new(parameter);
        let mut capabilities = Vec::new();
        while !reader.is_empty() {
            let code = reader.u8()?;
            let value = reader.counted_u8()?;
            capabilities.push(Self::parse(code, value));
        }
        Some(capabilities)
    }

    /// The code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Multiprotocol(_) => 1,
            Self::RouteRefresh => 2,
            Self::ExtendedNextHop(_) => 5,
            Self::ExtendedMessage => 6,
            Self::Role(_) => 9,
            Self::GracefulRestart(_) => 64,
            Self::FourOctetAs(_) => 65,
            Self::AddPath(_) => 69,
            Self::EnhancedRouteRefresh => 70,
            Self::LongLivedGracefulRestart(_) => 71,
            Self::HostName { .. } => 73,
            Self::SoftwareVersion(_) => 75,
            Self::Other { code, .. } => *code,
        }
    }

    /// Code, length and value.
    pub fn encode(&self) -> Vec<u8> {
        let value = match self {
            Self::Multiprotocol(AddressFamilyPair { afi, safi }) => {
                let [high, low] = afi.to_be_bytes();
                vec![high, low, 0, *safi]
            }
            Self::RouteRefresh | Self::ExtendedMessage | Self::EnhancedRouteRefresh => Vec::new(),
            Self::ExtendedNextHop(encodings) => {
                encodings.iter().flat_map(|it| it.encode()).collect()
            }
            Self::Role(role) => vec![*role],
            Self::GracefulRestart(offer) => offer.encode(),
            Self::LongLivedGracefulRestart(offers) => {
                offers.iter().flat_map(|it| it.encode()).collect()
            }
            Self::FourOctetAs(asn) => asn.to_be_bytes().to_vec(),
            Self::AddPath(offers) => offers.iter().flat_map(|it| it.encode()).collect(),
            Self::HostName { host, domain } => [counted(host), counted(domain)].concat(),
            Self::SoftwareVersion(version) => counted(version),
            Self::Other { value, .. } => value.clone(),
        };
        // A value is never longer than 255 octets: `Other` was parsed from a one-octet length.
        let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
        [&[self.code(), length], value.as_slice()].concat()
    }
}

/// Text of a neighbour, escaped for display.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).escape_debug().to_string()
}

/// A list of tuples. Invalid ones are skipped; `None` if none is left, or if the length does not fit.
fn tuples<const N: usize, T>(value: &[u8], parse: fn([u8; N]) -> Option<T>) -> Option<Vec<T>> {
    let (tuples, rest) = value.as_chunks::<N>();
    let parsed: Vec<T> = tuples.iter().filter_map(|it| parse(*it)).collect();
    (rest.is_empty() && !parsed.is_empty()).then_some(parsed)
}

/// A length octet and as much of the text as fits.
fn counted(text: &[u8]) -> Vec<u8> {
    let text = text.get(..usize::from(u8::MAX)).unwrap_or(text);
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    [&[length], text].concat()
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiprotocol(pair) => match pair.family() {
                Some(family) => write!(f, "Address Family {family}"),
                None => write!(f, "Address Family {}/{}", pair.afi, pair.safi),
            },
            Self::RouteRefresh => f.write_str("Route refresh"),
            Self::ExtendedNextHop(_) => f.write_str("Extended nexthop"),
            Self::ExtendedMessage => f.write_str("Extended Message"),
            Self::Role(_) => f.write_str("Role"),
            Self::GracefulRestart(_) => f.write_str("Graceful Restart Capability"),
            Self::LongLivedGracefulRestart(_) => f.write_str("Long-lived Graceful Restart"),
            Self::FourOctetAs(_) => f.write_str("4 Byte AS"),
            Self::AddPath(_) => f.write_str("AddPath"),
            Self::EnhancedRouteRefresh => f.write_str("Enhanced Route Refresh"),
            Self::HostName { host, .. } => write!(f, "Hostname {}", shown(host)),
            Self::SoftwareVersion(version) => write!(f, "Software Version {}", shown(version)),
            Self::Other { code, value } => {
                write!(f, "Capability {code}:")?;
                value.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Capability {
        Capability::parse_all(bytes).unwrap().remove(0)
    }

    //= RFC 8950 §4 MUST: the capability has six octets for each family, a SAFI in two of them.
    //= RFC 7911 §4 MUST: the capability has four octets for each family.
    //= RFC 9234 §4.1 MUST: the capability has one octet.
    //= RFC 8654 §3 MUST: the capability has no value.
    #[test]
    fn golden_bytes() {
        let ipv4 = AddressFamilyPair::from(AddressFamily::Ipv4Unicast);
        let both = AddPathOffer { family: ipv4, receive: true, send: true };
        for (capability, bytes) in [
            (
                Capability::ExtendedNextHop(vec![NextHopEncoding::IPV4_OVER_IPV6]),
                &[5, 6, 0, 1, 0, 1, 0, 2][..],
            ),
            (Capability::ExtendedMessage, &[6, 0]),
            (Capability::Role(3), &[9, 1, 3]),
            (Capability::AddPath(vec![both]), &[69, 4, 0, 1, 1, 3]),
            (Capability::EnhancedRouteRefresh, &[70, 0]),
            (Capability::end_of_rib(), &[64, 2, 0, 0]),
            (
                Capability::GracefulRestart(RestartOffer {
                    restarted: true,
                    notifications: true,
                    restart_time_seconds: 0x123,
                    families: vec![
                        KeptFamily { family: ipv4, forwarding: true },
                        KeptFamily { family: AddressFamily::Ipv6Unicast.into(), forwarding: false },
                    ],
                }),
                &[64, 10, 0xC1, 0x23, 0, 1, 1, 0x80, 0, 2, 1, 0],
            ),
            (
                Capability::LongLivedGracefulRestart(vec![LongLivedOffer {
                    family: ipv4,
                    forwarding: true,
                    stale_time_seconds: 0x01_02_03,
                }]),
                &[71, 7, 0, 1, 1, 0x80, 1, 2, 3],
            ),
            (Capability::LongLivedGracefulRestart(Vec::new()), &[71, 0]),
            (
                Capability::HostName { host: b"node".to_vec(), domain: b"lab".to_vec() },
                b"\x49\x09\x04node\x03lab",
            ),
            (Capability::SoftwareVersion(b"FRR/10".to_vec()), b"\x4b\x07\x06FRR/10"),
        ] {
            assert_eq!(capability.encode(), bytes);
            assert_eq!(parsed(bytes), capability);
        }
    }

    //= RFC 7911 §4 SHOULD: a value of send and receive that does not exist is ignored.
    #[test]
    fn tuples_that_mean_nothing_are_left_out() {
        let Capability::AddPath(offers) = parsed(&[69, 8, 0, 1, 1, 4, 0, 2, 1, 1]) else {
            panic!("one of two is good")
        };
        assert_eq!(offers.len(), 1);
        for bytes in [&[64, 1, 0][..], &[64, 4, 0, 120, 0, 1], &[71, 6, 0, 1, 1, 0, 0, 0]] {
            assert!(matches!(parsed(bytes), Capability::Other { .. }), "{bytes:?}");
        }
        for bytes in [&[69, 4, 0, 1, 1, 0][..], &[69, 3, 0, 1, 1], &[69, 0], &[5, 5, 0, 1, 0, 1, 0]]
        {
            assert!(matches!(parsed(bytes), Capability::Other { .. }), "{bytes:?}");
        }
    }
}
