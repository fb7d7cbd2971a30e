//! Which routes are there to one prefix, and which of them is used? Nearly all prefixes have one, which takes no
//! memory of its own. Knows no other prefix. Kept by [`super::LocRib`].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::decision::{MedScope, best, best_first, decide};
use fairway_ground::{PathId, PeerKey};
use fairway_seam::{DecisionStep, DesiredRoute, Path, RouteAttributes};

/// A route that is originated here, for some peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Who is told it.
    pub peers: Arc<BTreeSet<PeerKey>>,
    /// Its attributes.
    pub attributes: Arc<RouteAttributes>,
}

/// All routes to one prefix. A copy is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes(Kept);

/// Nested so that none of them needs a word that says which it is: a million prefixes have one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    Learned(Path),
    NotOneLearned(NotOneLearned),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NotOneLearned {
    Originated(Offer),
    NotOne(Option<Arc<Several>>),
}

const _: () = assert!(size_of::<Routes>() == size_of::<Path>());

/// Which routes there are.
enum View<'a> {
    None,
    /// Only this one.
    Originated(&'a Offer),
    /// Only this one.
    Learned(&'a Path),
    /// All others.
    Several(&'a Arc<Several>),
}

impl Default for Routes {
    fn default() -> Self {
        Self::NONE
    }
}

/// Routes to a prefix that has more than one. Beside ten neighbours with full tables, each of a million prefixes has one of these.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Several {
    /// With no room for more: twice as much would be a third of all that routes of ten neighbours take.
    paths: Box<[Path]>,
    best: u32,
    meds: MedScope,
    seldom: Option<Box<Seldom>>,
}

/// What few prefixes have, or those of few configurations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seldom {
    /// For different peers.
    offers: Vec<Offer>,
    /// The identifier of the originated route: a peer is told one of them at most.
    offer_id: PathId,
    /// For each path, the identifier that peers are told. None unless they are kept: then they are counted.
    path_ids: Vec<PathId>,
}

/// How routes are kept and chosen, of all prefixes alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Selection {
    /// Peers are told identifiers of paths, which must not change.
    pub(super) keeps_path_ids: bool,
    pub(super) meds: MedScope,
}

