//! What a neighbour is told: routes by its export policy, and each change of them.
//!
//! Knows no connection. Where nothing waits to be sent, what the neighbour has been told follows from the Loc-RIB as it
//! was when neighbours were told last, and from the export policy; so a change of either says both what is wanted now and
//! what was told before. Another part of [`super::Peer`]'s Established state.

mod earlier;
mod look_again;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::BytesMut;

use self::earlier::EarlierPolicies;
use crate::rib::{
    AdjRibOut, Changes, ExportGroups, Exporter, GroupUpdates, Ineligible, LocRib, OnTheWay,
    Outgoing, PrefixId, PrefixSet, Routes, WAITING_MAX,
};
use crate::wire::MessageType;
use fairway_ground::{AddressFamily, LocalNextHops, Nlri, PathId, Prefix};
use fairway_rpki::OriginTable;
use fairway_seam::{AdvertisedScope, DrainState, PathAttributes, PeerConfig};

/// Of a group with a whole table ahead, as many routes are encoded at once.
const GROUP_ROUTES_MAX: usize = if cfg!(test) { 4 } else { 8192 };

/// Longer lists of changes are not encoded for a group: the octets would be too many at once.
const GROUP_CHANGES_MAX: usize = 8 * GROUP_ROUTES_MAX;

/// Of what a peer is sent with its group, as many octets wait for its socket in any case. One that reads more slowly
/// looks itself, and is sent the last change of each prefix alone.
const ON_THE_WAY_BYTES_MAX: usize = if cfg!(test) { 200 } else { 4 << 20 };

/// More octets wait while all peers together have not more than this on their way: those of a group share them, so this is
/// the change of a whole table. Not beside routes of our own: their withdrawals would wait, too, and an address is given
/// to another Service only after that.
const SHARED_BYTES_MAX: usize = if cfg!(test) { 1_200 } else { 64 << 20 };

/// As many parts wait: a part of few octets takes a hundred beside them.
const ON_THE_WAY_MAX: usize = if cfg!(test) { 3 } else { 1024 };

/// The sending half of an Established session.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) adj_rib_out: AdjRibOut,
    pub(super) exporter: Exporter,
    /// It was told what there is to tell, or has it [`ahead`](Self::ahead).
    was_told: bool,
    /// Prefixes that it was told by other policies than the one in force.
    earlier: EarlierPolicies,
    /// What RPKI says since, while prefixes of an earlier policy are looked at again.
    postponed: Option<Arc<OriginTable>>,
    /// Prefixes from this number on were not looked at yet: the neighbour was told nothing of them. So a neighbour that is
    /// slower than the others, or has come later, has no more in memory than what is sent next.
    ahead: PrefixId,
    /// Some of them may be for the neighbour.
    pub(super) is_behind: bool,
    /// UPDATEs that peers with the same policy are sent, too, in their order; they go before what waits.
    on_the_way: VecDeque<OnTheWay>,
    pub(super) unannounced: BTreeMap<Prefix, Ineligible>,
}

impl Outbound {
    /// A neighbour that was told nothing yet.
    pub(super) fn new(adj_rib_out: AdjRibOut, exporter: Exporter) -> Self {
        Self {
            adj_rib_out,
            exporter,
            was_told: false,
            earlier: EarlierPolicies::default(),
            postponed: None,
            ahead: PrefixId::FIRST,
            is_behind: false,
            on_the_way: VecDeque::new(),
            unannounced: BTreeMap::new(),
        }
    }

    /// The policy may have changed: [`Outbound::announce_all`] is due.
    pub(super) fn renew(
        &mut self,
        config: &PeerConfig,
        next_hops: LocalNextHops,
        drain: DrainState,
        origins: &Arc<OriginTable>,
    ) {
        let renewed = self.exporter.renewed(config, next_hops, drain, origins);
        if renewed.has_policy_of(&self.exporter) {
            return;
        }
        self.postponed = None;
        self.replace_policy_of_all(renewed);
    }

    /// Another policy is in force, by which every prefix may be something else.
    fn replace_policy_of_all(&mut self, exporter: Exporter) {
        self.replace_policy(exporter, PrefixSet::below(self.ahead));
        // What was nothing for the neighbour was not looked at.
        self.is_behind |= self.was_told;
    }

