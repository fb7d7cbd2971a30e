//! Which of several controllers may write: one Lease, and its timing.
//!
//! Answers until when this process is the leader, and what to request next. Knows no Service. The controller
//! owns one.
//!
//! Clocks of different processes are never compared: a candidate waits a whole lease from when it saw the
//! Lease change last. The leader counts from before it sent its renewal, stops [`RENEW_DEADLINE`] later, and
//! whatever it has written by then arrives within [`WRITE_TIMEOUT`] or never. The sum is no longer than
//! [`LEASE_DURATION`], so a write of the old leader is over when the new one starts.

use std::time::Duration;

use fairway_ground::{Instant, Rng};

/// How long the others wait for a leader that does not renew.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long a leader writes without having renewed.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// After this a request is abandoned, by both ends (`timeoutSeconds`, and the connection is closed).
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between two reads of the Lease.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The annotation of the Lease with every address that a status may have, or had until a moment ago, as
/// ranges: what a new leader needs to assign addresses at once.
pub const ADDRESSES_ANNOTATION: &str = "fairway.dev/addresses";

/// A Lease as stored in the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// `spec.holderIdentity`; empty when it was released.
    pub holder: String,
    /// `spec.leaseTransitions`: how often the holder changed. It counts the epochs.
    pub transitions: u64,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// [`ADDRESSES_ANNOTATION`], if it is there.
    pub addresses: Option<String>,
}

/// The answer to a request about the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseReply {
    /// The Lease has this content: read, or just written.
    Is(LeaseRecord),
    /// There is no Lease.
    Missing,
    /// Another process wrote or created it meanwhile.
    Conflict,
    /// No answer. The request may have succeeded.
    Failed,
}

/// A request about the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Read it.
    Read,
    /// Write it, if it is unchanged since it was read. The edge sets the time of renewal.
    Write {
        /// `spec.holderIdentity`.
        holder: String,
        /// `spec.leaseTransitions`.
        transitions: u64,
        /// The version that was read; `None` creates a new Lease.
        resource_version: Option<String>,
        /// [`ADDRESSES_ANNOTATION`]; `None` removes it.
        addresses: Option<String>,
    },
}

/// The effect of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseChange {
    /// As before.
    None,
    /// This process leads from now on.
    Won {
        /// There was no leader before.
        is_first: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Read,
    Write { at: Instant },
}

/// One candidate.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    identity: String,
    /// What the identities of earlier runs in the same Pod begin with.
    predecessors: Option<String>,
    seen: Option<LeaseRecord>,
    /// When the Lease was last seen to change.
    seen_at: Instant,
    /// It was read and does not exist.
    is_missing: bool,
    /// The epoch that this process leads in, and until when unless it is renewed.
    leads: Option<(u64, Instant)>,
    asked: Asked,
    next_at: Instant,
    /// The last request had no answer: the next one waits for its turn.
    is_failing: bool,
    random: Rng,
}

impl Lease {
    /// A candidate. `identity` identifies this run of this process. Earlier runs, whose identities begin with
    /// `predecessors`, have ended.
    pub(super) fn new(identity: String, predecessors: Option<String>, seed: u64) -> Self {
        Self {
            identity,
            predecessors,
            seen: None,
            seen_at: Instant::ZERO,
            is_missing: false,
            leads: None,
            asked: Asked::Nothing,
            next_at: Instant::ZERO,
            is_failing: false,
            random: Rng::seeded(seed),
        }
    }

    /// Until when this process may start writes; `None` when it does not lead.
    pub(super) fn leads_until(&self, now: Instant) -> Option<Instant> {
        self.leads.map(|(_, until)| until).filter(|until| now < *until)
    }

