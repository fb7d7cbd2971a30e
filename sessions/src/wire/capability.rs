//! Capabilities: what a speaker can do (RFC 5492). What we do not know we keep as bytes.

use std::fmt;

use super::Reader;
use crate::types::AddressFamily;

/// Who may send several paths of a family to whom (RFC 7911 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddPathOffer {
    /// The family.
    pub family: AddressFamilyPair,
    /// The speaker is able to receive several paths.
    pub receive: bool,
    /// The speaker wants to send several paths.
    pub send: bool,
}

impl AddPathOffer {
    fn parse(tuple: [u8; 4]) -> Option<Self> {
        let [afi_high, afi_low, safi, mode] = tuple;
        let family = AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi };
        // Other values are to be ignored.
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

/// A family whose routes may have next hops of another one (RFC 8950 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopEncoding {
    /// The family of the routes.
    pub family: AddressFamilyPair,
    /// The address family identifier of the next hop.
    pub next_hop_afi: u16,
}

impl NextHopEncoding {
    /// IPv4 routes over IPv6 next hops.
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

/// An address family as two numbers, routed by us or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressFamilyPair {
    /// Address family identifier.
    pub afi: u16,
    /// Subsequent address family identifier.
    pub safi: u8,
}

impl AddressFamilyPair {
    /// The family, if we route it.
    pub fn family(self) -> Option<AddressFamily> {
        AddressFamily::from_afi_safi(self.afi, self.safi)
    }
}

impl From<AddressFamily> for AddressFamilyPair {
    fn from(family: AddressFamily) -> Self {
        Self { afi: family.afi(), safi: family.safi() }
    }
}

/// One capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// 1: routes of a family (RFC 4760 §8).
    Multiprotocol(AddressFamilyPair),
    /// 2: answers ROUTE-REFRESH (RFC 2918 §2).
    RouteRefresh,
    /// 5: families whose routes may have next hops of another one (RFC 8950).
    ExtendedNextHop(Vec<NextHopEncoding>),
    /// 6: messages of up to 65,535 octets (RFC 8654).
    ExtendedMessage,
    /// 9: the sender's role, as its code (RFC 9234 §4.1).
    Role(u8),
    /// 65: four-octet AS numbers, and the sender's own (RFC 6793 §3).
    FourOctetAs(u32),
    /// 69: several paths to a prefix (RFC 7911 §4).
    AddPath(Vec<AddPathOffer>),
    /// 70: marks around what a ROUTE-REFRESH asked for (RFC 7313).
    EnhancedRouteRefresh,
    /// 73: what the sender is called (draft-walton-bgp-hostname-capability).
    HostName {
        /// Its name, as it came: mostly UTF-8.
        host: Vec<u8>,
        /// Its domain, likewise; often empty.
        domain: Vec<u8>,
    },
    /// 75: what the sender runs, as it came (draft-abraitis-bgp-version-capability).
    SoftwareVersion(Vec<u8>),
    /// Any other, and one of the above whose value is malformed: as it came.
    Other {
        /// Its code.
        code: u8,
        /// Its value.
        value: Vec<u8>,
    },
}

impl Capability {
    /// 64 without a family: what is announced at first ends with a marker (RFC 4724 §3). Nothing is
    /// promised about a restart. FRR 8.4 sends its own markers only to who says this, and answers
    /// no request for a refresh before them where both mark refreshes (RFC 7313).
    pub fn end_of_rib() -> Self {
        Self::Other { code: 64, value: vec![0, 0] }
    }

    /// Whether it is the capability of four-octet AS numbers, with a value that is none.
    pub(super) fn is_broken_four_octet_as(&self) -> bool {
        matches!(self, Self::Other { code: 65, .. })
    }

    /// The code of the role that it says, if that is what it says.
    pub fn role(&self) -> Option<u8> {
        match self {
            Self::Role(code) => Some(*code),
            _ => None,
        }
    }

    /// Reads one value. A known code with a value of the wrong size is kept as `Other`: the
    /// neighbour cannot have meant what we would make of it, and one bad capability is no reason
    /// to refuse the rest.
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
            (65, [a, b, c, d]) => Self::FourOctetAs(u32::from_be_bytes([*a, *b, *c, *d])),
            (69, value) => tuples(value, AddPathOffer::parse).map_or_else(other, Self::AddPath),
            (70, []) => Self::EnhancedRouteRefresh,
            (73, value) => Self::parse_host_name(value).unwrap_or_else(other),
            (75, [length, text @ ..]) if usize::from(*length) == text.len() => {
                Self::SoftwareVersion(text.to_vec())
            }
            _ => other(),
        }
    }

    /// A counted name, then a counted domain.
    fn parse_host_name(value: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let (host, domain) = (reader.counted_u8()?, reader.counted_u8()?);
        reader.is_empty().then(|| Self::HostName { host: host.to_vec(), domain: domain.to_vec() })
    }

    /// Reads the value of one optional parameter: capabilities up to its end.
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
            Self::FourOctetAs(_) => 65,
            Self::AddPath(_) => 69,
            Self::EnhancedRouteRefresh => 70,
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
            Self::FourOctetAs(asn) => asn.to_be_bytes().to_vec(),
            Self::AddPath(offers) => offers.iter().flat_map(|it| it.encode()).collect(),
            Self::HostName { host, domain } => [counted(host), counted(domain)].concat(),
            Self::SoftwareVersion(version) => counted(version),
            Self::Other { value, .. } => value.clone(),
        };
        // A value longer than a length octet can say does not exist: `Other` was read behind one.
        let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
        [&[self.code(), length], value.as_slice()].concat()
    }
}

/// Text of a neighbour, fit to be shown.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).escape_debug().to_string()
}

/// A list of tuples. Those that mean nothing are left out; where none is left, or the length does
/// not fit, there is no list.
fn tuples<const N: usize, T>(value: &[u8], parse: fn([u8; N]) -> Option<T>) -> Option<Vec<T>> {
    let (tuples, rest) = value.as_chunks::<N>();
    let parsed: Vec<T> = tuples.iter().filter_map(|it| parse(*it)).collect();
    (rest.is_empty() && !parsed.is_empty()).then_some(parsed)
}

/// A length octet and as much of the text as that can count.
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
        for bytes in [&[69, 4, 0, 1, 1, 0][..], &[69, 3, 0, 1, 1], &[69, 0], &[5, 5, 0, 1, 0, 1, 0]]
        {
            assert!(matches!(parsed(bytes), Capability::Other { .. }), "{bytes:?}");
        }
    }
}
