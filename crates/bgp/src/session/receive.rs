//! What a neighbour announces: checked, kept, and passed on.
//!
//! Another part of [`Peer`]. Knows no other neighbour: which of several paths is best is for
//! [`crate::rib::LocRib`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{Connection, ConnectionId};
use super::peer::{Action, Peer};
use super::reason::DownReason;
use super::refused::{Kept, Refused};
use super::stale::Stale;
use super::validation::Validation;
use crate::rib::{AdjRibIn, Importer, Rulings};
use crate::wire::attribute::{AttributeFault, Disposition};
use crate::wire::notification::cease;
use crate::wire::{Notification, RawMessage, Update, WireError};
use fairway_ground::{AddressFamily, ClientKind, Instant, Nlri, PerFamily, Prefix, PrefixFilter};
use fairway_rpki::OriginTable;
use fairway_seam::{PathAttributes, PathSource, PeerConfig, Refusal, RouteChange};

/// How long a neighbour that exceeded its maximum of prefixes is not dialled and not accepted.
///
/// `Ours:` routers wait for the operator. A limit protects against a mistake at the other end, and
/// when that is fixed the session should come back without any command.
const MAXIMUM_PREFIXES_WAIT: Duration = Duration::from_secs(30);

/// What a route takes beside its attributes: its places in Adj-RIB-In and Loc-RIB, and an entry while it waits for a peer.
const ROUTE_BYTES: u64 = 128;
/// How often a count near the maximum is worth a warning.
const NEAR_MAXIMUM_GAP: Duration = Duration::from_secs(10);

/// A malformed UPDATE and how it was handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The faults of attributes; empty when the session was reset.
    pub faults: Vec<AttributeFault>,
    /// Why the session was reset, if it was.
    pub reset: Option<String>,
    /// The message without its header.
    pub body: Vec<u8>,
}

impl Malformed {
    pub(super) fn reset(error: &WireError, message: &RawMessage) -> Self {
        let reset = Some(error.to_string());
        Self { faults: Vec::new(), reset, body: message.body.to_vec() }
    }

    /// The strongest disposition of its faults; `None` when the session was reset.
    pub fn disposition(&self) -> Option<Disposition> {
        self.faults.iter().map(|fault| fault.disposition).max()
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reset) = &self.reset {
            return write!(f, "session reset: {reset}");
        }
        let only_prefixes = self.faults.iter().all(|fault| fault.code == 0);
        f.write_str(match self.disposition() {
            Some(Disposition::TreatAsWithdraw) => "treated as withdrawal",
            Some(Disposition::Discard) if only_prefixes => "prefix ignored",
            Some(Disposition::Discard) | None => "attribute discarded",
        })?;
        for (position, fault) in self.faults.iter().enumerate() {
            let separator = if position == 0 { ": " } else { "; " };
            match fault.code {
                0 => write!(f, "{separator}{}", fault.what)?,
                code => write!(f, "{separator}attribute {code}: {}", fault.what)?,
            }
        }
        Ok(())
    }
}

/// The receiving half of an Established session.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) adj_rib_in: AdjRibIn,
    pub(super) source: Arc<PathSource>,
    pub(super) prefixes_refused: PerFamily<u64>,
    pub(super) end_of_rib_received: PerFamily<bool>,
    pub(super) importer: Importer,
    refusals: BTreeMap<Refusal, u64>,
    pub(super) refused: Refused,
    pub(super) validation: Validation,
    /// Until when the neighbour may send a family again (RFC 7313).
    pub(super) refresh_deadline: PerFamily<Option<Instant>>,
    /// Families with routes of an earlier session that were not sent again in this one.
    pub(super) stale: PerFamily<Option<Stale>>,
    /// Families with a long-lived time that ended in this session, before the neighbour had sent them all:
    /// if the session ends like that, they do not outlive it (RFC 9494 §4.2).
    pub(super) is_overdue: PerFamily<bool>,
    /// Families with a count that was near the maximum at the last check.
    near_maximum: PerFamily<bool>,
    /// When that was last worth a warning.
    warned_at: PerFamily<Option<Instant>>,
}

