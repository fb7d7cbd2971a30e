//! The commands of each daemon, and the questions that they stand for.
//!
//! Pure. FRR's commands that Fairway does not answer are listed only if an abbreviation could mean them as
//! well: so an abbreviation is ambiguous exactly where it is in FRR.

use std::sync::LazyLock;

use fairway_ground::AddressFamily;

use super::Daemon;
use super::grammar::{Misread, Pattern, Words, find};
use crate::{
    BfdDetail, CommunityFilter, Format, PeerRoutes, ShowCommand, SummaryFamilies, SummaryFilter,
};

/// The question that a line stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    /// A BGP or BFD `show` command.
    Show {
        /// The command.
        what: ShowCommand,
        /// Text or JSON.
        format: Format,
        /// The VRF.
        vrf: Vrf,
    },
    /// Routes of the kernel, of which Fairway has none.
    KernelRoutes {
        /// Only how many there are.
        is_summary: bool,
        /// Whether answers are keyed by VRF.
        is_keyed: bool,
        /// Text or JSON.
        format: Format,
    },
    /// `show version`.
    Version,
    /// `show running-config`.
    RunningConfig,
    /// Accepted without effect: `enable`, `terminal length 0`.
    Nothing,
    /// Closes the connection.
    Exit,
}

/// Which VRFs an answer covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Vrf {
    /// No VRF given, or `vrf default`.
    Default,
    /// `vrf all`: answers are keyed by name.
    All,
    /// `vrf NAME`, which may not exist.
    Named(String),
}

/// A pattern, and the question for its words; `None`: FRR has the command and Fairway does not.
type Command = (&'static str, fn(&Words<'_>) -> Option<Question>);

