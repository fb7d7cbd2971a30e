//! A prefix: an address and a length, host bits zero.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::AddressFamily;

/// Why a text or a pair of values is not a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not of the form `address/length`.
    #[error("{0:?} is not a prefix; expected an address and a length, as in 192.0.2.0/24")]
    Syntax(String),
    /// Longer than the address.
    #[error("a length of {length} is more than an {family} address has; at most {maximum}")]
    Length {
        /// The length given.
        length: u8,
        /// The family of the address.
        family: AddressFamily,
        /// The maximum.
        maximum: u8,
    },
    /// Bits are set behind the prefix length.
    #[error("{given} has host bits set; did you mean {canonical}?")]
    HostBits {
        /// The given text.
        given: String,
        /// The prefix that contains it.
        canonical: String,
    },
}

/// An address prefix. Host bits are always zero, so equal prefixes are equal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "IpNet", into = "IpNet")]
pub struct Prefix(IpNet);

impl Prefix {
    /// The prefix of `length` bits that contains `address`; host bits are cleared.
    pub fn new(address: IpAddr, length: u8) -> Result<Self, PrefixError> {
        let family = AddressFamily::of(address);
        let net = IpNet::new(address, length);
        net.map(|net| Self(net.trunc())).map_err(|_| too_long(length, family))
    }

    /// The prefix of `address` alone: /32 or /128.
    pub fn host(address: IpAddr) -> Self {
        Self(IpNet::from(address))
    }

    /// The network address.
    #[inline]
    pub fn address(self) -> IpAddr {
        self.0.addr()
    }

    /// The length in bits.
    #[inline]
    pub fn length(self) -> u8 {
        self.0.prefix_len()
    }

    /// The family.
    #[inline]
    pub fn family(self) -> AddressFamily {
        AddressFamily::of(self.address())
    }

    /// Whether it contains `address`.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// The last address in it.
    pub fn last_address(self) -> IpAddr {
        self.0.broadcast()
    }

    /// Whether the two share an address.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.address()) || other.contains(self.address())
    }

    /// Whether it contains only multicast addresses.
    pub fn is_multicast(self) -> bool {
        let groups = match self.family() {
            AddressFamily::Ipv4Unicast => 4,
            AddressFamily::Ipv6Unicast => 8,
        };
        self.address().is_multicast() && self.length() >= groups
    }

    /// An IPv4 prefix from its wire form.
    #[inline]
    pub fn from_ipv4_bits(bits: u32, length: u8) -> Result<Self, PrefixError> {
        let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
        let net = Ipv4Net::new(Ipv4Addr::from(bits & !host), length);
        net.map(|net| Self(IpNet::V4(net)))
            .map_err(|_| too_long(length, AddressFamily::Ipv4Unicast))
    }

    /// An IPv6 prefix from its wire form.
    #[inline]
    pub fn from_ipv6_bits(bits: u128, length: u8) -> Result<Self, PrefixError> {
        let host = u128::MAX.checked_shr(length.into()).unwrap_or(0);
        let net = Ipv6Net::new(Ipv6Addr::from(bits & !host), length);
        net.map(|net| Self(IpNet::V6(net)))
            .map_err(|_| too_long(length, AddressFamily::Ipv6Unicast))
    }
}

fn too_long(length: u8, family: AddressFamily) -> PrefixError {
    PrefixError::Length { length, family, maximum: family.address_bits() }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad`, so that tables can align it.
        f.pad(&self.0.to_string())
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let syntax = || PrefixError::Syntax(text.to_owned());
        let (address, length) = text.trim().split_once('/').ok_or_else(syntax)?;
        let address: IpAddr = address.parse().map_err(|_| syntax())?;
        let length: u8 = length.parse().map_err(|_| syntax())?;
        let prefix = Self::new(address, length)?;
        if prefix.address() != address {
            return Err(PrefixError::HostBits {
                given: text.to_owned(),
                canonical: prefix.to_string(),
            });
        }
        Ok(prefix)
    }
}

impl TryFrom<IpNet> for Prefix {
    type Error = PrefixError;

    fn try_from(net: IpNet) -> Result<Self, PrefixError> {
        Self::new(net.addr(), net.prefix_len())
    }
}

impl From<Prefix> for IpNet {
    fn from(prefix: Prefix) -> Self {
        prefix.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_never_survive() {
        let prefix = Prefix::new("192.0.2.77".parse().unwrap(), 24).unwrap();
        assert_eq!(prefix.to_string(), "192.0.2.0/24");
        assert!(prefix.contains("192.0.2.255".parse().unwrap()));
    }

    #[test]
    fn faulty_text_says_what_was_meant() {
        let error = "192.0.2.1/24".parse::<Prefix>().unwrap_err().to_string();
        assert!(error.contains("192.0.2.0/24"), "{error}");
        let error = "192.0.2.0/33".parse::<Prefix>().unwrap_err().to_string();
        assert!(error.contains("at most 32"), "{error}");
        assert!("192.0.2.0".parse::<Prefix>().is_err());
        assert!("::/129".parse::<Prefix>().is_err());
    }

    #[test]
    fn overlap_is_symmetric_and_stays_in_the_family() {
        let p = |text: &str| text.parse::<Prefix>().unwrap();
        assert!(p("10.0.0.0/8").overlaps(p("10.1.0.0/16")));
        assert!(p("10.1.0.0/16").overlaps(p("10.0.0.0/8")));
        assert!(!p("10.0.0.0/16").overlaps(p("10.1.0.0/16")));
        assert!(!p("0.0.0.0/0").overlaps(p("::/0")));
    }
}
