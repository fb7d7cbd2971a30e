//! `fairway show`: turns arguments into a query and prints the answer.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use fairway_ground::AddressFamily;
use fairway_show::{
    BfdDetail, CommunityFilter, PeerRoutes, ShowCommand, SummaryFamilies, SummaryFilter,
};

use super::ask::AnswerArguments;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway show bgp summary
  fairway show bgp neighbors 192.0.2.1 advertised-routes --json
  fairway show bgp ipv4 unicast 198.51.100.10/32
  fairway show bgp summary failed
  fairway show services")]
pub(super) struct ShowArguments {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    answer: AnswerArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Sessions and routes
    #[command(after_help = "Example: fairway show bgp summary")]
    Bgp {
        #[command(subcommand)]
        what: Bgp,
    },
    /// BFD sessions
    #[command(after_help = "Example: fairway show bfd peers brief")]
    Bfd {
        #[command(subcommand)]
        what: Bfd,
    },
    /// Services: their addresses, and what is announced for them
    #[command(after_help = "Example: fairway show services --json")]
    Services,
    /// Pools and how full they are
    #[command(after_help = "Example: fairway show pools")]
    Pools,
    /// Addresses on the local segment (ARP, neighbor discovery): which node answers, on which interfaces
    #[command(name = "l2", after_help = "Example: fairway show l2 --json")]
    Layer2,
    /// The machines that share layer 2 addresses, and which of them are alive
    #[command(after_help = "Example: fairway show members --json")]
    Members,
    /// The resources that were read, and their faults and warnings
    #[command(after_help = "Example: fairway show config --json")]
    Config,
}

#[derive(Debug, Clone, Subcommand)]
enum Bgp {
    /// A line for each neighbor
    #[command(after_help = "Examples:
  fairway show bgp summary --json
  fairway show bgp summary failed")]
    Summary {
        /// Only some of them
        #[command(subcommand)]
        filter: Option<Filter>,
    },
    /// Next hops of accepted routes, and the neighbors that have a session
    #[command(after_help = "Example: fairway show bgp nexthop")]
    Nexthop,
    /// Everything about each neighbor, or about one
    #[command(after_help = "Examples:
  fairway show bgp neighbors
  fairway show bgp neighbors 192.0.2.1 advertised-routes")]
    Neighbors {
        /// Its address, or the name of its BGPPeer
        peer: Option<String>,
        /// Only its routes
        #[command(subcommand)]
        routes: Option<NeighborRoutes>,
    },
    /// IPv4 routes
    #[command(after_help = "Example: fairway show bgp ipv4 unicast 198.51.100.10/32")]
    Ipv4 {
        #[command(subcommand)]
        safi: Safi,
    },
    /// IPv6 routes
    #[command(after_help = "Example: fairway show bgp ipv6 unicast")]
    Ipv6 {
        #[command(subcommand)]
        safi: Safi,
    },
}

#[derive(Debug, Clone, Subcommand)]
enum Filter {
    /// Those with a session
    #[command(after_help = "Example: fairway show bgp summary established")]
    Established,
    /// Those without one, and why
    #[command(after_help = "Example: fairway show bgp summary failed")]
    Failed,
}

impl Filter {
    fn of(filter: Option<Self>) -> SummaryFilter {
        match filter {
            None => SummaryFilter::Everybody,
            Some(Self::Established) => SummaryFilter::Established,
            Some(Self::Failed) => SummaryFilter::Failed,
        }
    }
}

#[derive(Debug, Clone, Subcommand)]
enum Bfd {
    /// Everything about each
    #[command(after_help = "Example: fairway show bfd peers --json")]
    Peers {
        /// A shorter or another output
        #[command(subcommand)]
        detail: Option<Detail>,
    },
    /// Everything about one
    #[command(after_help = "Example: fairway show bfd peer 192.0.2.1")]
    Peer {
        /// Its address
        peer: String,
    },
}

#[derive(Debug, Clone, Subcommand)]
enum Detail {
    /// A line for each
    #[command(after_help = "Example: fairway show bfd peers brief")]
    Brief,
    /// Packets and events
    #[command(after_help = "Example: fairway show bfd peers counters --json")]
    Counters,
}

#[derive(Debug, Clone, Subcommand)]
enum NeighborRoutes {
    /// The routes that it was sent
    #[command(after_help = "Example: fairway show bgp neighbors 192.0.2.1 advertised-routes")]
    AdvertisedRoutes,
    /// The routes that it announces and toReceive accepts
    #[command(after_help = "Example: fairway show bgp neighbors 192.0.2.1 received-routes")]
    ReceivedRoutes,
    /// Graceful restart: what each side announced, and what stays when one of them restarts
    #[command(after_help = "Example: fairway show bgp neighbors 192.0.2.1 graceful-restart")]
    GracefulRestart,
    /// The same as rows of the table, with the outcome of each
    #[command(after_help = "Example: fairway show bgp neighbors 192.0.2.1 routes")]
    Routes,
}

