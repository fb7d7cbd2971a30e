//! Extended communities (RFC 4360), and link bandwidth.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use super::{Asn, ParseError};

/// Eight octets: a type, mostly a subtype, and a value (RFC 4360 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtendedCommunity(pub [u8; 8]);

/// The bit of the type that keeps a community inside its AS (RFC 4360 §2, RFC 7153 §3).
const NON_TRANSITIVE: u8 = 0x40;
/// Types of communities of an AS of two octets, of an address, and of an AS of four octets, all
/// transitive.
const TWO_OCTET_AS: u8 = 0x00;
const IPV4_ADDRESS: u8 = 0x01;
const FOUR_OCTET_AS: u8 = 0x02;
/// Subtypes.
const ROUTE_TARGET: u8 = 0x02;
const ROUTE_ORIGIN: u8 = 0x03;
const LINK_BANDWIDTH: u8 = 0x04;

impl ExtendedCommunity {
    /// Whether it may leave the AS that set it.
    pub fn is_transitive(self) -> bool {
        let [kind, ..] = self.0;
        kind & NON_TRANSITIVE == 0
    }

    /// The link bandwidth, if it carries one.
    pub fn link_bandwidth(self) -> Option<LinkBandwidth> {
        let [kind, subtype, _, _, a, b, c, d] = self.0;
        let is_bandwidth = kind & !NON_TRANSITIVE == TWO_OCTET_AS && subtype == LINK_BANDWIDTH;
        is_bandwidth
            .then(|| LinkBandwidth::from_octets_per_second(f32::from_be_bytes([a, b, c, d])))
    }
}

/// The names of the kinds that operators write, and their subtypes.
const NAMES: [(&str, u8); 2] = [("rt", ROUTE_TARGET), ("soo", ROUTE_ORIGIN)];

impl ExtendedCommunity {
    /// The subtype that the name before the first colon of `text` stands for, and what is behind it.
    fn named(text: &str) -> Option<(u8, &str)> {
        let (name, value) = text.split_once(':')?;
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some((known.1, value))
    }

    /// Whether `text` begins as one: with `rt:` or `soo:`.
    pub fn has_name(text: &str) -> bool {
        Self::named(text).is_some()
    }
}

/// `rt:` (route target) or `soo:` (site of origin), and two numbers, or an IPv4 address and a number. An AS of up to
/// two octets has a number of four, any other AS and an address one of two (RFC 4360 §3, RFC 5668 §2).
impl FromStr for ExtendedCommunity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let value = || {
            let (subtype, value) = Self::named(text)?;
            let (global, local) = value.split_once(':')?;
            let narrow = || Some(local.parse::<u16>().ok()?.to_be_bytes());
            let (kind, [a, b, c, d, e, low]) = if let Ok(asn) = global.parse::<u16>() {
                let ([a, b], [c, d, e, low]) =
                    (asn.to_be_bytes(), local.parse::<u32>().ok()?.to_be_bytes());
                (TWO_OCTET_AS, [a, b, c, d, e, low])
            } else if let Ok(asn) = global.parse::<u32>() {
                let ([a, b, c, d], [e, low]) = (asn.to_be_bytes(), narrow()?);
                (FOUR_OCTET_AS, [a, b, c, d, e, low])
            } else {
                let ([a, b, c, d], [e, low]) =
                    (global.parse::<Ipv4Addr>().ok()?.octets(), narrow()?);
                (IPV4_ADDRESS, [a, b, c, d, e, low])
            };
            Some(Self([kind, subtype, a, b, c, d, e, low]))
        };
        value().ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "an extended community: rt: or soo: and two numbers as in rt:65001:100, or an IPv4 address \
                       and a number as in rt:192.0.2.1:100; the number is 65535 at most behind an address or an \
                       AS number above 65535",
        })
    }
}

/// As FRR writes them. Ours: a community that FRR has no name for is shown with its value, and a bandwidth is
/// not rounded down to a whole number of its unit.
impl fmt::Display for ExtendedCommunity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kind, subtype, a, b, c, d, e, low] = self.0;
        if let Some(bandwidth) = self.link_bandwidth() {
            let asn = u16::from_be_bytes([a, b]);
            return write!(f, "LB:{asn}:{} ({bandwidth})", bandwidth.bits_per_second / 8);
        }
        let name = match (kind, subtype) {
            (TWO_OCTET_AS..=FOUR_OCTET_AS, ROUTE_TARGET) => "RT",
            (TWO_OCTET_AS..=FOUR_OCTET_AS, ROUTE_ORIGIN) => "SoO",
            _ => {
                write!(f, "UNK:{kind}, {subtype}:")?;
                return [a, b, c, d, e, low].iter().try_for_each(|byte| write!(f, "{byte:02x}"));
            }
        };
        let wide = u32::from_be_bytes([a, b, c, d]);
        let narrow = u16::from_be_bytes([e, low]);
        match kind {
            TWO_OCTET_AS => {
                let (asn, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, low]));
                write!(f, "{name}:{asn}:{value}")
            }
            IPV4_ADDRESS => write!(f, "{name}:{}:{narrow}", Ipv4Addr::from(wide)),
            _ => write!(f, "{name}:{wide}:{narrow}"),
        }
    }
}

