//! The commands of each vocabulary, and the questions that they stand for.
//!
//! Pure. FRR's commands that Fairway does not answer are listed only if an abbreviation could mean them as
//! well: so an abbreviation is ambiguous exactly where it is in FRR.

use fairway_ground::AddressFamily;
use fairway_seam::Clear;

use super::grammar::Words;
use super::{ClearOrder, Completed, Question};
use crate::{
    BfdDetail, Explained, Format, PeerRoutes, Query, ShowCommand, SummaryFamilies, SummaryFilter,
    TableFilter, VrfSelection,
};

/// A command: its words, what it does, and the question for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    /// See [`super::grammar`].
    pub(super) pattern: &'static str,
    /// For people.
    pub(super) help: &'static str,
    /// `None`: the words do not make sense together.
    pub(super) read: fn(&Words<'_>) -> Option<Question>,
}

const fn command(
    pattern: &'static str,
    help: &'static str,
    read: fn(&Words<'_>) -> Option<Question>,
) -> Command {
    Command { pattern, help, read }
}

/// The start of all BGP commands; the word after `ip` chooses the family that is not named.
macro_rules! bgp {
    ($rest:literal) => {
        concat!("show [ip] bgp [<view|vrf> VRF] ", $rest)
    };
}

/// What vtysh sends every daemon without anybody asking.
pub(super) const SESSION: [Command; 5] = [
    command("<enable|disable|end>", "", |_| Some(Question::Nothing)),
    command("terminal <length NUMBER|no length>", "", |_| Some(Question::Nothing)),
    command("<exit|quit|logout>", "", |_| Some(Question::Exit)),
    command("write terminal", "", |words| show(words, ShowCommand::RunningConfig)),
    command("autocomplete NUMBER TEXT TEXT", "", completed),
];

/// The commands that every daemon answers.
pub(super) const COMMON: [Command; 2] = [
    command("show version [json]", "The version of the daemon", |words| {
        show(words, ShowCommand::Version)
    }),
    command("show running-config [json]", "The settings that FRR's tools read", |words| {
        show(words, ShowCommand::RunningConfig)
    }),
];

pub(super) const BGP: [Command; 15] = [
    command(
        bgp!("[<ipv4|ipv6> [unicast]] summary [<established|failed>] [json]"),
        "A line for each neighbor; only those with a session, or those without one and why",
        summary,
    ),
    command(
        bgp!("[<ipv4|ipv6>] neighbors [PEER] [json]"),
        "Everything about each neighbor, or about one",
        neighbors,
    ),
    command(
        bgp!("[<ipv4|ipv6>] neighbors [PEER] graceful-restart [json]"),
        "Graceful restart: what each side announced, and what stays when one of them restarts",
        graceful_restart,
    ),
    command(
        bgp!(
            "[<ipv4|ipv6> [unicast]] neighbors PEER \
             <advertised-routes|received-routes|filtered-routes|routes|prefix-counts> [json]"
        ),
        "The routes that a neighbor was sent or announces, those that were refused, or how many",
        peer_routes,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] [json]"),
        "The table; without a family that of IPv6, behind `ip` that of IPv4",
        table,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] detail [json]"),
        "All prefixes with all attributes",
        detail,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] <ADDRESS|PREFIX> [json]"),
        "One prefix, or the longest one around an address, with all attributes",
        entry,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] PREFIX longer-prefixes [json]"),
        "The prefix and those inside it",
        longer_prefixes,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] regexp TEXT [json]"),
        "Routes whose AS path matches a regular expression, in which _ is a border of an AS number",
        as_path,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] statistics [json]"),
        "What the table holds, in figures",
        |words| show(words, ShowCommand::BgpStatistics { family: family_or_habit(words) }),
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] community COMMUNITY [exact-match] [json]"),
        "Routes that carry a community",
        communities,
    ),
    command(
        bgp!("[<ipv4|ipv6> [unicast]] large-community COMMUNITY [exact-match] [json]"),
        "Routes that carry a large community",
        communities,
    ),
    command(bgp!("peer-group [GROUP] [json]"), "Peer groups; there are none", |words| {
        let group = words.after("peer-group").map(str::to_owned);
        show(words, ShowCommand::BgpPeerGroups { group })
    }),
    command(
        bgp!("[<ipv4|ipv6>] nexthop [ADDRESS] [detail] [json]"),
        "Next hops of accepted routes, and the neighbors that have a session",
        |words| {
            let address = words.after("nexthop").map(str::to_owned);
            show(words, ShowCommand::BgpNextHops { address })
        },
    ),
    command("show bgp router [json]", "The BGP instance of each VRF", |words| {
        show(words, ShowCommand::BgpRouter)
    }),
];

