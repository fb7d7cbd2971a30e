//! What decides how the bytes of an UPDATE are read: what both sides of a session agreed on.

use fairway_ground::{FamilySet, PeerKind};

/// The properties of the session that the meaning of an UPDATE depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateContext {
    /// iBGP or eBGP.
    pub kind: PeerKind,
    /// AS numbers have four octets.
    pub four_octet_as: bool,
    /// The families of the session; others are ignored (RFC 4760 §6).
    pub families: FamilySet,
    /// IPv4 routes may have IPv6 next hops (RFC 8950).
    pub extended_next_hop: bool,
    /// The families with path identifiers (RFC 7911).
    pub add_path: FamilySet,
}

impl UpdateContext {
    /// A session with four-octet AS numbers and both families, and no other capability.
    pub const fn new(kind: PeerKind) -> Self {
        Self {
            kind,
            four_octet_as: true,
            families: FamilySet::BOTH,
            extended_next_hop: false,
            add_path: FamilySet::EMPTY,
        }
    }
}
