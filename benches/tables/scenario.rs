//! Which tables are moved?

use std::net::{Ipv4Addr, Ipv6Addr};

/// Of the speaker, on the network of all.
pub(crate) const SPEAKER: Ipv4Addr = Ipv4Addr::new(10, 82, 0, 1);
/// Of the speaker on the same network.
pub(crate) const SPEAKER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x83, 0, 0, 0, 0, 1);
/// Of the first neighbour on it.
const NEIGHBOURS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
/// Of the speaker on the first link.
const LINKS: Ipv4Addr = Ipv4Addr::new(10, 84, 0, 0);

fn at(first: Ipv4Addr, number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(first) + u32::try_from(number).unwrap_or_default())
}

/// Which neighbours announce how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The speaker's own prefixes.
    pub(crate) own: usize,
    /// Neighbours that announce, and are told what the others announce.
    pub(crate) senders: usize,
    pub(crate) routes_each: usize,
    /// Prefixes with the same attributes.
    pub(crate) per_update: usize,
    /// Neighbours that announce nothing.
    pub(crate) receivers: usize,
    /// How often the first sender then announces a prefix with other attributes, which the first receiver waits for.
    pub(crate) changes: usize,
    /// All neighbours leave, and what the speaker has in memory ten seconds later counts.
    pub(crate) then_leave: bool,
    /// What is announced is installed in the kernel, and removed when all neighbours leave: both are waited for.
    pub(crate) installs: bool,
    /// Each neighbour is on a link of its own, a /31, and not all on one.
    pub(crate) links: bool,
    /// Sessions carry IPv6, too.
    pub(crate) has_ipv6: bool,
    /// The speaker is a route server, and each neighbour a client with a filter of its own.
    pub(crate) serves: bool,
}

pub(crate) const NONE: Scenario = Scenario {
    name: "",
    own: 0,
    senders: 0,
    routes_each: 0,
    per_update: 100,
    receivers: 0,
    changes: 0,
    then_leave: false,
    installs: false,
    links: false,
    has_ipv6: false,
    serves: false,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "own-100k-to-1", own: 100_000, receivers: 1, ..NONE },
    Scenario { name: "own-100k-to-8", own: 100_000, receivers: 8, ..NONE },
    Scenario { name: "transit-500k", senders: 1, routes_each: 500_000, receivers: 1, ..NONE },
    Scenario {
        name: "transit-1M",
        senders: 1,
        routes_each: 1_000_000,
        receivers: 1,
        then_leave: true,
        ..NONE
    },
    Scenario {
        name: "one-prefix-per-update-100k",
        senders: 1,
        routes_each: 100_000,
        per_update: 1,
        receivers: 1,
        ..NONE
    },
    Scenario {
        name: "churn-100k",
        senders: 1,
        routes_each: 100_000,
        receivers: 1,
        changes: 500,
        ..NONE
    },
    Scenario { name: "10x50k", senders: 10, routes_each: 50_000, ..NONE },
    Scenario { name: "100x1k", senders: 100, routes_each: 1_000, ..NONE },
    Scenario {
        name: "install-1M",
        senders: 1,
        routes_each: 1_000_000,
        then_leave: true,
        installs: true,
        ..NONE
    },
    Scenario { name: "10x10k-to-200", senders: 10, routes_each: 10_000, receivers: 200, ..NONE },
];

const fn transit(name: &'static str, routes_each: usize) -> Scenario {
    Scenario { name, senders: 1, routes_each, receivers: 1, ..NONE }
}

/// From one neighbour to another.
pub(crate) const MORE_ROUTES: &[Scenario] = &[
    transit("1,000 routes", 1_000),
    transit("10,000", 10_000),
    transit("100,000", 100_000),
    transit("1,000,000", 1_000_000),
];

const fn told(name: &'static str, receivers: usize) -> Scenario {
    Scenario { name, senders: 1, routes_each: 1_000, receivers, ..NONE }
}

/// A thousand routes of one neighbour, to all others.
pub(crate) const MORE_PEERS: &[Scenario] =
    &[told("1 receiver", 1), told("10", 10), told("100", 100), told("500", 500)];

impl Scenario {
    pub(crate) fn peers(&self) -> usize {
        self.senders + self.receivers
    }

    /// Of the speaker, towards this neighbour.
    pub(crate) fn speaker_address(&self, neighbour: usize) -> Ipv4Addr {
        if self.links { at(LINKS, 2 * neighbour) } else { SPEAKER }
    }

    pub(crate) fn neighbour_address(&self, neighbour: usize) -> Ipv4Addr {
        if self.links { at(LINKS, 2 * neighbour + 1) } else { at(NEIGHBOURS, neighbour) }
    }

    pub(crate) fn sends(&self) -> bool {
        self.senders > 0
    }
}
