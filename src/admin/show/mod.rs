//! What `fairway show` prints: FRR's words where FRR has them, kubectl's habits elsewhere.
//!
//! ```text
//!  Snapshot ─► render ─┬─► summary, neighbors, table, peer_routes  (as FRR 8.4)
//!                      └─► services, pools, config                 (ours)
//! ```
//!
//! Pure: a snapshot and a command in, text or JSON out. Knows no clock, no socket and no backend,
//! and never prints a password. Keys and columns that FRR has and a snapshot cannot answer are
//! left out; each module names its own. All output ends with a newline, unless it is empty.

mod capabilities;
mod columns;
mod config;
mod entry;
mod hex;
mod instance;
mod neighbor;
mod neighbors;
mod neighbors_json;
mod neighbors_text;
mod object;
mod peer_routes;
mod pools;
mod reset;
mod route;
mod services;
mod summary;
mod table;
mod time;

#[cfg(test)]
mod tests;

use fairway_sessions::backend::{BgpView, ViewScope};
use fairway_sessions::types::{AddressFamily, RouterId};
use serde::{Deserialize, Serialize};

use crate::allocator::Outcomes;
use crate::model::{ClusterIndex, Node};
use crate::plan::NodePlan;
use crate::resources::{Finding, StaleObject};
pub(super) use neighbor::called as neighbors_called;
use peer_routes::Direction;

/// Everything that can be shown, as it was at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Unix time.
    pub now_epoch_seconds: u64,
    /// The node this daemon runs on.
    pub node: &'a Node,
    /// The BGP identifier towards peers that set none.
    pub router_id: RouterId,
    /// What the BGP backend does and sees.
    pub bgp: &'a BgpView,
    /// The objects in force.
    pub index: &'a ClusterIndex,
    /// The addresses of the Services.
    pub outcomes: &'a Outcomes,
    /// What this node should do.
    pub plan: &'a NodePlan,
    /// What is wrong or odd in the files.
    pub findings: &'a [Finding],
    /// Objects of which an earlier version is in force than their files say.
    pub stale: &'a [StaleObject],
    /// The files and folders that are read.
    pub sources: &'a [String],
}

/// What to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShowCommand {
    /// `show bgp summary`.
    BgpSummary,
    /// `show bgp neighbors [PEER]`.
    BgpNeighbors {
        /// An address or the name of a BGPPeer; everybody when absent.
        peer: Option<String>,
    },
    /// `show bgp neighbors PEER advertised-routes`.
    BgpAdvertisedRoutes {
        /// An address or the name of a BGPPeer.
        peer: String,
    },
    /// `show bgp neighbors PEER received-routes`.
    BgpReceivedRoutes {
        /// An address or the name of a BGPPeer.
        peer: String,
    },
    /// `show bgp ipv4|ipv6 unicast [PREFIX]`.
    BgpUnicast {
        /// The table.
        family: AddressFamily,
        /// A prefix, or an address inside one; the whole table when absent.
        prefix: Option<String>,
    },
    /// `show services`.
    Services,
    /// `show pools`.
    Pools,
    /// `show config`.
    Config,
}

impl ShowCommand {
    /// How much of the backend's state the answer needs.
    pub fn scope(&self) -> ViewScope {
        let sessions = ViewScope::SESSIONS;
        match self {
            Self::BgpSummary | Self::BgpNeighbors { .. } | Self::Pools | Self::Config => sessions,
            Self::BgpAdvertisedRoutes { .. } | Self::Services => {
                ViewScope { advertised: true, ..sessions }
            }
            Self::BgpReceivedRoutes { .. } => ViewScope { received: true, ..sessions },
            Self::BgpUnicast { prefix: None, .. } => {
                ViewScope { originated: true, learned: true, ..sessions }
            }
            Self::BgpUnicast { prefix: Some(_), .. } => {
                ViewScope { received: false, ..ViewScope::EVERYTHING }
            }
        }
    }
}

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Why there is nothing to show. Where FRR answers programs with an object instead, so do we:
/// then the JSON is no error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShowError {
    /// Nobody is called that, by address or by name.
    #[error("% No such neighbor in this view/vrf")]
    NoSuchNeighbor,
    /// No route covers it.
    #[error("% Network not in table")]
    NetworkNotInTable,
    /// What was given as a prefix is none, or is of the other family.
    #[error("% Malformed address: {text:?} is neither a prefix nor an address of {family}")]
    MalformedPrefix {
        /// What was given.
        text: String,
        /// The table that was asked.
        family: AddressFamily,
    },
}

/// The answer to `command`, to be printed as it is.
pub fn render(
    command: &ShowCommand,
    format: Format,
    snapshot: &Snapshot<'_>,
) -> Result<String, ShowError> {
    match (command, format) {
        (ShowCommand::BgpSummary, Format::Text) => Ok(summary::text(snapshot)),
        (ShowCommand::BgpSummary, Format::Json) => Ok(pretty(summary::json(snapshot))),
        (ShowCommand::BgpNeighbors { peer }, Format::Text) => {
            neighbors::text(snapshot, peer.as_deref())
        }
        (ShowCommand::BgpNeighbors { peer }, Format::Json) => {
            Ok(pretty(neighbors::json(snapshot, peer.as_deref())))
        }
        (ShowCommand::BgpAdvertisedRoutes { peer }, format) => {
            peer_routes(snapshot, peer, Direction::Advertised, format)
        }
        (ShowCommand::BgpReceivedRoutes { peer }, format) => {
            peer_routes(snapshot, peer, Direction::Received, format)
        }
        (ShowCommand::BgpUnicast { family, prefix: None }, Format::Text) => {
            Ok(table::text(snapshot, *family))
        }
        (ShowCommand::BgpUnicast { family, prefix: None }, Format::Json) => {
            Ok(pretty(table::json(snapshot, *family)))
        }
        (ShowCommand::BgpUnicast { family, prefix: Some(prefix) }, Format::Text) => {
            entry::text(snapshot, *family, prefix)
        }
        (ShowCommand::BgpUnicast { family, prefix: Some(prefix) }, Format::Json) => {
            entry::json(snapshot, *family, prefix).map(pretty)
        }
        (ShowCommand::Services, Format::Text) => Ok(services::text(snapshot)),
        (ShowCommand::Services, Format::Json) => Ok(pretty(services::json(snapshot))),
        (ShowCommand::Pools, Format::Text) => Ok(pools::text(snapshot)),
        (ShowCommand::Pools, Format::Json) => Ok(pretty(pools::json(snapshot))),
        (ShowCommand::Config, Format::Text) => Ok(config::text(snapshot)),
        (ShowCommand::Config, Format::Json) => Ok(pretty(config::json(snapshot))),
    }
}

fn peer_routes(
    snapshot: &Snapshot<'_>,
    peer: &str,
    direction: Direction,
    format: Format,
) -> Result<String, ShowError> {
    match format {
        Format::Text => peer_routes::text(snapshot, peer, direction),
        Format::Json => Ok(pretty(peer_routes::json(snapshot, peer, direction))),
    }
}

fn pretty(value: impl Into<serde_json::Value>) -> String {
    format!("{:#}\n", value.into())
}