/// Of FRR's bgpd, if it has its module for RPKI.
pub(super) const RPKI: [Command; 3] = [
    command(
        "show rpki cache-connection [json]",
        "The RPKI caches, and which are connected",
        |words| show(words, ShowCommand::RpkiConnections),
    ),
    command(
        "show rpki prefix-table [json]",
        "What RPKI caches say: which AS may originate a prefix",
        |words| show(words, ShowCommand::RpkiPayloads { covers: None }),
    ),
    command("show rpki prefix PREFIX [json]", "What they say of one prefix", |words| {
        let covers = words.after("prefix").map(str::to_owned);
        show(words, ShowCommand::RpkiPayloads { covers })
    }),
];

pub(super) const BFD: [Command; 2] = [
    command(
        "show bfd [vrf VRF] peers [<brief|counters>] [json]",
        "BFD sessions: everything, a line for each, or packets and events",
        |words| {
            let detail = match (words.has("brief"), words.has("counters")) {
                (true, _) => BfdDetail::Brief,
                (_, true) => BfdDetail::Counters,
                _ => BfdDetail::Full,
            };
            show(words, ShowCommand::BfdPeers { detail })
        },
    ),
    command(
        "show bfd [vrf VRF] peer PEER [multihop] [local-address ADDRESS] [interface INTERFACE] \
         [counters] [json]",
        "One BFD session",
        |words| {
            let peer = words.after("peer")?.to_owned();
            let detail = if words.has("counters") { BfdDetail::Counters } else { BfdDetail::Full };
            show(words, ShowCommand::BfdPeer { peer, detail })
        },
    ),
];

pub(super) const ZEBRA: [Command; 1] = [command(
    "show <ip|ipv6> route [vrf VRF] [summary] [json]",
    "The kernel's routes, which are not read: none",
    |words| {
        let is_summary = words.has("summary");
        // The kernel table is not read, so the answer is that of a machine without VRFs.
        let is_keyed = words.after("vrf") == Some("all") && is_summary;
        let what = ShowCommand::KernelRoutes { is_summary, is_keyed };
        Some(Question::Show(Query { vrf: VrfSelection::Undivided, ..query(words, what) }))
    },
)];

/// What FRR does not have.
pub(super) const OURS: [Command; 7] = [
    command(
        "show bmp [json]",
        "BMP stations: whether they are reached, and what waits for them",
        |words| show(words, ShowCommand::BmpStations),
    ),
    command(
        "show rpki [json]",
        "RPKI caches: whether they are reached, and how old their data is",
        |words| show(words, ShowCommand::RpkiServers),
    ),
    command(
        "show services [json]",
        "Services: their addresses, and what is announced for them",
        |words| show(words, ShowCommand::Services),
    ),
    command("show pools [json]", "Pools and how full they are", |words| {
        show(words, ShowCommand::Pools)
    }),
    command(
        "show l2 [json]",
        "Addresses on the local segment (ARP, neighbor discovery): which node answers, on which interfaces",
        |words| show(words, ShowCommand::Layer2),
    ),
    command(
        "show members [json]",
        "The machines that share layer 2 addresses, and which of them are alive",
        |words| show(words, ShowCommand::Members),
    ),
    command(
        "show config [json]",
        "The resources that were read, and their faults and warnings",
        |words| show(words, ShowCommand::Config),
    ),
];

pub(super) const EXPLAIN: [Command; 6] = [
    command(
        "explain service SERVICE [json]",
        "The pool and why it was chosen, whether this node announces the Service, what each router was sent, what is \
         missing",
        |words| explain(words, "service", Explained::Service),
    ),
    command(
        "explain peer PEER [json]",
        "Whether there is a session with a neighbor and why not, what it was sent, what was refused from it",
        |words| explain(words, "peer", Explained::Peer),
    ),
    command(
        "explain address ADDRESS [json]",
        "Whose an address is, which pool has it, which routes lead to it",
        |words| explain(words, "address", Explained::Address),
    ),
    command(
        "explain prefix PREFIX [json]",
        "Which Services a prefix is announced for, who was sent it, who announces it, who refuses it",
        |words| explain(words, "prefix", Explained::Address),
    ),
    command(
        "explain pool POOL [json]",
        "How full a pool is, which Services have its addresses, and which wait",
        |words| explain(words, "pool", Explained::Pool),
    ),
    command(
        "explain node NODE [json]",
        "The sessions of this node, and what is wrong with those that are down",
        |words| explain(words, "node", Explained::Node),
    ),
];

