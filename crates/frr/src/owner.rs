//! Whose configuration is it? The names that Fairway creates in FRR.
//!
//! Every object of ours carries its owner in its name, so that ownership is readable from FRR alone: the disk
//! of a node may be lost. Knows no configuration. Called by `render`, [`crate::difference`] and
//! [`crate::application`].

use std::fmt;
use std::str::FromStr;

/// How all names begin, of each owner.
pub const MARK: &str = "fairway-";
/// How names began before they had an owner.
pub const LEGACY_MARK: &str = "FW-";
/// The BGP instance that has our neighbours where somebody else has the default one.
pub const VIEW: &str = "fairway";
/// Hexadecimal digits of an owner.
const DIGITS: usize = 8;

/// The Fairway of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Owner(u32);

/// Not an owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the {DIGITS} hexadecimal digits behind `{MARK}` in FRR's configuration")]
pub struct OwnerError;

impl Owner {
    /// The one on this node. The same after a restart, and on a new disk.
    pub fn of_node(name: &str) -> Self {
        Self(Hash::of(name, 0).short())
    }

    /// How its names begin.
    pub fn mark(self) -> String {
        format!("{MARK}{self}-")
    }

    /// The owner of an object of this name.
    pub fn in_name(name: &str) -> Option<Self> {
        let (digits, _) = name.strip_prefix(MARK)?.split_once('-')?;
        digits.parse().ok()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl FromStr for Owner {
    type Err = OwnerError;

    fn from_str(text: &str) -> Result<Self, OwnerError> {
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let is_whole = text.len() == DIGITS && text.bytes().all(is_digit);
        let number = is_whole.then(|| u32::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or(OwnerError)
    }
}

/// FNV-1a, 64 bits: the same in every version and on every machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash(u64);

impl Hash {
    /// The hash of `text`; a different one for each `attempt`.
    pub(crate) fn of(text: &str, attempt: u32) -> Self {
        const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01B3;
        let salt = attempt.to_be_bytes();
        let salt: &[u8] = if attempt == 0 { &[] } else { &salt };
        let bytes = text.bytes().chain(salt.iter().copied());
        Self(bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)))
    }

    /// Folded to 32 bits.
    pub(crate) fn short(self) -> u32 {
        let [a, b, c, d, e, f, g, h] = self.0.to_be_bytes();
        u32::from_be_bytes([a ^ e, b ^ f, c ^ g, d ^ h])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_owner() {
        let owner = Owner::of_node("node-a");
        assert_ne!(owner, Owner::of_node("node-b"));
        let name = format!("{}in-192.0.2.1", owner.mark());
        assert_eq!(Owner::in_name(&name), Some(owner));
        assert_eq!(owner.to_string().parse(), Ok(owner));
        for other in
            ["fairway", "fairway-in-192.0.2.1", "fairway-1234567-in", "FW-in", "fairway-0000000G-"]
        {
            assert_eq!(Owner::in_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_hash_is_that_of_the_published_test_vectors() {
        assert_eq!(Hash::of("", 0).0, 0xCBF2_9CE4_8422_2325);
        assert_eq!(Hash::of("foobar", 0).0, 0x8594_4171_F739_67E8);
        assert_ne!(Hash::of("foobar", 1).short(), Hash::of("foobar", 0).short());
    }
}