impl Inbound {
    /// The receiving half of a session over `connection`, which has just come up.
    pub(super) fn begin(config: &PeerConfig, connection: Option<&Connection>) -> Option<Self> {
        let connection = connection?;
        let negotiated = connection.negotiated.as_ref()?;
        let remote = connection.remote?.ip();
        let own_addresses = connection.own_addresses();
        let networks = &connection.networks;
        let importer =
            Importer::new(config, negotiated.remote_asn, remote, own_addresses, networks);
        Some(Self {
            adj_rib_in: AdjRibIn::default(),
            source: Arc::new(PathSource {
                key: config.key,
                address: remote,
                kind: config.kind(),
                remote_asn: negotiated.remote_asn,
                router_id: negotiated.remote_router_id,
                is_client: config.client == Some(ClientKind::Reflector),
            }),
            prefixes_refused: PerFamily::default(),
            end_of_rib_received: PerFamily::default(),
            refusals: BTreeMap::new(),
            refused: Refused::new(Kept::by(&importer)),
            validation: Validation::default(),
            importer,
            refresh_deadline: PerFamily::default(),
            stale: PerFamily::default(),
            is_overdue: PerFamily::default(),
            near_maximum: PerFamily::default(),
            warned_at: PerFamily::default(),
        })
    }

    pub(super) fn refusals(&self) -> Vec<(Refusal, u64)> {
        self.refusals.iter().map(|(refusal, count)| (refusal.clone(), *count)).collect()
    }

    /// The withdrawals that remain when the session is over; `None` when nothing was accepted.
    pub(super) fn all_withdrawn(&self) -> Option<Action> {
        let gone = |(nlri, _)| RouteChange { nlri, attributes: None };
        let changes: Vec<_> = self.adj_rib_in.routes().map(gone).collect();
        (!changes.is_empty()).then(|| Action::Routes(Arc::clone(&self.source), changes))
    }

    /// Adds the routes of an UPDATE, and returns the changes. Stops at the first prefix above the
    /// maximum, and returns its family.
    fn take(
        &mut self,
        update: Update,
        origins: &OriginTable,
    ) -> (Vec<RouteChange>, Option<AddressFamily>) {
        // Counted first: a list that grows by doubling takes twice the memory of a flood.
        let announced = update.announced.iter().map(|group| group.prefixes.len());
        let count = announced.fold(update.withdrawn.len(), usize::saturating_add);
        let mut changes = Vec::with_capacity(count);
        for nlri in update.withdrawn {
            self.refused.remove(nlri);
            self.withdraw(nlri, &mut changes);
        }
        for group in update.announced {
            let judged = self.importer.judge(&group.attributes);
            let heard = self.importer.marked(group.attributes);
            let mut known = Rulings::default();
            for nlri in group.prefixes {
                let allowed = judged.clone().and_then(|()| self.allows(nlri));
                let ruled = allowed
                    .and_then(|()| self.importer.ruled(nlri.prefix, &heard, origins, &mut known));
                if let Err(refusal) = &ruled {
                    self.refuse(nlri.prefix.family(), refusal.clone());
                }
                if self.place(nlri, &heard, ruled, &mut changes) {
                    return (changes, Some(nlri.prefix.family()));
                }
            }
        }
        (changes, None)
    }

    /// Keeps a route that was announced as `heard`, with the attributes that the policy has made of it, or refuses it.
    /// Returns whether that is more than the maximum.
    pub(super) fn place(
        &mut self,
        nlri: Nlri,
        heard: &Arc<PathAttributes>,
        ruled: Result<Arc<PathAttributes>, Refusal>,
        changes: &mut Vec<RouteChange>,
    ) -> bool {
        let family = nlri.prefix.family();
        let attributes = match ruled {
            Ok(attributes) => attributes,
            Err(refusal) => {
                self.refused.insert(nlri, refusal, heard);
                // Its earlier announcement does not count any more.
                self.withdraw(nlri, changes);
                return false;
            }
        };
        self.refused.remove(nlri);
        let gone = self.adj_rib_in.make_room(nlri);
        changes.extend(gone.map(|nlri| RouteChange { nlri, attributes: None }));
        let has_changed = self.adj_rib_in.announce(nlri, &attributes);
        let is_changed_by_rules = !Arc::ptr_eq(&attributes, heard);
        let original = is_changed_by_rules && self.importer.validates_origins();
        self.adj_rib_in.set_original(nlri, original.then_some(heard));
        if !has_changed {
            return false;
        }
        changes.push(RouteChange { nlri, attributes: Some(attributes) });
        if self.is_over_maximum(family) {
            // `Ours:` routes from before its restart are removed before the session is.
            changes.extend(self.give_up_stale(family));
        }
        if self.is_over_maximum(family) {
            // Bytes are those of both families.
            for family in AddressFamily::ALL {
                changes.extend(self.give_up_stale(family));
            }
        }
        self.is_over_maximum(family)
    }