    /// Another policy is in force, by which `concerned` prefixes may be something else.
    fn replace_policy(&mut self, exporter: Exporter, concerned: PrefixSet) {
        let before = std::mem::replace(&mut self.exporter, exporter);
        if self.was_told {
            self.earlier.push(before, concerned);
        }
    }

    /// Whether what the neighbour is sent depends on what RPKI says.
    pub(super) fn validates_origins(&self) -> bool {
        self.exporter.validates_origins()
    }

    /// RPKI says something else about the origins of routes to `concerned`: [`Outbound::announce_all`] is due.
    pub(super) fn validate_again(&mut self, origins: &Arc<OriginTable>, concerned: &PrefixSet) {
        if !self.exporter.validates_origins() {
            return;
        }
        if self.has_earlier() {
            // Caches that start one after another would each leave an earlier policy.
            self.postponed = Some(Arc::clone(origins));
            return;
        }
        let validated = self.exporter.with_own_cache().validate(origins);
        self.is_behind |= self.was_told && concerned.first_from(self.ahead).is_some();
        let mut concerned = concerned.clone();
        concerned.keep_below(self.ahead);
        self.replace_policy(validated, concerned);
    }

    /// Queues what the neighbour should have by the policy in force, where it has something else: routes of our own at once,
    /// the rest in parts. [`Outbound::look_again`] is due while [`Outbound::has_to_look_again`].
    pub(super) fn announce_all(&mut self, rib: &LocRib) {
        if !std::mem::replace(&mut self.was_told, true) {
            self.is_behind |= self.ahead < rib.end();
        }
        self.look_at_own_again(rib);
    }

    /// Looks at prefixes that were not looked at yet, until enough waits to be sent.
    fn look_ahead(&mut self, rib: &LocRib) {
        for (id, prefix, routes) in rib.known_between(self.ahead, rib.end()) {
            if self.adj_rib_out.waiting_count() >= WAITING_MAX {
                self.ahead = id;
                self.exporter.forget();
                return;
            }
            self.update(id, prefix, Before::Nothing, routes);
        }
        self.ahead = self.ahead.max(rib.end());
        self.is_behind = false;
        self.exporter.forget();
    }

    /// Whether there may be anything to send.
    pub(super) fn has_pending(&self) -> bool {
        self.is_behind || !self.on_the_way.is_empty() || self.adj_rib_out.has_pending()
    }

    /// Whether the neighbour may have a route that it should not have.
    pub(super) fn owes_withdrawals(&self) -> bool {
        let on_the_way = self.on_the_way.iter().any(OnTheWay::has_withdrawals);
        on_the_way || self.has_earlier() || self.adj_rib_out.owes_withdrawals()
    }

    /// Queues changes.
    pub(super) fn announce(&mut self, rib: &LocRib, groups: &mut ExportGroups, changes: &Changes) {
        // All routes follow.
        if !self.was_told {
            return;
        }
        if let Some(updates) = self.changes_of_group(rib, groups, changes) {
            return self.announce_with_group(rib, changes, updates);
        }
        let several = self.adj_rib_out.add_path();
        let chooses = self.exporter.chooses();
        let mut earlier = std::mem::take(&mut self.earlier);
        for change in &changes.list {
            if change.id >= self.ahead && self.is_behind {
                continue;
            }
            // Not those of now: they may have changed again since the changes were taken.
            let Some((prefix, routes)) = rib.known_routes(change.id) else { continue };
            if change.id >= self.ahead {
                self.is_behind = self.concerns(prefix, routes);
            } else if let Some(exporter) = earlier.take(change.id) {
                let before = Before::ByEarlier(exporter, &change.before);
                self.update(change.id, prefix, before, routes);
            } else if change.concerns_all || chooses || several.contains(prefix.family()) {
                self.update(change.id, prefix, Before::ByPresent(&change.before), routes);
            }
        }
        self.exporter.forget();
        earlier.forget();
        self.earlier = earlier;
    }

