//! What `fairway show` prints: FRR's words where FRR has them, kubectl's habits elsewhere.
//!
//! ```text
//!  words ─► language ─► Query
//!                         ▼
//!          Snapshot ─► render ─┬─► summary, neighbors, table, peer_routes, ...  (as FRR 8.4)
//!                              └─► services, explain, pools, layer2, config     (ours)
//! ```
//!
//! Pure: a snapshot and a command in, text or JSON out. Knows no clock, no socket and no backend,
//! and never prints a password. Keys and columns that FRR has and a snapshot cannot answer are
//! left out; each module names its own. All output ends with a newline, unless it is empty.

mod add_path;
mod bfd;
mod bmp;
mod capabilities;
mod command;
pub mod condition;
mod config;
mod document;
mod drain;
mod drain_report;
mod entry;
mod explain;
mod family_key;
mod graceful_restart;
mod hex;
mod instance;
mod kernel_routes;
pub mod language;
mod layer2;
mod members;
mod neighbor;
mod neighbors;
mod neighbors_json;
mod neighbors_text;
mod next_hops;
mod object;
mod offer;
pub mod overview;
mod path_next_hops;
mod peer_bfd;
mod peer_routes;
mod pools;
mod prefix_counts;
mod query;
mod reset;
mod route;
mod router;
mod rpki;
mod services;
pub mod side_by_side;
mod statistics;
mod summary;
mod table;
mod time;
mod told;
mod version;
mod vrf;
pub mod vty;

#[cfg(test)]
pub(crate) mod tests;

pub use command::{
    BfdDetail, Format, PeerRoutes, ShowCommand, SummaryFamilies, SummaryFilter, TableFilter,
};
pub use drain_report::DrainReport;
pub use explain::Explained;

use document::{Document, Text};
use fairway_allocator::Outcomes;
use fairway_ground::{AddressFamily, RouterId, columns};
use fairway_model::{ClusterIndex, Node};
use fairway_node::drain::DrainStatus;
use fairway_node::history::History;
use fairway_plan::NodePlan;
use fairway_resources::{Finding, StaleObject};
use fairway_seam::{BgpView, Layer2View, MemberStatus};
pub use instance::VRF_DEFAULT;
pub use neighbor::{called as neighbors_called, remote_asn};
pub use query::{Query, VrfSelection};
use table::Selection;
pub use time::clock;

/// The state of the daemon at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Unix time.
    pub now_epoch_seconds: u64,
    /// The start of the daemon, in Unix time.
    pub started_epoch_seconds: u64,
    /// The commit that this daemon was built from.
    pub commit: &'a str,
    /// The node this daemon runs on.
    pub node: &'a Node,
    /// The BGP identifier towards peers that set none.
    pub router_id: RouterId,
    /// The VRF of the query. With the name of the main one, neighbours of all VRFs may be among the peers,
    /// each with the name of its own.
    pub vrf_name: &'a str,
    /// What the BGP backend does and sees.
    pub bgp: &'a BgpView,
    /// What this node answers for on the local segment; `None` where it never had to.
    pub layer2: Option<&'a Layer2View>,
    /// The machines that share layer 2 addresses with this one, which is among them; `None` if none do.
    pub members: Option<&'a [MemberStatus]>,
    /// The objects in force.
    pub index: &'a ClusterIndex,
    /// The addresses of the Services.
    pub outcomes: &'a Outcomes,
    /// What this node announces.
    pub plan: &'a NodePlan,
    /// The last change of each Service.
    pub history: &'a History,
    /// Faults and warnings of the files.
    pub findings: &'a [Finding],
    /// Objects with their last good version in force instead of what their files contain.
    pub stale: &'a [StaleObject],
    /// The files and folders that are read.
    pub sources: &'a [String],
    /// What has not been read of them, if anything: the rest of the snapshot may be outdated.
    pub outage: Option<&'a Outage>,
    /// Whether the node is in service.
    pub drain: DrainStatus,
}

/// What could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The beginning of a sentence, as in `the API server has not answered`.
    pub what: String,
    /// Since when that is so.
    pub since_epoch_seconds: u64,
}

