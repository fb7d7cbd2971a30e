//! Which commands are compared? Those that operators, MetalLB's tools and exporters send to a router.

/// Which releases of FRR have a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// FRR 8.4 and 10.3.
    Both,
    /// Both, and we answer as 10.3.
    BothAsNew,
    /// FRR 10.3 alone.
    OnlyNew,
}

/// A command with JSON that is compared, without the word `json`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) words: &'static str,
    pub(crate) known: Known,
    /// What a neighbour does shows in it, too.
    pub(crate) follows_states: bool,
}

impl Command {
    pub(crate) fn json(self) -> String {
        format!("{} json", self.words)
    }

    /// The socket of the daemon that has the command.
    pub(crate) fn socket(self) -> &'static str {
        match self.words {
            words if words.starts_with("show bfd") => "bfdd.vty",
            words if words.contains("route") && !words.contains("bgp") => "zebra.vty",
            _ => "bgpd.vty",
        }
    }
}

const fn both(words: &'static str) -> Command {
    Command { words, known: Known::Both, follows_states: false }
}

const fn following(words: &'static str) -> Command {
    Command { follows_states: true, ..both(words) }
}

const fn only_new(words: &'static str) -> Command {
    Command { known: Known::OnlyNew, ..both(words) }
}

/// A route that router two alone has.
pub(crate) const FROM_ROUTER_TWO: &str = "show bgp ipv4 unicast 10.40.0.0/16";

pub(crate) const COMMANDS: &[Command] = &[
    following("show bgp summary"),
    following("show bgp summary failed"),
    both("show bgp ipv4 unicast summary"),
    both("show bgp ipv6 unicast summary"),
    both("show bgp vrf all ipv4 unicast summary"),
    both("show bgp vrf all ipv4 summary"),
    both("show bgp vrf all ipv6 summary"),
    following("show bgp neighbors"),
    following("show bgp vrf all neighbors"),
    both("show bgp vrf all"),
    following("show bgp ipv4 unicast"),
    both("show bgp ipv6 unicast"),
    only_new("show bgp ipv4 unicast detail"),
    both("show bgp ipv4 unicast 198.51.100.0/24"),
    both("show bgp ipv4 unicast 198.51.100.128/25"),
    both(FROM_ROUTER_TWO),
    both("show bgp ipv4 unicast 10.20.0.0/16"),
    both("show bgp ipv4 unicast 10.30.0.0/16"),
    both("show bgp ipv4 unicast 203.0.113.10/32"),
    both("show bgp ipv6 unicast 2001:db8:200::/48"),
    both("show bgp ipv4 unicast community 65010:100"),
    both("show bgp ipv4 unicast neighbors 10.1.1.2 advertised-routes"),
    both("show bgp ipv4 unicast neighbors 10.1.1.2 received-routes"),
    both("show bgp ipv4 unicast neighbors 10.1.1.2 filtered-routes"),
    both("show bgp ipv4 unicast neighbors 10.1.1.2 routes"),
    both("show bgp ipv4 unicast neighbors 10.1.1.2 prefix-counts"),
    both("show bgp ipv6 unicast neighbors 2001:db8:1:1::2 advertised-routes"),
    both("show bgp ipv6 unicast neighbors 2001:db8:1:1::2 received-routes"),
    both("show bgp ipv4 neighbors 10.1.1.2 graceful-restart"),
    following("show bgp ipv4 neighbors 10.1.2.2 graceful-restart"),
    both("show bgp peer-group"),
    only_new("show ip bgp vrf all nexthop"),
    only_new("show bgp router"),
    both("show bfd peers"),
    both("show bfd peers counters"),
    Command { known: Known::BothAsNew, ..both("show ip route vrf all summary") },
    both("show ip route"),
    both("show ipv6 route"),
];

