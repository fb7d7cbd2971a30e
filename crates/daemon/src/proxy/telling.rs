//! Those who announce addresses of this node are told which of them it delivers packets to.
//!
//! Nothing is said before it is known what is wanted and the kernel was read: what they heard from an earlier run stands.

use std::sync::Arc;

use fairway_model::{Deliveries, DeliveryUpdate};
use fairway_proxy::{Delivered, Operation, Reconciler, Touched, Wanted};
use tokio::sync::mpsc;
use tracing::error;

use crate::admin::DeliveryLine;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Telling {
    delivered: Delivered,
    /// What is said now is true.
    is_known: bool,
    followers: Vec<mpsc::Sender<Arc<str>>>,
}

impl Telling {
    /// One more who announces.
    pub(super) fn add(&mut self, follower: mpsc::Sender<Arc<str>>) {
        if self.is_known && !is_told(&follower, &line(true, self.delivered.deliveries().clone())) {
            return;
        }
        self.followers.push(follower);
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
        let is_first = !std::mem::replace(&mut self.is_known, true);
        if changed.is_empty() && !is_first {
            return;
        }
        let line = match is_first {
            true => line(true, self.delivered.deliveries().clone()),
            false => line(false, changed),
        };
        self.followers.retain(|it| is_told(it, &line));
    }
}

fn line(is_all: bool, deliveries: Deliveries) -> Arc<str> {
    let line = DeliveryLine::from(DeliveryUpdate { is_all, deliveries });
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