/// All commands of one daemon, with their patterns read.
type Table = Vec<(Pattern, fn(&Words<'_>) -> Option<Question>)>;

/// The start of all BGP commands; the word after `ip` chooses the family that is not named.
macro_rules! bgp {
    ($rest:literal) => {
        concat!("show [ip] bgp [<view|vrf> VRF] ", $rest)
    };
}

/// The commands that every daemon answers.
const COMMON: [Command; 9] = [
    ("<enable|disable|end>", |_| Some(Question::Nothing)),
    ("terminal <length NUMBER|no length>", |_| Some(Question::Nothing)),
    ("<exit|quit|logout>", |_| Some(Question::Exit)),
    ("show version", |_| Some(Question::Version)),
    ("show <running-config|startup-config>", |words| {
        words.has("running-config").then_some(Question::RunningConfig)
    }),
    ("write terminal", |_| Some(Question::RunningConfig)),
    ("write <file|memory|integrated>", |_| None),
    ("configure [terminal]", |_| None),
    ("show <history|memory|logging|debugging|thread|work-queues>", |_| None),
];

const BGP: [Command; 13] = [
    (bgp!("[<ipv4|ipv6> [unicast]] summary [<established|failed>] [json]"), summary),
    (bgp!("[<ipv4|ipv6>] neighbors [PEER] [json]"), neighbors),
    (bgp!("[<ipv4|ipv6>] neighbors [PEER] graceful-restart [json]"), graceful_restart),
    (
        bgp!(
            "[<ipv4|ipv6> [unicast]] neighbors PEER \
             <advertised-routes|received-routes|filtered-routes|routes|prefix-counts> [json]"
        ),
        peer_routes,
    ),
    (bgp!("[<ipv4|ipv6> [unicast]] [json]"), table),
    (bgp!("[<ipv4|ipv6> [unicast]] detail [json]"), detail),
    (bgp!("[<ipv4|ipv6> [unicast]] <ADDRESS|PREFIX> [json]"), entry),
    (bgp!("[<ipv4|ipv6> [unicast]] community COMMUNITY [exact-match] [json]"), communities),
    (bgp!("[<ipv4|ipv6> [unicast]] large-community COMMUNITY [exact-match] [json]"), communities),
    (bgp!("peer-group [GROUP] [json]"), |words| {
        let group = words.after("peer-group").map(str::to_owned);
        show(words, ShowCommand::BgpPeerGroups { group })
    }),
    (bgp!("[<ipv4|ipv6>] nexthop [ADDRESS] [detail] [json]"), |words| {
        let address = words.after("nexthop").map(str::to_owned);
        show(words, ShowCommand::BgpNextHops { address })
    }),
    ("show bgp router [json]", |words| show(words, ShowCommand::BgpRouter)),
    (
        bgp!(
            "[<ipv4|ipv6> [unicast]] <statistics|statistics-all|segment-routing|self-originate|\
             dampening|community-list|community-info|large-community-list|cidr-only|paths|\
             prefix-list|regexp|route-map|route-leak|rpki|mac|martian|memory|version|view|views|\
             vrfs|update-groups|access-list|alias|all|attribute-info|listeners|labelpool|peerhash>"
        ),
        |_| None,
    ),
];

const BFD: [Command; 3] = [
    ("show bfd [vrf VRF] peers [<brief|counters>] [json]", |words| {
        let detail = match (words.has("brief"), words.has("counters")) {
            (true, _) => BfdDetail::Brief,
            (_, true) => BfdDetail::Counters,
            _ => BfdDetail::Full,
        };
        show(words, ShowCommand::BfdPeers { detail })
    }),
    (
        "show bfd [vrf VRF] peer PEER [multihop] [local-address ADDRESS] [interface INTERFACE] \
         [counters] [json]",
        |words| {
            let peer = words.after("peer")?.to_owned();
            let detail = if words.has("counters") { BfdDetail::Counters } else { BfdDetail::Full };
            show(words, ShowCommand::BfdPeer { peer, detail })
        },
    ),
    ("show bfd <distributed|static>", |_| None),
];

const ZEBRA: [Command; 2] = [
    ("show <ip|ipv6> route [vrf VRF] [summary] [json]", |words| {
        let is_summary = words.has("summary");
        // The kernel table is not read, so the answer is that of a machine without VRFs.
        let is_keyed = words.after("vrf") == Some("all") && is_summary;
        Some(Question::KernelRoutes { is_summary, is_keyed, format: format_of(words) })
    }),
    ("show <ip|ipv6> <rpf|nht|prefix-list|protocol|forwarding|fib>", |_| None),
];

fn table_of(commands: &[Command]) -> Table {
    let all = COMMON.iter().chain(commands);
    all.map(|(pattern, ask)| (Pattern::new(pattern), *ask)).collect()
}

static TABLES: LazyLock<[Table; 3]> =
    LazyLock::new(|| [table_of(&BGP), table_of(&BFD), table_of(&ZEBRA)]);

/// The question that `line` is for `daemon`.
pub(super) fn understand(daemon: Daemon, line: &str) -> Result<Question, Misread> {
    let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
    if words.first().is_none_or(|first| first.starts_with(['!', '#'])) {
        return Ok(Question::Nothing);
    }
    // As within `configure terminal`, where only `do` is supported here.
    if words.first() == Some(&"do") {
        words.remove(0);
    }
    let [bgpd, bfdd, zebra] = &*TABLES;
    let table = match daemon {
        Daemon::Bgpd => bgpd,
        Daemon::Bfdd => bfdd,
        Daemon::Zebra => zebra,
    };
    let (position, words) = find(table.iter().map(|(pattern, _)| pattern), &words)?;
    let ask = table.get(position).map(|(_, ask)| ask);
    ask.and_then(|ask| ask(&words)).ok_or(Misread::NoMatch)
}

fn format_of(words: &Words<'_>) -> Format {
    if words.has("json") { Format::Json } else { Format::Text }
}

fn show(words: &Words<'_>, what: ShowCommand) -> Option<Question> {
    let vrf = match words.after("vrf").or_else(|| words.after("view")) {
        None | Some("default") => Vrf::Default,
        Some("all") => Vrf::All,
        Some(name) => Vrf::Named(name.to_owned()),
    };
    Some(Question::Show { what, format: format_of(words), vrf })
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

/// Without a family, that of the prefix: FRR would refuse IPv4.
fn entry(words: &Words<'_>) -> Option<Question> {
    let prefix = words.last_value()?.to_owned();
    let of_prefix = match prefix.contains(':') {
        true => AddressFamily::Ipv6Unicast,
        false => AddressFamily::Ipv4Unicast,
    };
    let is_ip = words.has("ip").then_some(AddressFamily::Ipv4Unicast);
    let family = family_of(words).or(is_ip).unwrap_or(of_prefix);
    show(words, ShowCommand::BgpUnicast { family, prefix: Some(prefix) })
}

fn communities(words: &Words<'_>) -> Option<Question> {
    let is_exact = words.has("exact-match");
    let filter = match words.after("community") {
        Some(text) => CommunityFilter { text: text.to_owned(), is_large: false, is_exact },
        None => {
            let text = words.after("large-community")?.to_owned();
            CommunityFilter { text, is_large: true, is_exact }
        }
    };
    show(words, ShowCommand::BgpCommunity { family: family_or_habit(words), filter })
}
