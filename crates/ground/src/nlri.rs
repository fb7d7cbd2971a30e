//! Network layer reachability information of an UPDATE: a prefix, or one of several paths to it.

use std::fmt;

use super::Prefix;

/// Distinguishes several paths to one prefix in one direction of one session (RFC 7911 §3). The number has no
/// other meaning.
///
/// Stored as octets: a `u32` would be aligned and make every route of every table larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathId([u8; 4]);

impl PathId {
    /// The identifier of every path in a session without path identifiers. In a session with them it is a
    /// number like any other.
    pub const NONE: Self = Self([0; 4]);
    /// The last one.
    pub const MAX: Self = Self([u8::MAX; 4]);

    /// The path identifier `number`.
    pub const fn new(number: u32) -> Self {
        Self(number.to_be_bytes())
    }

    /// Its number.
    pub const fn get(self) -> u32 {
        u32::from_be_bytes(self.0)
    }
}

impl fmt::Debug for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathId({self})")
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// A prefix with the identifier of one path to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nlri {
    /// The prefix.
    pub prefix: Prefix,
    /// Which path.
    pub path_id: PathId,
}

impl From<Prefix> for Nlri {
    /// The only path of a session that sends no identifiers.
    fn from(prefix: Prefix) -> Self {
        Self { prefix, path_id: PathId::NONE }
    }
}

impl fmt::Display for Nlri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path_id {
            PathId::NONE => self.prefix.fmt(f),
            path_id => write!(f, "{} path {path_id}", self.prefix),
        }
    }
}

/// A prefix by itself is a route without a path identifier.
impl std::str::FromStr for Nlri {
    type Err = super::PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Prefix::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_ordered_by_prefix_and_then_by_number() {
        let nlri =
            |text: &str, number| Nlri { path_id: PathId::new(number), ..text.parse().unwrap() };
        let sorted = [
            nlri("10.0.0.0/8", 0),
            nlri("10.0.0.0/8", 2),
            nlri("10.0.0.0/8", 256),
            nlri("10.0.0.0/8", u32::MAX),
            nlri("11.0.0.0/8", 1),
        ];
        assert!(sorted.is_sorted());
        assert_eq!(sorted[3].path_id, PathId::MAX);
        assert_eq!(Nlri::from(sorted[0].prefix), sorted[0]);
    }

    #[test]
    fn an_identifier_costs_four_octets_and_no_padding() {
        assert_eq!(size_of::<Nlri>(), size_of::<Prefix>() + 4);
    }
}
