//! The socket of `fairway show`, `clear`, `drain` and `reload`, and the text that they print.
//!
//! A request is one line of JSON, and so is the answer, but that of `fairway dump rib` and that of `fairway show` with a large
//! table; a connection may carry several. The daemon renders
//! the text, so that the client needs no knowledge of its state, and other front ends can share it: `vty`
//! does, for FRR's tools.

mod clear;
pub mod client;
mod deliveries;
pub mod drain;
mod dump;
mod listen;
mod observer;
mod order;
mod overview;
mod reload;
mod socket;
mod table;
pub mod vty;

use drain::DrainRequest;
use fairway_show::language::{ClearOrder, Completed};
use fairway_show::overview::Overview;
use fairway_show::{DrainReport, Query};
use serde::{Deserialize, Serialize};

pub(crate) use deliveries::DeliveryLine;
pub(crate) use dump::now as dump_now;
pub use dump::{DumpRequest, RIB};
pub(crate) use listen::listen as listen_at;
pub use listen::{SocketError, SocketFile, SocketMode, SocketModeError};
pub use observer::Observer;
pub use order::{ORDERS_MAX, Order, Ordered, ReloadOrder};
pub(crate) use overview::SCOPE as OVERVIEW_SCOPE;
pub(crate) use socket::answer;
pub use socket::{listen, serve};

/// The longest line that is read: a request is a few words, while an answer may be a large table.
const REQUEST_LENGTH_BYTES_MAX: usize = 4096;

/// The largest answer: a table of some fifty thousand routes.
pub(crate) const ANSWER_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

/// The request of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// `fairway show`.
    Show(Query),
    /// `fairway clear bgp`.
    Clear(ClearOrder),
    /// Tab in a shell: the values that a word may be completed to, one in each line.
    Complete(Completed),
    /// `fairway drain`.
    Drain(DrainRequest),
    /// `fairway dump`.
    Dump(DumpRequest),
    /// `fairway top`: the state of the node as one value.
    #[serde(rename_all = "camelCase")]
    Overview {
        /// As many rows of each table that grows with the cluster.
        rows_max: usize,
    },
    /// `fairway dump rib`: answered with several lines, of which the last is [`Answer::Output`].
    #[serde(rename_all = "camelCase")]
    DumpRib {
        /// `mrt` or `json`.
        format: String,
    },
    /// `fairway show proxy`, at the socket of the service proxy.
    Proxy(ProxyQuery),
    /// At the same socket: to which addresses packets are delivered, and then each change of that, a line each
    /// for as long as the connection lasts.
    Deliveries,
    /// `fairway reload`.
    #[serde(rename_all = "camelCase")]
    Reload {
        /// Folders without files are taken for empty, although they had some.
        accepts_empty: bool,
    },
}

/// Which virtual servers the service proxy shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyQuery {
    /// `NAMESPACE/NAME` of one Service; all of them without.
    pub service: Option<String>,
    /// As JSON.
    pub json: bool,
}

/// The answer of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Text to print unchanged, of which more follows.
    Piece(String),
    /// Text to print unchanged.
    Output(String),
    /// Why there is nothing to print.
    Error(String),
    /// The progress of a drain.
    Drain(DrainReport),
    /// The state of the node.
    Overview(Box<Overview>),
    /// Bytes, as base64.
    Encoded(String),
}
