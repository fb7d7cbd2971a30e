//! What the service proxy delivers, as a line of JSON.

use std::net::IpAddr;

use fairway_model::{Deliveries, Delivery, DeliveryUpdate, ObjectName};
use serde::{Deserialize, Serialize};

/// An answer to [`super::Request::Deliveries`], and what is kept of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum DeliveryLine {
    OfAnotherProxy,
    All(Addresses),
    Some(Addresses),
    Changed(Addresses),
}

type Addresses = Vec<(IpAddr, Vec<(ObjectName, Delivery)>)>;

impl DeliveryLine {
    /// `None` for what only a follower finds out.
    pub(crate) fn of(update: DeliveryUpdate) -> Option<Self> {
        let addresses = |it: Deliveries| -> Addresses {
            it.into_iter().map(|(at, services)| (at, services.into_iter().collect())).collect()
        };
        Some(match update {
            DeliveryUpdate::Awaited | DeliveryUpdate::Silent => return None,
            DeliveryUpdate::OfAnotherProxy => Self::OfAnotherProxy,
            DeliveryUpdate::All(deliveries) => Self::All(addresses(deliveries)),
            DeliveryUpdate::Some(deliveries) => Self::Some(addresses(deliveries)),
            DeliveryUpdate::Changed(deliveries) => Self::Changed(addresses(deliveries)),
        })
    }
}

impl From<DeliveryLine> for DeliveryUpdate {
    fn from(line: DeliveryLine) -> Self {
        let deliveries = |it: Addresses| -> Deliveries {
            it.into_iter().map(|(at, services)| (at, services.into_iter().collect())).collect()
        };
        match line {
            DeliveryLine::OfAnotherProxy => Self::OfAnotherProxy,
            DeliveryLine::All(addresses) => Self::All(deliveries(addresses)),
            DeliveryLine::Some(addresses) => Self::Some(deliveries(addresses)),
            DeliveryLine::Changed(addresses) => Self::Changed(deliveries(addresses)),
        }
    }
}
