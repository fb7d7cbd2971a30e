//! Facts about the cluster, and the index that holds them.
//!
//! Every type here holds exactly the parts of a resource that a decision depends on, so "did it
//! change?" is `==`. Knows no file and no API server; `resources` makes these values, `allocator`
//! and `plan` read them.

mod bfd_profile;
mod bgp_configuration;
mod changes;
mod delivery;
mod endpoints;
mod extras;
mod health_check;
mod index;
mod layer2;
mod name;
mod namespace;
mod node;
mod peer;
mod policy;
mod pool;
mod proxied;
mod secret;
mod selector;
mod service;

pub use bfd_profile::{BfdKeyReference, BfdProfile};
pub use bgp_configuration::BgpConfiguration;
pub use changes::Changes;
pub use delivery::{Deliveries, Delivery, DeliveryUpdate};
pub use endpoints::{Endpoint, EndpointSlice};
pub use extras::FrrExtras;
pub use health_check::{HealthCheck, Probe};
pub use index::{ClusterIndex, Object, ObjectChange};
pub use layer2::{Layer2Advertisement, PreferredNodes};
pub use name::{Kind, NameParts, ObjectKey, ObjectName};
pub use namespace::Namespace;
pub use node::{Node, NodeName};
pub use peer::{AoKeyReference, Peer, PeerPassword};
pub use policy::{
    Bandwidth, BgpAdvertisement, CommunityAliases, CommunityReference, CommunityValue,
    Contradiction, SingleValue,
};
pub use pool::{AddressRange, AddressRangeError, Pool, ServiceAllocation};
pub use proxied::{
    IpvsScheduler, IpvsTimeouts, LocalDetection, NodePortAddresses, ProxiedEndpoint, ProxiedPort,
    ProxiedService, ProxiedSlice, ProxyConfiguration, SlicePort, TransportProtocol,
};
pub use secret::Secret;
pub use selector::{LabelSelector, Labels, Operator, Requirement, any_matches};
pub use service::{FamilyPolicy, Service, ServicePort, TrafficPolicy};
