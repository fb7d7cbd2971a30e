//! The accepted routes of one peer (RFC 4271 §3.2, Adj-RIB-In).
//!
//! Routes that the import policy rejects are counted and not kept, so a neighbour that announces unwanted
//! routes costs no memory. A wider policy therefore requires the neighbour to announce everything again, by
//! ROUTE-REFRESH. Other data of RPKI does not (RFC 9324): a policy that depends on it keeps the originals of routes that it
//! has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::prefix_table::PrefixTable;
use super::shared::Shared;
use super::unordered::Unordered;
use fairway_ground::{AddressFamily, Community, Nlri, PathId, PerFamily, Prefix};
use fairway_seam::{PathAttributes, RouteChange};

/// Maximum number of paths to one prefix from a peer; further ones are rejected.
///
/// `Ours:` RFC 7911 defines no limit. Routers send a few, while route selection compares all of them for
/// every change: ten thousand would be a denial of service.
const PATHS_MAX: usize = 64;

/// The Adj-RIB-In of one session. It ends with the session, unless the peer restarts gracefully: then the
/// next session takes it over, as in a refresh.
#[derive(Debug, Default)]
pub struct AdjRibIn {
    routes: PrefixTable<Paths>,
    counts: PerFamily<u32>,
    attributes: AttributeMemory,
    /// What the neighbour announced in place of the attributes that the policy has made of it.
    originals: BTreeMap<Nlri, Arc<PathAttributes>>,
    /// For a family that is being refreshed (RFC 7313), the routes announced since the refresh started. The
    /// others are stale; another start makes all of them stale again, at almost no cost.
    said_again: PerFamily<Option<BTreeSet<Nlri>>>,
}

/// The paths of the peer to one prefix. Most sessions have one, which takes no memory of its own.
#[derive(Debug)]
enum Paths {
    One(Announced),
    NotOne(NotOne),
}

/// None, or some in no order. A list in a box needs no more room than there is in [`Paths::One`] beside what tells them
/// apart, and so none at all.
type NotOne = Option<Box<Vec<Announced>>>;

type Announced = (PathId, Arc<PathAttributes>);

const _: () = assert!(size_of::<Paths>() == size_of::<Announced>());

impl Default for Paths {
    fn default() -> Self {
        Self::NotOne(None)
    }
}

impl Paths {
    fn as_slice(&self) -> &[Announced] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::NotOne(paths) => paths.as_deref().map_or(&[], Vec::as_slice),
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Announced] {
        match self {
            Self::One(path) => std::slice::from_mut(path),
            Self::NotOne(paths) => paths.as_deref_mut().map_or(&mut [], Vec::as_mut_slice),
        }
    }

    fn position(&self, path_id: PathId) -> Option<usize> {
        self.as_slice().iter().position(|(known, _)| *known == path_id)
    }

    fn push(&mut self, path: Announced) {
        *self = match std::mem::take(self) {
            Self::NotOne(None) => Self::One(path),
            Self::One(known) => Self::NotOne(Some(Box::new(vec![known, path]))),
            Self::NotOne(Some(mut paths)) => {
                paths.push(path);
                Self::NotOne(Some(paths))
            }
        };
    }

    fn remove(&mut self, path_id: PathId) -> Option<Arc<PathAttributes>> {
        let place = self.position(path_id)?;
        let Self::NotOne(Some(paths)) = self else {
            let Self::One((_, attributes)) = std::mem::take(self) else { return None };
            return Some(attributes);
        };
        let (_, attributes) = paths.swap_remove(place);
        if paths.len() == 1 {
            *self = paths.pop().map_or_else(Self::default, Self::One);
        }
        Some(attributes)
    }
}

