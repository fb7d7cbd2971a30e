//! The socket that `fairway show` talks to, and what it prints.
//!
//! A request is one line of JSON, and so is the answer; a connection may ask again. The daemon
//! renders, so that the client knows nothing but words, and other front ends can share the text.

pub mod client;
pub mod show;
mod socket;

use serde::{Deserialize, Serialize};

use show::{Format, ShowCommand};

pub use socket::{SocketError, SocketFile, listen, serve};

/// The longest line that is read: a request is a few words, an answer may be a large table.
const REQUEST_LENGTH_BYTES_MAX: usize = 4096;

/// What a client asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// What to show.
    pub show: ShowCommand,
    /// How.
    pub format: Format,
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// To be printed as it is.
    Output(String),
    /// Why there is nothing to print.
    Error(String),
}
