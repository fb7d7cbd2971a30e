//! Which attributes is a route sent to one peer with, or why is it not sent (RFC 4271 §9.1.3)?

mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::routes::{Route, Routes};
use super::unordered::Unordered;
use crate::wire::announce::{AttributeBlock, TooLong};
use fairway_ground::{
    AddressFamily, ChosenNextHops, FamilySet, LocalNextHops, NextHop, PathId, PeerKey, PerFamily,
    Prefix, PrefixFilter, RouteRule,
};
use fairway_rpki::OriginTable;
use fairway_seam::{DrainState, Passage, Path, PathAttributes, PeerConfig, RouteAttributes};

pub use fairway_seam::Ineligible;
use policy::{Manner, Origins, Policy};

impl From<TooLong> for Ineligible {
    fn from(TooLong(length_bytes_max): TooLong) -> Self {
        Self::TooLong(length_bytes_max)
    }
}

/// How UPDATEs are written to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// The peer supports four-octet AS numbers.
    pub four_octet_as: bool,
    /// The longest message that it accepts.
    pub message_length_bytes_max: usize,
}

/// Attributes as they are sent. Their values are not kept beside their octets: they would take several times as much, for
/// thousands of routes that wait for each of hundreds of peers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outgoing {
    pub(super) block: AttributeBlock,
    /// The next hop is our end of the session: that of another session of the same policy may be another one.
    pub(super) has_own_next_hop: bool,
}

/// Whether a peer that has the one needs not be told the other.
pub(super) fn is_same(told: Option<&Arc<Outgoing>>, wanted: Option<&Arc<Outgoing>>) -> bool {
    match (told, wanted) {
        (None, None) => true,
        (Some(told), Some(wanted)) => Arc::ptr_eq(told, wanted) || told.block == wanted.block,
        _ => false,
    }
}

/// The export policy of one session. Caches the result for each set of attributes, so that thousands of
/// routes share one value.
#[derive(Debug)]
pub struct Exporter {
    policy: Policy,
    originated: Made<RouteAttributes>,
    passed_on: Made<PathAttributes>,
    /// Likewise of routes that are passed on in another manner, or that these rules are about.
    passed_on_in: BTreeMap<(Manner, u64), Made<PathAttributes>>,
    /// The peers of a route of our own that were looked at last, and whether this one is among them: thousands of routes
    /// have the same.
    peers: Option<(Arc<BTreeSet<PeerKey>>, bool)>,
}

/// What a peer is sent for attributes; `None` if they are not for it.
type Export<T> = Result<Option<T>, Ineligible>;

/// Attributes by their place in memory.
type Place = (AddressFamily, usize);

/// What was made of attributes, by their place, which is kept alive here.
#[derive(Debug)]
struct Made<From> {
    by_place: Unordered<Place, (Arc<From>, Export<Arc<Outgoing>>)>,
    /// What was asked for last: thousands of routes in succession share it.
    last: Option<(Place, Export<Arc<Outgoing>>)>,
}

impl<From> Default for Made<From> {
    fn default() -> Self {
        Self { by_place: Unordered::default(), last: None }
    }
}

impl<From> Made<From> {
    fn get_or_make(
        &mut self,
        family: AddressFamily,
        from: &Arc<From>,
        make: impl FnOnce() -> Export<Arc<Outgoing>>,
    ) -> Export<&Arc<Outgoing>> {
        let place = (family, Arc::as_ptr(from).addr());
        if self.last.as_ref().is_none_or(|(known, _)| *known != place) {
            let known = self.by_place.get_or_insert_with(place, || (Arc::clone(from), make()));
            self.last = Some((place, known.1.clone()));
        }
        let Some((_, made)) = &self.last else { return Ok(None) };
        made.as_ref().map(Option::as_ref).map_err(|reason| *reason)
    }
}

