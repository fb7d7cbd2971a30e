//! Why a route is not accepted: for counters, `show` and the log.

use std::fmt;

/// Why a route of a peer is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// `toReceive` does not allow the prefix.
    Policy,
    /// Our own AS is in the path (RFC 4271 §9.1.2).
    AsLoop,
    /// The path does not begin with the AS of the external peer (RFC 4271 §6.3).
    FirstAs,
    /// We are the next hop (RFC 4271 §5.1.3).
    OwnNextHop,
    /// The next hop is on none of the networks that we share with the peer (RFC 4271 §6.3).
    ForeignNextHop,
    /// The route was only for customers, and comes back from one, or from the side (RFC 9234 §5).
    Leak,
    /// We sent the route into our AS, and a reflector gave it back (RFC 4456 §8).
    Reflected,
    /// The peer announces a great many paths to the prefix already (RFC 7911).
    TooManyPaths,
}

impl Refusal {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::AsLoop => "asLoop",
            Self::FirstAs => "firstAs",
            Self::OwnNextHop => "ownNextHop",
            Self::ForeignNextHop => "foreignNextHop",
            Self::Leak => "leak",
            Self::Reflected => "reflected",
            Self::TooManyPaths => "tooManyPaths",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Policy => "toReceive does not allow the prefix",
            Self::AsLoop => "our own AS is in the path",
            Self::FirstAs => "the path does not begin with the neighbor's AS",
            Self::OwnNextHop => "the next hop is an address of ours",
            Self::ForeignNextHop => "the next hop is on no network that we share",
            Self::Leak => "the route was only for customers (OTC): a leak",
            Self::Reflected => "a reflector gave back a route of ours",
            Self::TooManyPaths => "the neighbor announces many paths to the prefix already",
        })
    }
}
