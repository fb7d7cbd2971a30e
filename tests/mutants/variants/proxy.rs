//! Mistakes in what the service proxy wants of a node.

use super::{Subject, Variant, variant};

pub(crate) const PROXY: Subject = Subject {
    folder: "crates/proxy",
    package: "fairway-proxy",
    is_story: false,
    rounds: &[&["tests::"]],
    seeds: "300",
    variants: VARIANTS,
};

const ENDPOINTS: &str = "endpoints.rs";
const PART: &str = "part.rs";
const PLACE: &str = "place.rs";
const PLANNER: &str = "planner.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "proxy: endpoints are matched by protocol alone",
        ENDPOINTS,
        "it.name == port.name && it.protocol == port.protocol",
        "it.protocol == port.protocol",
    ),
    variant(
        "proxy: hints narrow the fallback, too",
        ENDPOINTS,
        "cluster = chosen(&is_leaving);",
        "cluster = chosen(&|it| is_leaving(it) && it.zone_hints.contains(&\"a\".to_owned()));",
    ),
    variant(
        "proxy: one endpoint with a hint for this node is enough",
        ENDPOINTS,
        "if have_zones && ready.clone().any",
        "if ready.clone().any",
    ),
    variant(
        "proxy: endpoints that are about to end take new connections beside those that stay",
        ENDPOINTS,
        "let mut cluster = chosen(&|it| it.is_ready && is_near(it));",
        "let mut cluster = chosen(&|it| (it.is_ready || is_leaving(it)) && is_near(it));",
    ),
    variant(
        "proxy: of two slices the last one counts",
        ENDPOINTS,
        "if known.is_terminating && !endpoint.is_terminating {",
        "if true {",
    ),
    variant(
        "proxy: an endpoint that is about to end counts as healthy",
        ENDPOINTS,
        "here.filter(|it| it.is_ready)",
        "here.filter(|it| it.is_serving)",
    ),
    variant(
        "proxy: policy Local without a local endpoint rejects",
        PART,
        "if endpoints.cluster.is_empty() { NoEndpoints::Reject } else { NoEndpoints::Drop }",
        "NoEndpoints::Reject",
    ),
    variant(
        "proxy: policy Local loses the source address",
        PART,
        "TrafficPolicy::Local => (&endpoints.local, None, Masquerade::Never),",
        "TrafficPolicy::Local => (&endpoints.local, None, Masquerade::Always),",
    ),
    variant(
        "proxy: source ranges of one family close the other",
        PART,
        "let ranges = (!ranges.is_empty()).then_some(ranges);",
        "let ranges = (!service.source_ranges.is_empty()).then_some(ranges);",
    ),
    variant(
        "proxy: an external address opens what source ranges close",
        PART,
        "if known.is_some_and(|(known, _)| *known <= claim) {",
        "if known.is_some_and(|(known, _)| *known == claim) {",
    ),
    variant(
        "proxy: the node loses its own address with a Service",
        PART,
        "is_bound: !place.addresses.contains(&address),",
        "is_bound: claim != Claim::NodePort,",
    ),
    variant(
        "proxy: node ports are on loopback",
        PLACE,
        "address.is_loopback() || matches!",
        "matches!",
    ),
    variant(
        "proxy: networks of one family take the node ports of the other away",
        PLACE,
        "networks.is_empty() || networks.iter().any(|net| net.contains(*it))",
        "networks.iter().any(|net| net.contains(*it))",
    ),
    variant(
        "proxy: a Service that goes while options change stays",
        PLANNER,
        "let names = self.services.keys().chain(self.parts.keys());",
        "let names = self.services.keys();",
    ),
    variant(
        "proxy: who waits for an address never gets it",
        PLANNER,
        "let holder = self.claims.get(&at).and_then(BTreeSet::first).map(|(_, name)| name);",
        "let holder = self.claims.get(&at).filter(|it| it.len() == 1).and_then(BTreeSet::first).map(|(_, name)| name);",
    ),
    variant(
        "proxy: an address leaves the node with the first of its ports",
        PLANNER,
        "let is_bound = self.wanted.entries.range(whole).any(|(_, entry)| entry.is_bound);",
        "let is_bound = entry.is_some() && self.wanted.entries.range(whole).any(|(_, entry)| entry.is_bound);",
    ),
];