    pub(super) fn allows(&self, nlri: Nlri) -> Result<(), Refusal> {
        self.importer.allows(nlri.prefix)?;
        if self.adj_rib_in.is_crowded(nlri) { Err(Refusal::TooManyPaths) } else { Ok(()) }
    }

    pub(super) fn withdraw(&mut self, nlri: Nlri, changes: &mut Vec<RouteChange>) {
        if self.adj_rib_in.withdraw(nlri) {
            changes.push(RouteChange { nlri, attributes: None });
        }
    }

    /// Removes what was not sent again in a refresh of `family` that has begun.
    pub(super) fn sweep(&mut self, family: AddressFamily) -> Vec<RouteChange> {
        let gone = self.adj_rib_in.end_refresh(family).into_iter();
        gone.map(|nlri| RouteChange { nlri, attributes: None }).collect()
    }

    fn refuse(&mut self, family: AddressFamily, refusal: Refusal) {
        *self.prefixes_refused.of_mut(family) += 1;
        *self.refusals.entry(refusal).or_default() += 1;
    }

    /// Drops the counts of rules that do not exist any more: rules may change as often as an operator likes.
    fn forget_old_rules(&mut self) {
        let rules = &self.importer.policy().rules;
        self.refusals.retain(|refusal, _| match refusal {
            Refusal::Rule { place, name } => {
                rules.get(usize::from(*place)).is_some_and(|rule| rule.name == *name)
            }
            _ => true,
        });
    }

    pub(super) fn is_over_maximum(&self, family: AddressFamily) -> bool {
        let maximum = self.importer.policy().maximum;
        maximum.is_some_and(|maximum| {
            *self.adj_rib_in.counts().of(family) > maximum.limit
                || self.adj_rib_in.attribute_bytes() > maximum.attribute_bytes_max()
        })
    }

    /// The families with a count that has just come near the maximum, with the count. One that swings around
    /// it is reported once in a while.
    fn newly_near_maximum(&mut self, now: Instant) -> Vec<(AddressFamily, u32)> {
        let Some(maximum) = self.importer.policy().maximum else { return Vec::new() };
        let counts = self.adj_rib_in.counts();
        let mut near = Vec::new();
        for family in AddressFamily::ALL {
            let count = *counts.of(family);
            let is_near = count >= maximum.warn_at();
            let warned_at = self.warned_at.of_mut(family);
            let quiet = warned_at.is_some_and(|at| now.since(at) < NEAR_MAXIMUM_GAP);
            if is_near && !self.near_maximum.of(family) && !quiet {
                *warned_at = Some(now);
                near.push((family, count));
            }
            *self.near_maximum.of_mut(family) = is_near;
        }
        near
    }

    /// What a change of the policy, or of this end's addresses, removes.
    pub(super) fn reconsider(&mut self) -> Vec<RouteChange> {
        let routes = self.adj_rib_in.routes();
        let refused = routes.filter_map(|(nlri, attributes)| {
            let allowed = self.importer.allows(nlri.prefix);
            let refusal = allowed.and_then(|()| self.importer.judge(attributes)).err()?;
            Some((nlri, refusal, Arc::clone(attributes)))
        });
        let refused: Vec<_> = refused.collect();
        let mut changes = Vec::new();
        for (nlri, refusal, attributes) in refused {
            // What its neighbour announced before its restart, it does not announce now.
            if !self.is_stale(nlri) {
                self.refused.insert(nlri, refusal, &attributes);
            }
            self.withdraw(nlri, &mut changes);
        }
        changes
    }
}

