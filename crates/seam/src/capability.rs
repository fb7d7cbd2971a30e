//! Capabilities: what a speaker can do (RFC 5492), as values, and the bytes that they are
//! announced as. Reading them is `fairway-sessions`'.

use std::fmt;

use fairway_ground::{AddressFamily, GracefulRestart, printable};

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

impl RestartOffer {
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

    /// The code of the role, if it is a role capability.
    pub fn role(&self) -> Option<u8> {
        match self {
            Self::Role(code) => Some(*code),
            _ => None,
        }
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
                encodings.iter().flat_map(encode_next_hop).collect()
            }
            Self::Role(role) => vec![*role],
            Self::GracefulRestart(offer) => encode_restart(offer),
            Self::LongLivedGracefulRestart(offers) => {
                offers.iter().flat_map(encode_long_lived).collect()
            }
            Self::FourOctetAs(asn) => asn.to_be_bytes().to_vec(),
            Self::AddPath(offers) => offers.iter().flat_map(encode_add_path).collect(),
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
    printable(&String::from_utf8_lossy(text)).into_owned()
}

fn encode_add_path(offer: &AddPathOffer) -> [u8; 4] {
    let [high, low] = offer.family.afi.to_be_bytes();
    [high, low, offer.family.safi, u8::from(offer.receive) | u8::from(offer.send) << 1]
}

fn encode_next_hop(encoding: &NextHopEncoding) -> [u8; 6] {
    let [afi_high, afi_low] = encoding.family.afi.to_be_bytes();
    let [next_hop_high, next_hop_low] = encoding.next_hop_afi.to_be_bytes();
    [afi_high, afi_low, 0, encoding.family.safi, next_hop_high, next_hop_low]
}

fn encode_restart(offer: &RestartOffer) -> Vec<u8> {
    let time = offer.restart_time_seconds.min(GracefulRestart::RESTART_TIME_SECONDS_MAX);
    let [high, low] = time.to_be_bytes();
    let flags = u8::from(offer.restarted) << 7 | u8::from(offer.notifications) << 6;
    let mut value = vec![flags | high, low];
    for KeptFamily { family, forwarding } in &offer.families {
        let [afi_high, afi_low] = family.afi.to_be_bytes();
        value.extend([afi_high, afi_low, family.safi, u8::from(*forwarding) << 7]);
    }
    value
}

fn encode_long_lived(offer: &LongLivedOffer) -> [u8; 7] {
    let [afi_high, afi_low] = offer.family.afi.to_be_bytes();
    let time = offer.stale_time_seconds.min(GracefulRestart::LONG_LIVED_STALE_TIME_SECONDS_MAX);
    let [_, high, middle, low] = time.to_be_bytes();
    let flags = u8::from(offer.forwarding) << 7;
    [afi_high, afi_low, offer.family.safi, flags, high, middle, low]
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
