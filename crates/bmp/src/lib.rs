//! What BMP stations are told of the sessions and routes of a node (RFC 7854, RFC 8671, RFC 9069).
//!
//! [`message`] has the messages as bytes; [`Station`] is the machine of one station: when it is connected to, what waits for
//! it, and when it is given up. Pure: `now` is an argument. Knows no session of BGP, no socket and no clock. Called by
//! `fairway-sessions`, which has those.

pub mod message;
mod station;

pub use station::{
    Action, CHUNK_BYTES_MAX, Event, QUEUE_BYTES_MAX, Report, STALL_WAIT, Station, StationView,
    Tables,
};
