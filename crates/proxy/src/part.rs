//! What one Service wants of the node, as if there were no other.
//!
//! Answers its virtual addresses, with the claim that it has to each. Knows no other Service: whose claim counts is for
//! `planner`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{AddressFamily, Prefix};
use fairway_model::{
    IpvsScheduler, ProxiedPort, ProxiedService, ProxiedSlice, ProxyConfiguration, TrafficPolicy,
};

use crate::endpoints::{PortEndpoints, local_ready_count};
use crate::place::Place;
use crate::wanted::{
    Entry, FilterRule, Hairpin, Masquerade, NoEndpoints, RealServer, VirtualAddress, VirtualServer,
};

/// By what right a Service has a virtual address: of several Services with the same one, the first right counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// The API server gave it.
    Cluster,
    /// A controller gave it.
    Balancer,
    /// The Service's author wrote it, and nobody has checked it.
    External,
    /// The API server gave the port.
    NodePort,
}

/// What one Service wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Part {
    pub(crate) entries: BTreeMap<VirtualAddress, (Claim, Entry)>,
    /// The port of its health check, and how many local endpoints are ready.
    pub(crate) health_check: Option<(u16, usize)>,
    /// Pods of this node.
    pub(crate) hairpins: BTreeSet<Hairpin>,
}

/// The Service and what surrounds it.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) service: &'a ProxiedService,
    pub(crate) place: &'a Place,
    pub(crate) configuration: &'a ProxyConfiguration,
}