pub(super) const CLEAR: [Command; 1] = [command(
    "clear [ip] bgp [<view|vrf> VRF] [<ipv4|ipv6> [unicast]] <PEER|external> [<soft [<in|out>]|in|out>]",
    "Reset sessions with Cease 6/4; with `soft` ask for all routes again (`in`), send them again (`out`), or both. PEER \
     is an address, the name of a BGPPeer, an AS, or * for all; `external` is every neighbor of another AS",
    clear,
)];

/// FRR's commands without an answer here.
pub(super) const UNANSWERED_BY_ALL: [&str; 4] = [
    "show startup-config",
    "write <file|memory|integrated>",
    "configure [terminal]",
    "show <history|memory|logging|debugging|thread|work-queues>",
];
pub(super) const UNANSWERED_BY_BGPD: [&str; 1] = [bgp!(
    "[<ipv4|ipv6> [unicast]] <statistics-all|segment-routing|self-originate|\
     dampening|community-list|community-info|large-community-list|cidr-only|paths|\
     prefix-list|route-map|route-leak|rpki|mac|martian|memory|version|view|views|\
     vrfs|update-groups|access-list|alias|all|attribute-info|listeners|labelpool|peerhash>"
)];
pub(super) const UNANSWERED_BY_BFDD: [&str; 1] = ["show bfd <distributed|static>"];
pub(super) const UNANSWERED_BY_ZEBRA: [&str; 1] =
    ["show <ip|ipv6> <rpf|nht|prefix-list|protocol|forwarding|fib>"];

fn format_of(words: &Words<'_>) -> Format {
    if words.has("json") { Format::Json } else { Format::Text }
}

fn vrf_of(words: &Words<'_>) -> VrfSelection {
    match words.after("vrf").or_else(|| words.after("view")) {
        None => VrfSelection::Undivided,
        Some("all") => VrfSelection::All,
        Some(name) => VrfSelection::Named(name.to_owned()),
    }
}

fn query(words: &Words<'_>, what: ShowCommand) -> Query {
    Query { what, format: format_of(words), vrf: vrf_of(words) }
}

fn show(words: &Words<'_>, what: ShowCommand) -> Option<Question> {
    Some(Question::Show(query(words, what)))
}

fn explain(words: &Words<'_>, kind: &str, what: fn(String) -> Explained) -> Option<Question> {
    show(words, ShowCommand::Explain(what(words.after(kind)?.to_owned())))
}

/// What vtysh asks for on Tab and `?`: the type of a token, its text, and the name of the variable or `-`.
fn completed(words: &Words<'_>) -> Option<Question> {
    let [form, text, variable] = words.values().collect::<Vec<_>>().try_into().ok()?;
    Some(Question::Complete(Completed::of_frr(form, text, variable)))
}

fn clear(words: &Words<'_>) -> Option<Question> {
    let wanted = if words.has("external") { "external" } else { words.last_value()? };
    let how = match (words.has("soft"), words.has("in"), words.has("out")) {
        (_, true, _) => Clear::SoftIn,
        (_, _, true) => Clear::SoftOut,
        (true, ..) => Clear::Soft,
        _ => Clear::Hard,
    };
    let is_ip = words.has("ip").then_some(AddressFamily::Ipv4Unicast);
    Some(Question::Clear(ClearOrder {
        wanted: wanted.to_owned(),
        how,
        vrf: vrf_of(words),
        family: family_of(words).or(is_ip),
    }))
}

/// The family that is named.
fn family_of(words: &Words<'_>) -> Option<AddressFamily> {
    match (words.has("ipv4"), words.has("ipv6")) {
        (true, _) => Some(AddressFamily::Ipv4Unicast),
        (_, true) => Some(AddressFamily::Ipv6Unicast),
        _ => None,
    }
}

