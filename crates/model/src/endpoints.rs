//! Which endpoints serve a Service, and where.

use fairway_ground::AddressFamily;

use super::{NodeName, ObjectName};

/// The endpoints of one EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSlice {
    /// The slice itself.
    pub name: ObjectName,
    /// The Service it belongs to, by its `kubernetes.io/service-name` label.
    pub service: ObjectName,
    /// The family of its addresses; `None` for host names.
    pub family: Option<AddressFamily>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The node it runs on, if the slice says so.
    pub node: Option<NodeName>,
    /// `ready` is true or absent, or `serving` is true: the endpoint answers traffic.
    pub usable: bool,
}
