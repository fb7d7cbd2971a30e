//! The announced state and its changes: five hundred Services with addresses and communities of their own,
//! one that moves, a hundred that are created, changed and deleted: as Fairway's resources, and as the FRR
//! configuration that MetalLB would write for the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lab::resources::{self, Advertisement};

/// Services that do not change.
pub(crate) const STANDING: usize = 500;
/// The number of pools that they are spread over, each with its own advertisement and community.
const POOLS: usize = 5;
/// Services that are created, changed and deleted together.
pub(crate) const BATCH: usize = 100;
/// Services that change one by one, fast.
pub(crate) const STORM: usize = 200;

/// The node's neighbour.
pub(crate) const ROUTER: &str = "10.77.0.2";

/// The announced state at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The address of the Service that moves.
    pub(crate) moved: usize,
    /// Whether the hundred are announced, and with which community.
    pub(crate) has_batch: bool,
    pub(crate) tone: Tone,
}

/// The community of the hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    First,
    Second,
}

impl Tone {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    pub(crate) fn community(self) -> &'static str {
        match self {
            Self::First => "65001:1001",
            Self::Second => "65001:1002",
        }
    }
}

pub(crate) fn moved_address(number: usize) -> String {
    format!("203.0.113.{}", number % 250 + 1)
}

pub(crate) fn batch_addresses() -> BTreeSet<String> {
    (1..=BATCH).map(|number| format!("10.200.0.{number}")).collect()
}

/// The address of the Service of the storm after `round` changes.
pub(crate) fn storm_address(number: usize, round: usize) -> String {
    format!("10.201.{round}.{}", number + 1)
}

fn standing(pool: usize) -> impl Iterator<Item = String> {
    (1..=STANDING / POOLS).map(move |number| format!("10.128.{pool}.{number}"))
}

fn community_of(pool: usize) -> String {
    format!("65001:{}", 100 + pool)
}

fn services(prefix: &str, addresses: impl Iterator<Item = String>) -> String {
    let services = addresses.enumerate().map(|(number, address)| {
        resources::service(&format!("{prefix}-{number}"), Some(&address)) + "---\n"
    });
    services.collect()
}

fn advertised(name: &str, range: &str, community: &str) -> String {
    let communities = [community];
    let pools = [name];
    let advertisement =
        Advertisement { name, pools: &pools, communities: &communities, ..<_>::default() };
    resources::pool(name, &[range]) + "---\n" + &advertisement.yaml()
}

/// What never changes: files with their text.
pub(crate) fn standing_files() -> Vec<(String, String)> {
    let mut files = vec![("peer".to_owned(), peer())];
    for pool in 0..POOLS {
        let name = format!("pool-{pool}");
        let text = advertised(&name, &format!("10.128.{pool}.0/24"), &community_of(pool));
        files.push((name, text));
        files.push((format!("services-{pool}"), services(&format!("s{pool}"), standing(pool))));
    }
    files.push(("moving-pool".to_owned(), advertised("moving", "203.0.113.0/24", "65001:7")));
    files.push(("storm-pool".to_owned(), advertised("storm", "10.201.0.0/16", "65001:8")));
    files
}

fn peer() -> String {
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: router}}\n\
         spec: {{myASN: 65001, peerASN: 65002, peerAddress: \"{ROUTER}\", connectTime: 1s}}\n"
    )
}

impl State {
    pub(crate) const FIRST: Self = Self { moved: 0, has_batch: false, tone: Tone::First };

