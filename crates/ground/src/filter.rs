//! Which prefixes does a policy allow?

use std::ops::RangeInclusive;

use super::Prefix;

/// Why a prefix and two lengths are not a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the lengths {first} to {last} are not a range inside {prefix}; expected \
     {length} <= ge <= le <= {longest}",
    length = prefix.length(),
    longest = prefix.family().address_bits()
)]
pub struct PrefixRangeError {
    /// The prefix.
    pub prefix: Prefix,
    /// The shortest length given.
    pub first: u8,
    /// The longest length given.
    pub last: u8,
}

/// A prefix, with the range of lengths of the prefixes inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixRange {
    prefix: Prefix,
    lengths: RangeInclusive<u8>,
}

impl PrefixRange {
    /// As prefix lists of routers define it: without lengths only `prefix` itself; with `ge` alone up to the
    /// maximum length; with `le` alone from the length of `prefix` on.
    pub fn new(prefix: Prefix, ge: Option<u8>, le: Option<u8>) -> Result<Self, PrefixRangeError> {
        let longest = prefix.family().address_bits();
        let first = ge.unwrap_or(prefix.length());
        let last = le.unwrap_or(if ge.is_some() { longest } else { prefix.length() });
        if prefix.length() <= first && first <= last && last <= longest {
            Ok(Self { prefix, lengths: first..=last })
        } else {
            Err(PrefixRangeError { prefix, first, last })
        }
    }

    /// The prefix that contains them.
    pub fn prefix(&self) -> Prefix {
        self.prefix
    }

    /// The allowed lengths.
    pub fn lengths(&self) -> RangeInclusive<u8> {
        self.lengths.clone()
    }

    /// Whether `prefix` is in the range.
    pub fn contains(&self, prefix: Prefix) -> bool {
        self.lengths.contains(&prefix.length()) && self.prefix.contains(prefix.address())
    }
}

/// Which prefixes are allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PrefixFilter {
    /// None, the default without configuration (RFC 8212).
    #[default]
    Nothing,
    /// Those in one of the ranges.
    Listed(Vec<PrefixRange>),
    /// All.
    Everything,
}

impl PrefixFilter {
    /// Whether `prefix` is allowed.
    pub fn allows(&self, prefix: Prefix) -> bool {
        match self {
            Self::Nothing => false,
            Self::Listed(ranges) => ranges.iter().any(|range| range.contains(prefix)),
            Self::Everything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_mean_what_prefix_lists_mean() {
        let range = |ge, le| PrefixRange::new(prefix("10.0.0.0/8"), ge, le).unwrap();
        let lengths = |range: PrefixRange| {
            (8..=32)
                .filter(|length| range.contains(prefix(&format!("10.0.0.0/{length}"))))
                .collect::<Vec<_>>()
        };
        assert_eq!(lengths(range(None, None)), [8]);
        assert_eq!(lengths(range(Some(30), None)), [30, 31, 32]);
        assert_eq!(lengths(range(None, Some(10))), [8, 9, 10]);
        assert_eq!(lengths(range(Some(16), Some(16))), [16]);
        let exact = range(Some(8), Some(32));
        assert!(!exact.contains(prefix("11.0.0.0/16")));
        assert!(!exact.contains(prefix("0.0.0.0/0")));
        assert!(!exact.contains(prefix("a00::/8")));
    }

    #[test]
    fn lengths_out_of_order_are_refused() {
        for (ge, le) in [(Some(7), None), (None, Some(7)), (Some(20), Some(16)), (None, Some(33))] {
            let error = PrefixRange::new(prefix("10.0.0.0/8"), ge, le).unwrap_err();
            assert!(error.to_string().contains("8 <= ge <= le <= 32"), "{error}");
        }
        assert!(PrefixRange::new(prefix("2001:db8::/32"), Some(128), None).is_ok());
    }

    #[test]
    fn nothing_passes_where_nothing_was_said() {
        assert!(!PrefixFilter::default().allows(prefix("10.0.0.0/8")));
        assert!(PrefixFilter::Everything.allows(prefix("::/0")));
        let listed = PrefixFilter::Listed(vec![
            PrefixRange::new(prefix("10.0.0.0/8"), None, None).unwrap(),
            PrefixRange::new(prefix("::/0"), None, Some(48)).unwrap(),
        ]);
        assert!(listed.allows(prefix("2001:db8::/48")) && !listed.allows(prefix("10.0.0.0/9")));
    }
}
