//! Which attributes is a route sent to one peer with, or why is it not sent (RFC 4271 §9.1.3)?

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{LOCAL_PREF_DEFAULT, LOCAL_PREF_LAST};
use super::only_to_customer::{self, Leak};
use super::shared::Shared;
use super::unordered::Unordered;
use crate::wire::announce::TooLong;
use crate::wire::attribute::{code, flag};
use fairway_ground::{
    AddressFamily, AsPath, ChosenNextHops, Community, ExtendedCommunity, FamilySet, LocalNextHops,
    NextHop, PeerKey, PeerKind, Prefix, PrefixFilter, Role,
};
use fairway_seam::{
    DesiredRoute, DrainState, Path, PathAttributes, PeerConfig, RouteAttributes, UnknownAttribute,
};

pub use fairway_seam::Ineligible;

impl From<TooLong> for Ineligible {
    fn from(TooLong(length_bytes_max): TooLong) -> Self {
        Self::TooLong(length_bytes_max)
    }
}

/// The export policy of one session. Caches the result for each set of attributes, so that thousands of
/// routes share one value.
#[derive(Debug)]
pub struct Exporter {
    key: PeerKey,
    kind: PeerKind,
    local_asn: u32,
    role: Option<Role>,
    pass_on: PrefixFilter,
    families: FamilySet,
    next_hops: LocalNextHops,
    chosen: ChosenNextHops,
    drain: DrainState,
    /// The peer supports long-lived stale routes (RFC 9494). False at first.
    pub takes_long_lived: bool,
    made: BTreeMap<(AddressFamily, Arc<RouteAttributes>), Arc<PathAttributes>>,
    passed_on: BTreeMap<(AddressFamily, Shared), Arc<PathAttributes>>,
    /// The same, by the place of what was heard, which is kept alive here: values are compared once for each place.
    by_place: Unordered<(AddressFamily, usize), PassedOn>,
}

/// What was heard, and what it is passed on as.
#[derive(Debug)]
struct PassedOn {
    _heard: Arc<PathAttributes>,
    made: Arc<PathAttributes>,
}

impl Exporter {
    /// The policy for `config`'s neighbour, on a session that carries `families` with our `next_hops`, in the
    /// drain state `drain`.
    pub fn new(
        config: &PeerConfig,
        families: FamilySet,
        next_hops: LocalNextHops,
        drain: DrainState,
    ) -> Self {
        Self {
            key: config.key,
            kind: config.kind(),
            local_asn: config.local_asn.get(),
            role: config.external_role(),
            pass_on: config.pass_on.clone(),
            families,
            next_hops,
            chosen: config.next_hops,
            drain,
            takes_long_lived: false,
            made: BTreeMap::new(),
            passed_on: BTreeMap::new(),
            by_place: Unordered::default(),
        }
    }