    /// What peers with the same policy are sent for changes, if the neighbour is where they are.
    fn changes_of_group(
        &self,
        rib: &LocRib,
        groups: &mut ExportGroups,
        changes: &Changes,
    ) -> Option<Arc<GroupUpdates>> {
        // What cannot be sent to the neighbour, or could not, cannot be sent to the group.
        let is_with_others = self.may_be_grouped()
            && !self.is_behind
            && self.nothing_goes_first()
            && changes.list.len() <= GROUP_CHANGES_MAX
            && self.keeps_up(rib, groups);
        is_with_others.then(|| groups.changes(&self.exporter, rib, changes)).flatten()
    }

    /// Whether nothing of its own goes before what its group is sent.
    fn nothing_goes_first(&self) -> bool {
        self.adj_rib_out.waiting_count() == 0 && !self.adj_rib_out.owes_start_marker()
    }

    /// Whether more may wait for its socket of what its group is sent.
    fn keeps_up(&self, rib: &LocRib, groups: &ExportGroups) -> bool {
        let left = self.on_the_way.iter().map(OnTheWay::length_bytes);
        let has_room = || !rib.has_originated() && groups.length_bytes() < SHARED_BYTES_MAX;
        self.on_the_way.len() < ON_THE_WAY_MAX
            && (left.fold(0, usize::saturating_add) < ON_THE_WAY_BYTES_MAX || has_room())
    }

    fn announce_with_group(&mut self, rib: &LocRib, changes: &Changes, updates: Arc<GroupUpdates>) {
        let key = self.exporter.key();
        for change in updates.alone(key).filter_map(|place| changes.list.get(place)) {
            let Some((prefix, routes)) = rib.known_routes(change.id) else { continue };
            self.update(change.id, prefix, Before::ByPresent(&change.before), routes);
        }
        self.ahead = self.ahead.max(rib.end());
        self.send_with_group(updates);
        self.exporter.forget();
    }

    fn send_with_group(&mut self, updates: Arc<GroupUpdates>) {
        let key = self.exporter.key();
        if let Some(growth) = updates.growth(key) {
            self.adj_rib_out.grow(growth);
            let next_hops = self.exporter.own_next_hops();
            self.on_the_way.push_back(OnTheWay::new(updates, key, next_hops));
        }
    }

    /// Looks at prefixes that were not looked at yet together with peers that have the same policy. Returns whether that
    /// was possible.
    fn look_ahead_with_group(&mut self, rib: &LocRib, groups: &mut ExportGroups) -> bool {
        let ahead = groups.routes_from(&self.exporter, rib, self.ahead, GROUP_ROUTES_MAX);
        let Some((updates, end)) = ahead else { return false };
        self.ahead = end;
        self.is_behind = end < rib.end();
        self.send_with_group(updates);
        true
    }

    /// Whether what the neighbour is sent may be that of peers with the same policy. Identifiers of paths differ.
    fn may_be_grouped(&self) -> bool {
        let is_sent_one = self.adj_rib_out.add_path().is_empty() && !self.exporter.chooses();
        self.was_told && self.earlier.is_empty() && is_sent_one
    }

    /// Whether something is said of a prefix of which the neighbour was told nothing: to it, or of it to the operator.
    fn concerns(&mut self, prefix: Prefix, routes: &Routes) -> bool {
        if self.adj_rib_out.add_path().contains(prefix.family()) {
            let paths = self.exporter.paths(prefix, routes);
            return paths.iter().any(|(_, made)| !matches!(made, Ok(None)));
        }
        !matches!(self.exporter.route(prefix, routes), Ok(None))
    }

    fn update(&mut self, id: PrefixId, prefix: Prefix, before: Before<'_>, routes: &Routes) {
        if !self.unannounced.is_empty() {
            self.unannounced.remove(&prefix);
        }
        let family = prefix.family();
        if self.adj_rib_out.add_path().contains(family) {
            return self.update_paths(id, prefix, before, routes);
        }
        if self.adj_rib_out.lags(id).is_some() {
            return;
        }
        let path = (id, PathId::NONE);
        let told = match before {
            Before::Nothing => None,
            Before::ByPresent(before) if before.is_none() => None,
            _ if self.adj_rib_out.is_waiting(id, PathId::NONE) => None,
            Before::ByEarlier(exporter, before) => told(exporter.route(prefix, before)),
            Before::ByPresent(before) => told(self.exporter.route(prefix, before)),
        };
        if self.adj_rib_out.is_full() && !self.adj_rib_out.is_waiting(id, PathId::NONE) {
            self.adj_rib_out.lag(id, told.is_some());
            return;
        }
        let wanted = self.exporter.route(prefix, routes).unwrap_or_else(|reason| {
            self.unannounced.insert(prefix, reason);
            None
        });
        self.adj_rib_out.want(family, path, told, wanted);
    }

