//! Address families that Fairway routes.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// An address family identifier with its subsequent identifier (RFC 4760 §6). Pairs that Fairway
/// does not route stay numbers in the capability that carried them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AddressFamily {
    /// AFI 1, SAFI 1.
    Ipv4Unicast,
    /// AFI 2, SAFI 1.
    Ipv6Unicast,
}

impl AddressFamily {
    /// Both, in the order routers print them.
    pub const ALL: [Self; 2] = [Self::Ipv4Unicast, Self::Ipv6Unicast];

    /// `None` for a pair that Fairway does not route.
    pub fn from_afi_safi(afi: u16, safi: u8) -> Option<Self> {
        match (afi, safi) {
            (1, 1) => Some(Self::Ipv4Unicast),
            (2, 1) => Some(Self::Ipv6Unicast),
            _ => None,
        }
    }

    /// The address family identifier.
    pub fn afi(self) -> u16 {
        match self {
            Self::Ipv4Unicast => 1,
            Self::Ipv6Unicast => 2,
        }
    }

    /// The subsequent address family identifier.
    pub fn safi(self) -> u8 {
        1
    }

    /// `IPv4` or `IPv6`, as users write it.
    pub fn ip_version(self) -> &'static str {
        match self {
            Self::Ipv4Unicast => "IPv4",
            Self::Ipv6Unicast => "IPv6",
        }
    }

    /// Bits in an address of this family.
    pub fn address_bits(self) -> u8 {
        match self {
            Self::Ipv4Unicast => 32,
            Self::Ipv6Unicast => 128,
        }
    }

    /// The family an address belongs to.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ipv4Unicast,
            IpAddr::V6(_) => Self::Ipv6Unicast,
        }
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Ipv4Unicast => Self::Ipv6Unicast,
            Self::Ipv6Unicast => Self::Ipv4Unicast,
        }
    }
}

impl fmt::Display for AddressFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Unicast", self.ip_version())
    }
}

/// A set of families: those of a session, or of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FamilySet {
    ipv4: bool,
    ipv6: bool,
}

impl FamilySet {
    /// Neither.
    pub const EMPTY: Self = Self { ipv4: false, ipv6: false };
    /// Both.
    pub const BOTH: Self = Self { ipv4: true, ipv6: true };

    /// Only `family`.
    pub fn only(family: AddressFamily) -> Self {
        let mut set = Self::EMPTY;
        set.insert(family);
        set
    }

    /// Adds `family`.
    pub fn insert(&mut self, family: AddressFamily) {
        match family {
            AddressFamily::Ipv4Unicast => self.ipv4 = true,
            AddressFamily::Ipv6Unicast => self.ipv6 = true,
        }
    }

    /// Removes `family`.
    pub fn remove(&mut self, family: AddressFamily) {
        match family {
            AddressFamily::Ipv4Unicast => self.ipv4 = false,
            AddressFamily::Ipv6Unicast => self.ipv6 = false,
        }
    }

    /// Whether it contains `family`.
    pub fn contains(self, family: AddressFamily) -> bool {
        match family {
            AddressFamily::Ipv4Unicast => self.ipv4,
            AddressFamily::Ipv6Unicast => self.ipv6,
        }
    }

    /// The families in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self { ipv4: self.ipv4 && other.ipv4, ipv6: self.ipv6 && other.ipv6 }
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Its families, IPv4 first.
    pub fn iter(self) -> impl Iterator<Item = AddressFamily> {
        AddressFamily::ALL.into_iter().filter(move |family| self.contains(*family))
    }
}

impl FromIterator<AddressFamily> for FamilySet {
    fn from_iter<I: IntoIterator<Item = AddressFamily>>(families: I) -> Self {
        let mut set = Self::EMPTY;
        for family in families {
            set.insert(family);
        }
        set
    }
}

/// One value for each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerFamily<T> {
    /// For IPv4 unicast.
    pub ipv4: T,
    /// For IPv6 unicast.
    pub ipv6: T,
}

impl<T> PerFamily<T> {
    /// The value for `family`.
    pub fn of(&self, family: AddressFamily) -> &T {
        match family {
            AddressFamily::Ipv4Unicast => &self.ipv4,
            AddressFamily::Ipv6Unicast => &self.ipv6,
        }
    }

    /// The value for `family`, mutable.
    pub fn of_mut(&mut self, family: AddressFamily) -> &mut T {
        match family {
            AddressFamily::Ipv4Unicast => &mut self.ipv4,
            AddressFamily::Ipv6Unicast => &mut self.ipv6,
        }
    }
}
