//! Services, as far as addresses and announcing depend on them.

use std::net::IpAddr;

use fairway_ground::AddressFamily;

use super::{HealthCheck, Labels, ObjectName};

/// Which families a Service wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyPolicy {
    /// One address of this family.
    Single(AddressFamily),
    /// One of each; one of the first family is enough if no pool has both.
    PreferDual(AddressFamily),
    /// One of each, or none at all. The field is the first one.
    RequireDual(AddressFamily),
}

/// Whether nodes may forward traffic to other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficPolicy {
    /// Any node may announce.
    Cluster,
    /// Only nodes with a usable endpoint announce.
    Local,
}

/// A port, for address sharing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServicePort {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// 1 to 65535.
    pub port: u16,
}

/// A Service of type LoadBalancer. (Others never enter the index.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: ObjectName,
    /// Its labels.
    pub labels: Labels,
    /// `spec.loadBalancerClass`.
    pub load_balancer_class: Option<String>,
    /// The families it wants.
    pub families: FamilyPolicy,
    /// Addresses it requests, one for each family at most; empty when it takes any.
    pub requested_addresses: Vec<IpAddr>,
    /// The pools it requests by name, best first: none for any; one, of which both families come
    /// (`metallb.io/address-pool`); or two (`fairway.dev/address-pools`, see [`Self::spans_pools`]).
    pub requested_pools: Vec<String>,
    /// `metallb.io/allow-shared-ip`: Services with the same key may share an address. An empty key
    /// shares nothing, but its presence counts on layer 2.
    pub sharing_key: Option<String>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// `spec.externalTrafficPolicy`.
    pub traffic_policy: TrafficPolicy,
    /// `spec.selector` in one canonical string; Services with traffic policy Local share an
    /// address only when theirs are equal.
    pub selector: String,
    /// The addresses in `status.loadBalancer.ingress`, written by the last controller that assigned them.
    pub status_addresses: Vec<IpAddr>,
    /// How each machine without Kubernetes finds out whether it serves the Service itself.
    pub health_check: Option<HealthCheck>,
}

impl Service {
    /// Whether its two families may come from two pools. `Ours:` MetalLB takes both from one pool, and so
    /// does Fairway for a Service that does not name two.
    pub fn spans_pools(&self) -> bool {
        self.requested_pools.len() > 1
    }

    /// Whether the service proxy of a node leaves it to another program, as its labels say.
    pub fn is_of_another_proxy(&self) -> bool {
        /// In a cluster, Services with one of them are not even read by a service proxy.
        const LABELS: [&str; 2] =
            ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"];
        LABELS.iter().any(|it| self.labels.contains_key(*it))
    }
}
