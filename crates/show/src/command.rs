//! The queries, and how much of the backend's state each answer needs.

use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use fairway_seam::{AdvertisedScope, ViewScope};
use serde::{Deserialize, Serialize};

use crate::explain::Explained;

/// What to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShowCommand {
    /// `show bgp [ipv4|ipv6 [unicast]] summary [established|failed]`.
    BgpSummary {
        /// Which families.
        families: SummaryFamilies,
        /// Which neighbours.
        filter: SummaryFilter,
    },
    /// `show bgp [ipv4|ipv6] neighbors [PEER]`.
    BgpNeighbors {
        /// An address or the name of a BGPPeer; all neighbours when absent.
        peer: Option<String>,
        /// Only neighbours configured for it; all when absent.
        family: Option<AddressFamily>,
    },
    /// `show bgp [ipv4|ipv6] neighbors [PEER] graceful-restart`.
    BgpGracefulRestart {
        /// An address or the name of a BGPPeer; all neighbours when absent.
        peer: Option<String>,
        /// Only neighbours configured for it; all when absent.
        family: Option<AddressFamily>,
    },
    /// `show bgp [ipv4|ipv6 unicast] neighbors PEER advertised-routes` and the like.
    BgpPeerRoutes {
        /// An address or the name of a BGPPeer.
        peer: String,
        /// Only routes of this family; both when absent.
        family: Option<AddressFamily>,
        /// Which of its routes.
        routes: PeerRoutes,
    },
    /// `show bgp ipv4|ipv6 unicast neighbors PEER prefix-counts`.
    BgpPrefixCounts {
        /// An address or the name of a BGPPeer.
        peer: String,
        /// The table.
        family: AddressFamily,
    },
    /// `show bgp ipv4|ipv6 unicast [PREFIX]`.
    BgpUnicast {
        /// The table.
        family: AddressFamily,
        /// A prefix, or an address inside one; the whole table when absent.
        prefix: Option<String>,
    },
    /// `show bgp ipv4|ipv6 unicast detail`.
    BgpUnicastDetail {
        /// The table.
        family: AddressFamily,
    },
    /// `show bgp ipv4|ipv6 unicast community|large-community|regexp|PREFIX longer-prefixes ...`.
    BgpFiltered {
        /// The table.
        family: AddressFamily,
        /// Which paths of it.
        filter: TableFilter,
    },
    /// `show bgp ipv4|ipv6 unicast statistics`.
    BgpStatistics {
        /// The table.
        family: AddressFamily,
    },
    /// `show bgp nexthop [ADDRESS]`.
    BgpNextHops {
        /// Only this one; all when absent.
        address: Option<String>,
    },
    /// `show bgp peer-group [GROUP]`; Fairway has no peer groups.
    BgpPeerGroups {
        /// Only this one.
        group: Option<String>,
    },
    /// `show bgp router`.
    BgpRouter,
    /// `show bfd peers [brief|counters]`.
    BfdPeers {
        /// How much of each.
        detail: BfdDetail,
    },
    /// `show bfd peer PEER [counters]`.
    BfdPeer {
        /// An address.
        peer: String,
        /// How much of it.
        detail: BfdDetail,
    },
    /// `show ip|ipv6 route [summary]`: routes of the kernel, of which Fairway has none.
    #[serde(rename_all = "camelCase")]
    KernelRoutes {
        /// Only how many there are.
        is_summary: bool,
        /// Whether answers are keyed by VRF.
        is_keyed: bool,
    },
    /// `show version`.
    Version,
    /// `show running-config`.
    RunningConfig,
    /// `show bmp`.
    BmpStations,
    /// `show rpki`.
    RpkiServers,
    /// `show rpki cache-connection`.
    RpkiConnections,
    /// `show rpki prefix-table`, and `show rpki prefix PREFIX`.
    RpkiPayloads {
        /// Only those that cover this prefix.
        covers: Option<String>,
    },
    /// `show services`.
    Services,
    /// `explain service|peer|address|prefix|pool|node NAME`.
    Explain(Explained),
    /// `show pools`.
    Pools,
    /// `show l2`.
    Layer2,
    /// `show members`.
    Members,
    /// `show config`.
    Config,
}

