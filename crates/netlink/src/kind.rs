//! The four tables of the kernel that a snapshot holds, and sets of them.
//!
//! Knows nothing of what is in a table. Everything in this crate uses it.

use std::fmt;

/// A table of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Interfaces.
    Link,
    /// IPv4 and IPv6 addresses of interfaces.
    Address,
    /// Routes of the main table and of VRFs.
    Route,
    /// Entries of the ARP and neighbour discovery tables.
    Neighbour,
}

impl Kind {
    /// All of them, in the order in which they are read: an address names a link, a route a VRF.
    pub const ALL: [Self; 4] = [Self::Link, Self::Address, Self::Route, Self::Neighbour];

    const fn bit(self) -> u8 {
        match self {
            Self::Link => 1,
            Self::Address => 2,
            Self::Route => 4,
            Self::Neighbour => 8,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Link => "links",
            Self::Address => "addresses",
            Self::Route => "routes",
            Self::Neighbour => "neighbors",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of tables.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u8);

impl Kinds {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `kind` is among them.
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Those of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Adds `other`.
    pub const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Each of them, in the order in which they are read.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl From<Kind> for Kinds {
    fn from(kind: Kind) -> Self {
        Self(kind.bit())
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<T: IntoIterator<Item = Kind>>(kinds: T) -> Self {
        kinds.into_iter().fold(Self::NONE, |all, kind| all.union(kind.into()))
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Kind::name).collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}