impl AdjRibIn {
    /// The peer announced `nlri`. Returns whether anything changed.
    pub fn announce(&mut self, nlri: Nlri, attributes: &Arc<PathAttributes>) -> bool {
        let Nlri { prefix, path_id } = nlri;
        if let Some(said_again) = self.said_again.of_mut(prefix.family()) {
            said_again.insert(nlri);
        }
        let known = self.routes.id_or_insert(prefix).and_then(|id| self.routes.get_mut(id));
        let Some((_, paths)) = known else { return false };
        match paths.as_mut_slice().iter_mut().find(|(known, _)| *known == path_id) {
            // The value that is shared with other routes stays: a neighbour cannot make copies of it.
            Some((_, known)) if known == attributes => false,
            Some((_, known)) => {
                self.attributes.take(attributes);
                let before = std::mem::replace(known, Arc::clone(attributes));
                self.attributes.release(&before);
                true
            }
            None => {
                self.attributes.take(attributes);
                paths.push((path_id, Arc::clone(attributes)));
                let count = self.counts.of_mut(prefix.family());
                *count = count.saturating_add(1);
                true
            }
        }
    }

    /// The peer announced the route `nlri` with these attributes, and the policy has changed them; with `None`, it has not.
    pub fn set_original(&mut self, nlri: Nlri, announced: Option<&Arc<PathAttributes>>) {
        let known = self.originals.get(&nlri);
        if known == announced {
            return; // The value that is shared with other routes stays.
        }
        if let Some(announced) = announced {
            self.attributes.take(announced);
        }
        let before = match announced {
            Some(announced) => self.originals.insert(nlri, Arc::clone(announced)),
            None => self.originals.remove(&nlri),
        };
        if let Some(before) = before {
            self.attributes.release(&before);
        }
    }

    /// The policy does not depend on what changes any more.
    pub fn forget_originals(&mut self) {
        for (_, attributes) in std::mem::take(&mut self.originals) {
            self.attributes.release(&attributes);
        }
    }

    /// The route `nlri` as the peer announced it.
    pub fn announced_as(&self, nlri: Nlri) -> Option<&Arc<PathAttributes>> {
        let (_, attributes) = self.paths(nlri).iter().find(|(known, _)| *known == nlri.path_id)?;
        Some(self.originals.get(&nlri).unwrap_or(attributes))
    }

    /// All routes that `concerns` names, as the peer announced them.
    pub fn announced(
        &self,
        concerns: impl Fn(Prefix) -> bool,
    ) -> impl Iterator<Item = (Nlri, &Arc<PathAttributes>)> {
        let routes = self.routes().filter(move |(nlri, _)| concerns(nlri.prefix));
        routes.map(|(nlri, attributes)| (nlri, self.originals.get(&nlri).unwrap_or(attributes)))
    }

    /// The peer withdrew `nlri`. Returns whether it was announced.
    pub fn withdraw(&mut self, nlri: Nlri) -> bool {
        let Nlri { prefix, path_id } = nlri;
        let Some(id) = self.routes.id(prefix) else { return false };
        let Some((_, paths)) = self.routes.get_mut(id) else { return false };
        let Some(attributes) = paths.remove(path_id) else { return false };
        if paths.as_slice().is_empty() {
            self.routes.remove(id);
        }
        self.attributes.release(&attributes);
        self.set_original(nlri, None);
        if let Some(said_again) = self.said_again.of_mut(prefix.family()) {
            said_again.remove(&nlri);
        }
        let count = self.counts.of_mut(prefix.family());
        *count = count.saturating_sub(1);
        true
    }

    /// A refresh of all routes of `family` starts.
    pub fn begin_refresh(&mut self, family: AddressFamily) {
        *self.said_again.of_mut(family) = Some(BTreeSet::new());
    }

    /// The refresh is complete: removes and returns the routes that were not announced again. Without a
    /// start, none.
    pub fn end_refresh(&mut self, family: AddressFamily) -> Vec<Nlri> {
        let Some(said_again) = self.said_again.of_mut(family).take() else { return Vec::new() };
        let is_stale = |it: &Nlri| it.prefix.family() == family && !said_again.contains(it);
        let stale: Vec<Nlri> = self.routes().map(|(nlri, _)| nlri).filter(is_stale).collect();
        for nlri in &stale {
            self.withdraw(*nlri);
        }
        stale
    }

    /// Discards the refresh of `family`: what was announced in it belongs to a session that ended.
    pub fn forget_refresh(&mut self, family: AddressFamily) {
        *self.said_again.of_mut(family) = None;
    }

