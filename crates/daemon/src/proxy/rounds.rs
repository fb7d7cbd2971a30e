//! What the rounds of the loop took, for metrics.

use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::AddressFamily;
use fairway_model::{Kind, Object, ObjectChange, ProxiedSlice};
use fairway_proxy::Operation;
use k8s_openapi::jiff::Timestamp;

use crate::host::{epoch_milliseconds, epoch_seconds};
use crate::metrics::{ProxyFacts, Rounds};

/// See the module.
#[derive(Debug)]
pub(super) struct RoundLog {
    started_epoch_milliseconds: u64,
    rounds: [Rounds; 2],
    updated_epoch_seconds: u64,
    queued_epoch_seconds: u64,
    endpoint_changes: u64,
    service_changes: u64,
    /// Of these, those since the kernel was last as wanted.
    pending: (u64, u64),
    /// When the changes happened that the kernel does not have yet, with the family that they concern.
    triggered: Vec<(AddressFamily, u64)>,
    pub(super) repairs: u64,
    /// In the current round the whole kernel was read.
    pub(super) is_full: bool,
    /// Families of which the current round changes something.
    changes: [bool; 2],
}

impl RoundLog {
    pub(super) fn new() -> Self {
        Self {
            started_epoch_milliseconds: epoch_milliseconds(),
            rounds: Default::default(),
            updated_epoch_seconds: 0,
            queued_epoch_seconds: 0,
            endpoint_changes: 0,
            service_changes: 0,
            pending: (0, 0),
            triggered: Vec::new(),
            repairs: 0,
            is_full: false,
            changes: [false; 2],
        }
    }

    /// Objects have changed.
    pub(super) fn changed(&mut self, changes: &[ObjectChange]) {
        self.queued_epoch_seconds = epoch_seconds();
        for (key, object) in changes {
            let (all, pending) = match key.kind {
                Kind::Service => (&mut self.service_changes, &mut self.pending.1),
                Kind::EndpointSlice => (&mut self.endpoint_changes, &mut self.pending.0),
                _ => continue,
            };
            *all = all.saturating_add(1);
            *pending = pending.saturating_add(1);
            if let Some(Object::ProxiedSlice(slice)) = object.as_deref() {
                self.note_trigger(slice);
            }
        }
    }

    /// What happened before this process had started says nothing of it.
    fn note_trigger(&mut self, slice: &ProxiedSlice) {
        /// A sample is as good as all.
        const TRIGGERED_MAX: usize = 10_000;
        let written = slice.triggered_at.as_deref().and_then(|it| it.parse::<Timestamp>().ok());
        let at = written.and_then(|it| u64::try_from(it.as_millisecond()).ok());
        let at = at.filter(|it| *it >= self.started_epoch_milliseconds);
        if self.triggered.len() < TRIGGERED_MAX {
            self.triggered.extend(at.map(|it| (slice.family, it)));
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
        self.pending = (0, 0);
        let now = epoch_milliseconds();
        for (family, at) in self.triggered.drain(..) {
            let [ipv4, ipv6] = &mut self.rounds;
            let rounds = if family == AddressFamily::Ipv4Unicast { ipv4 } else { ipv6 };
            rounds.network_programming.note(Duration::from_millis(now.saturating_sub(at)));
        }
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
            pending: self.pending,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairway_model::{ObjectKey, ObjectName};

    use super::*;

    fn changed(triggered_at: Option<String>) -> ObjectChange {
        let name = ObjectName::new("shop", "web-1");
        let slice = ProxiedSlice {
            service: ObjectName::new("shop", "web"),
            name: name.clone(),
            family: AddressFamily::Ipv6Unicast,
            triggered_at,
            ports: Vec::new(),
            endpoints: Vec::new(),
        };
        let key = ObjectKey { kind: Kind::EndpointSlice, name };
        (Arc::new(key), Some(Arc::new(Object::ProxiedSlice(slice))))
    }

    #[test]
    fn a_change_is_pending_until_the_kernel_has_it_and_counts_from_when_it_happened() {
        let mut log = RoundLog::new();
        let now = i64::try_from(epoch_milliseconds()).unwrap();
        let now = Timestamp::from_millisecond(now).unwrap();
        let earlier = "2020-01-01T00:00:00Z".to_owned();
        log.changed(&[
            changed(Some(now.to_string())),
            changed(Some(earlier)),
            changed(Some("yesterday".to_owned())),
            changed(None),
        ]);
        assert_eq!(log.facts().pending, (4, 0));
        log.end(Duration::from_millis(1));
        let facts = log.facts();
        assert_eq!((facts.pending, facts.endpoint_changes), ((0, 0), 4));
        let counts = facts.rounds.map(|it| it.network_programming.count());
        assert_eq!(counts, [0, 1], "what happened before the start says nothing of it");
    }
}
