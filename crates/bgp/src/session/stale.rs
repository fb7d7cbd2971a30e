//! Routes that outlive their session, because the neighbour restarts and goes on forwarding
//! (RFC 4724 §4.2, RFC 8538 §4, RFC 9494 §4.2).
//!
//! Another part of [`Peer`] and [`Inbound`]. The table is [`crate::rib::AdjRibIn`]'s, which knows what
//! was sent again; this part knows which end of a session leaves routes behind, and until when each
//! family of them stays. Memory stays bounded: routes that stay count towards `maxPrefixes`, and are
//! removed before the neighbour's new ones would exceed it.

use std::sync::Arc;
use std::time::Duration;

use super::graceful_restart::Restarts;
use super::peer::{Action, Peer};
use super::reason::DownReason;
use super::receive::Inbound;
use crate::wire::notification::cease;
use fairway_ground::{AddressFamily, ClientKind, GracefulRestart, Instant, Nlri, PerFamily};
use fairway_seam::{PathSource, RouteChange, StalePhase, StaleView};

/// How long a neighbour that is back may take until it has sent everything (RFC 4724 §4.2, and the
/// stale timer of RFC 8538 §4.1).
const SYNCHRONIZATION_TIME_MAX: Duration = GracefulRestart::STALE_PATH_TIME;

/// What must happen before the stale routes of a family are removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stale {
    phase: StalePhase,
    /// The end of the phase.
    until: Instant,
    /// What follows the restart time.
    long_lived: Option<Duration>,
    /// Whether that has begun since the family was last received in full. Its timer is set once.
    was_long_lived: bool,
    /// Until when the loss of another session keeps what an earlier one left behind: a neighbour that
    /// flaps forever and never sends everything keeps nothing alive. In the long-lived phase the end of
    /// that.
    oldest_until: Instant,
}

impl Stale {
    /// When routes are removed that are not sent again.
    fn removed_at(&self) -> Instant {
        match (self.phase, self.long_lived) {
            (StalePhase::Away, Some(_)) if self.was_long_lived => self.until.max(self.oldest_until),
            (StalePhase::Away, Some(long_lived)) => self.until + long_lived,
            _ => self.until,
        }
    }
}

/// Whether routes outlive a session that ended like this.
fn leaves_routes(reason: &DownReason, restarts: &Restarts) -> bool {
    match reason {
        DownReason::Closed | DownReason::Broken(_) | DownReason::Replaced | DownReason::Left(_) => {
            true
        }
        // A side that sends one keeps routes by the same rule as the side that receives it.
        DownReason::Sent { notification, .. } | DownReason::Received(notification) => {
            let is_hard_reset = (notification.code, notification.subcode) == (6, cease::HARD_RESET);
            restarts.notifications && !is_hard_reset
        }
        DownReason::ConnectFailed(_) => false,
    }
}