/// A route that a peer may be sent for a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'a> {
    /// Originated here, for this peer.
    Originated(&'a Arc<RouteAttributes>),
    /// A received path; the best one, if the peer is sent one route.
    Learned(&'a Path),
}

/// The identifier of the first path to a prefix: some routers show 0 as none.
const FIRST_PATH_ID: PathId = PathId::new(1);

impl Routes {
    /// There is none.
    pub const NONE: Self = Self(Kept::NotOneLearned(NotOneLearned::NotOne(None)));

    /// Only this one.
    pub fn learned(path: Path) -> Self {
        Self(Kept::Learned(path))
    }

    fn originated(offer: Offer) -> Self {
        Self(Kept::NotOneLearned(NotOneLearned::Originated(offer)))
    }

    fn several(several: Arc<Several>) -> Self {
        Self(Kept::NotOneLearned(NotOneLearned::NotOne(Some(several))))
    }

    fn view(&self) -> View<'_> {
        match &self.0 {
            Kept::Learned(path) => View::Learned(path),
            Kept::NotOneLearned(NotOneLearned::Originated(offer)) => View::Originated(offer),
            Kept::NotOneLearned(NotOneLearned::NotOne(None)) => View::None,
            Kept::NotOneLearned(NotOneLearned::NotOne(Some(several))) => View::Several(several),
        }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self.view(), View::None)
    }

    /// Those that are originated here, which are preferred to all received ones.
    pub fn offers(&self) -> &[Offer] {
        match self.view() {
            View::None | View::Learned(_) => &[],
            View::Originated(offer) => std::slice::from_ref(offer),
            View::Several(several) => several.offers(),
        }
    }

    /// Those that were received.
    pub fn paths(&self) -> &[Path] {
        match self.view() {
            View::None | View::Originated(_) => &[],
            View::Learned(path) => std::slice::from_ref(path),
            View::Several(several) => &several.paths,
        }
    }

    /// The best received one.
    pub fn best(&self) -> Option<&Path> {
        match self.view() {
            View::None | View::Originated(_) => None,
            View::Learned(path) => Some(path),
            View::Several(several) => several.best(),
        }
    }

    /// Whether peers that are sent one route are sent the same as of `other`.
    pub fn is_used_like(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.offers(), other.offers());
        ours == theirs && (!ours.is_empty() || self.best() == other.best())
    }

    /// For each received path the step of route selection that eliminated it; `None` for the one that is used.
    pub fn steps(&self) -> Vec<Option<DecisionStep>> {
        let mut steps = decide(self.paths(), self.meds());
        if !self.offers().is_empty() {
            steps.fill(Some(DecisionStep::Originated));
        }
        steps
    }

    /// The route that `peer` may be sent, if it is sent one.
    #[cfg(test)]
    pub fn route_for(&self, peer: PeerKey) -> Option<Route<'_>> {
        self.route_where(|peers| peers.contains(&peer))
    }

    /// The route that a peer may be sent, if it is sent one and is among those for which this holds.
    pub fn route_where(
        &self,
        is_among: impl FnMut(&Arc<BTreeSet<PeerKey>>) -> bool,
    ) -> Option<Route<'_>> {
        match self.offers() {
            [] => self.best().map(Route::Learned),
            offers => offer_where(offers, is_among),
        }
    }

    /// The route that `peer` is sent, if it is sent the best of those that `may_be_told` permits, and not nothing where the
    /// best of all is not permitted.
    pub fn choose(&self, peer: PeerKey, may_be_told: impl Fn(&Path) -> bool) -> Option<Route<'_>> {
        let offers = self.offers();
        if !offers.is_empty() {
            return offer_where(offers, |peers| peers.contains(&peer));
        }
        let paths = self.paths();
        if has_one_med(paths)
            && let Some(best) = self.best().filter(|best| may_be_told(best))
        {
            return Some(Route::Learned(best));
        }
        let paths = paths.iter().filter(|path| may_be_told(path)).collect();
        best_first(paths, 1, self.meds()).first().map(|path| Route::Learned(path))
    }

    /// The routes that `peer` may be sent, if it is sent several: at most `limit`, best first, with their
    /// identifiers. A route originated for it precedes the received ones that `may_be_told` permits; one that is
    /// originated only for others hides them, as with a single route.
    pub fn routes_for(
        &self,
        peer: PeerKey,
        limit: usize,
        may_be_told: impl Fn(&Path) -> bool,
    ) -> Vec<(PathId, Route<'_>)> {
        let mut routes = Vec::new();
        let several = match self.view() {
            View::Several(several) => Some(several),
            View::None | View::Originated(_) | View::Learned(_) => None,
        };
        let offers = self.offers();
        if !offers.is_empty() {
            let offer = offer_where(offers, |peers| peers.contains(&peer));
            let Some(offer) = offer else { return routes };
            routes.push((several.map_or(FIRST_PATH_ID, |it| it.offer_id()), offer));
        }
        let all = self.paths();
        let paths = all.iter().filter(|path| may_be_told(path)).collect();
        for path in best_first(paths, limit.saturating_sub(routes.len()), self.meds()) {
            let place = all.iter().position(|it| std::ptr::eq(it, path));
            let path_id = |place| several.map_or(FIRST_PATH_ID, |it| it.path_id(place));
            routes.extend(place.map(|place| (path_id(place), Route::Learned(path))));
        }
        routes
    }

    /// Which paths are compared by their MED.
    pub(super) fn meds(&self) -> MedScope {
        match self.view() {
            View::Several(several) => several.meds,
            // There is nothing to compare.
            View::None | View::Originated(_) | View::Learned(_) => MedScope::default(),
        }
    }

    /// Other paths are compared by their MED from now on. Returns whether another one is the best, which is left as it was
    /// with `only_asks`.
    pub(super) fn compare_meds(&mut self, meds: MedScope, only_asks: bool) -> bool {
        let Kept::NotOneLearned(NotOneLearned::NotOne(Some(several))) = &mut self.0 else {
            return false;
        };
        let now = place_of_best(&several.paths, meds);
        let is_other = now != several.best;
        if !is_other || !only_asks {
            let several = Arc::make_mut(several);
            (several.best, several.meds) = (now, meds);
        }
        is_other
    }

    /// Replaces those that are originated here.
    pub(super) fn originate(&mut self, routes: &[DesiredRoute], selection: Selection) {
        let offer = |route: &DesiredRoute| Offer {
            peers: Arc::clone(&route.peers),
            attributes: Arc::clone(&route.attributes),
        };
        // What nearly all changes are needs no list.
        if let (View::None | View::Originated(_), [] | [_]) = (self.view(), routes) {
            *self = routes.first().map_or(Self::NONE, |route| Self::originated(offer(route)));
            return;
        }
        let offers = routes.iter().map(offer).collect();
        let mut several = std::mem::take(self).into_several();
        let of_several = Arc::make_mut(&mut several);
        of_several.keep_path_ids(selection.keeps_path_ids);
        of_several.set_offers(offers);
        of_several.meds = selection.meds;
        *self = Self::from_several(several, selection.keeps_path_ids);
    }

    /// Replaces the path of `peer` with this identifier, or removes it.
    pub(super) fn learn(
        &mut self,
        peer: PeerKey,
        path_id: PathId,
        path: Option<Path>,
        selection: Selection,
    ) {
        let is_it = |known: &Path| known.source.key == peer && known.path_id == path_id;
        // What nearly all changes are needs no list.
        match (self.view(), path) {
            (View::None, Some(path)) => *self = Self::learned(path),
            (View::Learned(known), Some(path)) if is_it(known) => *self = Self::learned(path),
            (View::Learned(known), None) if is_it(known) => *self = Self::NONE,
            (_, path) => {
                let mut several = std::mem::take(self).into_several();
                let of_several = Arc::make_mut(&mut several);
                of_several.meds = selection.meds;
                of_several.keep_path_ids(selection.keeps_path_ids);
                of_several.replace(is_it, path);
                *self = Self::from_several(several, selection.keeps_path_ids);
            }
        }
    }

    fn into_several(self) -> Arc<Several> {
        let several = match self.0 {
            Kept::Learned(path) => Several { paths: Box::new([path]), ..Several::default() },
            Kept::NotOneLearned(NotOneLearned::Originated(offer)) => {
                let mut several = Several::default();
                several.set_offers(vec![offer]);
                several
            }
            Kept::NotOneLearned(NotOneLearned::NotOne(several)) => {
                return several.unwrap_or_default();
            }
        };
        Arc::new(several)
    }

    fn from_several(several: Arc<Several>, keeps_path_ids: bool) -> Self {
        let may_be_one = |path_id| !keeps_path_ids || path_id == FIRST_PATH_ID;
        match (several.offers(), &*several.paths) {
            ([], []) => Self::NONE,
            ([offer], []) if may_be_one(several.offer_id()) => Self::originated(offer.clone()),
            ([], [path]) if may_be_one(several.path_id(0)) => Self::learned(path.clone()),
            _ => Self::several(several),
        }
    }
}