/// Which families a summary covers. FRR's JSON has a layer for the family unless one table was named in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SummaryFamilies {
    /// `show bgp summary`.
    All,
    /// `show bgp ipv4 summary`: the JSON is keyed by family.
    OneByName(AddressFamily),
    /// `show bgp ipv4 unicast summary`: the JSON is that of the family.
    One(AddressFamily),
}

/// Which neighbours a summary lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SummaryFilter {
    /// All of them.
    Everybody,
    /// Those that are Established.
    Established,
    /// The others, with the reason.
    Failed,
}

/// Which routes of one neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PeerRoutes {
    /// `advertised-routes`: the routes sent to it.
    Advertised,
    /// `received-routes`: the routes that it announces, as received.
    Received,
    /// `routes`: the same, as rows of the table.
    Accepted,
    /// `filtered-routes`: those of them that were refused.
    Filtered,
}

/// Which paths of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TableFilter {
    /// Those that carry a community.
    #[serde(rename_all = "camelCase")]
    Community {
        /// The community.
        text: String,
        /// Whether it is a large community.
        is_large: bool,
        /// Whether they must carry no other.
        is_exact: bool,
    },
    /// Those of this prefix and of prefixes inside it.
    LongerPrefixes(String),
    /// Those whose AS path matches this regular expression.
    AsPath(String),
}

/// How much `show bfd peers` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BfdDetail {
    /// Everything.
    Full,
    /// One line per session.
    Brief,
    /// Packets and events.
    Counters,
}

impl ShowCommand {
    /// How much of the backend's state the answer needs.
    pub fn scope(&self) -> ViewScope {
        let sessions = ViewScope::SESSIONS;
        let tables = ViewScope { originated: true, learned: true, ..sessions };
        match self {
            Self::BgpSummary { .. }
            | Self::BgpNeighbors { .. }
            | Self::BgpGracefulRestart { .. }
            | Self::BgpPeerGroups { .. }
            | Self::BgpRouter
            | Self::BfdPeers { .. }
            | Self::BfdPeer { .. }
            | Self::KernelRoutes { .. }
            | Self::Version
            | Self::RunningConfig
            | Self::BmpStations
            | Self::RpkiServers
            | Self::RpkiConnections
            | Self::Pools
            | Self::Layer2
            | Self::Members
            | Self::Config => sessions,
            Self::RpkiPayloads { .. } => ViewScope { payloads: true, ..sessions },
            Self::BgpPeerRoutes { routes, .. } => match routes {
                PeerRoutes::Advertised => {
                    ViewScope { advertised: AdvertisedScope::All, ..sessions }
                }
                PeerRoutes::Received => ViewScope { received: true, refused: true, ..sessions },
                PeerRoutes::Accepted => tables,
                PeerRoutes::Filtered => ViewScope { refused: true, ..sessions },
            },
            Self::Explain(Explained::Pool(_)) => sessions,
            Self::Explain(Explained::Node(_)) => ViewScope { kernel: true, ..sessions },
            Self::Services => ViewScope { advertised: AdvertisedScope::Own, ..sessions },
            Self::Explain(Explained::Service(_) | Explained::Peer(_)) => {
                ViewScope { advertised: AdvertisedScope::Own, kernel: true, ..sessions }
            }
            Self::Explain(Explained::Address(wanted)) => ViewScope {
                advertised: AdvertisedScope::All,
                learned: true,
                refused: true,
                passage: prefix_of(wanted),
                ..sessions
            },
            Self::BgpUnicast { prefix: None, .. }
            | Self::BgpFiltered { .. }
            | Self::BgpStatistics { .. } => tables,
            Self::BgpUnicast { prefix: Some(_), .. } | Self::BgpUnicastDetail { .. } => {
                ViewScope { advertised: AdvertisedScope::All, ..tables }
            }
            Self::BgpNextHops { .. } | Self::BgpPrefixCounts { .. } => {
                ViewScope { learned: true, ..sessions }
            }
        }
    }
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
}

/// The prefix that is asked about; of an address the one with all its bits.
fn prefix_of(text: &str) -> Option<Prefix> {
    let of_address =
        |address: IpAddr| Prefix::new(address, AddressFamily::of(address).address_bits()).ok();
    text.parse().ok().or_else(|| text.parse().ok().and_then(of_address))
}