impl Inbound {
    /// The session is over, and the neighbour will be back: marks what stays. Returns what is removed.
    fn session_lost(&mut self, now: Instant, restarts: &Restarts) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        for family in AddressFamily::ALL {
            // What was refused does not come back without its neighbour.
            self.refused.clear(family);
            *self.refresh_deadline.of_mut(family) = None;
            let long_lived = *restarts.long_lived.of(family);
            let is_kept = restarts.kept_for_it.contains(family);
            let is_overdue = std::mem::take(self.is_overdue.of_mut(family));
            if is_overdue || !is_kept && long_lived.is_none() {
                changes.extend(self.clear(family));
                continue;
            }
            // A family of the long-lived capability alone has no restart time (RFC 9494 §4.1).
            let restart_time = if is_kept { restarts.restart_time } else { Duration::ZERO };
            let until = now + restart_time;
            let fresh = Stale {
                phase: StalePhase::Away,
                until,
                long_lived,
                was_long_lived: false,
                oldest_until: until + SYNCHRONIZATION_TIME_MAX,
            };
            let earlier = self.stale.of_mut(family).take();
            let outlast = |it: &Stale| restarts.notifications || it.was_long_lived;
            let stale = match earlier {
                // It was not received in full since: two kinds of stale routes, distinguished by what was
                // sent again.
                Some(earlier) if outlast(&earlier) && now < earlier.oldest_until => {
                    let Stale { was_long_lived, oldest_until, .. } = earlier;
                    Stale { was_long_lived, oldest_until, ..fresh }
                }
                Some(_) => {
                    changes.extend(self.sweep(family));
                    fresh
                }
                None => {
                    self.adj_rib_in.forget_refresh(family);
                    fresh
                }
            };
            if *self.adj_rib_in.counts().of(family) > 0 {
                *self.stale.of_mut(family) = Some(stale);
            }
        }
        changes.extend(self.expire_stale(now));
        changes
    }

    /// The neighbour is back with a new session: what `earlier` left behind stays until it is sent again,
    /// as far as the neighbour advertises that it went on forwarding (RFC 4724 §4.2). Returns the changes
    /// for the Loc-RIB.
    pub(super) fn take_over(
        &mut self,
        now: Instant,
        earlier: Self,
        restarts: &Restarts,
    ) -> Vec<RouteChange> {
        self.adj_rib_in = earlier.adj_rib_in;
        self.validation = earlier.validation;
        let mut changes = Vec::new();
        for family in AddressFamily::ALL {
            let Some(stale) = *earlier.stale.of(family) else { continue };
            let forwarded = match stale.phase {
                StalePhase::LongLived => restarts.long_lived_forwarding,
                StalePhase::Away | StalePhase::Back => restarts.forwarding,
            };
            if !forwarded.contains(family) {
                changes.extend(self.clear(family));
                continue;
            }
            self.adj_rib_in.begin_refresh(family);
            let until = now + SYNCHRONIZATION_TIME_MAX;
            // The long-lived time continues until all was received again (RFC 9494 §4.2).
            let runs_on = stale.was_long_lived && now < stale.oldest_until;
            let until = if runs_on { until.min(stale.oldest_until) } else { until };
            *self.stale.of_mut(family) = Some(Stale { phase: StalePhase::Back, until, ..stale });
        }
        changes.extend(self.review());
        if *self.source != *earlier.source {
            let said = |(nlri, attributes): (Nlri, &Arc<_>)| RouteChange {
                nlri,
                attributes: Some(Arc::clone(attributes)),
            };
            changes.extend(self.adj_rib_in.routes().map(said));
        }
        changes
    }

    /// Checks stale routes against the current policy and addresses.
    fn review(&mut self) -> Vec<RouteChange> {
        let mut changes = self.reconsider();
        for family in AddressFamily::ALL {
            if self.is_over_maximum(family) {
                changes.extend(self.clear(family));
            }
        }
        changes
    }

    /// The operator allows less than was negotiated (RFC 9494 §4.2): the long-lived time of `family` that
    /// is left becomes `time` at most.
    fn bound_long_lived(&mut self, now: Instant, family: AddressFamily, time: Duration) {
        let Some(stale) = self.stale.of_mut(family) else { return };
        stale.long_lived = stale.long_lived.map(|it| it.min(time)).filter(|it| !it.is_zero());
        if stale.was_long_lived {
            stale.oldest_until = stale.oldest_until.min(now + time);
        }
        if stale.phase == StalePhase::LongLived {
            stale.until = stale.oldest_until;
        }
    }

    /// No route of `family` that is still stale is of use any more.
    pub(super) fn give_up_stale(&mut self, family: AddressFamily) -> Vec<RouteChange> {
        match self.stale.of_mut(family).take() {
            Some(_) => self.sweep(family),
            None => Vec::new(),
        }
    }

    /// Removes all routes of `family`.
    fn clear(&mut self, family: AddressFamily) -> Vec<RouteChange> {
        *self.stale.of_mut(family) = None;
        withdrawals(self.adj_rib_in.clear(family))
    }

    /// Ends the phases that are over.
    fn expire_stale(&mut self, now: Instant) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        for family in AddressFamily::ALL {
            let Some(mut stale) = *self.stale.of(family) else { continue };
            if stale.phase == StalePhase::Away && stale.oldest_until <= now {
                changes.extend(self.sweep(family));
            }
            if stale.until > now {
                continue;
            }
            match (stale.phase, stale.long_lived) {
                (StalePhase::Away, Some(long_lived)) => {
                    if !stale.was_long_lived {
                        stale.oldest_until = stale.until + long_lived;
                        stale.was_long_lived = true;
                    }
                    stale.phase = StalePhase::LongLived;
                    stale.until = stale.oldest_until;
                    self.adj_rib_in.forget_refresh(family);
                    if stale.until <= now {
                        changes.extend(self.clear(family));
                    } else {
                        changes.extend(self.adj_rib_in.mark_long_lived(family));
                        *self.stale.of_mut(family) = Some(stale);
                    }
                }
                (StalePhase::Away | StalePhase::LongLived, _) => changes.extend(self.clear(family)),
                (StalePhase::Back, _) => {
                    let is_overdue = stale.was_long_lived && stale.oldest_until <= now;
                    *self.is_overdue.of_mut(family) = is_overdue;
                    changes.extend(self.give_up_stale(family));
                }
            }
        }
        changes
    }

    /// When the first phase is over.
    fn stale_deadline(&self) -> Option<Instant> {
        let deadline = |family| {
            let stale = (*self.stale.of(family))?;
            let has_older = self.adj_rib_in.said_again_count(family).is_some();
            let older = has_older && stale.phase == StalePhase::Away;
            Some(if older { stale.until.min(stale.oldest_until) } else { stale.until })
        };
        AddressFamily::ALL.into_iter().filter_map(deadline).min()
    }

    /// The state of the family with the stale routes that stay for longest.
    fn last_stale(&self) -> Option<Stale> {
        let stale = AddressFamily::ALL.into_iter().filter_map(|family| *self.stale.of(family));
        stale.max_by_key(Stale::removed_at)
    }

    pub(super) fn has_stale(&self) -> bool {
        let is_left = |family: AddressFamily| *self.adj_rib_in.counts().of(family) > 0;
        AddressFamily::ALL.into_iter().any(|it| self.stale.of(it).is_some() && is_left(it))
    }

    /// Whether the neighbour has not sent `nlri` since it restarted.
    pub(super) fn is_stale(&self, nlri: Nlri) -> bool {
        match self.stale.of(nlri.prefix.family()) {
            Some(Stale { phase: StalePhase::Back, .. }) => !self.adj_rib_in.was_said_again(nlri),
            Some(_) => true,
            None => false,
        }
    }

    /// What is stale, for `show`; of several families the phase of the one that takes longest.
    pub(super) fn stale_view(&self, now: Instant) -> Option<StaleView> {
        let mut routes = PerFamily::default();
        for family in AddressFamily::ALL {
            let Some(stale) = self.stale.of(family) else { continue };
            let count = *self.adj_rib_in.counts().of(family);
            let said_again = match stale.phase {
                StalePhase::Back => self.adj_rib_in.said_again_count(family).unwrap_or(0),
                StalePhase::Away | StalePhase::LongLived => 0,
            };
            let said_again = u32::try_from(said_again).unwrap_or(u32::MAX);
            *routes.of_mut(family) = count.saturating_sub(said_again);
        }
        let last = self.last_stale()?;
        Some(StaleView {
            routes,
            phase: last.phase,
            phase_ends_in: last.until.since(now),
            removed_in: last.removed_at().since(now),
        })
    }
}

