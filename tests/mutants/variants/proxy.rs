//! Mistakes in what the service proxy wants of a node, and in the order in which the kernel gets it.

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
const RECONCILER: &str = "reconciler/mod.rs";
const NEEDS: &str = "reconciler/needs.rs";
const DELIVERED: &str = "delivered.rs";
const DRAINING: &str = "reconciler/draining.rs";

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
        "(!widest.is_empty()).then_some(widest)",
        "(!ranges.is_empty()).then_some(widest)",
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
    variant(
        "reconciler: the node has an address before its filter rules",
        NEEDS,
        "if ours.peek().is_some() && ours.all(|at| self.kernel.rules.contains_key(at)) {",
        "if ours.peek().is_some() {",
    ),
    variant(
        "reconciler: servers are removed while packets arrive",
        NEEDS,
        "if self.is_leaving(at, wanted) && !self.is_reachable(at, wanted) {",
        "if self.is_leaving(at, wanted) {",
    ),
    variant(
        "reconciler: a server of somebody else is changed",
        NEEDS,
        "_ if is_foreign => {}",
        "_ if is_foreign && at.port == 0 => {}",
    ),
    variant(
        "reconciler: a server is made without a record",
        NEEDS,
        "if self.record.get(&at) != Some(&intended) || !is_sure {",
        "if self.record.get(&at) != Some(&intended) && is_sure && self.is_complete {",
    ),
    variant(
        "reconciler: endpoints leave before all of them are known",
        NEEDS,
        "if !self.is_complete || !self.is_ours(at) {",
        "if !self.is_ours(at) {",
    ),
    variant(
        "reconciler: packets go to a Pod that is gone for a quarter of an hour",
        NEEDS,
        "let goes_at_once = at.protocol != TransportProtocol::Tcp;",
        "let goes_at_once = at.protocol == TransportProtocol::Sctp;",
    ),
    variant(
        "reconciler: leftovers of an earlier run stay",
        NEEDS,
        "if at.protocol != TransportProtocol::Tcp || !self.is_ours(*at) {",
        "if at.protocol == TransportProtocol::Tcp || !self.is_ours(*at) {",
    ),
    variant(
        "reconciler: excluded networks are not",
        NEEDS,
        "!self.options.excluded.iter().any(|it| it.contains(at.address))",
        "self.options.excluded.iter().all(|it| it.contains(at.address))",
    ),
    variant(
        "reconciler: connections are cut when an endpoint leaves",
        DRAINING,
        "it.is_over || it.since + limit <= now",
        "it.is_over || it.since <= now",
    ),
    variant(
        "reconciler: an idle endpoint never leaves before its time",
        DRAINING,
        "it.is_over || it.since + limit <= now",
        "it.since + limit <= now",
    ),
    variant(
        "reconciler: another Service's Pod gets the connections",
        DRAINING,
        "if leaving.service.as_ref() != Some(by) && !leaving.is_over {",
        "if leaving.service.is_none() && !leaving.is_over {",
    ),
    variant(
        "reconciler: deadlines in the past are deadlines",
        DRAINING,
        ".map(|(since, _)| *since + limit).find(|at| *at > now)",
        ".map(|(since, _)| *since + limit).next()",
    ),
    variant(
        "reconciler: flows to a Pod that is gone go on",
        RECONCILER,
        "if at.protocol != TransportProtocol::Tcp {",
        "if at.protocol == TransportProtocol::Sctp {",
    ),
    variant(
        "reconciler: what was made by somebody else meanwhile is ours",
        RECONCILER,
        "if server.settings == Some(*settings) && server.real_servers.is_empty() {",
        "if server.settings == Some(*settings) || server.real_servers.len() == 1 {",
    ),
    variant(
        "reconciler: a server that went and came is ours",
        RECONCILER,
        "*recorded = Recorded::Intended(ServerSettings::default());",
        "*recorded = Recorded::Made;",
    ),
    variant(
        "reconciler: a virtual server in doubt is not read again before a batch",
        RECONCILER,
        "if !are_done || outcomes.len() != operations.len() {",
        "if outcomes.len() != operations.len() {",
    ),
    variant(
        "reconciler: a change finds the phases begun",
        RECONCILER,
        "let Touched { virtual_addresses, bound_addresses, hairpins, .. } = touched;",
        "self.progress.phase = Phase::Bind; let Touched { virtual_addresses, bound_addresses, hairpins, .. } = touched;",
    ),
    variant(
        "reconciler: what a batch had no room for is left out",
        NEEDS,
        "let first = from.map_or(Bound::Unbounded, Bound::Included);",
        "let first = from.map_or(Bound::Unbounded, Bound::Excluded);",
    ),
    variant(
        "reconciler: what is behind an address waits for ever",
        RECONCILER,
        "self.dirty.virtual_addresses.extend(behind);",
        "drop(behind);",
    ),
    variant(
        "reconciler: without a record nothing is ours",
        RECONCILER,
        "self.unconfirmed = ours.copied().collect();",
        "self.unconfirmed = ours.copied().take(0).collect();",
    ),
    variant(
        "proxy: a range within another one is set beside it",
        PART,
        "of_family().filter(|it| !is_within(it)).collect();",
        "of_family().filter(|it| !is_within(it) || true).collect();",
    ),
    variant(
        "proxy: the node does not use what its addresses may",
        PART,
        "(others, is_named || (of_node && !has(&address)))",
        "(others, is_named || (of_node && has(&address)))",
    ),
    variant(
        "reconciler: a take-over adopts what is somebody else's",
        RECONCILER,
        "if (theirs.contains(&at.address) || is_node_port)",
        "if (!theirs.is_empty() || is_node_port)",
    ),
    variant(
        "reconciler: a take-over forgets node ports",
        RECONCILER,
        "if (theirs.contains(&at.address) || is_node_port)",
        "if (theirs.contains(&at.address) && !is_node_port)",
    ),
    variant(
        "delivered: a server without an endpoint is one",
        DELIVERED,
        "server.is_some_and(|it| it.real_servers.values().any(|weight| *weight > 0))",
        "server.is_some()",
    ),
    variant(
        "delivered: an address that the node lacks is enough",
        DELIVERED,
        "if entry.is_bound && !kernel.bound_addresses.contains(&at.address) {",
        "if !entry.is_bound && !kernel.bound_addresses.contains(&at.address) {",
    ),
    variant(
        "delivered: a rule that still drops is no obstacle",
        DELIVERED,
        "kernel.rules.get(&at).is_some_and(|it| it.no_endpoints.is_some())",
        "kernel.rules.get(&at).is_none()",
    ),
    variant(
        "delivered: what was tried is not judged again",
        DELIVERED,
        "other => self.dirty.extend(other.virtual_address().map(|it| it.address)),",
        "other => drop(other.virtual_address()),",
    ),
    variant(
        "delivered: one port without an endpoint decides for all",
        DELIVERED,
        "if rank(&now) > rank(before) {",
        "if rank(&now) < rank(before) {",
    ),
    variant(
        "delivered: a server of another program is ours",
        DELIVERED,
        "if reconciler.foreign().contains(&at) {",
        "if reconciler.foreign().is_empty() && reconciler.foreign().contains(&at) {",
    ),
];
