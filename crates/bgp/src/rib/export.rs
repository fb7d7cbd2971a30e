//! Which attributes is a route sent to one peer with, or why is it not sent (RFC 4271 §9.1.3)?

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::decision::{LOCAL_PREF_DEFAULT, LOCAL_PREF_LAST};
use super::only_to_customer::{self, Leak};
use super::passed_on::{to_external, to_internal};
use super::routes::{Route, Routes};
use super::unordered::Unordered;
use crate::wire::announce::{AttributeBlock, TooLong, next_hop_octets};
use fairway_ground::{
    AddressFamily, AsPath, ChosenNextHops, Community, FamilySet, LocalNextHops, NextHop, PathId,
    PeerKey, PeerKind, PerFamily, Prefix, PrefixFilter, Role,
};
use fairway_seam::{DrainState, Path, PathAttributes, PeerConfig, RouteAttributes};

pub use fairway_seam::Ineligible;

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

/// Attributes as they are sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Their values.
    pub attributes: Arc<PathAttributes>,
    /// The same, encoded.
    pub(super) block: AttributeBlock,
    /// The next hop is our end of the session: that of another session of the same policy may be another one.
    pub(super) has_own_next_hop: bool,
}

/// Whether a peer that has the one needs not be told the other.
pub(super) fn is_same(told: Option<&Arc<Outgoing>>, wanted: Option<&Arc<Outgoing>>) -> bool {
    match (told, wanted) {
        (None, None) => true,
        (Some(told), Some(wanted)) => {
            Arc::ptr_eq(told, wanted) || told.attributes == wanted.attributes
        }
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
    /// The peers of a route of our own that were looked at last, and whether this one is among them: thousands of routes
    /// have the same.
    peers: Option<(Arc<BTreeSet<PeerKey>>, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Policy {
    key: PeerKey,
    /// What routes name that are originated for this peer.
    route_key: PeerKey,
    /// How many paths to a prefix it is sent, if it is sent several.
    paths_max: usize,
    kind: PeerKind,
    local_asn: u32,
    role: Option<Role>,
    pass_on: PrefixFilter,
    families: FamilySet,
    next_hops: LocalNextHops,
    chosen: ChosenNextHops,
    drain: DrainState,
    encoding: Encoding,
    takes_long_lived: bool,
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
            role: config.external_role(),
            pass_on: config.pass_on.clone(),
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

    /// The policy for the same session after a change.
    pub fn renewed(
        &self,
        config: &PeerConfig,
        next_hops: LocalNextHops,
        drain: DrainState,
    ) -> Self {
        let Policy { families, encoding, takes_long_lived, .. } = self.policy;
        Self::new(config, families, next_hops, drain, encoding).take_long_lived(takes_long_lived)
    }

    /// The same policy, beside which nothing is cached.
    pub fn with_own_cache(&self) -> Self {
        Self::of(self.policy.clone())
    }

    fn of(policy: Policy) -> Self {
        Self { policy, originated: Made::default(), passed_on: Made::default(), peers: None }
    }

    /// What the peer is sent for `prefix`, if it is sent one route.
    pub fn route(&mut self, prefix: Prefix, routes: &Routes) -> Export<&Arc<Outgoing>> {
        match routes.route_where(|peers| self.is_among(peers)) {
            None => Ok(None),
            Some(Route::Originated(chosen)) => self.originate(prefix, chosen),
            Some(Route::Learned(path)) => self.pass_on(prefix, path),
        }
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
        let make = || policy.pass_on(family, &path.attributes);
        self.passed_on.get_or_make(family, &path.attributes, make)
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

    /// Whether what the peer is sent may be that of other peers: no configured next hop is the peer itself.
    pub(super) fn may_be_grouped(&self) -> bool {
        let has_next_hop =
            |family| !matches!(self.policy.next_hop(family), Err(Ineligible::PeerAsNextHop(_)));
        AddressFamily::ALL.into_iter().all(has_next_hop)
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
        self.peers = None;
    }
}

impl Policy {
    fn originate(
        &self,
        family: AddressFamily,
        chosen: &RouteAttributes,
    ) -> Result<Arc<Outgoing>, Ineligible> {
        let attributes = self.attributes(chosen, self.next_hop(family)?);
        self.encoded(self.before_leaving(attributes), self.has_own_next_hop(family))
    }

    fn encoded(
        &self,
        attributes: PathAttributes,
        has_own_next_hop: bool,
    ) -> Result<Arc<Outgoing>, Ineligible> {
        let Encoding { four_octet_as, message_length_bytes_max } = self.encoding;
        let block =
            AttributeBlock::encode_within(message_length_bytes_max, &attributes, four_octet_as)?;
        Ok(Arc::new(Outgoing { attributes: Arc::new(attributes), block, has_own_next_hop }))
    }

    fn attributes(&self, chosen: &RouteAttributes, next_hop: NextHop) -> PathAttributes {
        let RouteAttributes {
            local_pref,
            communities,
            large_communities,
            med,
            as_path_prepend,
            link_bandwidth,
        } = chosen;
        let is_external = self.kind == PeerKind::External;
        let times = usize::from(*as_path_prepend).saturating_add(1);
        let as_path = match self.kind {
            PeerKind::External => AsPath::sequence(vec![self.local_asn; times]),
            PeerKind::Internal => AsPath::default(),
        };
        // A non-transitive one would not leave the AS (RFC 4360 §6).
        let bandwidth = link_bandwidth.map(|it| it.community(self.local_asn, is_external));
        PathAttributes {
            // External peers must not be sent it (RFC 4271 §5.1.5).
            local_pref: (!is_external).then(|| local_pref.unwrap_or(LOCAL_PREF_DEFAULT)),
            med: *med,
            communities: communities.clone(),
            extended_communities: bandwidth.into_iter().collect(),
            large_communities: large_communities.clone(),
            // A route of our own has no ONLY_TO_CUSTOMER yet, so it may go anywhere.
            only_to_customer: self.mark(None).unwrap_or(None),
            ..PathAttributes::originated(as_path, next_hop)
        }
    }

    fn pass_on(&self, family: AddressFamily, heard: &PathAttributes) -> Export<Arc<Outgoing>> {
        let only_to_customer = match self.mark(heard.only_to_customer) {
            Ok(mark) if self.may_be_told(heard) => mark,
            _ => return Ok(None),
        };
        let stays = self.kind == PeerKind::Internal
            && self.chosen.of(family).is_none()
            && self.may_stay(heard.next_hop, family);
        let next_hop = if stays { heard.next_hop.global_only() } else { self.next_hop(family)? };
        let made = match self.kind {
            PeerKind::External => to_external(heard, self.local_asn, next_hop),
            PeerKind::Internal => to_internal(heard, next_hop),
        };
        let made = self.warned(PathAttributes { only_to_customer, ..made });
        let has_own_next_hop = !stays && self.has_own_next_hop(family);
        self.encoded(self.before_leaving(made), has_own_next_hop).map(Some)
    }

    /// The attributes before a withdrawal: other paths are preferred then (RFC 8326 §4). Inside the AS
    /// LOCAL_PREF has the same effect on routers that do not know the community.
    fn before_leaving(&self, attributes: PathAttributes) -> PathAttributes {
        if self.drain != DrainState::Draining {
            return attributes;
        }
        let local_pref = attributes.local_pref.map(|_| LOCAL_PREF_LAST);
        let attributes = attributes.with_community(Community::GRACEFUL_SHUTDOWN);
        PathAttributes { local_pref, ..attributes }
    }

    /// A long-lived stale route, for an internal peer that does not support LLGR: the last resort all the
    /// same, and not to be passed on to others (RFC 9494 §4.6).
    fn warned(&self, attributes: PathAttributes) -> PathAttributes {
        let is_stale = attributes.communities.contains(&Community::LLGR_STALE);
        if !is_stale || self.takes_long_lived || self.kind == PeerKind::External {
            return attributes;
        }
        let attributes = attributes.with_community(Community::NO_EXPORT);
        PathAttributes { local_pref: Some(LOCAL_PREF_LAST), ..attributes }
    }

    fn mark(&self, mark: Option<u32>) -> Result<Option<u32>, Leak> {
        only_to_customer::told(self.role, self.local_asn, mark)
    }

    /// The configured next hop, or that of this end.
    fn next_hop(&self, family: AddressFamily) -> Result<NextHop, Ineligible> {
        match self.chosen.of(family) {
            Some(chosen) if self.key.address() == Some(chosen.address()) => {
                Err(Ineligible::PeerAsNextHop(chosen.address()))
            }
            Some(chosen) => Ok(chosen),
            None => self.next_hops.of(family).ok_or(Ineligible::NextHop(family)),
        }
    }

    /// Whether [`Policy::next_hop`] is that of this end.
    fn has_own_next_hop(&self, family: AddressFamily) -> bool {
        self.chosen.of(family).is_none()
    }

    fn own_next_hops(&self) -> PerFamily<Option<NextHop>> {
        let mut own = PerFamily::default();
        for family in AddressFamily::ALL.into_iter().filter(|it| self.has_own_next_hop(*it)) {
            *own.of_mut(family) = self.next_hops.of(family);
        }
        own
    }

    fn is_of_group(&self, group: &Self) -> bool {
        let Self {
            key: _,
            // Whose routes of our own are for the peer is looked up for each set of peers.
            route_key: _,
            paths_max,
            kind,
            local_asn,
            role,
            pass_on,
            families,
            next_hops,
            chosen,
            drain,
            encoding,
            takes_long_lived,
        } = self;
        let length = |policy: &Self, family| {
            let own = policy.own_next_hops();
            (*own.of(family)).map(|it| (matches!(it, NextHop::Ipv4(_)), next_hop_octets(it).len()))
        };
        *paths_max == group.paths_max
            && *kind == group.kind
            && *local_asn == group.local_asn
            && *role == group.role
            && *families == group.families
            && next_hops.extended == group.next_hops.extended
            && *chosen == group.chosen
            && *drain == group.drain
            && *encoding == group.encoding
            && *takes_long_lived == group.takes_long_lived
            && AddressFamily::ALL.into_iter().all(|it| length(self, it) == length(group, it))
            && *pass_on == group.pass_on
    }

    /// Whether an internal neighbour can be sent the received next hop: not a link-local one of another link,
    /// and no IPv6 one for an IPv4 route unless that was negotiated (RFC 8950 §4).
    fn may_stay(&self, heard: NextHop, family: AddressFamily) -> bool {
        let crosses = family == AddressFamily::Ipv4Unicast && matches!(heard, NextHop::Ipv6 { .. });
        !heard.is_link_local() && (!crosses || self.next_hops.extended)
    }

    fn passes_on(&self, prefix: Prefix, path: &Path) -> bool {
        let heard = &path.attributes;
        self.may_pass_on(prefix, path)
            && self.may_be_told(heard)
            && self.mark(heard.only_to_customer).is_ok()
    }

    /// What does not follow from the attributes: not back to its source, not between internal peers (RFC 4271
    /// §9.2.1), and only what the operator wants.
    fn may_pass_on(&self, prefix: Prefix, path: &Path) -> bool {
        let is_internal = |kind| kind == PeerKind::Internal;
        path.source.key != self.key
            && !(is_internal(path.source.kind) && is_internal(self.kind))
            && self.families.contains(prefix.family())
            && self.pass_on.allows(prefix)
    }

    /// Not if its communities forbid it (RFC 1997).
    fn may_be_told(&self, heard: &PathAttributes) -> bool {
        let has = |community| heard.communities.contains(&community);
        let is_internal = self.kind == PeerKind::Internal;
        !has(Community::NO_ADVERTISE)
            && (is_internal
                || (self.takes_long_lived || !has(Community::LLGR_STALE))
                    && !has(Community::NO_EXPORT)
                    && !has(Community::NO_EXPORT_SUBCONFED))
    }
}

#[cfg(test)]
mod tests;