#[derive(Debug, Clone, Subcommand)]
enum Safi {
    /// The table, or one prefix with all its attributes
    #[command(args_conflicts_with_subcommands = true)]
    #[command(after_help = "Example: fairway show bgp ipv4 unicast 198.51.100.10/32")]
    Unicast {
        /// A prefix, or an address inside one
        prefix: Option<String>,
        /// Another output for the table
        #[command(subcommand)]
        part: Option<TablePart>,
    },
}

#[derive(Debug, Clone, Subcommand)]
enum TablePart {
    /// A line for each neighbor of this table
    #[command(after_help = "Example: fairway show bgp ipv4 unicast summary")]
    Summary {
        /// Only some
        #[command(subcommand)]
        filter: Option<Filter>,
    },
    /// All prefixes with all their attributes
    #[command(after_help = "Example: fairway show bgp ipv4 unicast detail")]
    Detail,
    /// Routes that carry a community
    #[command(after_help = "Example: fairway show bgp ipv4 unicast community 65010:100")]
    Community {
        /// As in 65010:100 or no-export
        community: String,
    },
    /// Routes that carry a large community
    #[command(after_help = "Example: fairway show bgp ipv4 unicast large-community 65010:1:2")]
    LargeCommunity {
        /// As in 65010:1:2
        community: String,
    },
}

impl Safi {
    fn command(self, family: AddressFamily) -> ShowCommand {
        let Self::Unicast { prefix, part } = self;
        let carrying = |text, is_large| ShowCommand::BgpCommunity {
            family,
            filter: CommunityFilter { text, is_large, is_exact: false },
        };
        match part {
            None => ShowCommand::BgpUnicast { family, prefix },
            Some(TablePart::Summary { filter }) => ShowCommand::BgpSummary {
                families: SummaryFamilies::One(family),
                filter: Filter::of(filter),
            },
            Some(TablePart::Detail) => ShowCommand::BgpUnicastDetail { family },
            Some(TablePart::Community { community }) => carrying(community, false),
            Some(TablePart::LargeCommunity { community }) => carrying(community, true),
        }
    }
}

impl What {
    fn command(&self) -> Option<ShowCommand> {
        Some(match self.clone() {
            Self::Bgp { what: Bgp::Summary { filter } } => ShowCommand::BgpSummary {
                families: SummaryFamilies::All,
                filter: Filter::of(filter),
            },
            Self::Bgp { what: Bgp::Nexthop } => ShowCommand::BgpNextHops { address: None },
            Self::Bgp { what: Bgp::Neighbors { peer, routes: None } } => {
                ShowCommand::BgpNeighbors { peer, family: None }
            }
            Self::Bgp { what: Bgp::Neighbors { peer, routes: Some(routes) } } => {
                let routes = match routes {
                    NeighborRoutes::GracefulRestart => {
                        return Some(ShowCommand::BgpGracefulRestart { peer, family: None });
                    }
                    NeighborRoutes::AdvertisedRoutes => PeerRoutes::Advertised,
                    NeighborRoutes::ReceivedRoutes => PeerRoutes::Received,
                    NeighborRoutes::Routes => PeerRoutes::Accepted,
                };
                ShowCommand::BgpPeerRoutes { peer: peer?, family: None, routes }
            }
            Self::Bgp { what: Bgp::Ipv4 { safi } } => safi.command(AddressFamily::Ipv4Unicast),
            Self::Bgp { what: Bgp::Ipv6 { safi } } => safi.command(AddressFamily::Ipv6Unicast),
            Self::Bfd { what: Bfd::Peer { peer } } => {
                ShowCommand::BfdPeer { peer, detail: BfdDetail::Full }
            }
            Self::Bfd { what: Bfd::Peers { detail } } => ShowCommand::BfdPeers {
                detail: match detail {
                    None => BfdDetail::Full,
                    Some(Detail::Brief) => BfdDetail::Brief,
                    Some(Detail::Counters) => BfdDetail::Counters,
                },
            },
            Self::Services => ShowCommand::Services,
            Self::Pools => ShowCommand::Pools,
            Self::Layer2 => ShowCommand::Layer2,
            Self::Members => ShowCommand::Members,
            Self::Config => ShowCommand::Config,
        })
    }
}

pub(super) fn run(arguments: &ShowArguments) -> Result<ExitCode> {
    let Some(what) = arguments.what.command() else {
        eprintln!(
            "fairway: advertised-routes, received-routes and routes need a neighbor: its address or \
             its name"
        );
        return Ok(ExitCode::from(2));
    };
    arguments.answer.show(what)
}