    /// Whether `nlri` was announced since the refresh of its family started.
    pub fn was_said_again(&self, nlri: Nlri) -> bool {
        let said_again = self.said_again.of(nlri.prefix.family()).as_ref();
        said_again.is_some_and(|it| it.contains(&nlri))
    }

    /// Whether `nlri` is expected again in a refresh that has started.
    pub fn is_awaited(&self, nlri: Nlri) -> bool {
        let said_again = self.said_again.of(nlri.prefix.family()).as_ref();
        said_again.is_some_and(|it| !it.contains(&nlri))
    }

    /// How many routes of `family` were announced since then; `None` without a refresh.
    pub fn said_again_count(&self, family: AddressFamily) -> Option<usize> {
        self.said_again.of(family).as_ref().map(BTreeSet::len)
    }

    /// Removes and returns all routes of `family`.
    pub fn clear(&mut self, family: AddressFamily) -> Vec<Nlri> {
        self.begin_refresh(family);
        self.end_refresh(family)
    }

    /// The peer has exceeded its restart time: its routes of `family` are marked with LLGR_STALE, except for
    /// those with NO_LLGR, which are removed (RFC 9494 §4.2). Returns the changes.
    pub fn mark_long_lived(&mut self, family: AddressFamily) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        // Thousands of routes share one value, and must continue to.
        let mut marked: BTreeMap<Shared<PathAttributes>, Arc<PathAttributes>> = BTreeMap::new();
        for (prefix, paths) in self.routes.iter_mut().filter(|(it, _)| it.family() == family) {
            for (path_id, attributes) in paths.as_mut_slice() {
                let nlri = Nlri { prefix, path_id: *path_id };
                let communities = &attributes.communities;
                if communities.contains(&Community::NO_LLGR) {
                    changes.push(RouteChange { nlri, attributes: None });
                    continue;
                }
                if communities.contains(&Community::LLGR_STALE) {
                    continue;
                }
                let mark = || Arc::new(attributes.with_community(Community::LLGR_STALE));
                let with_mark = marked.entry(Shared(Arc::clone(attributes))).or_insert_with(mark);
                self.attributes.take(with_mark);
                self.attributes.release(attributes);
                *attributes = Arc::clone(with_mark);
                changes.push(RouteChange { nlri, attributes: Some(Arc::clone(attributes)) });
            }
        }
        for change in changes.iter().filter(|it| it.attributes.is_none()) {
            self.withdraw(change.nlri);
        }
        changes
    }

    /// Whether `nlri` would exceed the maximum number of paths to its prefix.
    pub fn is_crowded(&self, nlri: Nlri) -> bool {
        // Most sessions have one path to each prefix.
        if nlri.path_id == PathId::NONE {
            return false;
        }
        let paths = self.paths(nlri);
        if paths.len() < PATHS_MAX || paths.iter().any(|(known, _)| *known == nlri.path_id) {
            return false;
        }
        // Stale paths do not count: a peer that restarted may assign new path identifiers.
        let is_said_again = |(path_id, _): &&Announced| {
            let said_again = self.said_again.of(nlri.prefix.family()).as_ref();
            said_again.is_none_or(|it| it.contains(&Nlri { path_id: *path_id, ..nlri }))
        };
        paths.iter().filter(is_said_again).count() >= PATHS_MAX
    }

    /// If `nlri` would exceed the number of paths to its prefix, removes and returns a stale one: paths do
    /// not accumulate, however often a peer restarts and assigns new identifiers.
    pub fn make_room(&mut self, nlri: Nlri) -> Option<Nlri> {
        let said_again = self.said_again.of(nlri.prefix.family()).as_ref()?;
        let paths = self.paths(nlri);
        if paths.len() < PATHS_MAX || paths.iter().any(|(known, _)| *known == nlri.path_id) {
            return None;
        }
        let all = paths.iter().map(|(path_id, _)| Nlri { path_id: *path_id, ..nlri });
        let stale = all.filter(|path| !said_again.contains(path)).min()?;
        self.withdraw(stale);
        Some(stale)
    }

    /// All paths to the prefix of `nlri`.
    fn paths(&self, nlri: Nlri) -> &[Announced] {
        let paths = self.routes.id(nlri.prefix).and_then(|id| self.routes.get(id));
        paths.map(Paths::as_slice).unwrap_or_default()
    }

    /// The number of routes of each family. Several paths to one prefix are several routes, as in FRR and
    /// BIRD: each takes memory.
    pub fn counts(&self) -> PerFamily<u32> {
        self.counts
    }

    /// What the path attributes of all routes take in memory, in bytes; each set once.
    pub fn attribute_bytes(&self) -> u64 {
        self.attributes.bytes
    }

    /// All routes, in no order.
    pub fn routes(&self) -> impl Iterator<Item = (Nlri, &Arc<PathAttributes>)> {
        self.routes.iter().flat_map(|(_, prefix, paths)| {
            let nlri = move |path_id| Nlri { prefix, path_id };
            paths.as_slice().iter().map(move |(path_id, it)| (nlri(*path_id), it))
        })
    }
}

