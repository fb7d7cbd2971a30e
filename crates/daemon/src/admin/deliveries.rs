//! What the service proxy delivers, as a line of JSON.

use std::net::IpAddr;

use fairway_model::{Delivery, DeliveryUpdate, ObjectName};
use serde::{Deserialize, Serialize};

/// An answer to [`super::Request::Deliveries`], and what is kept of the last one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveryLine {
    /// Of other addresses nothing is said any more; else they are as before.
    is_all: bool,
    addresses: Vec<(IpAddr, Vec<(ObjectName, Delivery)>)>,
}

impl From<DeliveryUpdate> for DeliveryLine {
    fn from(DeliveryUpdate { is_all, deliveries }: DeliveryUpdate) -> Self {
        let addresses = deliveries.into_iter().map(|(at, it)| (at, it.into_iter().collect()));
        Self { is_all, addresses: addresses.collect() }
    }
}

impl From<DeliveryLine> for DeliveryUpdate {
    fn from(DeliveryLine { is_all, addresses }: DeliveryLine) -> Self {
        let deliveries = addresses.into_iter().map(|(at, it)| (at, it.into_iter().collect()));
        Self { is_all, deliveries: deliveries.collect() }
    }
}