impl Peer {
    /// The session that `inbound` belonged to is over. The routes that stay wait for the neighbour; the
    /// others are removed.
    pub(super) fn session_lost(
        &mut self,
        now: Instant,
        mut inbound: Inbound,
        restarts: &Restarts,
        reason: &DownReason,
    ) {
        let stay = match reason {
            DownReason::Sent { notification, .. } if notification.is_bfd_down() => {
                self.bfd_leaves_routes()
            }
            _ => leaves_routes(reason, restarts),
        };
        if !stay {
            self.actions.extend(inbound.all_withdrawn());
            return;
        }
        let changes = inbound.session_lost(now, restarts);
        self.stale_changed(&inbound.source, changes);
        self.retained = Some(inbound).filter(Inbound::has_stale);
    }

    /// The neighbour is no longer waited for.
    pub(super) fn forget_stale(&mut self) {
        let retained = self.retained.take();
        self.actions.extend(retained.and_then(|it| it.all_withdrawn()));
    }

    /// The settings change while the neighbour is away. What it means under the new settings shows when
    /// it is back.
    pub(super) fn review_stale(&mut self, now: Instant) {
        let Some(mut inbound) = self.retained.take() else { return };
        let config = &self.config;
        let PathSource { kind, remote_asn, is_client, .. } = *inbound.source;
        let is_the_same = config.graceful_restart.is_some()
            && kind == config.kind()
            && is_client == (config.client == Some(ClientKind::Reflector))
            && inbound.importer.role() == config.external_role()
            && config.remote_as.admits(config.local_asn, remote_asn.get());
        let long_lived = config.graceful_restart.unwrap_or_default().long_lived_stale_time();
        inbound.importer.set_policy(config);
        let mut changes = inbound.review();
        for family in AddressFamily::ALL {
            if !is_the_same || !self.config.families.contains(family) {
                changes.extend(inbound.clear(family));
            }
            inbound.bound_long_lived(now, family, long_lived);
        }
        self.stale_changed(&inbound.source, changes);
        self.retained = Some(inbound).filter(Inbound::has_stale);
    }

    /// Ends the phases that are over, with a session or without one.
    pub(super) fn expire_stale(&mut self, now: Instant) {
        if let Some(up) = &mut self.established {
            let changes = up.inbound.expire_stale(now);
            self.routes_changed(now, changes, None);
        }
        if let Some(mut inbound) = self.retained.take() {
            let changes = inbound.expire_stale(now);
            self.stale_changed(&inbound.source, changes);
            self.retained = Some(inbound).filter(Inbound::has_stale);
        }
    }

    /// When the first of them ends.
    pub(super) fn stale_deadline(&self) -> Option<Instant> {
        self.inbound()?.stale_deadline()
    }

    /// Whether the neighbour sent `nlri` before it restarted and not since.
    pub fn is_stale(&self, nlri: Nlri) -> bool {
        self.inbound().is_some_and(|it| it.is_stale(nlri))
    }

    /// How far the neighbour's restart has come, of the family for which it takes longest.
    pub fn stale_phase(&self) -> Option<StalePhase> {
        Some(self.inbound()?.last_stale()?.phase)
    }

    /// The receiving half of the session, or what the last one left behind.
    pub(super) fn inbound(&self) -> Option<&Inbound> {
        self.established.as_ref().map(|up| &up.inbound).or(self.retained.as_ref())
    }

    pub(super) fn stale_changed(&mut self, source: &Arc<PathSource>, changes: Vec<RouteChange>) {
        if !changes.is_empty() {
            self.actions.push_back(Action::Routes(Arc::clone(source), changes));
        }
    }
}

fn withdrawals(gone: Vec<Nlri>) -> Vec<RouteChange> {
    gone.into_iter().map(|nlri| RouteChange { nlri, attributes: None }).collect()
}
