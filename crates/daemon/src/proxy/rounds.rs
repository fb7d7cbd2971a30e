//! What the rounds of the loop took, for metrics.

use std::net::IpAddr;
use std::time::Duration;

use fairway_model::{Kind, ObjectChange};
use fairway_proxy::Operation;

use crate::host::epoch_seconds;
use crate::metrics::{ProxyFacts, Rounds};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RoundLog {
    rounds: [Rounds; 2],
    updated_epoch_seconds: u64,
    queued_epoch_seconds: u64,
    endpoint_changes: u64,
    service_changes: u64,
    pub(super) repairs: u64,
    /// In the current round the whole kernel was read.
    pub(super) is_full: bool,
    /// Families of which the current round changes something.
    changes: [bool; 2],
}

impl RoundLog {
    /// Objects have changed.
    pub(super) fn changed(&mut self, changes: &[ObjectChange]) {
        self.queued_epoch_seconds = epoch_seconds();
        for (key, _) in changes {
            let counter = match key.kind {
                Kind::Service => &mut self.service_changes,
                Kind::EndpointSlice => &mut self.endpoint_changes,
                _ => continue,
            };
            *counter = counter.saturating_add(1);
        }
    }

    /// The current round does this.
    pub(super) fn performs(&mut self, operations: &[Operation]) {
        let [ipv4, ipv6] = &mut self.changes;
        for address in operations.iter().filter_map(address) {
            *ipv4 |= address.is_ipv4();
            *ipv6 |= address.is_ipv6();
        }
    }

    /// The current round has ended, and all is as wanted.
    pub(super) fn end(&mut self, took: Duration) {
        let (is_full, changes) =
            (std::mem::take(&mut self.is_full), std::mem::take(&mut self.changes));
        for (rounds, has_changed) in self.rounds.iter_mut().zip(changes) {
            if is_full {
                rounds.full.note(took);
            } else if has_changed {
                rounds.partial.note(took);
            } else {
                continue;
            }
            rounds.all.note(took);
        }
        self.updated_epoch_seconds = epoch_seconds();
    }

    pub(super) fn facts(&self) -> ProxyFacts {
        ProxyFacts {
            rounds: self.rounds.clone(),
            updated_epoch_seconds: self.updated_epoch_seconds,
            queued_epoch_seconds: self.queued_epoch_seconds,
            endpoint_changes: self.endpoint_changes,
            service_changes: self.service_changes,
            repairs: self.repairs,
            ..ProxyFacts::default()
        }
    }
}

fn address(operation: &Operation) -> Option<IpAddr> {
    match operation {
        Operation::Bind(address) | Operation::Unbind(address) => Some(*address),
        Operation::AddHairpin(it) | Operation::RemoveHairpin(it) => Some(it.real_server.address),
        other => other.virtual_address().map(|it| it.address),
    }
}