    /// The attributes to originate a route with.
    pub fn originate(&mut self, route: &DesiredRoute) -> Result<Arc<PathAttributes>, Ineligible> {
        let family = route.prefix.family();
        if !self.families.contains(family) {
            return Err(Ineligible::Family(family));
        }
        if self.drain == DrainState::Drained {
            return Err(Ineligible::Drained);
        }
        let key = (family, Arc::clone(&route.attributes));
        if let Some(made) = self.made.get(&key) {
            return Ok(Arc::clone(made));
        }
        let next_hop = self.next_hop(family)?;
        let attributes = self.attributes(&route.attributes, next_hop);
        let attributes = Arc::new(self.before_leaving(attributes));
        self.made.insert(key, Arc::clone(&attributes));
        Ok(attributes)
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

    /// The attributes to pass a learned route on with; `None` if it is not for this peer.
    pub fn pass_on(
        &mut self,
        prefix: Prefix,
        path: &Path,
    ) -> Result<Option<Arc<PathAttributes>>, Ineligible> {
        let family = prefix.family();
        // A million routes need not report one by one that the node is drained.
        if self.drain == DrainState::Drained || !self.passes_on(prefix, path) {
            return Ok(None);
        }
        let place = (family, Arc::as_ptr(&path.attributes).addr());
        if let Some(known) = self.by_place.get(&place) {
            return Ok(Some(Arc::clone(&known.made)));
        }
        let made = self.make(family, path)?;
        if let Some(made) = &made {
            let (_heard, made) = (Arc::clone(&path.attributes), Arc::clone(made));
            self.by_place.insert(place, PassedOn { _heard, made });
        }
        Ok(made)
    }

    /// What is sent for these attributes, from whichever place.
    fn make(
        &mut self,
        family: AddressFamily,
        path: &Path,
    ) -> Result<Option<Arc<PathAttributes>>, Ineligible> {
        // The source is not part of the result, so that paths with equal attributes share one.
        let key = (family, Shared(Arc::clone(&path.attributes)));
        if let Some(made) = self.passed_on.get(&key) {
            return Ok(Some(Arc::clone(made)));
        }
        let Ok(only_to_customer) = self.mark(path.attributes.only_to_customer) else {
            return Ok(None);
        };
        let made = match self.kind {
            PeerKind::External => {
                to_external(&path.attributes, self.local_asn, self.next_hop(family)?)
            }
            PeerKind::Internal => {
                let heard = path.attributes.next_hop;
                let stays = self.chosen.of(family).is_none() && self.may_stay(heard, family);
                let next_hop = if stays { heard.global_only() } else { self.next_hop(family)? };
                to_internal(&path.attributes, next_hop)
            }
        };
        let made = self.warned(PathAttributes { only_to_customer, ..made });
        let made = Arc::new(self.before_leaving(made));
        self.passed_on.insert(key, Arc::clone(&made));
        Ok(Some(made))
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

    /// Whether an internal neighbour can be sent the received next hop: not a link-local one of another link,
    /// and no IPv6 one for an IPv4 route unless that was negotiated (RFC 8950 §4).
    fn may_stay(&self, heard: NextHop, family: AddressFamily) -> bool {
        let crosses = family == AddressFamily::Ipv4Unicast && matches!(heard, NextHop::Ipv6 { .. });
        !heard.is_link_local() && (!crosses || self.next_hops.extended)
    }

    /// Whether a learned route is for this peer.
    pub fn passes_on(&self, prefix: Prefix, path: &Path) -> bool {
        self.pass_on.allows(prefix)
            && self.families.contains(prefix.family())
            && self.may_be_told(path)
            && self.mark(path.attributes.only_to_customer).is_ok()
    }

    /// Not back to its source, not between internal peers (RFC 4271 §9.2.1), and not if its communities
    /// forbid it (RFC 1997).
    fn may_be_told(&self, path: &Path) -> bool {
        let communities = &path.attributes.communities;
        let is_internal = |kind| kind == PeerKind::Internal;
        path.source.key != self.key
            && !(is_internal(path.source.kind) && is_internal(self.kind))
            && !communities.contains(&Community::NO_ADVERTISE)
            && (is_internal(self.kind)
                || self.takes_long_lived
                || !communities.contains(&Community::LLGR_STALE))
            && (is_internal(self.kind)
                || !communities.contains(&Community::NO_EXPORT)
                    && !communities.contains(&Community::NO_EXPORT_SUBCONFED))
    }

    /// Clears the cache: attributes that no route has any more would accumulate.
    pub fn forget(&mut self) {
        self.made.clear();
        self.passed_on.clear();
        self.by_place.clear();
    }
}

/// Received attributes for a neighbour in another AS: our AS prepended, our next hop, without those that must
/// stay in our AS (RFC 4271 §5.1.2 to §5.1.5).
fn to_external(heard: &PathAttributes, local_asn: u32, next_hop: NextHop) -> PathAttributes {
    let extended_communities = transitive(&heard.extended_communities);
    let mut partial = heard.partial.clone();
    // An attribute that is left out has no Partial bit.
    partial.retain(|it| *it != code::EXTENDED_COMMUNITIES || !extended_communities.is_empty());
    PathAttributes {
        as_path: heard.as_path.prepended(local_asn),
        next_hop,
        med: None,
        local_pref: None,
        extended_communities,
        partial,
        unknown: heard.unknown.iter().filter_map(passed_on).collect(),
        ..heard.clone()
    }
}

/// Attributes received from another AS, for a neighbour in ours: unchanged, with a LOCAL_PREF (RFC 4271
/// §5.1.5). A link-local next hop is valid only on its own link (RFC 2545 §3): it is replaced by ours.
fn to_internal(heard: &PathAttributes, next_hop: NextHop) -> PathAttributes {
    PathAttributes {
        next_hop,
        local_pref: Some(heard.local_pref.unwrap_or(LOCAL_PREF_DEFAULT)),
        unknown: heard.unknown.iter().filter_map(passed_on).collect(),
        ..heard.clone()
    }
}

/// An attribute that we do not interpret, as it is passed on: transitive ones with the Partial bit, others
/// not at all (RFC 4271 §5).
fn passed_on(attribute: &UnknownAttribute) -> Option<UnknownAttribute> {
    // The other bits are undefined and are sent as zero (RFC 4271 §4.3).
    let flags = flag::OPTIONAL | flag::TRANSITIVE | flag::PARTIAL;
    let is_transitive = attribute.flags & flag::TRANSITIVE != 0;
    is_transitive.then(|| UnknownAttribute {
        flags: attribute.flags & flags | flag::PARTIAL,
        ..attribute.clone()
    })
}

/// Each extended community determines itself whether it leaves the AS (RFC 4360 §6).
fn transitive(communities: &[ExtendedCommunity]) -> Vec<ExtendedCommunity> {
    communities.iter().filter(|it| it.is_transitive()).copied().collect()
}

#[cfg(test)]
mod tests;
