//! IPAddressPool: the addresses that may be assigned.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use fairway_ground::{AddressFamily, Prefix, PrefixError};

use super::{LabelSelector, Labels, ObjectName, Service, any_matches};

/// Why a text is not a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressRangeError {
    /// Neither form.
    #[error(
        "{0:?} is not a range of addresses; expected a prefix as in 192.0.2.0/24 or \
         first-last as in 192.0.2.10-192.0.2.20"
    )]
    Syntax(String),
    /// An invalid prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// First and last are of different families.
    #[error("{0:?} begins in one address family and ends in the other")]
    Families(String),
    /// The last comes before the first.
    #[error("{0:?} ends before it begins")]
    Order(String),
}

/// Consecutive addresses of one family, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// The first address.
    pub fn first(self) -> IpAddr {
        self.first
    }

    /// The last address.
    pub fn last(self) -> IpAddr {
        self.last
    }

    /// The family of both.
    pub fn family(self) -> AddressFamily {
        AddressFamily::of(self.first)
    }

    /// Whether `address` is one of them.
    pub fn contains(self, address: IpAddr) -> bool {
        self.family() == AddressFamily::of(address) && self.first <= address && address <= self.last
    }

    /// Whether the two share an address.
    pub fn overlaps(self, other: Self) -> bool {
        self.family() == other.family() && self.first <= other.last && other.first <= self.last
    }

    /// The addresses that both hold.
    pub fn overlap(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        self.overlaps(other).then_some(Self { first, last })
    }

    /// How many addresses; saturates at `u128::MAX`.
    pub fn size(self) -> u128 {
        number(self.last).saturating_sub(number(self.first)).saturating_add(1)
    }

    /// The address `offset` places after the first, if it is still inside.
    pub fn nth(self, offset: u128) -> Option<IpAddr> {
        let value = number(self.first).checked_add(offset)?;
        let address = match self.family() {
            AddressFamily::Ipv4Unicast => IpAddr::V4(Ipv4Addr::from(u32::try_from(value).ok()?)),
            AddressFamily::Ipv6Unicast => IpAddr::V6(Ipv6Addr::from(value)),
        };
        self.contains(address).then_some(address)
    }
}

/// An address as a number, for arithmetic inside one family.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

impl From<Prefix> for AddressRange {
    fn from(prefix: Prefix) -> Self {
        Self { first: prefix.address(), last: prefix.last_address() }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    /// A prefix, or `first-last` with blanks allowed around the dash.
    fn from_str(text: &str) -> Result<Self, AddressRangeError> {
        if text.contains('/') {
            return Ok(text.trim().parse::<Prefix>()?.into());
        }
        let syntax = || AddressRangeError::Syntax(text.to_owned());
        let (first, last) = text.split_once('-').ok_or_else(syntax)?;
        let first: IpAddr = first.trim().parse().map_err(|_| syntax())?;
        let last: IpAddr = last.trim().parse().map_err(|_| syntax())?;
        if AddressFamily::of(first) != AddressFamily::of(last) {
            return Err(AddressRangeError::Families(text.to_owned()));
        }
        if last < first {
            return Err(AddressRangeError::Order(text.to_owned()));
        }
        Ok(Self { first, last })
    }
}

/// `serviceAllocation`: the Services that a pool is restricted to. If it is set, Services that it does
/// not match get nothing from the pool, whatever they request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceAllocation {
    /// Pools with a lower one are tried first, negative ones too; 0 comes last.
    pub priority: i32,
    /// Namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// Namespaces by label. Without names and selectors: every namespace.
    pub namespace_selectors: Vec<LabelSelector>,
    /// Services by label; all when empty.
    pub service_selectors: Vec<LabelSelector>,
}

impl ServiceAllocation {
    /// Whether `service`, in a namespace with these labels, matches.
    pub fn matches(&self, service: &Service, namespace_labels: &Labels) -> bool {
        let is_open = self.namespaces.is_empty() && self.namespace_selectors.is_empty();
        let is_selected = self.namespace_selectors.iter().any(|it| it.matches(namespace_labels));
        (is_open || is_selected || self.namespaces.contains(&service.name.namespace))
            && any_matches(&self.service_selectors, &service.labels)
    }
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: ObjectName,
    /// Its labels, for `ipAddressPoolSelectors`.
    pub labels: Labels,
    /// Its addresses, in the order written; no two ranges overlap.
    pub ranges: Vec<AddressRange>,
    /// Whether Services that do not request it may get addresses from it.
    pub auto_assign: bool,
    /// Whether IPv4 addresses that end in .0 and .255 are never assigned.
    pub avoid_buggy_addresses: bool,
    /// Addresses that are never assigned automatically.
    pub reserved: Vec<AddressRange>,
    /// The Services that it is restricted to; `None` if it is open to all.
    pub allocation: Option<ServiceAllocation>,
}

impl Pool {
    /// Whether it holds `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }

    /// Whether it holds an address of `family`.
    pub fn has_family(&self, family: AddressFamily) -> bool {
        self.ranges.iter().any(|range| range.family() == family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_both_forms() {
        let range = |text: &str| text.parse::<AddressRange>().unwrap();
        assert_eq!(range("192.0.2.0/30").size(), 4);
        assert_eq!(range("192.0.2.1 - 192.0.2.3").size(), 3);
        assert_eq!(range("192.0.2.0/30").nth(3), "192.0.2.3".parse().ok());
        assert_eq!(range("192.0.2.0/30").nth(4), None);
        assert_eq!(range("::/0").size(), u128::MAX);
        assert!(range("192.0.2.0/24").overlaps(range("192.0.2.255-192.0.3.1")));
    }

    #[test]
    fn a_text_that_is_no_range_says_what_would_be() {
        for text in ["", "192.0.2.1", "192.0.2.9-192.0.2.1", "192.0.2.1-::1", "192.0.2.0/33"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
