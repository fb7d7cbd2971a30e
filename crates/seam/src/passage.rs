//! Whether a received route is passed on to a peer, and what decided that.

use std::fmt;
use std::sync::Arc;

/// A rule of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleName {
    /// Its place among those of its direction, from 0.
    pub place: u8,
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
}

/// What becomes of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// It is passed on; the rule of `toAdvertise` that accepts it, if one does.
    Passed(Option<RuleName>),
    /// It is not.
    Withheld(Withheld),
}

/// Why a route is not passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withheld {
    /// It came from this peer.
    FromPeer,
    /// It came from an internal peer, and this is another one (RFC 4271 §9.2.1, RFC 4456 §6).
    Internal,
    /// `toAdvertise` does not allow the prefix.
    Prefix,
    /// Its communities forbid it (RFC 1997).
    Communities,
    /// It would be a route leak (RFC 9234 §5).
    Leak,
    /// A rule of `toAdvertise` rejects it.
    Rule(RuleName),
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.place.saturating_add(1))?;
        self.name.iter().try_for_each(|name| write!(f, " ({name})"))
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FromPeer => "it came from this neighbor",
            Self::Internal => "it came from another internal neighbor, and neither is a client",
            Self::Prefix => "toAdvertise does not allow the prefix",
            Self::Communities => "its communities forbid it",
            Self::Leak => "route leak: ONLY_TO_CUSTOMER (OTC) is set",
            Self::Rule(rule) => return write!(f, "{rule} of toAdvertise rejects it"),
        })
    }
}