impl Part {
    /// What this Service wants, with the endpoints of these slices.
    pub(crate) fn of<'a>(
        surroundings: Surroundings<'_>,
        slices: impl Iterator<Item = &'a ProxiedSlice> + Clone,
    ) -> Self {
        let Surroundings { service, place, .. } = surroundings;
        let mut part = Self {
            health_check: service
                .health_check_port
                .map(|port| (port, local_ready_count(slices.clone(), place))),
            ..Self::default()
        };
        // Without an address in the cluster no family is ruled out.
        let is_outside = service.cluster_addresses.is_empty();
        for family in AddressFamily::ALL {
            let mut addresses = service.cluster_addresses.iter();
            let cluster_address = addresses.find(|it| AddressFamily::of(**it) == family);
            if cluster_address.is_none() && !is_outside {
                continue;
            }
            for port in &service.ports {
                let endpoints = PortEndpoints::choose(slices.clone(), port, family, place);
                let here = endpoints.here.iter();
                let hairpin =
                    |it: &RealServer| Hairpin { real_server: *it, protocol: port.protocol };
                part.hairpins.extend(here.map(hairpin));
                if let Some(address) = cluster_address {
                    part.add_internal(surroundings, *address, port, &endpoints);
                }
                part.add_external(surroundings, family, port, &endpoints);
            }
        }
        part
    }

    fn add_internal(
        &mut self,
        surroundings: Surroundings<'_>,
        address: IpAddr,
        port: &ProxiedPort,
        endpoints: &PortEndpoints,
    ) {
        let Surroundings { service, place, configuration } = surroundings;
        let servers = match service.internal_policy {
            TrafficPolicy::Cluster => &endpoints.cluster,
            TrafficPolicy::Local => &endpoints.local,
        };
        let family = AddressFamily::of(address);
        let masquerade = if configuration.masquerade_all {
            Masquerade::Always
        } else if place.knows_pods(family, &configuration.local_detection) {
            Masquerade::OffCluster
        } else {
            Masquerade::Never
        };
        let rule = FilterRule {
            allowed_sources: None,
            allows_node: false,
            no_endpoints: servers.is_empty().then(|| without_any(endpoints)),
            serves_pods: false,
            masquerade,
        };
        self.add(surroundings, Claim::Cluster, address, (port, port.port), servers, rule);
    }

    fn add_external(
        &mut self,
        surroundings: Surroundings<'_>,
        family: AddressFamily,
        port: &ProxiedPort,
        endpoints: &PortEndpoints,
    ) {
        let Surroundings { service, place, configuration } = surroundings;
        let (servers, no_endpoints, masquerade) = match service.external_policy {
            TrafficPolicy::Cluster => {
                let none = endpoints.cluster.is_empty().then_some(NoEndpoints::Reject);
                (&endpoints.cluster, none, Masquerade::Always)
            }
            // Pods of this node reach the others; the answers to anybody else would have the wrong source.
            TrafficPolicy::Local if endpoints.local.is_empty() => {
                (&endpoints.cluster, Some(without_any(endpoints)), Masquerade::Never)
            }
            TrafficPolicy::Local => (&endpoints.local, None, Masquerade::Never),
        };
        let serves_pods = no_endpoints.is_some() && !servers.is_empty();
        let rule = |allowed_sources, allows_node| FilterRule {
            allowed_sources,
            allows_node,
            no_endpoints,
            serves_pods,
            masquerade,
        };
        let of_family = |list: &[IpAddr]| -> Vec<IpAddr> {
            list.iter().copied().filter(|it| AddressFamily::of(*it) == family).collect()
        };
        let ranges = widest(&service.source_ranges, family);
        for address in of_family(&service.balancer_addresses) {
            let rule = match &ranges {
                Some(ranges) => {
                    let (ranges, allows_node) = allowed(ranges, address, place);
                    rule(Some(ranges), allows_node)
                }
                None => rule(None, false),
            };
            self.add(surroundings, Claim::Balancer, address, (port, port.port), servers, rule);
        }
        for address in of_family(&service.external_addresses) {
            self.add(
                surroundings,
                Claim::External,
                address,
                (port, port.port),
                servers,
                rule(None, false),
            );
        }
        let Some(node_port) = port.node_port else { return };
        for address in place.node_port_addresses(family, &configuration.node_port_addresses) {
            self.add(
                surroundings,
                Claim::NodePort,
                address,
                (port, node_port),
                servers,
                rule(None, false),
            );
        }
    }

    fn add(
        &mut self,
        surroundings: Surroundings<'_>,
        claim: Claim,
        address: IpAddr,
        (port, number): (&ProxiedPort, u16),
        servers: &[RealServer],
        rule: FilterRule,
    ) {
        let Surroundings { service, place, configuration } = surroundings;
        let virtual_address = VirtualAddress { address, port: number, protocol: port.protocol };
        let known = self.entries.get(&virtual_address);
        if known.is_some_and(|(known, _)| *known <= claim) {
            return;
        }
        let scheduler: IpvsScheduler = service.scheduler.unwrap_or(configuration.scheduler);
        let persistence: Option<Duration> = service.affinity;
        let entry = Entry {
            service: service.name.clone(),
            server: VirtualServer { scheduler, persistence, real_servers: servers.to_vec() },
            rule,
            is_bound: !place.addresses.contains(&address),
            is_of_balancer: claim == Claim::Balancer,
        };
        self.entries.insert(virtual_address, (claim, entry));
    }
}

/// The ranges of a family without those that are within another one, which the kernel would refuse; `None` without any.
fn widest(ranges: &[Prefix], family: AddressFamily) -> Option<Vec<Prefix>> {
    let of_family = || ranges.iter().copied().filter(|it| it.family() == family);
    let is_within = |it: &Prefix| {
        of_family().any(|other| {
            other != *it && other.length() <= it.length() && other.contains(it.address())
        })
    };
    let widest: Vec<Prefix> = of_family().filter(|it| !is_within(it)).collect();
    (!widest.is_empty()).then_some(widest)
}

/// Who may use a balancer's address, and whether the node itself may beside them.
fn allowed(ranges: &[Prefix], address: IpAddr, place: &Place) -> (Vec<Prefix>, bool) {
    let has = |it: &IpAddr| ranges.iter().any(|range| range.contains(*it));
    let is_itself = |range: &Prefix| *range == Prefix::host(address);
    let is_named = ranges.iter().any(is_itself);
    let others = ranges.iter().copied().filter(|it| !is_itself(it)).collect();
    let of_node = place.addresses.iter().any(has);
    (others, is_named || (of_node && !has(&address)))
}

/// What becomes of connections where the policy leaves no endpoint.
fn without_any(endpoints: &PortEndpoints) -> NoEndpoints {
    if endpoints.cluster.is_empty() { NoEndpoints::Reject } else { NoEndpoints::Drop }
}
