//! BFDProfile: how fast a dead neighbour is noticed.

use std::num::NonZeroU8;
use std::time::Duration;

use super::ObjectName;

/// How BFD packets are signed (RFC 5880 §6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BfdAuthenticationKind {
    /// Keyed SHA1.
    Sha1,
    /// Meticulous Keyed SHA1: another sequence number in each packet.
    MeticulousSha1,
}

/// `authentication`: a key, and where its secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdAuthentication {
    /// How packets are signed.
    pub kind: BfdAuthenticationKind,
    /// The Auth Key ID.
    pub key_id: u8,
    /// The Secret.
    pub secret: ObjectName,
    /// Which value of the Secret.
    pub key: String,
}

/// A BFDProfile, with FRR's values where it says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdProfile {
    /// Its name, which peers refer to.
    pub name: ObjectName,
    /// How often packets may come, 10 ms to 60 s; 300 ms when unset.
    pub receive_interval: Duration,
    /// How often packets are sent, 10 ms to 60 s; 300 ms when unset.
    pub transmit_interval: Duration,
    /// How often echo packets come and go, 10 ms to 60 s; 50 ms when unset.
    pub echo_interval: Duration,
    /// So many missing packets end the session, 2 to 255; 3 when unset.
    pub detect_multiplier: NonZeroU8,
    /// Echo packets watch the path, too.
    pub echo_mode: bool,
    /// Never begins, only answers.
    pub passive_mode: bool,
    /// Packets over several hops with a lower TTL are dropped, 1 to 254; 254 when unset.
    pub minimum_ttl: NonZeroU8,
    /// Packets are signed.
    pub authentication: Option<BfdAuthentication>,
}
