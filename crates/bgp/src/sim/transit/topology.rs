//! Which speakers exist, which are neighbours, in which AS, and what may pass between them: drawn from a
//! seed, and changed later.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{
    AddressFamily, Asn, Community, FamilySet, HoldTime, ImportPolicy, PeerKey, Prefix,
    PrefixFilter, PrefixRange, RemoteAs, Rng, RouterId,
};
use fairway_seam::{DesiredRoute, PeerConfig, RouteAttributes};

/// Prefixes that any speaker may originate.
pub(super) const PREFIXES: u32 = 5;

/// What a speaker originates for a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origination {
    /// The first is its own: no other speaker announces anything with it.
    pub(super) communities: Vec<Community>,
    pub(super) prepend: u8,
    /// The neighbours that it is advertised to.
    pub(super) to: Vec<usize>,
}

/// One direction of what passes between two speakers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    /// `toReceive`.
    pub(super) import: PrefixFilter,
    /// `toAdvertise` of learned routes.
    pub(super) pass_on: PrefixFilter,
    pub(super) passive: bool,
}

/// One speaker as its operator wants it.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    pub(super) asn: u32,
    /// By neighbour.
    pub(super) neighbours: BTreeMap<usize, Policy>,
    pub(super) originated: BTreeMap<Prefix, Origination>,
    /// Nothing is announced.
    pub(super) drained: bool,
}

/// The number `0..count`.
pub(super) fn one_of(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.next_u64() % count as u64).unwrap_or(0)
}

pub(super) fn address(node: usize) -> IpAddr {
    [10, 255, 0, u8::try_from(node + 1).unwrap_or(u8::MAX)].into()
}

pub(super) fn key(node: usize) -> PeerKey {
    PeerKey::from(address(node))
}

/// The speaker with this key.
pub(super) fn node_of(key: PeerKey) -> usize {
    match key.address() {
        Some(IpAddr::V4(address)) => usize::from(address.octets()[3]) - 1,
        other => panic!("no speaker is at {other:?}"),
    }
}

pub(super) fn prefix(number: u32) -> Prefix {
    Prefix::from_ipv4_bits(0x0B00_0000 + (number << 16), 16).expect("no host bits")
}

/// Three to eight speakers in two to four systems. All are connected, and some have more neighbours
/// than that needs.
pub(super) fn drawn(rng: &mut Rng) -> Vec<Wishes> {
    let count = 3 + one_of(rng, 6);
    let systems = 2 + one_of(rng, 3);
    let mut all: Vec<Wishes> = (0..count)
        .map(|_| Wishes {
            asn: 65_001 + u32::try_from(one_of(rng, systems)).unwrap_or(0),
            neighbours: BTreeMap::new(),
            originated: BTreeMap::new(),
            drained: false,
        })
        .collect();
    let mut links: Vec<(usize, usize)> = (1..count).map(|node| (one_of(rng, node), node)).collect();
    for _ in 0..one_of(rng, count + 2) {
        let (one, other) = (one_of(rng, count), one_of(rng, count));
        if one != other {
            links.push((one.min(other), one.max(other)));
        }
    }
    for (one, other) in links {
        // At least one of the two dials.
        let passive = one_of(rng, 4);
        for (node, neighbour, is_passive) in
            [(one, other, passive == 0), (other, one, passive == 1)]
        {
            let policy = Policy { import: filter(rng), pass_on: filter(rng), passive: is_passive };
            all[node].neighbours.insert(neighbour, policy);
        }
    }
    for (node, wishes) in all.iter_mut().enumerate() {
        wishes.originated = originated(rng, node, wishes);
    }
    all
}

/// Mostly everything, else some prefixes or nothing.
pub(super) fn filter(rng: &mut Rng) -> PrefixFilter {
    let some = PrefixRange::new(prefix(0), None, None);
    let more = PrefixRange::new("11.2.0.0/15".parse().expect("a prefix"), Some(16), Some(16));
    match one_of(rng, 10) {
        0 => PrefixFilter::Nothing,
        1 => PrefixFilter::Listed(some.into_iter().collect()),
        2 => PrefixFilter::Listed(more.into_iter().collect()),
        _ => PrefixFilter::Everything,
    }
}

/// One of the communities that only `node` announces with.
pub(super) fn own(node: usize, which: usize) -> Community {
    Community(u32::try_from(node * 2 + which + 1).unwrap_or(0))
}

/// What a speaker originates, for some of its neighbours.
pub(super) fn originated(
    rng: &mut Rng,
    node: usize,
    wishes: &Wishes,
) -> BTreeMap<Prefix, Origination> {
    let count = one_of(rng, 4);
    let mut routes = BTreeMap::new();
    for _ in 0..count {
        let number = u32::try_from(one_of(rng, PREFIXES as usize)).unwrap_or(0);
        let kept = [Community::NO_EXPORT, Community::NO_ADVERTISE];
        let kept = kept.get(one_of(rng, 10)).copied();
        let communities = [own(node, one_of(rng, 2))].into_iter().chain(kept).collect();
        let prepend = u8::try_from(one_of(rng, 6)).unwrap_or(0).saturating_sub(3);
        let to = wishes.neighbours.keys().copied().filter(|_| one_of(rng, 5) > 0).collect();
        routes.insert(prefix(number), Origination { communities, prepend, to });
    }
    routes
}

impl Wishes {
    /// The settings of `node` towards `neighbour`, in the AS `remote`.
    pub(super) fn config(&self, node: usize, neighbour: usize, remote: u32) -> PeerConfig {
        let asn = |number| Asn::new(number).expect("not AS 0");
        let policy = &self.neighbours[&neighbour];
        let router_id = RouterId::new(u32::try_from(node + 1).unwrap_or(1)).expect("not zero");
        PeerConfig {
            name: format!("to-{neighbour}"),
            families: FamilySet::only(AddressFamily::Ipv4Unicast),
            // No timer of a session: when nothing is on its way, the network is quiet.
            hold_time: HoldTime::OFF,
            passive: policy.passive,
            multihop: true,
            import: ImportPolicy { allowed: policy.import.clone(), ..ImportPolicy::default() },
            pass_on: policy.pass_on.clone(),
            ..PeerConfig::new(key(neighbour), asn(self.asn), RemoteAs::Asn(asn(remote)), router_id)
        }
    }

    /// The routes to originate.
    pub(super) fn routes(&self) -> Vec<DesiredRoute> {
        let route = |(prefix, it): (&Prefix, &Origination)| DesiredRoute {
            prefix: *prefix,
            peers: Arc::new(it.to.iter().map(|neighbour| key(*neighbour)).collect()),
            attributes: Arc::new(RouteAttributes {
                communities: it.communities.clone(),
                as_path_prepend: it.prepend,
                ..Default::default()
            }),
        };
        self.originated.iter().map(route).collect()
    }
}