impl Peer {
    /// Routes were received: those that the policy accepts are kept and passed on, the others counted.
    pub(super) fn update(&mut self, now: Instant, update: Update, message: &RawMessage) {
        if !update.faults.is_empty() {
            self.note_malformed(now, &update, message);
        }
        let Some(up) = &mut self.established else { return };
        let end_of_rib = update.end_of_rib;
        let (mut changes, over) = up.inbound.take(update, &self.origins);
        if let Some(family) = end_of_rib {
            *up.inbound.end_of_rib_received.of_mut(family) = true;
            *up.inbound.is_overdue.of_mut(family) = false;
            changes.extend(up.inbound.give_up_stale(family));
        }
        self.routes_changed(now, changes, over);
    }

    pub(super) fn routes_changed(
        &mut self,
        now: Instant,
        changes: Vec<RouteChange>,
        over: Option<AddressFamily>,
    ) {
        if let Some(up) = self.established.as_ref().filter(|_| !changes.is_empty()) {
            self.actions.push_back(Action::Routes(Arc::clone(&up.inbound.source), changes));
        }
        if let Some(family) = over {
            self.end_over_maximum(now, family);
            return;
        }
        let near = self.established.as_mut().map(|up| up.inbound.newly_near_maximum(now));
        for (family, count) in near.unwrap_or_default() {
            self.actions.push_back(Action::NearMaximum(family, count));
        }
    }

    /// Cease 6/1 (RFC 4486 §4), or 6/8 for its attributes, and a wait in which the neighbour is not accepted
    /// either: it would come back with the same flood.
    fn end_over_maximum(&mut self, now: Instant, family: AddressFamily) {
        let (Some(up), Some(maximum)) = (&self.established, self.config.import.maximum) else {
            return;
        };
        let id = up.connection;
        let (limit, bytes) = (maximum.limit, maximum.attribute_bytes_max());
        let (notification, why) = if *up.inbound.adj_rib_in.counts().of(family) > limit {
            let why = format!("more than {limit} prefixes of {family} (toReceive.maxPrefixes)");
            (Notification::maximum_prefixes(family, limit), why)
        } else {
            let why = format!(
                "more than {bytes} bytes of path attributes (toReceive.maxPrefixes.attributeBytes)"
            );
            (Notification::cease(cease::OUT_OF_RESOURCES), why)
        };
        self.end_and_refuse(now, id, &notification, why);
    }

    fn end_and_refuse(
        &mut self,
        now: Instant,
        id: ConnectionId,
        notification: &Notification,
        why: String,
    ) {
        let reason = DownReason::Sent { notification: self.for_good(id, notification), why };
        self.end(now, id, reason);
        self.limit_exceeded = self.limit_exceeded.saturating_add(1);
        self.forget_stale();
        self.refuse_until(now + MAXIMUM_PREFIXES_WAIT);
    }

    /// Memory that goes with the routes of this neighbour, in bytes, roughly.
    fn held_by_routes(&self) -> u64 {
        let inbound = self.established.as_ref().map(|up| &up.inbound).or(self.retained.as_ref());
        inbound.map_or(0, |inbound| {
            let PerFamily { ipv4, ipv6 } = inbound.adj_rib_in.counts();
            let routes = u64::from(ipv4).saturating_add(ipv6.into());
            let of_routes = routes.saturating_mul(ROUTE_BYTES);
            let refused = inbound.refused.held_bytes(ROUTE_BYTES);
            let attributes = inbound.adj_rib_in.attribute_bytes();
            attributes.saturating_add(of_routes).saturating_add(refused)
        })
    }

    /// The same, with what is remembered of what it said.
    pub fn held_bytes(&self) -> u64 {
        let connections = self.outgoing.iter().chain(&self.incoming);
        let remembered = connections.map(|it| u64::try_from(it.known.bytes()).unwrap_or(u64::MAX));
        remembered.fold(self.held_by_routes(), u64::saturating_add)
    }