/// Why there is nothing to show. Where FRR answers programs with an object instead, so do we; then the JSON
/// is not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShowError {
    /// No neighbour has this address or name.
    #[error("% No such neighbor in this view/vrf")]
    NoSuchNeighbor,
    /// It is not configured for that family.
    #[error("% No such neighbor or address family")]
    NoSuchFamily,
    /// The backend keeps no refused routes, or there is no session.
    #[error("% Inbound soft reconfiguration not enabled")]
    RefusedRoutesNotKept,
    /// No route covers it.
    #[error("% Network not in table")]
    NetworkNotInTable,
    /// The text is not a prefix, or is of the other family.
    #[error("% Malformed address: {text:?} is neither a prefix nor an address of {family}")]
    MalformedPrefix {
        /// The text.
        text: String,
        /// The table of the query.
        family: AddressFamily,
    },
    /// The text is not a community.
    #[error("% Community malformed: {0}")]
    MalformedCommunity(String),
    /// The text is not a large community.
    #[error("% Large-community malformed")]
    MalformedLargeCommunity,
    /// The text is not a regular expression.
    #[error("Can't compile regexp {text}: {cause}")]
    MalformedExpression {
        /// The text.
        text: String,
        /// What is wrong with it, in one line.
        cause: String,
    },
    /// No neighbour is in this VRF.
    #[error("% there is no VRF {0:?} with a neighbor; `vrf all` shows those that there are")]
    UnknownVrf(String),
    /// FRR does not look up a prefix in all VRFs.
    #[error("Specified 'all' vrf's but this command currently only works per view/vrf")]
    OneVrfAtATime,
    /// There are no peer groups here.
    #[error("% No such peer-group")]
    NoSuchPeerGroup,
    /// No LoadBalancer Service has this name; with the faults of its document, if that is why.
    #[error("there is no Service {wanted} of type LoadBalancer{}{outdated}", because(.faults))]
    NoSuchService {
        /// The name of the query.
        wanted: String,
        /// What has not been read, as the end of a sentence.
        outdated: String,
        /// Faults of documents that may define it.
        faults: Vec<String>,
    },
    /// Several Services have this name.
    #[error("there are several Services {wanted}; ask for one of {}", .names.join(", "))]
    SeveralServices {
        /// The name of the query.
        wanted: String,
        /// Their names with their namespaces.
        names: Vec<String>,
    },
    /// No neighbour has this address or name; and which there are.
    #[error("there is no neighbor {wanted}; {why}")]
    NoSuchPeer {
        /// The name of the query.
        wanted: String,
        /// Why a BGPPeer of this name has none, or the neighbours that there are.
        why: String,
    },
    /// No pool has this name.
    #[error("there is no IPAddressPool {wanted}{}; {}", because(.faults), known_are(.known))]
    NoSuchPool {
        /// The name of the query.
        wanted: String,
        /// Faults of documents that define it.
        faults: Vec<String>,
        /// Their names.
        known: Vec<String>,
    },
    /// A daemon knows its own node.
    #[error("this daemon knows only its own node, {own}; ask the daemon of {wanted}")]
    OtherNode {
        /// The name of the query.
        wanted: String,
        /// The name of this node.
        own: String,
    },
    /// The text is neither.
    #[error(
        "{0:?} is neither an address nor a prefix; expected one such as 198.51.100.10 or 198.51.100.0/24"
    )]
    NeitherAddressNorPrefix(String),
    /// No BFD session has this address.
    #[error("% Unable to find 'peer {0}'")]
    NoSuchBfdPeer(String),
}

fn known_are(names: &[String]) -> String {
    if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("known: {}", names.join(", "))
    }
}

fn because(faults: &[String]) -> String {
    let first = faults.first().map(|fault| format!(": {fault}"));
    first.into_iter().chain(faults.iter().skip(1).map(|fault| format!("\n  {fault}"))).collect()
}