impl Several {
    fn offers(&self) -> &[Offer] {
        self.seldom.as_ref().map_or(&[], |it| &it.offers)
    }

    fn best(&self) -> Option<&Path> {
        self.paths.get(usize::try_from(self.best).ok()?)
    }

    fn offer_id(&self) -> PathId {
        self.seldom.as_ref().map_or(FIRST_PATH_ID, |it| it.offer_id)
    }

    /// The identifier that peers are told of the path at this place: the next one that the originated route does not have,
    /// where none are kept.
    fn path_id(&self, place: usize) -> PathId {
        let kept = self.seldom.as_ref().and_then(|it| it.path_ids.get(place).copied());
        kept.unwrap_or_else(|| {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            let number = FIRST_PATH_ID.get().saturating_add(place);
            let is_behind = !self.offers().is_empty() && number >= self.offer_id().get();
            PathId::new(number.saturating_add(u32::from(is_behind)))
        })
    }

    fn set_offers(&mut self, offers: Vec<Offer>) {
        let offer_id = match self.offers().is_empty() {
            true => self.free_id(),
            false => self.offer_id(),
        };
        let seldom = self.seldom.get_or_insert_default();
        (seldom.offers, seldom.offer_id) = (offers, offer_id);
        self.forget_seldom();
    }

    /// Identifiers of paths stay from now on, or are counted.
    fn keep_path_ids(&mut self, keeps: bool) {
        let path_ids: Vec<PathId> = match keeps {
            true => (0..self.paths.len()).map(|place| self.path_id(place)).collect(),
            false => Vec::new(),
        };
        if keeps || self.seldom.is_some() {
            self.seldom.get_or_insert_default().path_ids = path_ids;
            self.forget_seldom();
        }
    }