/// The bandwidth of a link, in bits per second (RFC 10005): neighbours balance traffic among several paths by
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkBandwidth {
    /// Bits per second.
    pub bits_per_second: u64,
}

impl LinkBandwidth {
    /// The community that carries it, set by `asn`, or AS_TRANS if that does not fit into two octets. A
    /// transitive one reaches external neighbours.
    pub fn community(self, asn: u32, transitive: bool) -> ExtendedCommunity {
        let kind = if transitive { TWO_OCTET_AS } else { TWO_OCTET_AS | NON_TRANSITIVE };
        let [high, low] = u16::try_from(asn).unwrap_or(Asn::TRANS).to_be_bytes();
        let [a, b, c, d] = self.octets_per_second().to_be_bytes();
        ExtendedCommunity([kind, LINK_BANDWIDTH, high, low, a, b, c, d])
    }

    /// As on the wire: octets per second, in IEEE 754 single precision.
    fn octets_per_second(self) -> f32 {
        self.bits_per_second as f32 / 8.0
    }

    /// From the wire form; a negative number and NaN count as 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest number that there is"
    )]
    fn from_octets_per_second(octets_per_second: f32) -> Self {
        Self { bits_per_second: (f64::from(octets_per_second) * 8.0) as u64 }
    }
}

impl fmt::Display for LinkBandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_second as f64;
        match self.bits_per_second {
            0..1_000 => write!(f, "{bits} bps"),
            1_000..1_000_000 => write!(f, "{:.3} Kbps", bits / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} Mbps", bits / 1e6),
            _ => write!(f, "{:.3} Gbps", bits / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_survives_the_wire() {
        let gigabit = LinkBandwidth { bits_per_second: 1_000_000_000 };
        for transitive in [true, false] {
            let community = gigabit.community(65_001, transitive);
            assert_eq!(community.is_transitive(), transitive);
            assert_eq!(community.link_bandwidth(), Some(gigabit));
        }
        // 125,000,000 octets per second.
        let golden = [0x40, 4, 0xFD, 0xE9, 0x4C, 0xEE, 0x6B, 0x28];
        assert_eq!(gigabit.community(65_001, false), ExtendedCommunity(golden));
    }

    #[test]
    fn communities_have_the_words_of_frr() {
        let gigabit = LinkBandwidth { bits_per_second: 1_000_000_000 };
        let slow = LinkBandwidth { bits_per_second: 2_560_000 };
        let of = ExtendedCommunity;
        for (community, text) in [
            (gigabit.community(65_001, true), "LB:65001:125000000 (1.000 Gbps)"),
            (slow.community(4_200_000_000, false), "LB:23456:320000 (2.560 Mbps)"),
            (of([0, 2, 0xFD, 0xF2, 0, 0, 0, 77]), "RT:65010:77"),
            (of([0, 3, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]), "SoO:1:4294967295"),
            (of([1, 2, 192, 0, 2, 1, 0, 9]), "RT:192.0.2.1:9"),
            (of([2, 2, 0xFA, 0x56, 0xEA, 0, 1, 0]), "RT:4200000000:256"),
            (of([0x43, 0, 1, 2, 3, 4, 5, 6]), "UNK:67, 0:010203040506"),
        ] {
            assert_eq!(community.to_string(), text);
        }
    }

    #[test]
    fn communities_read_as_they_are_written() {
        for text in ["RT:65010:77", "SoO:1:4294967295", "RT:192.0.2.1:9", "RT:4200000000:256"] {
            let community: ExtendedCommunity = text.parse().unwrap();
            assert_eq!(community.to_string(), text);
            assert_eq!(text.to_lowercase().parse(), Ok(community));
        }
        for text in
            ["rt:65010", "rt:1:2:3", "lb:1:2", "65010:77", "rt:65536:65536", "rt:192.0.2.1:65536"]
        {
            let error = text.parse::<ExtendedCommunity>().unwrap_err().to_string();
            assert!(error.contains("rt:65001:100"), "{error}");
        }
    }

    #[test]
    fn what_is_no_bandwidth_is_none() {
        let target = ExtendedCommunity([0, 2, 0xFD, 0xE9, 0, 0, 0, 1]);
        assert_eq!(target.link_bandwidth(), None);
        let negative = [&[0, 4, 0, 1][..], &(-1.0f32).to_be_bytes()].concat();
        let nothing = LinkBandwidth { bits_per_second: 0 };
        assert_eq!(ExtendedCommunity(negative.try_into().unwrap()).link_bandwidth(), Some(nothing));
        let not_a_number = [&[0, 4, 0, 1][..], &f32::NAN.to_be_bytes()].concat();
        assert_eq!(
            ExtendedCommunity(not_a_number.try_into().unwrap()).link_bandwidth(),
            Some(nothing)
        );
    }
}
