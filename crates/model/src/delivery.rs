//! Whether packets to an address of a Service reach an endpoint by way of a node, as its service proxy says.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ObjectName;

/// What the service proxy of a node says of an address of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// A virtual server is in the kernel, and has an endpoint.
    Delivered,
    /// Its policy leaves it no endpoint, for this reason.
    NoEndpoint(String),
    /// Packets would be lost on this node, for this reason.
    Obstructed(String),
}

/// What it says of each Service with an address. Nothing of a Service: its virtual servers are not in the kernel yet.
pub type Deliveries = BTreeMap<IpAddr, BTreeMap<ObjectName, Delivery>>;

/// An answer of a service proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryUpdate {
    /// Nothing is known yet: it has not answered since the machine started.
    Awaited,
    /// Another proxy serves the node: nothing is known of its packets.
    OfAnotherProxy,
    /// It has not answered for a while: what it said last stands.
    Silent,
    /// This is all that is delivered.
    All(Deliveries),
    /// This is delivered, whatever else was said: not all is known yet of what there is.
    Some(Deliveries),
    /// Of other addresses it is as before; of one without Services nothing is said any more.
    Changed(Deliveries),
}
