//! A learned route: the attributes of a prefix, and the neighbour that announced it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{Asn, Nlri, PathId, PeerKey, PeerKind, RouterId};

use crate::PathAttributes;

/// The session that a path was learned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSource {
    /// The neighbour.
    pub key: PeerKey,
    /// The remote address of the session.
    pub address: IpAddr,
    /// iBGP or eBGP.
    pub kind: PeerKind,
    /// Its AS.
    pub remote_asn: Asn,
    /// Its BGP identifier.
    pub router_id: RouterId,
    /// It is a client of this route reflector.
    pub is_client: bool,
}

/// One path to a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The session that announced it.
    pub source: Arc<PathSource>,
    /// Its path identifier.
    pub path_id: PathId,
    /// Its attributes.
    pub attributes: Arc<PathAttributes>,
}

/// A path that a neighbour announced with new attributes, or withdrew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteChange {
    /// The path.
    pub nlri: Nlri,
    /// `None` when it was withdrawn.
    pub attributes: Option<Arc<PathAttributes>>,
}

/// The steps of route selection in order (RFC 4271 §9.1), with the names that FRR prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionStep {
    /// A path whose next hop this machine cannot reach is not used (§9.1.2).
    NextHop,
    /// Routes that this node originates are preferred to all received ones.
    Originated,
    /// A long-lived stale path is the last resort (RFC 9494 §4.4).
    LongLivedStale,
    /// The highest LOCAL_PREF (§9.1.1).
    LocalPref,
    /// The fewest hops (§9.1.2.2 a).
    AsPathLength,
    /// The lowest ORIGIN (§9.1.2.2 b).
    Origin,
    /// The lowest MULTI_EXIT_DISC among paths through the same neighbouring AS (§9.1.2.2 c).
    MultiExitDiscriminator,
    /// eBGP before iBGP (§9.1.2.2 d).
    PeerKind,
    /// The lowest BGP identifier (§9.1.2.2 f).
    RouterId,
    /// The lowest address (§9.1.2.2 g).
    PeerAddress,
    /// The lowest path identifier, between paths of one neighbour (RFC 7911).
    PathId,
}

impl fmt::Display for DecisionStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NextHop => "Next Hop",
            Self::Originated => "Weight",
            Self::LongLivedStale => "Path Staleness",
            Self::LocalPref => "Local Pref",
            Self::AsPathLength => "AS Path",
            Self::Origin => "Origin",
            Self::MultiExitDiscriminator => "MED",
            Self::PeerKind => "Peer Type",
            Self::RouterId => "Router ID",
            Self::PeerAddress => "Neighbor IP",
            Self::PathId => "Nothing left to compare",
        })
    }
}
