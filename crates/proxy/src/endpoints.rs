//! Which endpoints of a Service's port take its connections on this node.
//!
//! Answers it for both traffic policies. Knows no address of the Service; `part` asks for each port and family.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{ProxiedEndpoint, ProxiedPort, ProxiedSlice};

use crate::place::Place;
use crate::wanted::RealServer;

/// The endpoints of a port, for each policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PortEndpoints {
    /// Under policy Cluster. Empty if there is none anywhere.
    pub(crate) cluster: Vec<RealServer>,
    /// Under policy Local.
    pub(crate) local: Vec<RealServer>,
    /// All on this node, in whatever state.
    pub(crate) here: Vec<RealServer>,
}

/// For which part of the cluster an endpoint is kept.
enum Topology {
    Node,
    Zone,
    Whole,
}

impl PortEndpoints {
    /// Chooses among the endpoints of these slices. They are matched by the name of the port and its protocol, never by
    /// number.
    pub(crate) fn choose<'a>(
        slices: impl Iterator<Item = &'a ProxiedSlice>,
        port: &ProxiedPort,
        family: AddressFamily,
        place: &Place,
    ) -> Self {
        let all = united(slices.filter(|it| it.family == family), port);
        let is_here = |it: &ProxiedEndpoint| it.node.as_deref() == Some(&*place.node);
        let chosen = |is_chosen: &dyn Fn(&ProxiedEndpoint) -> bool| -> Vec<RealServer> {
            all.iter().filter(|(_, it)| is_chosen(it)).map(|(server, _)| *server).collect()
        };
        let is_leaving = |it: &ProxiedEndpoint| it.is_serving && it.is_terminating;
        let topology = topology(all.values().copied(), place);
        let is_near = |it: &ProxiedEndpoint| match topology {
            Topology::Node => it.node_hints.contains(&place.node),
            Topology::Zone => place.zone.as_ref().is_some_and(|zone| it.zone_hints.contains(zone)),
            Topology::Whole => true,
        };
        let mut cluster = chosen(&|it| it.is_ready && is_near(it));
        if cluster.is_empty() {
            cluster = chosen(&is_leaving);
        }
        let mut local = chosen(&|it| is_here(it) && it.is_ready);
        if local.is_empty() {
            local = chosen(&|it| is_here(it) && is_leaving(it));
        }
        Self { cluster, local, here: chosen(&is_here) }
    }
}

/// The endpoints by address and port. Of several with the same, one that stays comes before one that is about to end.
fn united<'a>(
    slices: impl Iterator<Item = &'a ProxiedSlice>,
    port: &ProxiedPort,
) -> BTreeMap<RealServer, &'a ProxiedEndpoint> {
    let mut all: BTreeMap<RealServer, &ProxiedEndpoint> = BTreeMap::new();
    for slice in slices {
        let ports = slice.ports.iter();
        let ports = ports.filter(|it| it.name == port.name && it.protocol == port.protocol);
        for number in ports.map(|it| it.port) {
            for endpoint in &slice.endpoints {
                let server = RealServer { address: endpoint.address, port: number };
                let known = all.entry(server).or_insert(endpoint);
                if known.is_terminating && !endpoint.is_terminating {
                    *known = endpoint;
                }
            }
        }
    }
    all
}

/// How far the hints of the ready endpoints narrow the choice. One endpoint without a hint leaves it whole.
fn topology<'a>(
    endpoints: impl Iterator<Item = &'a ProxiedEndpoint> + Clone,
    place: &Place,
) -> Topology {
    let ready = endpoints.filter(|it| it.is_ready);
    let have_nodes = ready.clone().all(|it| !it.node_hints.is_empty());
    if have_nodes && ready.clone().any(|it| it.node_hints.contains(&place.node)) {
        return Topology::Node;
    }
    let Some(zone) = &place.zone else { return Topology::Whole };
    let have_zones = ready.clone().all(|it| !it.zone_hints.is_empty());
    if have_zones && ready.clone().any(|it| it.zone_hints.contains(zone)) {
        return Topology::Zone;
    }
    Topology::Whole
}

/// How many endpoints here are ready, by their addresses, over all ports. `Ours:` of two families the larger count, as
/// kube-proxy's two answers say it: a Pod with two addresses is one endpoint.
pub(crate) fn local_ready_count<'a>(
    slices: impl Iterator<Item = &'a ProxiedSlice>,
    place: &Place,
) -> usize {
    let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
    for slice in slices {
        let here = slice.endpoints.iter().filter(|it| it.node.as_deref() == Some(&*place.node));
        addresses.extend(here.filter(|it| it.is_ready).map(|it| it.address));
    }
    let of_ipv4 = addresses.iter().filter(|it| it.is_ipv4()).count();
    of_ipv4.max(addresses.len().saturating_sub(of_ipv4))
}
