//! With which attributes do routes go to one peer, and which do not? The rules alone: what is made of which attributes is
//! kept by [`super::Exporter`].

use std::sync::Arc;

use super::super::decision::{LOCAL_PREF_DEFAULT, LOCAL_PREF_LAST};
use super::super::only_to_customer::{self, Leak};
use super::super::passed_on::{reflected, to_client_of_server, to_external, to_internal};
use super::super::rules::{RejectedBy, apply_rules, are_about_origins, rules_in_reach};
use super::{Encoding, Export, Ineligible, Outgoing};
use crate::wire::announce::{AttributeBlock, next_hop_octets};
use fairway_ground::{
    AddressFamily, AsPath, ChosenNextHops, ClientKind, ClusterId, Community, FamilySet,
    LocalNextHops, NextHop, PeerKey, PeerKind, PerFamily, Prefix, PrefixFilter, Role, RouteRule,
    RouterId,
};
use fairway_rpki::{OriginTable, origin};
use fairway_seam::{
    DrainState, Passage, Path, PathAttributes, RouteAttributes, RuleName, Withheld,
};

/// The settings of a session that decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) key: PeerKey,
    /// What routes name that are originated for this peer.
    pub(super) route_key: PeerKey,
    /// How many paths to a prefix it is sent, if it is sent several.
    pub(super) paths_max: usize,
    pub(super) kind: PeerKind,
    pub(super) local_asn: u32,
    pub(super) client: Option<ClientKind>,
    /// Our cluster, towards an internal neighbour.
    pub(super) cluster_id: Option<ClusterId>,
    pub(super) role: Option<Role>,
    pub(super) pass_on: PrefixFilter,
    /// What happens to the routes that are passed on.
    pub(super) rules: Arc<[RouteRule]>,
    pub(super) origins: Origins,
    pub(super) families: FamilySet,
    pub(super) next_hops: LocalNextHops,
    pub(super) chosen: ChosenNextHops,
    pub(super) drain: DrainState,
    pub(super) encoding: Encoding,
    pub(super) takes_long_lived: bool,
}

/// What RPKI caches say, if a rule is about that.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins(Option<Arc<OriginTable>>);

impl Origins {
    /// What `rules` need of `table`.
    pub(super) fn of(rules: &[RouteRule], table: &Arc<OriginTable>) -> Self {
        Self(are_about_origins(rules).then(|| Arc::clone(table)))
    }

    pub(super) fn are_needed(&self) -> bool {
        self.0.is_some()
    }
}

impl PartialEq for Origins {
    /// A table never changes; two of them are not compared payload by payload.
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref().map(Arc::as_ptr) == other.0.as_ref().map(Arc::as_ptr)
    }
}

impl Eq for Origins {}

/// How a received route is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Manner {
    /// As RFC 4271 has it.
    Usual,
    /// From one internal neighbour to another; the first of them has this identifier.
    Reflected(RouterId),
    /// From one external neighbour to another, as if we were not there.
    Transparent,
}

impl Policy {
    pub(super) fn originate(
        &self,
        family: AddressFamily,
        chosen: &RouteAttributes,
    ) -> Result<Arc<Outgoing>, Ineligible> {
        let attributes = self.attributes(chosen, self.next_hop(family)?);
        self.encoded(&self.before_leaving(attributes), self.has_own_next_hop(family))
    }

