//! The words of the field, as values that hold their own rules.
//!
//! Time as pure code sees it, seeded randomness, addresses, AS numbers, names, families, keys. Every
//! crate imports this one; it imports no other crate of Fairway, and knows no bytes on a wire, no
//! session, no file and no clock. It changes rarely, so that a change elsewhere rebuilds little.

mod abstention;
mod allowance;
mod asn;
mod bfd;
mod bmp_station;
mod bound;
pub mod columns;
mod community;
mod expression;
mod extended_community;
mod family;
mod filter;
mod graceful_restart;
mod interface;
mod mac;
mod next_hop;
mod nlri;
mod origin_validation;
mod parse_error;
mod password;
mod peer;
mod peer_key;
mod prefix;
mod printable;
mod rng;
mod roa_payload;
mod role;
mod route_rule;
mod rpki_server;
mod shutdown;
mod tcp_ao;
mod time;
mod timers;
mod utc;

pub use abstention::Abstention;
pub use allowance::{Allowance, Allowances, nonzero};
pub use asn::{AsPath, AsPathSegment, Asn, ClusterId, RouterId};
pub use bfd::{BfdAuthentication, BfdAuthenticationKind, BfdKeyError, BfdPath, BfdSettings};
pub use bmp_station::{BmpStation, BmpTables};
pub use bound::Bound;
pub use community::{Community, LargeCommunity};
pub use expression::{AsPathPattern, compile_expression};
pub use extended_community::{ExtendedCommunity, LinkBandwidth};
pub use family::{AddressFamily, FamilySet, PerFamily};
pub use filter::{PrefixFilter, PrefixRange, PrefixRangeError};
pub use graceful_restart::GracefulRestart;
pub use interface::InterfaceName;
pub use mac::MacAddress;
pub use next_hop::{ChosenNextHops, LocalNextHops, NextHop};
pub use nlri::{Nlri, PathId};
pub use origin_validation::OriginValidation;
pub use parse_error::ParseError;
pub use password::{Password, PasswordError};
pub use peer::{
    AddPath, ClientKind, ImportPolicy, ListenRange, MaximumPrefixes, PeerKind, RemoteAs,
};
pub use peer_key::{PeerKey, Remote};
pub use prefix::{Prefix, PrefixError};
pub use printable::{printable, printable_json, printable_lines};
pub use rng::Rng;
pub use roa_payload::RoaPayload;
pub use role::Role;
pub use route_rule::{
    Communities, ROUTE_RULES_MAX, RouteMatch, RouteRule, RouteSettings, RuleAction,
};
pub use rpki_server::RpkiServer;
pub use shutdown::{ShutdownMessage, ShutdownMessageError};
pub use tcp_ao::{AoAlgorithm, AoKey, AoKeyError, AoKeys};
pub use time::Instant;
pub use timers::{HoldTime, HoldTimeError};
pub use utc::Utc;
