//! Those who announce addresses of this node are told which of them it delivers packets to.
//!
//! Nothing is said before it is known what is wanted and the kernel was read: what they heard from an earlier run stands.
//! While another proxy serves the node, they are told that. As long as not all is known that is wanted, they are told what is
//! delivered, and nothing is taken back.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_model::{Deliveries, Delivery, DeliveryUpdate, ObjectName};
use fairway_proxy::{Delivered, Operation, Planner, Reconciler, Touched, Wanted};
use tokio::sync::mpsc;
use tracing::error;

use crate::admin::DeliveryLine;

/// What followers were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Said {
    #[default]
    Nothing,
    OfAnotherProxy,
    Some,
    All,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Telling {
    delivered: Delivered,
    said: Said,
    followers: Vec<mpsc::Sender<Arc<str>>>,
}

impl Telling {
    /// One more who announces.
    pub(super) fn add(&mut self, follower: mpsc::Sender<Arc<str>>) {
        let update = match self.said {
            Said::Nothing => None,
            Said::OfAnotherProxy => Some(DeliveryUpdate::OfAnotherProxy),
            Said::Some => Some(DeliveryUpdate::Some(delivered(self.delivered.deliveries()))),
            Said::All => Some(DeliveryUpdate::All(self.delivered.deliveries().clone())),
        };
        // One that asks again and again has left before.
        self.followers.retain(|it| !it.is_closed());
        if update.is_none_or(|update| is_told(&follower, &line(update))) {
            self.followers.push(follower);
        }
    }

    /// Another proxy serves this node.
    pub(super) fn leave_to_another(&mut self) {
        self.said = Said::OfAnotherProxy;
        self.tell_all(DeliveryUpdate::OfAnotherProxy);
    }

    pub(super) fn touch(&mut self, touched: &Touched) {
        self.delivered.touch(touched);
    }

    pub(super) fn tried(&mut self, operations: &[Operation]) {
        self.delivered.tried(operations);
    }

    pub(super) fn doubt_all(&mut self, wanted: &Wanted) {
        self.delivered.doubt_all(wanted);
    }

    /// Nothing is left to do to the kernel right now. `is_complete`: all is known that is wanted.
    pub(super) fn tell(&mut self, planner: &Planner, reconciler: &Reconciler, is_complete: bool) {
        let changed = self.delivered.judge(planner, reconciler);
        match (self.said, is_complete) {
            (Said::All, _) if changed.is_empty() => {}
            (Said::All, _) => self.tell_all(DeliveryUpdate::Changed(changed)),
            (_, true) => {
                self.said = Said::All;
                self.tell_all(DeliveryUpdate::All(self.delivered.deliveries().clone()));
            }
            // What the other proxy does is not known in part.
            (Said::OfAnotherProxy, false) => {}
            (Said::Nothing | Said::Some, false) => {
                self.said = Said::Some;
                let changed = delivered(&changed);
                if !changed.is_empty() {
                    self.tell_all(DeliveryUpdate::Some(changed));
                }
            }
        }
    }

    fn tell_all(&mut self, update: DeliveryUpdate) {
        let line = line(update);
        self.followers.retain(|it| is_told(it, &line));
    }
}

/// Those alone that are delivered.
fn delivered(deliveries: &Deliveries) -> Deliveries {
    let of_address = |(address, services): (&IpAddr, &BTreeMap<ObjectName, Delivery>)| {
        let services = services.iter().filter(|(_, it)| **it == Delivery::Delivered);
        let services: BTreeMap<_, _> =
            services.map(|(name, it)| (name.clone(), it.clone())).collect();
        (!services.is_empty()).then_some((*address, services))
    };
    deliveries.iter().filter_map(of_address).collect()
}

fn line(update: DeliveryUpdate) -> Arc<str> {
    let mut text = serde_json::to_string(&DeliveryLine::of(update)).unwrap_or_else(|error| {
        error!(%error, "what is delivered cannot be said");
        String::new()
    });
    text.push('\n');
    text.into()
}

/// Whether it is there and reads: one that is too far behind asks again.
fn is_told(follower: &mpsc::Sender<Arc<str>>, line: &Arc<str>) -> bool {
    follower.try_send(Arc::clone(line)).is_ok()
}
