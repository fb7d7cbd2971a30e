//! Communities as operators write them: `65001:100`, `no-export`, `large:65001:1:2`.

use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// Names that routers print and accept for well-known values (RFC 1997, 8326, 7999, 9494).
const WELL_KNOWN: &[(&str, u32)] = &[
    ("graceful-shutdown", 0xFFFF_0000),
    ("accept-own", 0xFFFF_0001),
    ("llgr-stale", 0xFFFF_0006),
    ("no-llgr", 0xFFFF_0007),
    ("blackhole", 0xFFFF_029A),
    ("no-export", 0xFFFF_FF01),
    ("no-advertise", 0xFFFF_FF02),
    ("local-AS", 0xFFFF_FF03),
    ("no-peer", 0xFFFF_FF04),
];

/// A four-octet community (RFC 1997).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Community(pub u32);

impl Community {
    /// Its announcer is about to go down (RFC 8326).
    pub const GRACEFUL_SHUTDOWN: Self = Self(0xFFFF_0000);
    /// From a neighbour that is gone for longer than its restart time (RFC 9494).
    pub const LLGR_STALE: Self = Self(0xFFFF_0006);
    /// Not to be retained as long-lived stale (RFC 9494).
    pub const NO_LLGR: Self = Self(0xFFFF_0007);
    /// Not to be advertised to external peers (RFC 1997).
    pub const NO_EXPORT: Self = Self(0xFFFF_FF01);
    /// Not to be advertised to any peer (RFC 1997).
    pub const NO_ADVERTISE: Self = Self(0xFFFF_FF02);
    /// Not to be advertised to external peers, including those in our confederation (RFC 1997).
    pub const NO_EXPORT_SUBCONFED: Self = Self(0xFFFF_FF03);
}

impl fmt::Display for Community {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match WELL_KNOWN.iter().find(|(_, value)| *value == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}:{}", self.0 >> 16, self.0 & 0xFFFF),
        }
    }
}

impl FromStr for Community {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some((_, value)) = WELL_KNOWN.iter().find(|(name, _)| *name == text) {
            return Ok(Self(*value));
        }
        let halves = text.split_once(':').and_then(|(high, low)| {
            Some((u32::from(high.parse::<u16>().ok()?) << 16) | u32::from(low.parse::<u16>().ok()?))
        });
        let is_large = || format!("large:{text}").parse::<LargeCommunity>().is_ok();
        halves.map(Self).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: if is_large() {
                "a community of two numbers; one of three is a large community, and is written as in \
                 large:65001:1:2"
            } else {
                "a community: two numbers from 0 to 65535 as in 65001:100, or a well-known name such as no-export"
            },
        })
    }
}

/// A twelve-octet community (RFC 8092).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LargeCommunity {
    /// The AS that defines the meaning of the other two.
    pub global: u32,
    /// First local part.
    pub local1: u32,
    /// Second local part.
    pub local2: u32,
}

impl fmt::Display for LargeCommunity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.global, self.local1, self.local2)
    }
}

impl FromStr for LargeCommunity {
    type Err = ParseError;

    /// Parses `A:B:C`, with or without the `large:` prefix of manifests.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parts = text.strip_prefix("large:").unwrap_or(text).split(':').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(global)), Some(Ok(local1)), Some(Ok(local2)), None) => {
                Ok(Self { global, local1, local2 })
            }
            _ => Err(ParseError {
                text: text.to_owned(),
                expected: "a large community: three numbers from 0 to 4294967295 as in \
                           large:65001:1:2",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 8092 §5 SHOULD: a large community is written as three decimal numbers with colons between.
    #[test]
    fn text_and_value_agree_in_both_directions() {
        for text in ["65001:100", "0:0", "no-export", "graceful-shutdown", "65535:1000"] {
            assert_eq!(text.parse::<Community>().unwrap().to_string(), text);
        }
        assert_eq!("65535:65281".parse::<Community>().unwrap().to_string(), "no-export");
        let large = "large:4200000000:1:2".parse::<LargeCommunity>().unwrap();
        assert_eq!(large.to_string(), "4200000000:1:2");
    }

    #[test]
    fn text_that_is_no_community_says_what_would_be() {
        for text in ["", "1", "65536:1", "a:b", "1:-1"] {
            let error = text.parse::<Community>().unwrap_err().to_string();
            assert!(error.contains("65001:100"), "{error}");
        }
        let error = "1:2:3".parse::<Community>().unwrap_err().to_string();
        assert!(error.contains("large:65001:1:2"), "{error}");
        assert!("large:1:2".parse::<LargeCommunity>().is_err());
        assert!("1:2:3:4".parse::<LargeCommunity>().is_err());
    }
}
