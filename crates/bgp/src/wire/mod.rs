//! Decodes and encodes messages. Knows no session, timer or route: what was negotiated is an argument, and
//! every error has its NOTIFICATION.
//!
//! | layer | module |
//! |---|---|
//! | stream to messages | [`header`] |
//! | OPEN and its capabilities | [`open`], [`capability`] |
//! | UPDATE: envelope, attributes, prefixes | [`update`], [`attribute`], [`nlri`], [`as_path`] |
//! | UPDATE for sending | [`announce`] |
//! | NOTIFICATION | [`notification`] |
//! | ROUTE-REFRESH | [`route_refresh`] |
//!
//! zettabgp decodes and encodes the values of single attributes. It trusts its input, so its decoders receive
//! only values that [`attribute`] has validated; everything around them is our own code. All length
//! arithmetic is checked: clippy rejects the rest in this module.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod announce;
pub mod as_path;
pub mod attribute;
pub mod capability;
mod context;
mod cursor;
pub mod error;
pub mod header;
pub mod known;
pub mod nlri;
pub mod notification;
pub mod open;
pub mod route_refresh;
pub mod update;

pub use context::UpdateContext;
pub use error::WireError;
pub use fairway_seam::capability::{
    AddPathOffer, AddressFamilyPair, Capability, KeptFamily, LongLivedOffer, NextHopEncoding,
    RestartOffer,
};
pub use header::{Framing, MessageType, RawMessage};
pub use known::KnownAttributes;
pub use notification::Notification;
pub use open::Open;
pub use route_refresh::RouteRefresh;
pub use update::Update;

use cursor::Reader;

/// Bytes in a message header (RFC 4271 §4.1).
pub const HEADER_LENGTH_BYTES: usize = 19;

/// The largest message without RFC 8654 (RFC 4271 §4.1).
pub const MESSAGE_LENGTH_BYTES_MAX: usize = 4096;

/// The largest message with RFC 8654, except for OPEN and KEEPALIVE.
pub const EXTENDED_MESSAGE_LENGTH_BYTES_MAX: usize = 65_535;
