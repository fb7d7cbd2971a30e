//! The types of single fields: text that reads as a value, bounded numbers, durations.
//!
//! Each fault states what the field accepts. Knows no kinds; the raw types of the kinds are made of these.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use fairway_ground::{Asn, LinkBandwidth};
use fairway_model::Bandwidth;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A whole number from `minimum` to `maximum`; for `bounded_number!`.
fn whole_number(minimum: i64, maximum: i64) -> Schema {
    json_schema!({ "type": "integer", "minimum": minimum, "maximum": maximum })
}

/// Text that reads as a `T`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// Text that reads as a `T`, where empty text means "not set": MetalLB's own objects may contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given<T>(pub(crate) Option<T>);

impl<T: FromStr> FromStr for Given<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

/// An IP address that hosts can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostAddress(pub(crate) IpAddr);

/// Why a text is not a [`HostAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostAddressError {
    #[error("{0:?} is not an IP address; expected one as in 192.0.2.1 or 2001:db8::1")]
    Syntax(String),
    #[error("{0} cannot be the address of a host; expected a unicast address")]
    NotUnicast(IpAddr),
    #[error("{0} is an IPv4-mapped IPv6 address; write it as {1}")]
    Mapped(IpAddr, IpAddr),
}

impl FromStr for HostAddress {
    type Err = HostAddressError;

    fn from_str(text: &str) -> Result<Self, HostAddressError> {
        let syntax = || HostAddressError::Syntax(text.to_owned());
        let address: IpAddr = text.trim().parse().map_err(|_| syntax())?;
        if address.to_canonical() != address {
            return Err(HostAddressError::Mapped(address, address.to_canonical()));
        }
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || is_broadcast {
            return Err(HostAddressError::NotUnicast(address));
        }
        Ok(Self(address))
    }
}

/// An IPv4 address that hosts can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAddressIpv4(pub(crate) Ipv4Addr);

