//! The socket that `fairway show`, `clear` and `drain` talk to, and what they print.
//!
//! A request is one line of JSON, and so is the answer; a connection may ask again. The daemon
//! renders, so that the client knows nothing but words, and other front ends can share the text:
//! `vty` does, for those who know FRR.

mod clear;
pub mod client;
pub mod drain;
mod listen;
mod observer;
mod socket;
pub mod vty;

use drain::DrainRequest;
use fairway_seam::Clear;
use fairway_show::{DrainReport, Format, ShowCommand};
use serde::{Deserialize, Serialize};

pub use drain::{ORDERS_MAX, Order};
pub(crate) use listen::listen as listen_at;
pub use listen::{SocketError, SocketFile, SocketMode, SocketModeError};
pub use observer::Observer;
pub use socket::{listen, serve};

/// The longest line that is read: a request is a few words, an answer may be a large table.
const REQUEST_LENGTH_BYTES_MAX: usize = 4096;

/// What a client asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// `fairway show`.
    Show {
        /// What.
        what: ShowCommand,
        /// For whom.
        format: Format,
    },
    /// `fairway clear bgp`.
    Clear {
        /// An address, the name of a BGPPeer, or `*` for all.
        peer: String,
        /// What is done.
        how: Clear,
    },
    /// `fairway drain`.
    Drain(DrainRequest),
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// To be printed as it is.
    Output(String),
    /// Why there is nothing to print.
    Error(String),
    /// How far a drain has come.
    Drain(DrainReport),
}
