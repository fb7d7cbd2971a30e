//! The vocabulary: values that are valid by construction, so that they need no second check.
//!
//! Knows no bytes, no session and no user. Imported by everything; imports nothing of ours.

mod asn;
mod attributes;
mod bfd;
mod community;
mod extended_community;
mod family;
mod filter;
mod graceful_restart;
mod interface;
mod next_hop;
mod nlri;
mod password;
mod path;
mod peer;
mod peer_change;
mod peer_key;
mod prefix;
mod refusal;
mod role;
mod shutdown;
mod tcp_ao;
mod timers;

pub use asn::{AsPath, AsPathSegment, Asn, RouterId};
pub use attributes::{Aggregator, Origin, PathAttributes, UnknownAttribute};
pub use bfd::{BfdAuthentication, BfdAuthenticationKind, BfdKeyError, BfdPath, BfdSettings};
pub use community::{Community, LargeCommunity};
pub use extended_community::{ExtendedCommunity, LinkBandwidth};
pub use family::{AddressFamily, FamilySet, PerFamily};
pub use filter::{PrefixFilter, PrefixRange, PrefixRangeError};
pub use graceful_restart::GracefulRestart;
pub use interface::InterfaceName;
pub use next_hop::{LocalNextHops, NextHop};
pub use nlri::{Nlri, PathId};
pub use password::{Password, PasswordError};
pub use path::{DecisionStep, Path, PathSource, RouteChange};
pub use peer::{
    AddPath, ChosenNextHops, ImportPolicy, ListenRange, MaximumPrefixes, PeerBfd, PeerConfig,
    PeerKind, RemoteAs,
};
pub use peer_change::{ChangeEffect, PeerSetting};
pub use peer_key::{PeerKey, Remote};
pub use prefix::{Prefix, PrefixError};
pub use refusal::Refusal;
pub use role::Role;
pub use shutdown::{ShutdownMessage, ShutdownMessageError};
pub use tcp_ao::{AoAlgorithm, AoKey, AoKeyError, AoKeys};
pub use timers::{HoldTime, HoldTimeError};

/// A text that is not a valid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseError {
    /// The given text.
    pub text: String,
    /// The expected form, as in "an AS number from 1 to 4294967295".
    pub expected: &'static str,
}