    fn forget_seldom(&mut self) {
        if self.seldom.as_ref().is_some_and(|it| it.offers.is_empty() && it.path_ids.is_empty()) {
            self.seldom = None;
        }
    }

    fn replace(&mut self, is_it: impl Fn(&Path) -> bool, path: Option<Path>) {
        let place = self.paths.iter().position(is_it);
        match (place, path) {
            (Some(place), Some(path)) => {
                if let Some(present) = self.paths.get_mut(place) {
                    *present = path;
                }
            }
            (Some(place), None) => {
                let mut paths = std::mem::take(&mut self.paths).into_vec();
                paths.remove(place);
                self.paths = paths.into_boxed_slice();
                if let Some(seldom) = self.seldom.as_mut().filter(|it| place < it.path_ids.len()) {
                    seldom.path_ids.remove(place);
                }
            }
            (None, Some(path)) => {
                let keeps = |it: &Seldom| it.path_ids.len() == self.paths.len();
                if self.seldom.as_deref().is_some_and(keeps) {
                    let path_id = self.free_id();
                    self.seldom.get_or_insert_default().path_ids.push(path_id);
                }
                let mut paths = std::mem::take(&mut self.paths).into_vec();
                paths.reserve_exact(1);
                paths.push(path);
                self.paths = paths.into_boxed_slice();
            }
            (None, None) => {}
        }
        self.best = place_of_best(&self.paths, self.meds);
    }

    /// The smallest identifier that no route has.
    fn free_id(&self) -> PathId {
        let own = (!self.offers().is_empty()).then_some(self.offer_id());
        let paths = (0..self.paths.len()).map(|place| self.path_id(place));
        let taken: BTreeSet<PathId> = paths.chain(own).collect();
        let mut free = FIRST_PATH_ID.get();
        for path_id in taken {
            if path_id.get() == free {
                free = free.saturating_add(1);
            }
        }
        PathId::new(free)
    }
}

fn place_of_best(paths: &[Path], meds: MedScope) -> u32 {
    best(paths, meds).and_then(|place| u32::try_from(place).ok()).unwrap_or(0)
}

/// Whether no path has another MULTI_EXIT_DISC than the others. Then each step of the decision is about each path alone, so the
/// best of all is the best of any part of them that it is in.
fn has_one_med(paths: &[Path]) -> bool {
    let med = |path: &Path| path.attributes.med.unwrap_or(0);
    let first = paths.first().map(med);
    paths.iter().all(|path| Some(med(path)) == first)
}