    /// The files that depend on this state.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let addresses = batch_addresses().into_iter().filter(|_| self.has_batch);
        vec![
            ("moving".to_owned(), resources::service("moving", Some(&moved_address(self.moved)))),
            ("batch".to_owned(), services("batch", addresses) + "# these come and go\n"),
            ("batch-pool".to_owned(), advertised("batch", "10.200.0.0/24", self.tone.community())),
        ]
    }

    /// Every address and its community.
    fn routes(&self) -> BTreeMap<String, String> {
        let mut routes = BTreeMap::new();
        for pool in 0..POOLS {
            routes.extend(standing(pool).map(|address| (address, community_of(pool))));
        }
        routes.insert(moved_address(self.moved), "65001:7".to_owned());
        if self.has_batch {
            let addresses = batch_addresses().into_iter();
            routes.extend(addresses.map(|address| (address, self.tone.community().to_owned())));
        }
        routes
    }

    /// The configuration of MetalLB's FRR mode for it, by its documented scheme: a prefix list for each
    /// community, one for everything allowed, entries numbered in the order of their prefixes.
    pub(crate) fn metallb_text(&self) -> String {
        let routes = self.routes();
        let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (address, community) in &routes {
            lists.entry(community).or_default().push(address);
        }
        let mut text = Text(String::new());
        // Otherwise, frr-reload.py deletes and sets the host name in each run.
        text.line(format_args!("hostname {}", hostname()));
        text.line(format_args!("ip nht resolve-via-default\nipv6 nht resolve-via-default"));
        text.line(format_args!("route-map {ROUTER}-in deny 20\nexit"));
        let (mut sequence, mut entry) = (1, 1);
        for (community, addresses) in &lists {
            let list = format!("{ROUTER}-{community}-ipv4-community-prefixes");
            for address in addresses {
                text.line(format_args!("ip prefix-list {list} seq {sequence} permit {address}/32"));
                sequence += 1;
            }
            text.line(format_args!(
                "route-map {ROUTER}-out permit {entry}\n match ip address prefix-list {list}\n \
                 set community {community} additive\n on-match next\nexit"
            ));
            entry += 1;
        }
        let allowed = format!("{ROUTER}-allowed-ipv4");
        for (sequence, address) in (1..).zip(routes.keys()) {
            text.line(format_args!("ip prefix-list {allowed} seq {sequence} permit {address}/32"));
        }
        text.line(format_args!(
            "ipv6 prefix-list {ROUTER}-allowed-ipv6 seq 1 deny any\n\
             route-map {ROUTER}-out permit {entry}\n match ip address prefix-list {allowed}\nexit\n\
             route-map {ROUTER}-out permit {}\n \
             match ipv6 address prefix-list {ROUTER}-allowed-ipv6\nexit",
            entry + 1
        ));
        text.line(format_args!(
            "router bgp 65001\n no bgp ebgp-requires-policy\n no bgp network import-check\n \
             no bgp default ipv4-unicast\n bgp graceful-restart preserve-fw-state\n \
             neighbor {ROUTER} remote-as 65002\n neighbor {ROUTER} timers connect 1\n \
             address-family ipv4 unicast\n  neighbor {ROUTER} activate\n  \
             neighbor {ROUTER} route-map {ROUTER}-in in\n  \
             neighbor {ROUTER} route-map {ROUTER}-out out"
        ));
        for address in routes.keys() {
            text.line(format_args!("  network {address}/32"));
        }
        text.line(format_args!(" exit-address-family\nexit"));
        text.0
    }
}

struct Text(String);

impl Text {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

fn hostname() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_else(|| "node".to_owned())
}

/// The router: received routes go to its kernel, where the community of the hundred becomes a segment size,
/// so that every change is a change in the kernel.
pub(crate) fn router_configuration() -> String {
    let marks = [(Tone::First, 1001), (Tone::Second, 1002)].map(|(tone, size)| {
        let community = tone.community().replace(':', ",");
        format!("if ({community}) ~ bgp_community then krt_advmss = {size}; ")
    });
    format!(
        "router id 10.0.0.2;\nprotocol device {{ scan time 1; }}\nprotocol direct {{ ipv4; }}\n\
         protocol kernel {{ ipv4 {{ export filter {{ if source != RTS_BGP then reject; {} accept; }}; \
         }}; }}\n\
         protocol bgp node4 {{ connect retry time 1; connect delay time 1; error wait time 1, 2; \
         hold time 90; direct; local {ROUTER} as 65002; neighbor 10.77.0.1 as 65001; \
         ipv4 {{ import all; export none; }}; }}\n",
        marks.concat()
    )
}

/// Whether a line of the kernel's monitor has the community of the hundred.
pub(crate) fn has_tone(line: &str, tone: Tone) -> bool {
    let size = match tone {
        Tone::First => "advmss 1001",
        Tone::Second => "advmss 1002",
    };
    line.contains(size)
}