/// Commands with text output: they are answered, and these words are in the answer.
pub(crate) const TEXTS: &[(&str, &[&str])] = &[
    ("show bgp summary", &["IPv4 Unicast Summary (VRF default):", "State/PfxRcd"]),
    ("show bgp ipv4 unicast summary", &["BGP router identifier 10.0.0.1", "10.1.1.97"]),
    ("show bgp summary failed", &["EstdCnt DropCnt ResetTime Reason", "10.9.9.9"]),
    ("show bgp summary established", &["Displayed neighbors 2", "2001:db8:1:1::2"]),
    ("show bgp neighbors", &["BGP neighbor is 10.1.1.2", "BGP state = Established"]),
    ("show bgp vrf all neighbors", &["Instance default:"]),
    ("show bgp ipv4 unicast", &["*> 0.0.0.0/0", "Displayed  9 routes and 11 total paths"]),
    ("show bgp ipv6 unicast", &["Displayed  6 routes and 6 total paths"]),
    ("show ip bgp", &["203.0.113.10/32"]),
    ("show bgp ipv4 unicast 198.51.100.5", &["entry for 198.51.100.0/24", "2 available"]),
    ("show bgp ipv4 unicast 198.51.100.128/25", &["Large Community: 65010:1:2 65010:7:9"]),
    ("show bgp ipv4 unicast neighbors 10.1.1.2 advertised-routes", &["203.0.113.11/32"]),
    ("show bgp ipv4 unicast neighbors 10.1.1.2 received-routes", &["prefixes 7 (1 filtered)"]),
    (
        "show bgp ipv4 unicast neighbors 10.1.1.2 filtered-routes",
        &["192.0.2.128/25    toReceive does not"],
    ),
    ("show bgp ipv4 unicast neighbors 10.1.1.2 prefix-counts", &["PfxCt: 6"]),
    ("show bgp ipv4 unicast large-community 65010:1:2", &["Displayed  1 routes and 11 total"]),
    ("show bgp ipv4 unicast 198.51.100.0/24 longer-prefixes", &["Displayed  2 routes and 11"]),
    ("show bgp ipv4 unicast regexp _65020$", &["10.40.0.0/16", "routes and 11 total"]),
    ("show bgp ipv4 unicast statistics", &["Total Advertisements          :           11"]),
    ("show bgp nexthop", &["10.1.1.2 valid [IGP metric 0], #paths 6, peer 10.1.1.2"]),
    ("show bfd peers", &["BFD Peers:", "\tpeer 10.1.1.2 ", "Status: up", "Status: down"]),
    ("show bfd peers brief", &["Session count: 3", "10.1.1.97"]),
    ("show bfd peers counters", &["Control packet input: "]),
    ("show bfd peer 10.1.1.2", &["BFD Peer:", "Diagnostics: ok", "Transmission interval: 200ms"]),
    ("show running-config", &["hostname node-a"]),
    ("write terminal", &["hostname node-a"]),
    ("sh bgp sum", &["IPv4 Unicast Summary"]),
    ("show bgp summary | include 10.1.1.9", &["10.1.1.97"]),
];

/// Commands that are refused, with the answer as vtysh shows it.
pub(crate) const REFUSALS: &[(&str, &str)] = &[
    ("show bgp nonsense", "% Unknown command: show bgp nonsense"),
    ("show b s", "% Ambiguous command: show b s"),
    ("show bgp ipv4 unicast neighbors", "% Command incomplete: show bgp ipv4 unicast neighbors"),
    ("clear bgp *", "% [BGP] Unknown command: clear bgp *"),
    ("show bgp community-info", "% [BGP] Unknown command: show bgp community-info"),
    ("show bgp neighbors 10.1.1.77", "% No such neighbor in this view/vrf"),
    ("show bgp ipv4 unicast 10.99.0.0/24", "% Network not in table"),
    ("show bgp vrf red summary", "% BGP instance not found"),
    ("show bfd peer 10.1.1.77 json", "% Unable to find 'peer 10.1.1.77'"),
];