    fn encoded(
        &self,
        attributes: &PathAttributes,
        has_own_next_hop: bool,
    ) -> Result<Arc<Outgoing>, Ineligible> {
        let Encoding { four_octet_as, message_length_bytes_max } = self.encoding;
        let block =
            AttributeBlock::encode_within(message_length_bytes_max, attributes, four_octet_as)?;
        Ok(Arc::new(Outgoing { block, has_own_next_hop }))
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
            communities: communities.as_slice().into(),
            extended_communities: bandwidth.into_iter().collect(),
            large_communities: large_communities.as_slice().into(),
            // A route of our own has no ONLY_TO_CUSTOMER yet, so it may go anywhere.
            only_to_customer: self.mark(None).unwrap_or(None),
            ..PathAttributes::originated(as_path, next_hop)
        }
    }

    pub(super) fn manner(&self, path: &Path) -> Manner {
        match (path.source.kind, self.kind) {
            (PeerKind::Internal, PeerKind::Internal) => Manner::Reflected(path.source.router_id),
            (PeerKind::External, PeerKind::External) if self.is_served() => Manner::Transparent,
            _ => Manner::Usual,
        }
    }

    /// Whether the peer is a client of our route server.
    pub(super) fn is_served(&self) -> bool {
        self.client == Some(ClientKind::RouteServer)
    }

    pub(super) fn pass_on(
        &self,
        family: AddressFamily,
        heard: &Arc<PathAttributes>,
        manner: Manner,
        reach: u64,
    ) -> Export<Arc<Outgoing>> {
        let only_to_customer = match self.mark(heard.only_to_customer) {
            Ok(mark) if self.may_be_told(heard) => mark,
            _ => return Ok(None),
        };
        let Ok(ruled) = apply_rules(&self.rules, reach, family, Some(self.local_asn), heard) else {
            return Ok(None);
        };
        let heard = &*ruled.attributes;
        let stays = (self.kind == PeerKind::Internal || manner == Manner::Transparent)
            && self.chosen.of(family).is_none()
            && self.may_stay(heard.next_hop, family);
        let next_hop = match ruled.next_hop {
            Some(next_hop) => self.unless_peer(next_hop)?,
            None if stays => heard.next_hop.global_only(),
            None => self.next_hop(family)?,
        };
        let made = match (manner, self.kind) {
            (Manner::Transparent, _) => to_client_of_server(heard, next_hop),
            (Manner::Reflected(from), _) => reflected(heard, next_hop, from, self.cluster_id),
            (Manner::Usual, PeerKind::External) => to_external(heard, self.local_asn, next_hop),
            (Manner::Usual, PeerKind::Internal) => to_internal(heard, next_hop),
        };
        let med = ruled.med.or(made.med);
        let made = self.warned(PathAttributes { only_to_customer, med, ..made });
        let has_own_next_hop = ruled.next_hop.is_none() && !stays && self.has_own_next_hop(family);
        self.encoded(&self.before_leaving(made), has_own_next_hop).map(Some)
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
    pub(super) fn next_hop(&self, family: AddressFamily) -> Result<NextHop, Ineligible> {
        match self.chosen.of(family) {
            Some(chosen) => self.unless_peer(chosen),
            None => self.next_hops.of(family).ok_or(Ineligible::NextHop(family)),
        }
    }

    /// The next hop that an operator has chosen. A peer is not sent itself.
    fn unless_peer(&self, chosen: NextHop) -> Result<NextHop, Ineligible> {
        match self.key.address() == Some(chosen.address()) {
            true => Err(Ineligible::PeerAsNextHop(chosen.address())),
            false => Ok(chosen),
        }
    }

    /// Whether [`Policy::next_hop`] is that of this end.
    fn has_own_next_hop(&self, family: AddressFamily) -> bool {
        self.chosen.of(family).is_none()
    }

    pub(super) fn own_next_hops(&self) -> PerFamily<Option<NextHop>> {
        let mut own = PerFamily::default();
        for family in AddressFamily::ALL.into_iter().filter(|it| self.has_own_next_hop(*it)) {
            *own.of_mut(family) = self.next_hops.of(family);
        }
        own
    }

    pub(super) fn is_of_group(&self, group: &Self) -> bool {
        let Self {
            key: _,
            // Whose routes of our own are for the peer is looked up for each set of peers.
            route_key: _,
            paths_max,
            kind,
            local_asn,
            client,
            cluster_id,
            role,
            pass_on,
            rules,
            origins,
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
            && *client == group.client
            && *cluster_id == group.cluster_id
            && *role == group.role
            && *families == group.families
            && next_hops.extended == group.next_hops.extended
            && *chosen == group.chosen
            && *drain == group.drain
            && *encoding == group.encoding
            && *takes_long_lived == group.takes_long_lived
            && AddressFamily::ALL.into_iter().all(|it| length(self, it) == length(group, it))
            && *rules == group.rules
            && *origins == group.origins
            && *pass_on == group.pass_on
    }

    /// Whether an internal neighbour can be sent the received next hop: not a link-local one of another link,
    /// and no IPv6 one for an IPv4 route unless that was negotiated (RFC 8950 §4).
    fn may_stay(&self, heard: NextHop, family: AddressFamily) -> bool {
        let crosses = family == AddressFamily::Ipv4Unicast && matches!(heard, NextHop::Ipv6 { .. });
        !heard.is_link_local() && (!crosses || self.next_hops.extended)
    }

    pub(super) fn passes_on(&self, prefix: Prefix, path: &Path) -> bool {
        self.withheld_at_all(prefix, path).is_none()
            && (self.rules.is_empty() || self.judged(prefix, path).is_ok())
    }

    /// What becomes of a received route, for an operator.
    pub(super) fn passage(&self, prefix: Prefix, path: &Path) -> Passage {
        let rule = |place: u8| {
            let name = self.rules.get(usize::from(place)).and_then(|rule| rule.name.clone());
            RuleName { place, name }
        };
        match (self.withheld_at_all(prefix, path), self.judged(prefix, path)) {
            (Some(withheld), _) => Passage::Withheld(withheld),
            (None, Ok(accepted_by)) => Passage::Passed(accepted_by.map(rule)),
            (None, Err(place)) => Passage::Withheld(Withheld::Rule(rule(place))),
        }
    }

    /// The place of the rule that accepts it, or of the one that rejects it.
    fn judged(&self, prefix: Prefix, path: &Path) -> Result<Option<u8>, RejectedBy> {
        let reach = self.reach(prefix, path);
        let ruled = apply_rules(&self.rules, reach, prefix.family(), None, &path.attributes);
        ruled.map(|it| it.accepted_by)
    }

    /// The rules that it is in reach of.
    pub(super) fn reach(&self, prefix: Prefix, path: &Path) -> u64 {
        let Origins(table) = &self.origins;
        let state = table
            .as_ref()
            .map(|table| table.state(prefix, origin(&path.attributes.as_path, self.local_asn)));
        rules_in_reach(&self.rules, prefix, state)
    }

    /// Why it does not go to the peer, whatever the rules are.
    fn withheld_at_all(&self, prefix: Prefix, path: &Path) -> Option<Withheld> {
        let heard = &path.attributes;
        self.withheld(prefix, path)
            .or_else(|| (!self.may_be_told(heard)).then_some(Withheld::Communities))
            .or_else(|| self.mark(heard.only_to_customer).is_err().then_some(Withheld::Leak))
    }

    /// What does not follow from the attributes: not back to its source, between internal peers only to or from a client
    /// of ours (RFC 4271 §9.2.1, RFC 4456 §6), and only what the operator wants.
    fn withheld(&self, prefix: Prefix, path: &Path) -> Option<Withheld> {
        let is_internal = |kind| kind == PeerKind::Internal;
        let is_client = path.source.is_client || self.client == Some(ClientKind::Reflector);
        if path.source.key == self.key {
            return Some(Withheld::FromPeer);
        }
        if !is_client && is_internal(path.source.kind) && is_internal(self.kind) {
            return Some(Withheld::Internal);
        }
        let is_wanted = self.families.contains(prefix.family()) && self.pass_on.allows(prefix);
        (!is_wanted).then_some(Withheld::Prefix)
    }

    /// Whether nothing but its attributes may keep it from the peer.
    pub(super) fn may_pass_on(&self, prefix: Prefix, path: &Path) -> bool {
        self.withheld(prefix, path).is_none()
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
