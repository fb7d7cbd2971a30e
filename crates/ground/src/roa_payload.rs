//! What a Route Origin Authorization says of one prefix, as an RPKI cache has validated it (RFC 6811 §2).

use super::Prefix;

/// An AS may originate a prefix, and prefixes in it up to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoaPayload {
    /// The prefix.
    pub prefix: Prefix,
    /// The longest prefix in it, in bits; not less than its own length.
    pub length_max: u8,
    /// The AS; 0 stands for none (RFC 6483 §4).
    pub asn: u32,
}
