//! Autonomous system numbers, AS paths and router identifiers.

use std::fmt;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::ParseError;

/// An autonomous system number, 1 to 4294967295. AS 0 is reserved (RFC 7607).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asn(NonZeroU32);

impl Asn {
    /// AS_TRANS, which stands for a number that an old speaker cannot hold (RFC 6793 §9).
    pub const TRANS: u16 = 23456;

    /// `None` for AS 0.
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The number in two octets, [`Asn::TRANS`] when it does not fit.
    pub fn as_two_octets(self) -> u16 {
        u16::try_from(self.get()).unwrap_or(Self::TRANS)
    }
}

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Asn {
    /// The number that is written in asdot notation, as HIGH.LOW (RFC 5396 §2).
    pub fn plain(asdot: &str) -> Option<u32> {
        let (high, low) = asdot.split_once('.')?;
        let (high, low): (u16, u16) = (high.parse().ok()?, low.parse().ok()?);
        Some(u32::from(high) << 16 | u32::from(low))
    }
}

impl FromStr for Asn {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse().ok().and_then(Self::new).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "an AS number from 1 to 4294967295",
        })
    }
}

/// A BGP identifier: four octets, unique in its AS, not zero (RFC 6286 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(NonZeroU32);

impl RouterId {
    /// `None` for zero.
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The identifier as an unsigned number, the way collisions compare it (RFC 6286 §2.3).
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for RouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv4Addr::from(self.get()).fmt(f)
    }
}

impl FromStr for RouterId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let address = text.parse::<Ipv4Addr>().ok();
        address.and_then(|address| Self::new(u32::from(address))).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "a router ID, four octets as in 192.0.2.1, not 0.0.0.0",
        })
    }
}

/// The number of a cluster: route reflectors with the same one do not pass each other's routes on (RFC 4456 §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(NonZeroU32);

impl ClusterId {
    /// As it is written.
    pub fn address(self) -> Ipv4Addr {
        self.0.get().into()
    }
}

impl From<RouterId> for ClusterId {
    fn from(router: RouterId) -> Self {
        Self(router.0)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

impl FromStr for ClusterId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let address = text.parse::<Ipv4Addr>().ok();
        address.and_then(|it| NonZeroU32::new(u32::from(it))).map(Self).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "a cluster ID, four octets as in 192.0.2.1, not 0.0.0.0",
        })
    }
}

/// One segment of an AS path (RFC 4271 §4.3, RFC 5065 §3).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AsPathSegment {
    /// AS_SET: unordered, counts as one hop.
    Set(Vec<u32>),
    /// AS_SEQUENCE: ordered, nearest first.
    Sequence(Vec<u32>),
}

/// The ASes that a route passed, nearest first. AS numbers are kept as received: a path that contains AS 0 is
/// malformed (RFC 7607), which the decoder reports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AsPath(pub Vec<AsPathSegment>);

impl AsPath {
    /// A path of one sequence; empty when `asns` is.
    pub fn sequence(asns: Vec<u32>) -> Self {
        if asns.is_empty() { Self::default() } else { Self(vec![AsPathSegment::Sequence(asns)]) }
    }

    /// Hops as route selection counts them: a set is one (RFC 4271 §9.1.2.2 a).
    pub fn length(&self) -> usize {
        self.0
            .iter()
            .map(|segment| match segment {
                AsPathSegment::Set(_) => 1,
                AsPathSegment::Sequence(asns) => asns.len(),
            })
            .sum()
    }

    /// The neighbouring AS that the route was received from. A set has no first member (RFC 4271 §9.1.2.2 c).
    pub fn first(&self) -> Option<u32> {
        match self.0.first()? {
            AsPathSegment::Sequence(asns) => asns.first().copied(),
            AsPathSegment::Set(_) => None,
        }
    }

    /// The path with `asn` prepended (RFC 4271 §5.1.2).
    pub fn prepended(&self, asn: u32) -> Self {
        let mut segments = self.0.clone();
        match segments.first_mut() {
            Some(AsPathSegment::Sequence(asns)) => asns.insert(0, asn),
            _ => segments.insert(0, AsPathSegment::Sequence(vec![asn])),
        }
        Self(segments)
    }

    /// Every number in the path, in order.
    pub fn asns(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|segment| match segment {
            AsPathSegment::Set(asns) | AsPathSegment::Sequence(asns) => asns.iter().copied(),
        })
    }
}

/// Written number by number: a path may have a thousand, and a table a million paths.
fn join(asns: &[u32], separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (position, asn) in asns.iter().enumerate() {
        if position > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{asn}")?;
    }
    Ok(())
}

impl fmt::Display for AsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(" ")?;
            }
            match segment {
                AsPathSegment::Set(asns) => {
                    f.write_str("{")?;
                    join(asns, ",", f)?;
                    f.write_str("}")?;
                }
                AsPathSegment::Sequence(asns) => join(asns, " ", f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 4271 §9.1.2.2 MUST: an AS_SET counts as one.
    #[test]
    fn a_path_prints_as_routers_print_it() {
        let path = AsPath(vec![
            AsPathSegment::Sequence(vec![65001, 65002]),
            AsPathSegment::Set(vec![1, 2]),
        ]);
        assert_eq!(path.to_string(), "65001 65002 {1,2}");
        assert_eq!(path.length(), 3);
        assert_eq!(AsPath::default().to_string(), "");
    }

    //= RFC 7607 §2 MUST NOT: a speaker claims to be AS 0.
    //= RFC 6286 §2.1 MUST: a BGP identifier is not zero.
    #[test]
    fn reserved_numbers_are_refused() {
        assert!("0".parse::<Asn>().is_err());
        assert!("0.0.0.0".parse::<RouterId>().is_err());
        assert_eq!(Asn::new(4_200_000_000).map(Asn::as_two_octets), Some(Asn::TRANS));
    }
}