    /// What was only noted since so much waited waits now, as far as there is room.
    fn catch_up(&mut self, rib: &LocRib) {
        while let Some((id, is_told)) = self.adj_rib_out.catch_up(WAITING_MAX) {
            self.earlier.take(id);
            let Some((prefix, routes)) = rib.known_routes(id) else { continue };
            let wanted = self.exporter.route(prefix, routes).unwrap_or_else(|reason| {
                self.unannounced.insert(prefix, reason);
                None
            });
            if is_told {
                self.adj_rib_out.want_again(prefix.family(), id, wanted);
            } else {
                self.adj_rib_out.want(prefix.family(), (id, PathId::NONE), None, wanted);
            }
        }
        self.exporter.forget();
    }

    fn update_paths(&mut self, id: PrefixId, prefix: Prefix, before: Before<'_>, routes: &Routes) {
        let told = match before {
            Before::Nothing => Vec::new(),
            Before::ByEarlier(exporter, before) => exporter.paths(prefix, before),
            Before::ByPresent(before) => self.exporter.paths(prefix, before),
        };
        let mut told: BTreeMap<PathId, Arc<Outgoing>> =
            told.into_iter().filter_map(|(id, made)| Some((id, made.ok()??))).collect();
        for (path_id, made) in self.exporter.paths(prefix, routes) {
            let wanted = made.unwrap_or_else(|reason| {
                self.unannounced.insert(prefix, reason);
                None
            });
            let told = told.remove(&path_id);
            self.adj_rib_out.want(prefix.family(), (id, path_id), told, wanted.as_ref());
        }
        for (path_id, told) in told {
            self.adj_rib_out.want(prefix.family(), (id, path_id), Some(told), None);
        }
    }

    /// Appends the next message to `buffer`. Returns its type, if there was one.
    pub(super) fn next_message(
        &mut self,
        rib: &LocRib,
        groups: &mut ExportGroups,
        buffer: &mut BytesMut,
    ) -> Option<MessageType> {
        let may_be_grouped = self.may_be_grouped();
        loop {
            if let Some(on_the_way) = self.on_the_way.front_mut() {
                on_the_way.next_message(buffer);
                if on_the_way.is_sent() {
                    self.on_the_way.pop_front();
                }
                return Some(MessageType::Update);
            }
            let may_look_ahead = may_be_grouped && self.is_behind && self.nothing_goes_first();
            if !(may_look_ahead && self.look_ahead_with_group(rib, groups)) {
                break;
            }
        }
        self.catch_up(rib);
        self.begin_refreshes(rib);
        // One of a group waits until it can look ahead with the others again.
        let waiting_max = if may_be_grouped { 1 } else { WAITING_MAX / 2 };
        if self.is_behind && self.adj_rib_out.waiting_count() < waiting_max {
            self.look_ahead(rib);
        }
        self.adj_rib_out.next_message(rib, buffer)
    }

    /// What refreshes ask for waits to be sent again.
    pub(super) fn begin_refreshes(&mut self, rib: &LocRib) {
        while let Some(family) = self.adj_rib_out.due_refresh() {
            let told = self.told(rib, Some(family), AdvertisedScope::All).into_iter();
            let told = told.map(|(id, nlri, outgoing)| (id, nlri.path_id, outgoing));
            self.adj_rib_out.begin_refresh(family, told);
        }
    }

