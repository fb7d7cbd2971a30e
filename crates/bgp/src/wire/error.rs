//! Errors that end a session: each has the NOTIFICATION to send.
//!
//! Attribute errors that do not end the session (RFC 7606) are in [`super::attribute`].

use super::{MessageType, Notification};
use fairway_ground::{RemoteAs, Role};

/// A message that is not acceptable. The text has the received and the expected value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// RFC 4271 §6.1: the marker is not all ones.
    #[error("message header: the marker is not all ones")]
    NotSynchronised,
    /// RFC 4271 §6.1: the length is out of range for the type.
    #[error("message header: invalid length {length} for {what}")]
    BadLength {
        /// As received.
        length: u16,
        /// The message with that length.
        what: &'static str,
    },
    /// RFC 4271 §6.1: unknown type.
    #[error("message header: unknown message type {0}")]
    BadType(u8),
    /// RFC 4271 §6.2: the version.
    #[error("OPEN: version {0}; expected 4")]
    Version(u8),
    /// RFC 4271 §6.2: another AS than configured.
    #[error("OPEN: the neighbor says it is AS {received}; expected {expected}")]
    PeerAs {
        /// From its OPEN.
        received: u32,
        /// Configured.
        expected: RemoteAs,
    },
    /// RFC 6286 §2.2: zero, or ours on iBGP.
    #[error("OPEN: BGP identifier {0} is {1}")]
    BgpIdentifier(std::net::Ipv4Addr, &'static str),
    /// RFC 4271 §6.2: an optional parameter other than capabilities.
    #[error("OPEN: optional parameter {0} is not supported; expected 2 (capabilities)")]
    OptionalParameter(u8),
    /// RFC 4271 §6.2: 1 or 2 seconds.
    #[error("OPEN: a hold time of {0} s; expected 0 or at least 3 s")]
    HoldTime(u16),
    /// RFC 5492 §5: no address family in common. The bytes are the capabilities that the neighbour lacks.
    #[error("OPEN: no address family in common")]
    NoCommonFamily(Vec<u8>),
    /// RFC 9234 §4.2: the neighbour's role does not match ours.
    #[error("OPEN: the neighbor says {received}; expected {expected}")]
    Role {
        /// Its role, or the lack of one.
        received: String,
        /// The role that would match ours.
        expected: Role,
    },
    /// RFC 4271 §6.2: lengths that contradict each other.
    #[error("OPEN: malformed: {0}")]
    MalformedOpen(&'static str),
    /// RFC 4271 §6.3 and RFC 7606 §3: lengths that make it impossible to find the routes of the UPDATE.
    #[error("UPDATE: malformed attribute list: {0}")]
    MalformedAttributeList(&'static str),
    /// RFC 4271 §6.3: a well-known attribute that is unknown.
    #[error("UPDATE: unknown well-known attribute {code}")]
    UnknownWellKnown {
        /// Its type code.
        code: u8,
        /// The whole attribute.
        attribute: Vec<u8>,
    },
    /// RFC 7606 §5.3 and §7.11: MP_REACH_NLRI or MP_UNREACH_NLRI that cannot be parsed.
    #[error("UPDATE: attribute {code}: {what}")]
    OptionalAttribute {
        /// 14 or 15.
        code: u8,
        /// What is wrong.
        what: &'static str,
        /// The whole attribute.
        attribute: Vec<u8>,
    },
    /// RFC 4271 §6.3: prefixes that cannot be parsed.
    #[error("UPDATE: malformed prefix: {0}")]
    InvalidNetworkField(&'static str),
    /// RFC 6608: a message that the state does not allow.
    #[error("{} is not allowed in {state}", message.name())]
    UnexpectedMessage {
        /// The received message.
        message: MessageType,
        /// Our state.
        state: &'static str,
        /// RFC 6608 §3: 1 OpenSent, 2 OpenConfirm, 3 Established.
        subcode: u8,
    },
    /// RFC 7313 §5.
    #[error("ROUTE-REFRESH: a length of {0}; expected 4")]
    RouteRefreshLength(usize, Vec<u8>),
    /// RFC 9687 §4.
    #[error("send hold timer expired: the neighbor does not read our messages")]
    SendHoldTimerExpired,
    /// RFC 4271 §6.5.
    #[error("hold timer expired: no message received for {0} s")]
    HoldTimerExpired(u16),
}

impl WireError {
    /// The NOTIFICATION to send.
    pub fn notification(&self) -> Notification {
        let (code, subcode, data) = match self {
            Self::NotSynchronised => (1, 1, Vec::new()),
            Self::BadLength { length, .. } => (1, 2, length.to_be_bytes().to_vec()),
            Self::BadType(kind) => (1, 3, vec![*kind]),
            Self::Version(_) => (2, 1, 4_u16.to_be_bytes().to_vec()),
            Self::PeerAs { .. } => (2, 2, Vec::new()),
            Self::BgpIdentifier(..) => (2, 3, Vec::new()),
            Self::OptionalParameter(_) => (2, 4, Vec::new()),
            Self::HoldTime(_) => (2, 6, Vec::new()),
            Self::NoCommonFamily(capability) => (2, 7, capability.clone()),
            Self::Role { .. } => (2, 11, Vec::new()),
            Self::MalformedOpen(_) => (2, 0, Vec::new()),
            Self::MalformedAttributeList(_) => (3, 1, Vec::new()),
            Self::UnknownWellKnown { attribute, .. } => (3, 2, attribute.clone()),
            Self::OptionalAttribute { attribute, .. } => (3, 9, attribute.clone()),
            Self::InvalidNetworkField(_) => (3, 10, Vec::new()),
            Self::UnexpectedMessage { message, subcode, .. } => (5, *subcode, vec![message.code()]),
            Self::RouteRefreshLength(_, message) => (7, 1, message.clone()),
            Self::HoldTimerExpired(_) => (4, 0, Vec::new()),
            Self::SendHoldTimerExpired => (8, 0, Vec::new()),
        };
        Notification { code, subcode, data }
    }
}