impl FromStr for HostAddressIpv4 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(HostAddress(IpAddr::V4(address))) => Ok(Self(address)),
            Ok(HostAddress(IpAddr::V6(address))) => {
                Err(format!("{address} is not an IPv4 address; expected one as in 192.0.2.1"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// An IPv6 address that hosts can have, and that means the same on every link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAddressIpv6(pub(crate) Ipv6Addr);

impl FromStr for HostAddressIpv6 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(HostAddress(IpAddr::V6(address))) if address.is_unicast_link_local() => {
                Err(format!("{address} is link-local; expected a global address"))
            }
            Ok(HostAddress(IpAddr::V6(address))) => Ok(Self(address)),
            Ok(HostAddress(IpAddr::V4(address))) => {
                Err(format!("{address} is not an IPv6 address; expected one as in 2001:db8::1"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Says what the field holds, where an AS number may be in asdot notation (RFC 5396).
const AS_NOUN: &str = "an AS number";

/// Reads a whole number from `minimum` to `maximum`; `noun` is what the field holds, as in "a port".
/// `also` is one more accepted value, which messages do not mention.
fn bounded<'de, D: Deserializer<'de>>(
    deserializer: D,
    minimum: i64,
    maximum: i64,
    noun: &'static str,
    also: Option<i64>,
) -> Result<i64, D::Error> {
    struct Bounded(i64, i64, &'static str, Option<i64>);

    impl Visitor<'_> for Bounded {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} from {} to {}", self.2, self.0, self.1)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<i64, E> {
            if (self.0..=self.1).contains(&value) || self.3 == Some(value) {
                return Ok(value);
            }
            Err(E::custom(format_args!("{value} is not allowed; expected {}", Shown(&self))))
        }

        fn visit_i128<E: Error>(self, value: i128) -> Result<i64, E> {
            Err(E::custom(format_args!("{value} is not allowed; expected {}", Shown(&self))))
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<i64, E> {
            let asdot =
                if self.2 == AS_NOUN { " (asdot HIGH.LOW is HIGH x 65536 + LOW)" } else { "" };
            Err(E::custom(format_args!("{value} is not allowed; expected {}{asdot}", Shown(&self))))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
            if self.2 == AS_NOUN
                && let Some(number) = Asn::plain(text)
            {
                return Err(E::custom(format_args!(
                    "{text} is asdot notation; expected the plain number, {number}"
                )));
            }
            let quotes = if text.parse::<i64>().is_ok() { ", without quotes" } else { "" };
            Err(E::custom(format_args!("{text:?} is text; expected {}{quotes}", Shown(&self))))
        }
    }

    struct Shown<'a>(&'a Bounded);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Visitor::expecting(self.0, f)
        }
    }

    // `any`, so that the value keeps its type and the fault can name it.
    deserializer.deserialize_any(Bounded(minimum, maximum, noun, also))
}

/// Defines a whole number with its bounds and its noun.
macro_rules! bounded_number {
    ($(#[$doc:meta])* $name:ident($type:ty), $minimum:literal, $maximum:expr, $noun:expr) => {
        bounded_number!($(#[$doc])* $name($type), $minimum, $maximum, $noun, None);
    };
    ($(#[$doc:meta])* $name:ident($type:ty), $minimum:literal, $maximum:expr, $noun:expr, $also:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) $type);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = bounded(deserializer, $minimum, $maximum, $noun, $also)?;
                <$type>::try_from(value).map(Self).map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                whole_number($minimum, $maximum)
            }
        }
    };
}

bounded_number!(
    /// The bit of a packet's mark.
    MasqueradeBit(u8), 0, 31, "a bit of the mark"
);

bounded_number!(
    /// A port that a BGPPeer may name; MetalLB's bound. 0 means "not set" in v1beta1; `bgp_peer` decides
    /// where else it may stand.
    PeerPort(u16), 1, 16_384, "a port", Some(0)
);
bounded_number!(
    /// A TCP or UDP port.
    PortNumber(u16), 1, 65_535, "a port"
);
bounded_number!(
    /// A port of a node; 0 is how the API server writes "none".
    NodePortNumber(u16), 1, 65_535, "a port", Some(0)
);
bounded_number!(
    /// How long a client stays with its endpoint, in seconds; Kubernetes' bounds.
    AffinitySeconds(u32), 1, 86_400, "a number of seconds"
);
bounded_number!(
    /// An AS number.
    AsNumber(u32), 1, 4_294_967_295, AS_NOUN
);
bounded_number!(
    /// The AS number of a router, or 0 where another field defines it.
    PeerAsNumber(u32), 0, 4_294_967_295, AS_NOUN
);
bounded_number!(
    /// How many neighbours a range may have; FRR's bound.
    ListenLimit(u32), 1, 65_535, "a number"
);
bounded_number!(
    /// How many hops away a neighbour may be.
    Hops(u8), 1, 254, "a number of hops"
);
bounded_number!(
    /// The weight that a preferred node gains.
    Weight(u8), 1, 100, "a weight"
);
bounded_number!(
    /// A BFD interval in milliseconds; MetalLB's bounds.
    IntervalMilliseconds(u32), 10, 60_000, "a number of milliseconds"
);
bounded_number!(
    /// How many missing BFD packets bring a session down.
    DetectMultiplier(u8), 2, 255, "a number"
);
bounded_number!(
    /// The priority of a pool.
    Priority(i32), -2_147_483_648, 2_147_483_647, "a number"
);
bounded_number!(
    /// How many paths to a prefix are sent.
    PathCount(u8), 1, 16, "a number of paths"
);
bounded_number!(
    /// How often our own AS may be in a path.
    OwnAsCount(u8), 1, 10, "a number"
);
bounded_number!(
    /// The number of a key of TCP-AO.
    KeyId(u8), 0, 255, "a number"
);
bounded_number!(
    /// How many extra times our AS is in a path.
    PrependCount(u8), 0, 16, "a number"
);
bounded_number!(
    /// A MULTI_EXIT_DISC.
    Metric(u32), 0, 4_294_967_295, "a number"
);
bounded_number!(
    /// A length of IPv4 prefixes.
    LengthIpv4(u8), 1, 32, "a prefix length"
);
bounded_number!(
    /// A length of IPv6 prefixes; MetalLB has no least one.
    LengthIpv6(u8), 0, 128, "a prefix length"
);
bounded_number!(
    /// A length of prefixes of either family.
    Length(u8), 0, 128, "a prefix length"
);
bounded_number!(
    /// How many prefixes there may be.
    PrefixLimit(u32), 1, 4_294_967_295, "a number"
);
bounded_number!(
    /// How much memory path attributes may take: one UPDATE at least.
    AttributeBytes(u32), 65_536, 4_294_967_295, "a number of bytes"
);
bounded_number!(
    /// A share.
    Percentage(u8), 1, 100, "a percentage"
);
bounded_number!(
    /// A LOCAL_PREF.
    LocalPreference(u32), 0, 4_294_967_295, "a number"
);

/// `linkBandwidth`: `auto`, or bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BandwidthValue(pub(crate) Bandwidth);

impl<'de> Deserialize<'de> for BandwidthValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AutoOrBits;

        fn refused<E: Error>(given: impl fmt::Display) -> E {
            let maximum = BandwidthValue::BITS_PER_SECOND_MAX;
            E::custom(format_args!(
                "{given} is not allowed; expected auto, or bits per second from 1 to {maximum}"
            ))
        }

        impl Visitor<'_> for AutoOrBits {
            type Value = BandwidthValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("auto, or bits per second")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<BandwidthValue, E> {
                match text {
                    "auto" => Ok(BandwidthValue(Bandwidth::Auto)),
                    _ => Err(refused(format_args!("{text:?}"))),
                }
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<BandwidthValue, E> {
                match u64::try_from(value) {
                    Ok(bits_per_second @ 1..=BandwidthValue::BITS_PER_SECOND_MAX) => {
                        let bandwidth = LinkBandwidth { bits_per_second };
                        Ok(BandwidthValue(Bandwidth::Fixed(bandwidth)))
                    }
                    _ => Err(refused(value)),
                }
            }

            fn visit_i128<E: Error>(self, value: i128) -> Result<BandwidthValue, E> {
                Err(refused(value))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<BandwidthValue, E> {
                Err(refused(value))
            }
        }

        deserializer.deserialize_any(AutoOrBits)
    }
}

impl BandwidthValue {
    /// More than any link, and far below where the community's floating point ends: 1 Pbit/s.
    pub(super) const BITS_PER_SECOND_MAX: u64 = 1_000_000_000_000_000;
}

/// A duration as Go writes it: `90s`, `1m30s`, `500ms`, `1.5h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoDuration(pub(crate) Duration);

/// Why a text is not a [`GoDuration`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration; expected one such as 90s, 1m30s or 500ms")]
pub(crate) struct GoDurationError(String);

impl FromStr for GoDuration {
    type Err = GoDurationError;

    fn from_str(text: &str) -> Result<Self, GoDurationError> {
        let error = || GoDurationError(text.to_owned());
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest == "0" {
            return Ok(Self(Duration::ZERO));
        }
        if rest.is_empty() {
            return Err(error());
        }
        let mut nanoseconds: u128 = 0;
        while !rest.is_empty() {
            let (part, behind) = duration_part(rest).ok_or_else(error)?;
            nanoseconds = nanoseconds.checked_add(part).ok_or_else(error)?;
            rest = behind;
        }
        // Go's maximum: about 292 years.
        let nanoseconds = i64::try_from(nanoseconds).map_err(|_| error())?;
        Ok(Self(Duration::from_nanos(nanoseconds.unsigned_abs())))
    }
}

/// One number with its unit, in nanoseconds, and what follows it.
fn duration_part(text: &str) -> Option<(u128, &str)> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at_checked(number_end)?;
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(unit_end)?;
    let scale: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    let whole: u128 = digits(whole)?;
    // Digits beyond nanoseconds have no effect, and would overflow.
    let fraction = fraction.get(..fraction.len().min(15))?;
    let divisor = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction: u128 = digits(fraction)?;
    let value = whole.checked_mul(scale)?.checked_add(fraction.checked_mul(scale)? / divisor)?;
    Some((value, rest))
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DurationText;

        impl Visitor<'_> for DurationText {
            type Value = GoDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 90s or 1m30s")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<GoDuration, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(DurationText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        let read = |text: &str| text.parse::<GoDuration>().map(|it| it.0).ok();
        assert_eq!(read("90s"), Some(Duration::from_secs(90)));
        assert_eq!(read("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(read("1.5h"), Some(Duration::from_secs(5400)));
        assert_eq!(read("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(read("1µs"), Some(Duration::from_micros(1)));
        assert_eq!(read("0"), Some(Duration::ZERO));
        for text in ["", "90", "s", "1 m", "-5s", "1d", ".s", "1..5s", "99999999999h", "1m30"] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(
            read(&format!("0.{}s", "3".repeat(500))),
            Some(Duration::from_nanos(333_333_333))
        );
    }

    #[test]
    fn only_unicast_addresses_are_hosts() {
        for text in ["0.0.0.0", "::", "224.0.0.5", "ff02::1", "255.255.255.255", "::ffff:192.0.2.1"]
        {
            assert!(text.parse::<HostAddress>().is_err(), "{text}");
        }
        assert!("127.0.0.1".parse::<HostAddress>().is_ok());
        assert!("fe80::1%eth0".parse::<HostAddress>().is_err());
    }
}