impl Exporter {
    /// The policy for `config`'s neighbour, on a session that carries `families` with our `next_hops`, in the
    /// drain state `drain`.
    pub fn new(
        config: &PeerConfig,
        families: FamilySet,
        next_hops: LocalNextHops,
        drain: DrainState,
        encoding: Encoding,
    ) -> Self {
        let policy = Policy {
            key: config.key,
            route_key: config.route_key(),
            paths_max: config.add_path.send.map_or(1, |it| usize::from(it.get())),
            kind: config.kind(),
            local_asn: config.local_asn.get(),
            client: config.client,
            cluster_id: config.internal_cluster_id(),
            role: config.external_role(),
            pass_on: config.pass_on.clone(),
            rules: Arc::clone(&config.pass_on_rules),
            origins: Origins::default(),
            families,
            next_hops,
            chosen: config.next_hops,
            drain,
            encoding,
            takes_long_lived: false,
        };
        Self::of(policy)
    }

    /// The peer supports long-lived stale routes (RFC 9494), or not, which is assumed at first.
    pub fn take_long_lived(mut self, takes: bool) -> Self {
        self.policy.takes_long_lived = takes;
        self
    }

    /// What RPKI caches say; nothing, at first.
    pub fn validate(mut self, origins: &Arc<OriginTable>) -> Self {
        self.policy.origins = Origins::of(&self.policy.rules, origins);
        self
    }

    /// Whether routes are withheld or changed by the state of their origin, so that another state is another result.
    pub fn validates_origins(&self) -> bool {
        self.policy.origins.are_needed()
    }

    /// The policy for the same session after a change.
    pub fn renewed(
        &self,
        config: &PeerConfig,
        next_hops: LocalNextHops,
        drain: DrainState,
        origins: &Arc<OriginTable>,
    ) -> Self {
        let Policy { families, encoding, takes_long_lived, .. } = self.policy;
        Self::new(config, families, next_hops, drain, encoding)
            .take_long_lived(takes_long_lived)
            .validate(origins)
    }

    /// The same policy, beside which nothing is cached.
    pub fn with_own_cache(&self) -> Self {
        Self::of(self.policy.clone())
    }

    fn of(policy: Policy) -> Self {
        let (originated, passed_on, passed_on_in) = Default::default();
        Self { policy, originated, passed_on, passed_on_in, peers: None }
    }

    /// What the peer is sent for `prefix`, if it is sent one route.
    pub fn route(&mut self, prefix: Prefix, routes: &Routes) -> Export<&Arc<Outgoing>> {
        let route = if self.chooses() {
            let may_be_told = |path: &Path| self.policy.passes_on(prefix, path);
            routes.choose(self.policy.route_key, may_be_told)
        } else {
            routes.route_where(|peers| self.is_among(peers))
        };
        match route {
            None => Ok(None),
            Some(Route::Originated(chosen)) => self.originate(prefix, chosen),
            Some(Route::Learned(path)) => self.pass_on(prefix, path),
        }
    }

    /// Whether the peer is sent the best of the routes that may be sent to it, and not nothing where the best of all may
    /// not: a client of a route server does not lose a route because another one hides it (RFC 7947 §2.3.1).
    pub fn chooses(&self) -> bool {
        self.policy.is_served()
    }

    /// What the peer is sent for `prefix`, if it is sent several paths: by their identifiers, best first.
    pub fn paths(
        &mut self,
        prefix: Prefix,
        routes: &Routes,
    ) -> Vec<(PathId, Export<Arc<Outgoing>>)> {
        let Policy { route_key, paths_max, .. } = self.policy;
        let may_be_told = |path: &Path| self.policy.passes_on(prefix, path);
        let routes = routes.routes_for(route_key, paths_max, may_be_told);
        let export = |(path_id, route)| {
            let made = match route {
                Route::Originated(chosen) => self.originate(prefix, chosen),
                Route::Learned(path) => self.pass_on(prefix, path),
            };
            (path_id, made.map(Option::<&_>::cloned))
        };
        routes.into_iter().map(export).collect()
    }

    fn is_among(&mut self, peers: &Arc<BTreeSet<PeerKey>>) -> bool {
        match &self.peers {
            Some((known, is_among)) if Arc::ptr_eq(known, peers) => *is_among,
            _ => {
                let is_among = peers.contains(&self.policy.route_key);
                self.peers = Some((Arc::clone(peers), is_among));
                is_among
            }
        }
    }

