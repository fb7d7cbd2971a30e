//! Whether two Services may have the same address.
//!
//! Knows the rules of sharing and no address. Called by the occupancy index.

use fairway_model::{Service, ServicePort, TrafficPolicy};

/// Why two Services cannot have the same address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharingConflict {
    /// One of them does not share, or their keys differ.
    #[error("the two services do not have the same sharing key")]
    Key,
    /// Both want the same port.
    #[error("both have port {protocol}/{port}")]
    Port {
        /// `TCP`, `UDP` or `SCTP`.
        protocol: String,
        /// The port.
        port: u16,
    },
    /// They share, but not with these traffic policies and selectors.
    #[error(
        "with externalTrafficPolicy Local, services that share an address need the same policy and \
         the same selector"
    )]
    Backend,
}

/// A Service's properties on which sharing of an address depends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    sharing_key: Option<String>,
    backend: String,
    ports: Vec<ServicePort>,
}

impl Claim {
    /// The claim that `service` makes.
    pub(super) fn of(service: &Service) -> Self {
        Self {
            sharing_key: key(service).map(str::to_owned),
            backend: backend(service).to_owned(),
            ports: service.ports.clone(),
        }
    }

    /// Whether `service` still makes this claim.
    pub(super) fn is_of(&self, service: &Service) -> bool {
        self.sharing_key() == key(service)
            && self.backend == backend(service)
            && self.ports == service.ports
    }

    /// The key, never empty.
    pub(super) fn sharing_key(&self) -> Option<&str> {
        self.sharing_key.as_deref()
    }

    /// What all users of a shared address have in common: the key, and the backend. None for a Service
    /// that does not share.
    pub(super) fn group(&self) -> Option<(String, String)> {
        Some((self.sharing_key.clone()?, self.backend.clone()))
    }

    /// The ports, each of which only one Service of an address can have.
    pub(super) fn ports(&self) -> &[ServicePort] {
        &self.ports
    }

    /// Whether both share, and with each other.
    pub(super) fn has_key_of(&self, other: &Self) -> bool {
        self.sharing_key.is_some() && self.sharing_key == other.sharing_key
    }

    /// Whether the same endpoints may serve both.
    pub(super) fn has_backend_of(&self, other: &Self) -> bool {
        self.backend == other.backend
    }
}

/// An empty key means none.
fn key(service: &Service) -> Option<&str> {
    service.sharing_key.as_deref().filter(|key| !key.is_empty())
}

/// With traffic policy Local a node announces an address only if it serves it, so all Services that
/// share it must have the same endpoints. With Cluster every node serves everything.
fn backend(service: &Service) -> &str {
    match service.traffic_policy {
        TrafficPolicy::Cluster => "",
        TrafficPolicy::Local => &service.selector,
    }
}
