//! Capabilities: what a speaker can do (RFC 5492). What we do not know we keep as bytes.

use std::fmt;

use super::Reader;
use crate::types::AddressFamily;

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
    /// 65: four-octet AS numbers, and the sender's own (RFC 6793 §3).
    FourOctetAs(u32),
    /// Any other, and one of the above whose value is malformed: as it came.
    Other {
        /// Its code.
        code: u8,
        /// Its value.
        value: Vec<u8>,
    },
}

impl Capability {
    /// Whether it is the capability of four-octet AS numbers, with a value that is none.
    pub(super) fn is_broken_four_octet_as(&self) -> bool {
        matches!(self, Self::Other { code: 65, .. })
    }

    /// Reads one value. A known code with a value of the wrong size is kept as `Other`: the
    /// neighbour cannot have meant what we would make of it, and one bad capability is no reason
    /// to refuse the rest.
    fn parse(code: u8, value: &[u8]) -> Self {
        match (code, value) {
            (1, [afi_high, afi_low, _reserved, safi]) => Self::Multiprotocol(AddressFamilyPair {
                afi: u16::from_be_bytes([*afi_high, *afi_low]),
                safi: *safi,
            }),
            (2, []) => Self::RouteRefresh,
            (65, [a, b, c, d]) => Self::FourOctetAs(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => Self::Other { code, value: value.to_vec() },
        }
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
            Self::FourOctetAs(_) => 65,
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
            Self::RouteRefresh => Vec::new(),
            Self::FourOctetAs(asn) => asn.to_be_bytes().to_vec(),
            Self::Other { value, .. } => value.clone(),
        };
        // A value longer than a length octet can say does not exist: `Other` was read behind one.
        let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
        [&[self.code(), length], value.as_slice()].concat()
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiprotocol(pair) => match pair.family() {
                Some(family) => write!(f, "Address Family {family}"),
                None => write!(f, "Address Family {}/{}", pair.afi, pair.safi),
            },
            Self::RouteRefresh => f.write_str("Route refresh"),
            Self::FourOctetAs(_) => f.write_str("4 Byte AS"),
            Self::Other { code, value } => {
                write!(f, "Capability {code}:")?;
                value.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
        }
    }
}