/// The answer as text.
pub(crate) fn text<'a>(
    command: &ShowCommand,
    snapshot: &Snapshot<'a>,
) -> Result<Text<'a>, ShowError> {
    let text = match command {
        ShowCommand::BgpSummary { families, filter } => summary::text(snapshot, *families, *filter),
        ShowCommand::BgpNeighbors { peer, family } => {
            neighbors::text(snapshot, peer.as_deref(), *family)?
        }
        ShowCommand::BgpGracefulRestart { peer, family } => {
            neighbors::graceful_restart_text(snapshot, peer.as_deref(), *family)?
        }
        ShowCommand::BgpPeerRoutes { peer, family, routes } => {
            return peer_routes::text(snapshot, peer, *family, *routes);
        }
        ShowCommand::BgpPrefixCounts { peer, family } => {
            prefix_counts::text(snapshot, peer, *family)?
        }
        ShowCommand::BgpUnicast { family, prefix: None } => {
            return Ok(table::text(snapshot, *family, Selection::Everything));
        }
        ShowCommand::BgpUnicast { family, prefix: Some(prefix) } => {
            entry::text(snapshot, *family, prefix)?
        }
        ShowCommand::BgpUnicastDetail { family } => {
            return Ok(entry::all_texts(snapshot, *family));
        }
        ShowCommand::BgpFiltered { family, filter } => {
            return Ok(table::text(snapshot, *family, Selection::of(filter, *family)?));
        }
        ShowCommand::BgpStatistics { family } => statistics::text(snapshot, *family),
        ShowCommand::BgpNextHops { address } => next_hops::text(snapshot, address.as_deref()),
        ShowCommand::BgpPeerGroups { group: None } => String::new(),
        ShowCommand::BgpPeerGroups { group: Some(_) } => {
            return Err(ShowError::NoSuchPeerGroup);
        }
        ShowCommand::BgpRouter => router::text(snapshot),
        ShowCommand::BfdPeers { detail } => bfd::text(snapshot, *detail),
        ShowCommand::BfdPeer { peer, detail } => bfd::peer_text(snapshot, peer, *detail)?,
        ShowCommand::KernelRoutes { is_summary, .. } => kernel_routes::text(*is_summary),
        ShowCommand::Version => version::text(snapshot),
        ShowCommand::RunningConfig => version::running_config(snapshot),
        ShowCommand::BmpStations => bmp::text(snapshot),
        ShowCommand::RpkiServers => rpki::text(snapshot),
        ShowCommand::RpkiConnections => rpki::connections_text(snapshot),
        ShowCommand::RpkiPayloads { covers } => rpki::payloads_text(snapshot, covers.as_deref())?,
        ShowCommand::Services => services::text(snapshot),
        ShowCommand::Layer2 => layer2::text(snapshot),
        ShowCommand::Members => members::text(snapshot),
        ShowCommand::Explain(what) => explain::text(snapshot, what)?,
        ShowCommand::Pools => pools::text(snapshot),
        ShowCommand::Config => config::text(snapshot),
    };
    Ok(text.into())
}

/// The answer as JSON.
pub(crate) fn json<'a>(
    command: &ShowCommand,
    snapshot: &Snapshot<'a>,
) -> Result<Document<'a>, ShowError> {
    let object = match command {
        ShowCommand::BgpSummary { families, filter } => summary::json(snapshot, *families, *filter),
        ShowCommand::BgpNeighbors { peer, family } => {
            neighbors::json(snapshot, peer.as_deref(), *family)
        }
        ShowCommand::BgpGracefulRestart { peer, family } => {
            neighbors::graceful_restart_json(snapshot, peer.as_deref(), *family)
        }
        ShowCommand::BgpPeerRoutes { peer, family, routes } => {
            return Ok(peer_routes::json(snapshot, peer, *family, *routes));
        }
        ShowCommand::BgpPrefixCounts { peer, family } => {
            prefix_counts::json(snapshot, peer, *family)
        }
        ShowCommand::BgpUnicast { family, prefix: None } => {
            return Ok(table::json(snapshot, *family, Selection::Everything));
        }
        ShowCommand::BgpUnicast { family, prefix: Some(prefix) } => {
            entry::json(snapshot, *family, prefix)?
        }
        ShowCommand::BgpUnicastDetail { family } => {
            return Ok(entry::all_json(snapshot, *family));
        }
        ShowCommand::BgpFiltered { family, filter } => {
            return Ok(table::json(snapshot, *family, Selection::of(filter, *family)?));
        }
        ShowCommand::BgpStatistics { family } => statistics::json(snapshot, *family),
        ShowCommand::BgpNextHops { address } => next_hops::json(snapshot, address.as_deref()),
        ShowCommand::BgpPeerGroups { .. } => object::Object::new(),
        ShowCommand::BgpRouter => router::json(snapshot),
        ShowCommand::BfdPeers { detail } => {
            return Ok(Document::Whole(bfd::json(snapshot, *detail)));
        }
        ShowCommand::BfdPeer { peer, detail } => bfd::peer_json(snapshot, peer, *detail)?,
        ShowCommand::KernelRoutes { is_summary, is_keyed } => {
            kernel_routes::json(*is_summary, *is_keyed)
        }
        ShowCommand::Version => version::json(snapshot),
        ShowCommand::RunningConfig => {
            object::Object::new().field("hostname", snapshot.node.name.as_str())
        }
        ShowCommand::BmpStations => bmp::json(snapshot),
        ShowCommand::RpkiServers => rpki::json(snapshot),
        ShowCommand::RpkiConnections => rpki::connections_json(snapshot),
        ShowCommand::RpkiPayloads { covers } => rpki::payloads_json(snapshot, covers.as_deref())?,
        ShowCommand::Services => services::json(snapshot),
        ShowCommand::Layer2 => layer2::json(snapshot),
        ShowCommand::Members => members::json(snapshot),
        ShowCommand::Explain(what) => explain::json(snapshot, what)?,
        ShowCommand::Pools => pools::json(snapshot),
        ShowCommand::Config => config::json(snapshot),
    };
    Ok(object.into())
}