/// How much memory the attributes of the routes take. Routes of one UPDATE share a set of them.
#[derive(Debug, Default)]
struct AttributeMemory {
    /// By the place of each set in memory, how many routes have it.
    routes: Unordered<usize, u32>,
    bytes: u64,
}

impl AttributeMemory {
    /// One more route has these.
    fn take(&mut self, attributes: &Arc<PathAttributes>) {
        let routes = self.routes.get_or_insert_with(place(attributes), || 0);
        if *routes == 0 {
            self.bytes = self.bytes.saturating_add(attributes.size_bytes());
        }
        *routes = routes.saturating_add(1);
    }

    /// One route less has these.
    fn release(&mut self, attributes: &Arc<PathAttributes>) {
        let place = place(attributes);
        let Some(routes) = self.routes.get_mut(&place) else { return };
        *routes = routes.saturating_sub(1);
        if *routes == 0 {
            self.routes.remove(&place);
            self.bytes = self.bytes.saturating_sub(attributes.size_bytes());
        }
    }
}

fn place(attributes: &Arc<PathAttributes>) -> usize {
    Arc::as_ptr(attributes).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::{AsPath, NextHop};

    fn attributes(asn: u32) -> Arc<PathAttributes> {
        let next_hop = NextHop::Ipv4([192, 0, 2, 1].into());
        Arc::new(PathAttributes::originated(AsPath::sequence(vec![asn]), next_hop))
    }

    //= RFC 7313 §4 MUST: all routes of the family are stale when a refresh begins.
    //= RFC 7313 §4 MUST: routes that are still stale when it ends are removed.
    //= RFC 7313 §4 MAY: an end without a beginning is ignored.
    #[test]
    fn what_is_not_said_again_goes_when_the_refresh_ends() {
        const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;
        let mut table = AdjRibIn::default();
        let prefixes = ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8", "2001:db8::/32"];
        let [one, two, three, other_family] = prefixes.map(|it| it.parse().unwrap());
        for prefix in [one, two, three, other_family] {
            table.announce(prefix, &attributes(1));
        }
        assert_eq!(table.end_refresh(IPV4), [], "no refresh has started");
        table.begin_refresh(IPV4);
        assert!(!table.announce(one, &attributes(1)), "no change, but announced again");
        table.announce(two, &attributes(2));
        table.withdraw(two);
        assert_eq!(table.end_refresh(IPV4), [three]);
        assert_eq!(table.counts(), PerFamily { ipv4: 1, ipv6: 1 });
        // Another start counts from there.
        table.begin_refresh(IPV4);
        table.announce(one, &attributes(1));
        table.begin_refresh(IPV4);
        assert_eq!(table.end_refresh(IPV4), [one]);
        assert_eq!(table.end_refresh(IPV4), []);
        assert_eq!(table.counts(), PerFamily { ipv4: 0, ipv6: 1 });
    }

    #[test]
    fn a_family_that_is_marked_as_long_lived_shares_its_attributes_and_loses_who_does_not_want_it()
    {
        const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;
        let prefixes = ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8", "2001:db8::/32"];
        let [one, two, three, other_family] = prefixes.map(|it| it.parse().unwrap());
        let (plain, unwilling) =
            (attributes(1), Arc::new(attributes(1).with_community(Community::NO_LLGR)));
        let mut table = AdjRibIn::default();
        for (prefix, attributes) in
            [(one, &plain), (two, &plain), (three, &unwilling), (other_family, &plain)]
        {
            table.announce(prefix, attributes);
        }
        let changes = table.mark_long_lived(IPV4);
        let [first, second, third] = &changes[..] else { panic!("{changes:?}") };
        let marked = plain.with_community(Community::LLGR_STALE);
        assert_eq!((first.nlri, first.attributes.as_deref()), (one, Some(&marked)));
        let attributes = |change: &RouteChange| Arc::clone(change.attributes.as_ref().unwrap());
        assert!(Arc::ptr_eq(&attributes(first), &attributes(second)));
        assert_eq!((third.nlri, &third.attributes), (three, &None));
        assert!(table.routes().any(|(nlri, it)| nlri == other_family && *it == plain));
        assert_eq!(table.counts(), PerFamily { ipv4: 2, ipv6: 1 });
        assert_eq!(table.mark_long_lived(IPV4), [], "once is enough");
        assert_eq!(table.clear(IPV4), [one, two]);
        assert_eq!(table.counts(), PerFamily { ipv4: 0, ipv6: 1 });
        assert_eq!(table.said_again_count(IPV4), None);
    }

    //= RFC 4271 §9 MUST: a route takes the place of the earlier one of the same prefix.
    //= RFC 4271 §9 MUST: withdrawn prefixes leave the Adj-RIB-In.
    #[test]
    fn a_route_said_twice_is_one_route_and_no_change() {
        let (v4, v6) = ("10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap());
        let mut table = AdjRibIn::default();
        assert!(table.announce(v4, &attributes(1)) && table.announce(v6, &attributes(1)));
        assert!(!table.announce(v4, &attributes(1)), "announced again without a change");
        assert!(table.announce(v4, &attributes(2)), "another path in its place");
        assert_eq!(table.counts(), PerFamily { ipv4: 1, ipv6: 1 });
        assert!(table.withdraw(v4) && !table.withdraw(v4));
        assert_eq!(table.counts(), PerFamily { ipv4: 0, ipv6: 1 });
    }

    #[test]
    fn attributes_that_routes_share_count_once_and_until_the_last_one_goes() {
        let [one, two, three] =
            ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"].map(|it| it.parse().unwrap());
        let (shared, own) = (attributes(1), attributes(2));
        let (of_shared, of_own) = (shared.size_bytes(), own.size_bytes());
        let mut table = AdjRibIn::default();
        let sizes: Vec<u64> = [(one, &shared), (two, &shared), (three, &own), (one, &shared)]
            .into_iter()
            .map(|(nlri, attributes)| {
                table.announce(nlri, attributes);
                table.attribute_bytes()
            })
            .collect();
        assert_eq!(sizes, [of_shared, of_shared, of_shared + of_own, of_shared + of_own]);
        assert!(!table.announce(two, &Arc::new((*shared).clone())));
        assert_eq!(table.attribute_bytes(), of_shared + of_own, "equal ones are the same");
        table.announce(one, &own);
        assert_eq!(table.attribute_bytes(), of_shared + of_own);
        table.mark_long_lived(AddressFamily::Ipv4Unicast);
        let mark = u64::try_from(size_of::<Community>()).unwrap();
        assert_eq!(table.attribute_bytes(), of_shared + of_own + 2 * mark);
        table.withdraw(two);
        assert_eq!(table.attribute_bytes(), of_own + mark);
        table.clear(AddressFamily::Ipv4Unicast);
        assert_eq!(table.attribute_bytes(), 0);
        assert_eq!(table.attributes.routes.len(), 0);
    }

    #[test]
    fn an_original_stays_for_as_long_as_its_route() {
        let nlri = "10.0.0.0/8".parse().unwrap();
        let (original, ruled) = (attributes(1), attributes(2));
        let (of_original, of_ruled) = (original.size_bytes(), ruled.size_bytes());
        let mut table = AdjRibIn::default();
        table.announce(nlri, &ruled);
        table.set_original(nlri, Some(&original));
        table.set_original(nlri, Some(&Arc::new((*original).clone())));
        let announced = |table: &AdjRibIn| -> Vec<Arc<PathAttributes>> {
            table.announced(|_| true).map(|(_, it)| Arc::clone(it)).collect()
        };
        assert!(Arc::ptr_eq(&announced(&table)[0], &original));
        assert_eq!(table.attribute_bytes(), of_original + of_ruled);
        table.set_original(nlri, None);
        assert!(Arc::ptr_eq(&announced(&table)[0], &ruled));
        table.set_original(nlri, Some(&original));
        table.withdraw(nlri);
        assert_eq!((table.attribute_bytes(), table.originals.len()), (0, 0));
        table.announce(nlri, &ruled);
        assert!(Arc::ptr_eq(&announced(&table)[0], &ruled), "not that of the route before");
        table.set_original(nlri, Some(&original));
        table.forget_originals();
        assert_eq!((table.attribute_bytes(), announced(&table)), (of_ruled, vec![ruled]));
    }

    fn path(number: u32) -> Nlri {
        Nlri { path_id: PathId::new(number), .."10.0.0.0/8".parse().unwrap() }
    }

    //= RFC 7911 §5 MUST: a route is replaced and withdrawn by prefix and path identifier together.
    //= RFC 7911 §5 SHOULD: the withdrawal of a path identifier that was never seen is ignored.
    #[test]
    fn a_withdrawn_path_leaves_its_siblings() {
        let mut table = AdjRibIn::default();
        for number in [0, 1, 7] {
            assert!(table.announce(path(number), &attributes(number)));
        }
        assert_eq!(table.counts().ipv4, 3);
        assert!(table.announce(path(7), &attributes(8)), "it takes the place of path 7");
        assert!(table.withdraw(path(1)));
        assert!(!table.withdraw(path(1)) && !table.withdraw(path(2)));
        // A refresh concerns each of them, too.
        table.begin_refresh(AddressFamily::Ipv4Unicast);
        table.announce(path(0), &attributes(0));
        assert_eq!(table.end_refresh(AddressFamily::Ipv4Unicast), [path(7)]);
        table.announce(path(7), &attributes(7));
        let left: Vec<u32> = table.routes().map(|(nlri, _)| nlri.path_id.get()).collect();
        assert_eq!((left, table.counts().ipv4), (vec![0, 7], 2));
    }

    #[test]
    fn no_prefix_has_more_paths_than_route_selection_can_bear() {
        let mut table = AdjRibIn::default();
        let attributes = attributes(1);
        for number in 1..=u32::try_from(PATHS_MAX).unwrap() {
            assert!(!table.is_crowded(path(number)));
            table.announce(path(number), &attributes);
        }
        assert!(table.is_crowded(path(1_000)));
        assert!(!table.is_crowded(path(3)), "it is there already");
        assert!(!table.is_crowded(Nlri { prefix: "10.0.0.0/9".parse().unwrap(), ..path(1_000) }));
        table.withdraw(path(3));
        assert!(!table.is_crowded(path(1_000)));
        // Paths from before a restart do not keep out new ones.
        table.announce(path(3), &attributes);
        table.begin_refresh(AddressFamily::Ipv4Unicast);
        assert!(!table.is_crowded(path(1_000)));
    }

    /// A peer that restarts repeatedly before it has announced everything would accumulate paths.
    #[test]
    fn paths_of_before_a_restart_make_room_one_by_one() {
        let mut table = AdjRibIn::default();
        let attributes = attributes(1);
        for number in 1..=1_000 {
            if number % 50 == 0 {
                table.begin_refresh(AddressFamily::Ipv4Unicast);
            }
            assert!(!table.is_crowded(path(number)));
            let gone = table.make_room(path(number));
            assert_eq!(gone.is_some(), number > 64, "{number}");
            table.announce(path(number), &attributes);
        }
        assert_eq!(table.counts().ipv4, 64);
        assert!(table.was_said_again(path(1_000)));
        assert!(table.routes().any(|(nlri, _)| nlri == path(950)));
        assert_eq!(table.make_room(path(1_000)), None, "it is there already");
    }
}
