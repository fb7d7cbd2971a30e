//! Why a route is rejected: for counters, `show` and the log.

use std::fmt;
use std::sync::Arc;

/// Why a route of a peer is rejected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// `toReceive` does not allow the prefix.
    Policy,
    /// Our own AS is in the path (RFC 4271 §9.1.2).
    AsLoop,
    /// The path does not start with the AS of the external peer (RFC 4271 §6.3).
    FirstAs,
    /// We are the next hop (RFC 4271 §5.1.3).
    OwnNextHop,
    /// The next hop is not on a network that we share with the peer (RFC 4271 §6.3).
    ForeignNextHop,
    /// A route leak: ONLY_TO_CUSTOMER is set, and it was received from a customer or a peer (RFC 9234 §5).
    Leak,
    /// We sent the route into our AS, and a route reflector returned it (RFC 4456 §8).
    Reflected,
    /// The route has passed our cluster (RFC 4456 §8).
    ClusterLoop,
    /// A rule of `toReceive` rejects it.
    Rule {
        /// Its place among them, from 0.
        place: u8,
        /// Its name, if it has one.
        name: Option<Arc<str>>,
    },
    /// The peer already announces the maximum number of paths to the prefix (RFC 7911).
    TooManyPaths,
}

impl Refusal {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::AsLoop => "asLoop",
            Self::FirstAs => "firstAs",
            Self::OwnNextHop => "ownNextHop",
            Self::ForeignNextHop => "foreignNextHop",
            Self::Leak => "leak",
            Self::Reflected => "reflected",
            Self::ClusterLoop => "clusterLoop",
            Self::Rule { .. } => "rule",
            Self::TooManyPaths => "tooManyPaths",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Rule { place, name } = self {
            write!(f, "rule {}", place.saturating_add(1))?;
            name.iter().try_for_each(|name| write!(f, " ({name})"))?;
        }
        f.write_str(match self {
            Self::Rule { .. } => " of toReceive rejects it",
            Self::Policy => "toReceive does not allow the prefix",
            Self::AsLoop => "our own AS is in the path",
            Self::FirstAs => "the path does not start with the neighbor's AS",
            Self::OwnNextHop => "the next hop is our own address",
            Self::ForeignNextHop => "the next hop is not on a network shared with the neighbor",
            Self::Leak => "route leak: ONLY_TO_CUSTOMER (OTC) is set",
            Self::Reflected => "our own route, returned by a route reflector",
            Self::ClusterLoop => "our own cluster ID is in the cluster list",
            Self::TooManyPaths => "too many paths to the prefix from the neighbor",
        })
    }
}
