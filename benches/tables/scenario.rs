//! Which tables are moved?

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
}

const NONE: Scenario =
    Scenario { name: "", own: 0, senders: 0, routes_each: 0, per_update: 100, receivers: 0 };

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "own-100k-to-1", own: 100_000, receivers: 1, ..NONE },
    Scenario { name: "own-100k-to-8", own: 100_000, receivers: 8, ..NONE },
    Scenario { name: "transit-500k", senders: 1, routes_each: 500_000, receivers: 1, ..NONE },
    Scenario { name: "transit-1M", senders: 1, routes_each: 1_000_000, receivers: 1, ..NONE },
    Scenario {
        name: "one-prefix-per-update-100k",
        senders: 1,
        routes_each: 100_000,
        per_update: 1,
        receivers: 1,
        ..NONE
    },
    Scenario { name: "10x50k", senders: 10, routes_each: 50_000, ..NONE },
    Scenario { name: "100x1k", senders: 100, routes_each: 1_000, ..NONE },
];

impl Scenario {
    pub(crate) fn peers(&self) -> usize {
        self.senders + self.receivers
    }

    pub(crate) fn sends(&self) -> bool {
        self.senders > 0
    }
}