    /// What the neighbour has been told, in the order of prefixes.
    pub(super) fn advertised(
        &self,
        rib: &LocRib,
        scope: AdvertisedScope,
    ) -> Vec<(Nlri, Arc<PathAttributes>)> {
        // Thousands of routes in succession share theirs.
        let mut last: Option<(Arc<Outgoing>, Arc<PathAttributes>)> = None;
        let mut decode = |prefix: Prefix, sent: Arc<Outgoing>| {
            if let Some((known, attributes)) = &last
                && Arc::ptr_eq(known, &sent)
            {
                return Some(Arc::clone(attributes));
            }
            let attributes = Arc::new(self.exporter.decode(prefix, &sent)?);
            last = Some((sent, Arc::clone(&attributes)));
            Some(attributes)
        };
        let told = self.told(rib, None, scope).into_iter();
        let told = told.filter_map(|(_, nlri, sent)| Some((nlri, decode(nlri.prefix, sent)?)));
        let mut told: Vec<_> = told.collect();
        told.sort_unstable_by_key(|(nlri, _)| *nlri);
        told
    }

    /// What it has been told within `scope`, of one family or of all.
    fn told(
        &self,
        rib: &LocRib,
        family: Option<AddressFamily>,
        scope: AdvertisedScope,
    ) -> Vec<(PrefixId, Nlri, Arc<Outgoing>)> {
        if scope == AdvertisedScope::None {
            return Vec::new();
        }
        let counts = self.adj_rib_out.counts();
        let is_told = |family: &AddressFamily| *counts.of(*family) > 0;
        if !AddressFamily::ALL.iter().filter(|it| family.is_none_or(|of| of == **it)).any(is_told) {
            return Vec::new();
        }
        let mut exporter = self.was_told.then(|| self.exporter.with_own_cache());
        let mut earlier = self.earlier.with_own_cache();
        // A million learned routes are of no interest to a neighbour that is told none.
        let passes_on = exporter.as_ref().is_none_or(Exporter::passes_on);
        let reads_all = scope == AdvertisedScope::All && (passes_on || !self.earlier.is_empty());
        let few = (!reads_all).then(|| {
            let originated = rib.originated_ids().filter(|id| *id < self.ahead);
            // What is withdrawn is not originated any more.
            let ids: BTreeSet<_> = originated.chain(self.adj_rib_out.waiting_prefixes()).collect();
            let known = |id| rib.known_routes(id).map(|(prefix, routes)| (id, prefix, routes));
            ids.into_iter().filter_map(known)
        });
        let all = reads_all.then(|| rib.known_between(PrefixId::FIRST, self.ahead));
        let known = few.into_iter().flatten().chain(all.into_iter().flatten());
        let mut all = Vec::new();
        for (id, prefix, routes) in known {
            if family.is_some_and(|family| family != prefix.family()) {
                continue;
            }
            let mut derived: BTreeMap<PathId, Arc<Outgoing>> = BTreeMap::new();
            if let Some(exporter) = earlier.policy_of(id).or(exporter.as_mut()) {
                if self.adj_rib_out.add_path().contains(prefix.family()) {
                    let paths = exporter.paths(prefix, routes).into_iter();
                    derived.extend(paths.filter_map(|(id, made)| Some((id, made.ok()??))));
                } else {
                    let route = told(exporter.route(prefix, routes));
                    derived.extend(route.map(|it| (PathId::NONE, it)));
                }
            }
            if self.adj_rib_out.lags(id) == Some(false) {
                derived.clear();
            }
            for path_id in self.adj_rib_out.waiting_paths(id) {
                if let Some(told) = self.adj_rib_out.told(id, path_id) {
                    derived.remove(&path_id);
                    derived.extend(told.map(|it| (path_id, Arc::clone(it))));
                }
            }
            let nlri = |path_id| Nlri { prefix, path_id };
            all.extend(derived.into_iter().map(|(path_id, it)| (id, nlri(path_id), it)));
        }
        all
    }
}

/// What the neighbour was told of a prefix, unless that waits to be sent.
enum Before<'a> {
    /// Nothing.
    Nothing,
    /// These routes, by an earlier policy.
    ByEarlier(&'a mut Exporter, &'a Routes),
    /// These routes, by the policy in force.
    ByPresent(&'a Routes),
}

fn told(made: Result<Option<&Arc<Outgoing>>, Ineligible>) -> Option<Arc<Outgoing>> {
    made.ok().flatten().cloned()
}

#[cfg(test)]
mod tests;