    /// When the next action is due without an event.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let until = self.leads.map(|(_, until)| until);
        let next = (self.asked == Asked::Nothing).then_some(self.next_at);
        until.into_iter().chain(next).min()
    }

    /// Forgets an epoch that has expired; returns whether one has.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let is_over = self.leads.is_some_and(|(_, until)| until <= now);
        if is_over {
            self.leads = None;
        }
        is_over
    }

    /// What the Lease names, as it was read last.
    pub(super) fn addresses(&self) -> Option<&str> {
        self.seen.as_ref()?.addresses.as_deref()
    }

    /// The Lease is to be written without waiting for the next renewal.
    pub(super) fn hurry(&mut self, now: Instant) {
        if !self.is_failing {
            self.next_at = self.next_at.min(now);
        }
    }

    /// The request to send now, if any. `addresses` makes the annotation of a write.
    pub(super) fn next_request(
        &mut self,
        now: Instant,
        addresses: impl FnOnce() -> Option<String>,
    ) -> Option<LeaseRequest> {
        if self.asked != Asked::Nothing || now < self.next_at {
            return None;
        }
        self.next_at = now + self.random.jittered(RETRY_INTERVAL);
        let Some(transitions) = self.wants(now) else {
            self.asked = Asked::Read;
            return Some(LeaseRequest::Read);
        };
        self.asked = Asked::Write { at: now };
        let resource_version = self.seen.as_ref().map(|seen| seen.resource_version.clone());
        let (holder, addresses) = (self.identity.clone(), addresses());
        Some(LeaseRequest::Write { holder, transitions, resource_version, addresses })
    }

    /// The epoch to write, if the Lease is to be acquired or renewed.
    fn wants(&self, now: Instant) -> Option<u64> {
        match (&self.leads, &self.seen) {
            (Some((epoch, _)), Some(seen))
                if seen.holder == self.identity && seen.transitions == *epoch =>
            {
                Some(*epoch)
            }
            (Some(_), _) => None,
            (None, None) => self.is_missing.then_some(0),
            (None, Some(seen)) => {
                // No other controller has led since this one did, or an earlier run of it: a Pod has one run of
                // this process at a time. A write that is still on its way gives an address that the Lease
                // names.
                let was_ours = seen.holder == self.identity
                    || self.predecessors.as_ref().is_some_and(|it| seen.holder.starts_with(it));
                let is_free =
                    was_ours || seen.holder.is_empty() || self.seen_at + LEASE_DURATION <= now;
                is_free.then(|| seen.transitions.saturating_add(1))
            }
        }
    }

    /// Releases the Lease, so that another controller can acquire it at once; none if it is not held.
    pub(super) fn release(
        &mut self,
        now: Instant,
        addresses: Option<String>,
    ) -> Option<LeaseRequest> {
        let (epoch, _) = self.leads.take().filter(|(_, until)| now < *until)?;
        let seen = self.seen.take()?;
        Some(LeaseRequest::Write {
            holder: String::new(),
            transitions: epoch,
            resource_version: Some(seen.resource_version),
            addresses,
        })
    }

    /// The answer to the last request.
    pub(super) fn handle(&mut self, now: Instant, reply: LeaseReply) -> LeaseChange {
        let asked = std::mem::replace(&mut self.asked, Asked::Nothing);
        self.is_failing = reply == LeaseReply::Failed;
        match reply {
            LeaseReply::Is(record) => {
                self.is_missing = false;
                if self.seen.as_ref() != Some(&record) {
                    self.seen_at = now;
                }
                self.seen = Some(record);
                match asked {
                    Asked::Write { at } => return self.written(at),
                    _ => {
                        self.step_down_if_another_leads();
                        if self.leads.is_none() && self.wants(now).is_some() {
                            // It is free.
                            self.next_at = now;
                        }
                    }
                }
            }
            LeaseReply::Missing => {
                (self.seen, self.is_missing, self.leads) = (None, true, None);
                self.next_at = now;
            }
            LeaseReply::Conflict => {
                // Another process was faster, or it is our own renewal and its answer was lost: the next
                // read shows which.
                (self.seen, self.is_missing) = (None, false);
                self.next_at = now;
            }
            LeaseReply::Failed => {}
        }
        LeaseChange::None
    }

    fn written(&mut self, asked_at: Instant) -> LeaseChange {
        let epoch = self.seen.as_ref().map_or(0, |seen| seen.transitions);
        let until = asked_at + RENEW_DEADLINE;
        match self.leads.replace((epoch, until)) {
            Some((before, _)) if before == epoch => LeaseChange::None,
            _ => LeaseChange::Won { is_first: epoch == 0 },
        }
    }

    fn step_down_if_another_leads(&mut self) {
        let is_ours = self.seen.as_ref().zip(self.leads).is_some_and(|(seen, (epoch, _))| {
            seen.holder == self.identity && seen.transitions == epoch
        });
        if !is_ours {
            self.leads = None;
        }
    }
}