    /// What a route is originated with.
    pub(super) fn originate(
        &mut self,
        prefix: Prefix,
        chosen: &Arc<RouteAttributes>,
    ) -> Export<&Arc<Outgoing>> {
        let (policy, family) = (&self.policy, prefix.family());
        if !policy.families.contains(family) {
            return Err(Ineligible::Family(family));
        }
        if policy.drain == DrainState::Drained {
            return Err(Ineligible::Drained);
        }
        self.originated.get_or_make(family, chosen, || policy.originate(family, chosen).map(Some))
    }

    /// What a learned route is passed on with.
    pub fn pass_on(&mut self, prefix: Prefix, path: &Path) -> Export<&Arc<Outgoing>> {
        let policy = &self.policy;
        // A million routes need not report one by one that the node is drained.
        if policy.drain == DrainState::Drained || !policy.may_pass_on(prefix, path) {
            return Ok(None);
        }
        let family = prefix.family();
        let (manner, reach) = (policy.manner(path), policy.reach(prefix, path));
        let make = || policy.pass_on(family, &path.attributes, manner, reach);
        let made = match (manner, reach) {
            (Manner::Usual, 0) => &mut self.passed_on,
            _ => self.passed_on_in.entry((manner, reach)).or_default(),
        };
        made.get_or_make(family, &path.attributes, make)
    }

    /// What becomes of the best received path to `prefix`, for an operator; `None` without one, or behind a route of our own.
    pub fn passage(&self, prefix: Prefix, routes: &Routes) -> Option<Passage> {
        let best = routes.best().filter(|_| routes.offers().is_empty() && self.passes_on())?;
        let may_be_told = |path: &Path| self.policy.passes_on(prefix, path);
        let chosen = match self.chooses() {
            true => routes.choose(self.policy.route_key, may_be_told),
            false => None,
        };
        let path = match chosen {
            Some(Route::Learned(path)) => path,
            _ => best,
        };
        Some(self.policy.passage(prefix, path))
    }

    /// The peer.
    pub fn key(&self) -> PeerKey {
        self.policy.key
    }

    /// What routes name that are originated for this peer.
    pub(super) fn route_key(&self) -> PeerKey {
        self.policy.route_key
    }

    /// The next hops of this end, in the families for which none is configured.
    pub fn own_next_hops(&self) -> PerFamily<Option<NextHop>> {
        self.policy.own_next_hops()
    }

    /// Whether what the peer is sent may be that of other peers: no configured next hop is the peer itself, no rule sets
    /// one, and the best route is that of all.
    pub(super) fn may_be_grouped(&self) -> bool {
        let has_next_hop =
            |family| !matches!(self.policy.next_hop(family), Err(Ineligible::PeerAsNextHop(_)));
        let sets_next_hop = |rule: &RouteRule| rule.settings.next_hops != ChosenNextHops::default();
        !self.chooses()
            && !self.policy.rules.iter().any(sets_next_hop)
            && AddressFamily::ALL.into_iter().all(has_next_hop)
    }

    /// The policy of all peers that differ from this one in nothing but their key, and the address of our end.
    pub(super) fn of_group(&self) -> Self {
        let nobody = PeerKey::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Self::of(Policy { key: nobody, ..self.policy.clone() })
    }

    /// Whether it differs from the policy `group` in nothing but that, and next hops of our end take as many octets.
    pub(super) fn is_of_group(&self, group: &Self) -> bool {
        self.policy.is_of_group(&group.policy)
    }

    /// The values of the attributes with which the peer was sent `prefix`.
    pub fn decode(&self, prefix: Prefix, sent: &Outgoing) -> Option<PathAttributes> {
        sent.block.decode(prefix, self.policy.encoding.four_octet_as)
    }

    /// Whether it is the policy of `other`.
    pub fn has_policy_of(&self, other: &Self) -> bool {
        self.policy == other.policy
    }

    /// Whether some learned route may be for this peer.
    pub fn passes_on(&self) -> bool {
        self.policy.pass_on != PrefixFilter::Nothing
    }

    /// Clears the cache: attributes that no route has any more would accumulate.
    pub fn forget(&mut self) {
        self.originated = Made::default();
        self.passed_on = Made::default();
        self.passed_on_in = BTreeMap::new();
        self.peers = None;
    }
}

#[cfg(test)]
mod tests;