fn offer_where(
    offers: &[Offer],
    mut is_among: impl FnMut(&Arc<BTreeSet<PeerKey>>) -> bool,
) -> Option<Route<'_>> {
    let offer = offers.iter().find(|offer| is_among(&offer.peers))?;
    Some(Route::Originated(&offer.attributes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::{AsPath, Asn, NextHop, PeerKind, Rng, RouterId};
    use fairway_seam::{PathAttributes, PathSource};

    /// Identifiers stay.
    const KEPT: Selection = Selection { keeps_path_ids: true, meds: MedScope::SameAs };

    fn key(number: u8) -> PeerKey {
        PeerKey::from(std::net::IpAddr::from([192, 0, 2, number]))
    }

    /// The path of neighbour `number`, which is `hops` long.
    fn path(number: u8, path_id: u32, hops: usize) -> Path {
        let source = PathSource {
            key: key(number),
            address: [192, 0, 2, number].into(),
            kind: PeerKind::External,
            remote_asn: Asn::new(65_000 + u32::from(number)).unwrap(),
            router_id: RouterId::new(u32::from(number)).unwrap(),
            is_client: false,
        };
        let next_hop = NextHop::Ipv4([192, 0, 2, 9].into());
        let as_path = AsPath::sequence(vec![7; hops]);
        let attributes = Arc::new(PathAttributes::originated(as_path, next_hop));
        Path { source: Arc::new(source), path_id: PathId::new(path_id), attributes }
    }

    fn originated(peer: u8) -> DesiredRoute {
        DesiredRoute {
            prefix: "10.0.0.0/8".parse().unwrap(),
            peers: Arc::new(BTreeSet::from([key(peer)])),
            attributes: Arc::default(),
        }
    }

    fn learn(routes: &mut Routes, path: Path) {
        routes.learn(path.source.key, path.path_id, Some(path), KEPT);
    }

    fn withdraw(routes: &mut Routes, number: u8, path_id: u32) {
        routes.learn(key(number), PathId::new(path_id), None, KEPT);
    }

    /// Identifier and neighbour of what peer 99 is told, best first; 0 is a route of our own.
    fn told(routes: &Routes, limit: usize) -> Vec<(u32, u32)> {
        let not_from_one = |path: &Path| path.source.key != key(1);
        let name = |(path_id, route): (PathId, Route<'_>)| match route {
            Route::Originated(_) => (path_id.get(), 0),
            Route::Learned(path) => (path_id.get(), path.source.router_id.get()),
        };
        routes.routes_for(key(99), limit, not_from_one).into_iter().map(name).collect()
    }

    /// The fourth removes the second by its MED, and loses to the third; where it is hidden, the second is the best.
    #[test]
    fn a_hidden_path_removes_no_other_by_its_med() {
        let mut routes = Routes::NONE;
        for (number, asn, med) in [(2, 7, 10), (3, 8, 0), (4, 7, 0)] {
            let plain = path(number, 0, 1);
            let as_path = AsPath::sequence(vec![asn]);
            let attributes =
                PathAttributes { as_path, med: Some(med), ..(*plain.attributes).clone() };
            learn(&mut routes, Path { attributes: Arc::new(attributes), ..plain });
        }
        assert_eq!(routes.best().unwrap().source.key, key(3));
        let chosen = |hidden| routes.choose(key(99), |path| path.source.key != key(hidden));
        let Some(Route::Learned(path)) = chosen(4) else { panic!("{routes:?}") };
        assert_eq!(path.source.key, key(2));
    }

    /// Paths that no peer was told several of are counted; a peer that comes is told these numbers, and they stay.
    #[test]
    fn identifiers_that_were_counted_stay_when_they_are_kept_from_then_on() {
        let mut routes = Routes::NONE;
        let counted = Selection { keeps_path_ids: false, ..KEPT };
        let learn = |routes: &mut Routes, number: u8, hops: usize| {
            routes.learn(key(number), PathId::new(0), Some(path(number, 0, hops)), counted);
        };
        learn(&mut routes, 2, 1);
        learn(&mut routes, 3, 2);
        routes.originate(&[originated(99)], counted);
        learn(&mut routes, 4, 3);
        assert_eq!(told(&routes, 9), [(3, 0), (1, 2), (2, 3), (4, 4)]);
        withdraw(&mut routes, 2, 0);
        assert_eq!(told(&routes, 9), [(3, 0), (2, 3), (4, 4)]);
        routes.originate(&[], KEPT);
        assert_eq!(told(&routes, 9), [(2, 3), (4, 4)]);
        withdraw(&mut routes, 3, 0);
        assert_eq!(told(&routes, 9), [(4, 4)]);
    }

    //= RFC 7911 §5 SHOULD: the best route is among the paths that are sent, unless it came from that neighbour.
    #[test]
    fn several_paths_are_told_best_first_and_only_what_may_be_told() {
        let mut routes = Routes::NONE;
        for path in [path(1, 0, 1), path(2, 9, 3), path(2, 8, 3), path(3, 0, 2)] {
            learn(&mut routes, path);
        }
        assert_eq!(told(&routes, 9), [(4, 3), (3, 2), (2, 2)]);
        assert_eq!(told(&routes, 2), [(4, 3), (3, 2)]);
        routes.originate(&[originated(99)], KEPT);
        assert_eq!(told(&routes, 2), [(5, 0), (4, 3)]);
        // A route originated for others only hides the received ones: its peers were chosen explicitly.
        routes.originate(&[originated(98)], KEPT);
        assert_eq!(told(&routes, 2), []);
    }

    //= RFC 7911 §3 MUST: a path that is passed on has an identifier of our own.
    #[test]
    fn a_path_keeps_its_identifier_and_the_smallest_free_one_is_next() {
        let mut routes = Routes::NONE;
        for number in [7, 8, 9] {
            learn(&mut routes, path(number, 0, number.into()));
        }
        assert_eq!(told(&routes, 9), [(1, 7), (2, 8), (3, 9)]);
        withdraw(&mut routes, 8, 0);
        learn(&mut routes, path(7, 0, 20));
        assert_eq!(told(&routes, 9), [(3, 9), (1, 7)]);
        learn(&mut routes, path(6, 0, 1));
        assert_eq!(told(&routes, 9), [(2, 6), (3, 9), (1, 7)]);
        withdraw(&mut routes, 7, 0);
        withdraw(&mut routes, 6, 0);
        assert_eq!(told(&routes, 9), [(3, 9)], "the last one, too");
        routes.originate(&[originated(99)], KEPT);
        assert_eq!(told(&routes, 9), [(1, 0), (3, 9)]);
        routes.originate(&[], KEPT);
        withdraw(&mut routes, 9, 0);
        assert_eq!(routes, Routes::NONE);
    }

    #[test]
    fn a_route_that_is_alone_takes_no_list_where_identifiers_may_change() {
        let mut routes = Routes::NONE;
        learn(&mut routes, path(7, 0, 1));
        learn(&mut routes, path(8, 0, 1));
        withdraw(&mut routes, 7, 0);
        assert!(matches!(routes.view(), View::Several(_)));
        routes.learn(key(8), PathId::NONE, Some(path(8, 0, 2)), Selection::default());
        assert!(matches!(routes.view(), View::Learned(_)));
    }

    /// Random changes: identifiers are small, and no two paths have the same; what is used is what [`decide`] says.
    #[test]
    fn identifiers_are_small_and_tell_paths_apart() {
        let mut rng = Rng::seeded(8);
        let mut draw = |bound: u64| u8::try_from(rng.next_u64() % bound).unwrap();
        let mut routes = Routes::NONE;
        for _ in 0..20_000 {
            let (number, path_id) = (2 + draw(4), u32::from(draw(2)));
            match draw(4) {
                0 => withdraw(&mut routes, number, path_id),
                1 => {
                    let offers: Vec<_> = (0..draw(3)).map(|it| originated(99 - it)).collect();
                    routes.originate(&offers, KEPT);
                }
                _ => {
                    let mut path = path(number, path_id, draw(3).into());
                    let med = [None, None, Some(1), Some(2)][usize::from(draw(4))];
                    Arc::make_mut(&mut path.attributes).med = med;
                    learn(&mut routes, path);
                }
            }
            let all = told(&routes, 99);
            let ids: BTreeSet<u32> = all.iter().map(|(path_id, _)| *path_id).collect();
            assert_eq!(ids.len(), all.len());
            assert!(ids.iter().all(|it| (1..=9).contains(it)), "{ids:?}");
            let best = decide(routes.paths(), MedScope::SameAs).iter().position(Option::is_none);
            assert_eq!(routes.best(), best.map(|place| &routes.paths()[place]));
            let hidden = 2 + draw(4);
            let may_be_told = |path: &Path| path.source.key != key(hidden);
            let first = routes.routes_for(key(99), 1, may_be_told).first().map(|(_, it)| *it);
            assert_eq!(routes.choose(key(99), may_be_told), first);
            if routes.paths().is_empty() && routes.offers().is_empty() {
                assert_eq!(routes, Routes::NONE);
            }
        }
    }

    #[test]
    fn meds_of_different_systems_count_where_the_operator_wants_that() {
        let through = |number: u8, asn: u32, med: u32| {
            let mut path = path(number, 0, 1);
            let attributes = Arc::make_mut(&mut path.attributes);
            (attributes.as_path, attributes.med) = (AsPath::sequence(vec![asn]), Some(med));
            path
        };
        let mut routes = Routes::NONE;
        learn(&mut routes, through(2, 8, 50));
        learn(&mut routes, through(3, 9, 1));
        let best = |routes: &Routes| routes.best().unwrap().source.router_id.get();
        assert_eq!(best(&routes), 2);
        assert!(routes.compare_meds(MedScope::All, true));
        assert_eq!(best(&routes), 2, "it was only asked");
        assert!(routes.compare_meds(MedScope::All, false));
        assert_eq!(best(&routes), 3);
        assert_eq!(routes.steps(), [Some(DecisionStep::MultiExitDiscriminator), None]);
        assert!(!routes.compare_meds(MedScope::All, false));
    }
}
