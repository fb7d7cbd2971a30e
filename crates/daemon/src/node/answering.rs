//! What this node answers for on the local segment: the addresses of the plan, unless the node is drained.
//!
//! Starts the responder when there is the first address or the first member, so that a daemon without
//! L2Advertisements needs no right for it. Decides nothing. Owned by [`super::Announcing`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_layer2::{Edge, Excluded, Fence, Terms};
use fairway_plan::Layer2Announcement;
use fairway_seam::DrainState;
use tracing::{error, info};

use crate::host::seed;

/// Addresses that a line of the log names.
const LOGGED_MAX: usize = 8;

/// See the module.
pub(super) struct Answering {
    excluded: Excluded,
    refresh: Option<Duration>,
    edge: Option<Arc<Edge>>,
    /// Closed while other members may take this machine for dead.
    fence: Fence,
    planned: BTreeMap<IpAddr, Terms>,
    is_drained: bool,
}

impl Answering {
    /// Answers for nothing as yet, and never on interfaces with names in `excluded`.
    pub(super) fn new(excluded: Excluded, refresh: Option<Duration>) -> Self {
        let (edge, fence, planned) = (None, Fence::default(), BTreeMap::new());
        Self { excluded, refresh, edge, fence, planned, is_drained: false }
    }

    /// The addresses of the latest plan.
    pub(super) fn follow_plan(&mut self, planned: &[Layer2Announcement]) {
        let terms =
            |it: &Layer2Announcement| Terms { interfaces: it.interfaces.clone(), bind: it.bind };
        let planned: BTreeMap<IpAddr, Terms> =
            planned.iter().map(|it| (it.address, terms(it))).collect();
        let difference = |one: &BTreeMap<IpAddr, Terms>, other: &BTreeMap<IpAddr, Terms>| {
            one.keys().filter(|it| !other.contains_key(it)).copied().collect::<Vec<IpAddr>>()
        };
        log("this node answers for addresses", &difference(&planned, &self.planned));
        log("this node no longer answers for addresses", &difference(&self.planned, &planned));
        self.planned = planned;
        self.apply();
    }

    /// The drain state of the node.
    pub(super) fn follow_drain(&mut self, state: DrainState) {
        let is_drained = state == DrainState::Drained;
        if self.is_drained != is_drained {
            self.is_drained = is_drained;
            self.apply();
        }
    }

    fn apply(&mut self) {
        let owned = if self.is_drained { BTreeMap::new() } else { self.planned.clone() };
        if !owned.is_empty() {
            self.start();
        }
        if let Some(edge) = &self.edge {
            edge.own(owned);
        }
    }

    /// Starts the responder, if it does not run.
    pub(super) fn start(&mut self) {
        if self.edge.is_none() {
            match Edge::start(self.excluded.clone(), seed(), self.refresh, self.fence.clone()) {
                Ok(edge) => self.edge = Some(Arc::new(edge)),
                Err(error) => {
                    error!(%error, "cannot read the interfaces of this machine: no address is answered for")
                }
            }
        }
    }

    /// Until when this machine may answer.
    pub(super) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// The responder, once there was an address.
    pub(super) fn edge(&self) -> Option<Arc<Edge>> {
        self.edge.clone()
    }
}

/// One line, with the first addresses.
fn log(message: &str, addresses: &[IpAddr]) {
    if !addresses.is_empty() {
        let first = addresses.get(..LOGGED_MAX).unwrap_or(addresses);
        info!(count = addresses.len(), ?first, "{message}");
    }
}
