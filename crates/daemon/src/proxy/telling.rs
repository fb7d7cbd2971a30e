//! Those who announce addresses of this node are told which of them it delivers packets to.
//!
//! Nothing is said before it is known what is wanted and the kernel was read: what they heard from an earlier run stands.
//! While another proxy serves the node, they are told that.

use std::sync::Arc;

use fairway_model::DeliveryUpdate;
use fairway_proxy::{Delivered, Operation, Reconciler, Touched, Wanted};
use tokio::sync::mpsc;
use tracing::error;

use crate::admin::DeliveryLine;

/// What followers were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Said {
    #[default]
    Nothing,
    OfAnotherProxy,
    Deliveries,
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
            Said::Deliveries => Some(DeliveryUpdate::All(self.delivered.deliveries().clone())),
        };
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

    /// Nothing is left to do to the kernel right now, and it is known what is wanted.
    pub(super) fn tell(&mut self, wanted: &Wanted, reconciler: &Reconciler) {
        let changed = self.delivered.judge(wanted, reconciler);
        let is_first = std::mem::replace(&mut self.said, Said::Deliveries) != Said::Deliveries;
        if is_first {
            self.tell_all(DeliveryUpdate::All(self.delivered.deliveries().clone()));
        } else if !changed.is_empty() {
            self.tell_all(DeliveryUpdate::Changed(changed));
        }
    }

    fn tell_all(&mut self, update: DeliveryUpdate) {
        let line = line(update);
        self.followers.retain(|it| is_told(it, &line));
    }
}

fn line(update: DeliveryUpdate) -> Arc<str> {
    let line = DeliveryLine::from(update);
    let mut text = serde_json::to_string(&line).unwrap_or_else(|error| {
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