/// The family that is named, or FRR's default: `show ip bgp` is IPv4, `show bgp` is IPv6.
fn family_or_habit(words: &Words<'_>) -> AddressFamily {
    let habit = match words.has("ip") {
        true => AddressFamily::Ipv4Unicast,
        false => AddressFamily::Ipv6Unicast,
    };
    family_of(words).unwrap_or(habit)
}

fn summary(words: &Words<'_>) -> Option<Question> {
    let families = match (family_of(words), words.has("unicast")) {
        (None, _) => SummaryFamilies::All,
        (Some(family), false) => SummaryFamilies::OneByName(family),
        (Some(family), true) => SummaryFamilies::One(family),
    };
    let filter = match (words.has("established"), words.has("failed")) {
        (true, _) => SummaryFilter::Established,
        (_, true) => SummaryFilter::Failed,
        _ => SummaryFilter::Everybody,
    };
    show(words, ShowCommand::BgpSummary { families, filter })
}

fn neighbors(words: &Words<'_>) -> Option<Question> {
    let peer = words.after("neighbors").map(str::to_owned);
    show(words, ShowCommand::BgpNeighbors { peer, family: family_of(words) })
}

fn graceful_restart(words: &Words<'_>) -> Option<Question> {
    let peer = words.after("neighbors").map(str::to_owned);
    show(words, ShowCommand::BgpGracefulRestart { peer, family: family_of(words) })
}

/// Without a family, both: FRR would show only IPv6, or with `ip` only IPv4.
fn peer_routes(words: &Words<'_>) -> Option<Question> {
    let peer = words.after("neighbors")?.to_owned();
    let is_ip = words.has("ip").then_some(AddressFamily::Ipv4Unicast);
    let family = family_of(words).or(is_ip);
    if words.has("prefix-counts") {
        let family = family_or_habit(words);
        return show(words, ShowCommand::BgpPrefixCounts { peer, family });
    }
    let routes = match words {
        words if words.has("advertised-routes") => PeerRoutes::Advertised,
        words if words.has("received-routes") => PeerRoutes::Received,
        words if words.has("filtered-routes") => PeerRoutes::Filtered,
        _ => PeerRoutes::Accepted,
    };
    show(words, ShowCommand::BgpPeerRoutes { peer, family, routes })
}

fn table(words: &Words<'_>) -> Option<Question> {
    show(words, ShowCommand::BgpUnicast { family: family_or_habit(words), prefix: None })
}

fn detail(words: &Words<'_>) -> Option<Question> {
    show(words, ShowCommand::BgpUnicastDetail { family: family_or_habit(words) })
}

fn entry(words: &Words<'_>) -> Option<Question> {
    let prefix = words.last_value()?.to_owned();
    let family = family_around(words, &prefix);
    show(words, ShowCommand::BgpUnicast { family, prefix: Some(prefix) })
}

/// Without a family, that of the prefix: FRR would refuse IPv4.
fn family_around(words: &Words<'_>, prefix: &str) -> AddressFamily {
    let of_prefix = match prefix.contains(':') {
        true => AddressFamily::Ipv6Unicast,
        false => AddressFamily::Ipv4Unicast,
    };
    let is_ip = words.has("ip").then_some(AddressFamily::Ipv4Unicast);
    family_of(words).or(is_ip).unwrap_or(of_prefix)
}

fn filtered(words: &Words<'_>, filter: TableFilter) -> Option<Question> {
    show(words, ShowCommand::BgpFiltered { family: family_or_habit(words), filter })
}

/// Without a family, that of the prefix, as in `entry`.
fn longer_prefixes(words: &Words<'_>) -> Option<Question> {
    let prefix = words.last_value()?.to_owned();
    let family = family_around(words, &prefix);
    show(words, ShowCommand::BgpFiltered { family, filter: TableFilter::LongerPrefixes(prefix) })
}

fn as_path(words: &Words<'_>) -> Option<Question> {
    filtered(words, TableFilter::AsPath(words.after("regexp")?.to_owned()))
}

fn communities(words: &Words<'_>) -> Option<Question> {
    let is_exact = words.has("exact-match");
    let (text, is_large) = match words.after("community") {
        Some(text) => (text, false),
        None => (words.after("large-community")?, true),
    };
    filtered(words, TableFilter::Community { text: text.to_owned(), is_large, is_exact })
}