    /// The process has too little memory: gives up the routes of this neighbour, with Cease 6/8 (RFC 4486 §4) and
    /// the same wait.
    pub fn give_up_routes(&mut self, now: Instant, why: &str) {
        match self.established.as_ref().map(|up| up.connection) {
            Some(id) => {
                let notification = Notification::cease(cease::OUT_OF_RESOURCES);
                self.end_and_refuse(now, id, &notification, why.to_owned());
            }
            None => self.forget_stale(),
        }
    }

    fn note_malformed(&mut self, now: Instant, update: &Update, message: &RawMessage) {
        let faults = update.faults.clone();
        let malformed = Malformed { faults, reset: None, body: message.body.to_vec() };
        match malformed.disposition() {
            Some(Disposition::TreatAsWithdraw) => self.malformed.treated_as_withdraw += 1,
            Some(Disposition::Discard) | None => self.malformed.attribute_discards += 1,
        }
        self.last_malformed = Some((now, malformed.clone()));
        self.actions.push_back(Action::Malformed(malformed));
    }

    /// Whether what `config` wants to accept can only be had over a new session: refused routes are not
    /// kept, and this neighbour does not support ROUTE-REFRESH.
    pub(super) fn needs_to_hear_again(&self, config: &PeerConfig) -> bool {
        let Some(up) = &self.established else { return false };
        let negotiated = self.connection(up.connection).and_then(|it| it.negotiated.as_ref());
        let (wanted, present) = (&config.import, &self.config.import);
        wanted.allowed != PrefixFilter::Nothing
            && (wanted.allowed != present.allowed
                || wanted.own_as_max > present.own_as_max
                || (wanted.keeps_filtered && !present.keeps_filtered)
                || wanted.rules != present.rules)
            && negotiated.is_some_and(|it| !it.route_refresh)
    }

    /// The import policy has changed: routes that it no longer accepts are removed at once, the rest is
    /// requested from the neighbour.
    pub(super) fn import_policy_changed(&mut self, now: Instant) {
        let Some(up) = &mut self.established else { return self.review_stale(now) };
        let wants_others = up.inbound.importer.set_policy(&self.config);
        up.inbound.forget_old_rules();
        up.inbound.refused.set_kept(Kept::by(&up.inbound.importer));
        if !up.inbound.importer.validates_origins() {
            up.inbound.adj_rib_in.forget_originals();
        }
        let mut changes = up.inbound.reconsider();
        for family in up.families.iter() {
            if up.inbound.is_over_maximum(family) {
                changes.extend(up.inbound.give_up_stale(family));
            }
        }
        let mut families = up.families.iter();
        let over = families.find(|family| up.inbound.is_over_maximum(*family));
        self.routes_changed(now, changes, over);
        if wants_others {
            self.ask_again();
        }
    }

    /// The addresses of this end, or the networks of this machine, may have changed: routes with a next
    /// hop that is no longer usable are removed at once, those that were refused for it are requested.
    ///
    /// `Ours:` a neighbour without ROUTE-REFRESH does not send them before its next session; an address
    /// that comes is no reason to end this one.
    pub fn set_networks(&mut self, now: Instant, networks: &[Prefix]) {
        let Some(id) = self.established.as_ref().map(|up| up.connection) else { return };
        let Some(connection) = self.connection(id) else { return };
        let own_addresses = connection.own_addresses();
        let Some(up) = &mut self.established else { return };
        if up.inbound.importer.set_end(own_addresses, networks) {
            let changes = up.inbound.reconsider();
            self.routes_changed(now, changes, None);
            self.ask_again();
        }
    }

    /// Requests what was refused before, if the policy accepts anything. Without a session nothing is
    /// requested, and the next one sends everything anyway.
    pub(super) fn ask_again(&mut self) {
        if self.established.as_ref().is_some_and(|up| up.inbound.importer.wants_routes()) {
            let _ = self.refresh_in();
        }
    }

    /// Whether learned routes may be advertised to the neighbour, or it may still have some.
    pub fn passes_on(&self) -> bool {
        self.established.as_ref().is_some_and(|up| {
            self.config.pass_on != PrefixFilter::Nothing || up.outbound.has_earlier()
        })
    }
}
