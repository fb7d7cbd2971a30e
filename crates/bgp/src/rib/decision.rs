//! Route selection: which of several paths to a prefix is used (RFC 4271 §9.1)?
//!
//! Works by elimination, as the RFC describes it: each step removes the paths that are worse than the best of
//! the remaining ones. Pairwise comparison would be wrong, since MULTI_EXIT_DISC counts only between paths
//! through the same neighbouring AS.

use std::borrow::Borrow;
use std::cmp::Reverse;

use fairway_ground::{Community, PeerKind};
use fairway_seam::{DecisionStep, Path};

/// LOCAL_PREF of a path without one, as all external ones (the default of FRR and BIRD).
pub(super) const LOCAL_PREF_DEFAULT: u32 = 100;
/// LOCAL_PREF of a route that is about to be withdrawn: any other is preferred (RFC 8326 §4).
pub(super) const LOCAL_PREF_LAST: u32 = 0;

/// Which paths are compared by their MULTI_EXIT_DISC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MedScope {
    /// Those through the same neighbouring AS (RFC 4271 §9.1.2.2 c).
    #[default]
    SameAs,
    /// All, as with FRR's `bgp always-compare-med`.
    All,
}

/// For each of `paths` the step that eliminated it; `None` for the best.
pub fn decide<P: Borrow<Path>>(paths: &[P], meds: MedScope) -> Vec<Option<DecisionStep>> {
    let mut lost = vec![None; paths.len()];
    if paths.len() < 2 {
        return lost; // Nearly all prefixes have one path.
    }
    let mut contest = Contest { paths, lost: &mut lost };
    contest.keep_least(DecisionStep::LongLivedStale, is_long_lived_stale);
    contest.keep_least(DecisionStep::LocalPref, |path| Reverse(local_pref(path)));
    contest.keep_least(DecisionStep::AsPathLength, |path| path.attributes.as_path.length());
    contest.keep_least(DecisionStep::Origin, |path| path.attributes.origin);
    contest.compare_exit_discriminators(meds);
    contest.keep_least(DecisionStep::PeerKind, |path| path.source.kind == PeerKind::Internal);
    // §9.1.2.2 e, the cost to reach the next hop, is not known here: all are equal.
    contest.keep_least(DecisionStep::RouterId, identifier);
    // Between reflected copies the shorter CLUSTER_LIST wins (RFC 4456 §9).
    contest.keep_least(DecisionStep::RouterId, cluster_list_length);
    contest.keep_least(DecisionStep::PeerAddress, |path| (path.source.address, path.source.key));
    // Only paths of one neighbour are left (RFC 7911 does not define their order).
    contest.keep_least(DecisionStep::PathId, |path| path.path_id);
    lost
}

/// The index of the best of `paths`.
pub(super) fn best<P: Borrow<Path>>(paths: &[P], meds: MedScope) -> Option<usize> {
    match paths {
        [] => None,
        [_] => Some(0),
        paths => decide(paths, meds).iter().position(Option::is_none),
    }
}

/// The best `limit` of `paths`, best first: each would be used if those before it were withdrawn.
pub(super) fn best_first(mut paths: Vec<&Path>, limit: usize, meds: MedScope) -> Vec<&Path> {
    let mut chosen = Vec::new();
    while chosen.len() < limit
        && let Some(position) = best(&paths, meds)
    {
        chosen.push(paths.swap_remove(position));
    }
    chosen
}

struct Contest<'a, P> {
    paths: &'a [P],
    lost: &'a mut [Option<DecisionStep>],
}

impl<P: Borrow<Path>> Contest<'_, P> {
    fn keep_least<K: Ord>(&mut self, step: DecisionStep, key: impl Fn(&Path) -> K) {
        let alive = self.paths.iter().zip(&*self.lost).filter(|(_, lost)| lost.is_none());
        let Some(least) = alive.map(|(path, _)| key(path.borrow())).min() else { return };
        for (path, lost) in self.paths.iter().zip(&mut *self.lost) {
            if lost.is_none() && key(path.borrow()) > least {
                *lost = Some(step);
            }
        }
    }

    /// Compares each path with those through the same neighbouring AS, whether or not these lose against
    /// others (§9.1.2.2 c), or with all.
    fn compare_exit_discriminators(&mut self, meds: MedScope) {
        let discriminator = |path: &Path| path.attributes.med.unwrap_or(0);
        let alive: Vec<&Path> = self
            .paths
            .iter()
            .zip(&*self.lost)
            .filter_map(|(path, lost)| lost.is_none().then_some(path.borrow()))
            .collect();
        for (path, lost) in self.paths.iter().zip(&mut *self.lost) {
            let path = path.borrow();
            let beaten = alive.iter().any(|other| {
                (meds == MedScope::All || neighbouring_as(other) == neighbouring_as(path))
                    && discriminator(other) < discriminator(path)
            });
            if lost.is_none() && beaten {
                *lost = Some(DecisionStep::MultiExitDiscriminator);
            }
        }
    }
}

/// Whether the path is long-lived stale here or at a router on the way: any other is preferred (RFC 9494
/// §4.3).
fn is_long_lived_stale(path: &Path) -> bool {
    path.attributes.communities.contains(&Community::LLGR_STALE)
}

fn local_pref(path: &Path) -> u32 {
    path.attributes.local_pref.unwrap_or(LOCAL_PREF_DEFAULT)
}

/// The AS that sent the path to ours; `None` for one that originates in ours.
fn neighbouring_as(path: &Path) -> Option<u32> {
    path.attributes.as_path.first()
}

/// The BGP identifier of the router that received the path into our AS (RFC 4456 §9).
fn identifier(path: &Path) -> u32 {
    path.attributes.originator().map_or(path.source.router_id.get(), u32::from)
}

fn cluster_list_length(path: &Path) -> usize {
    path.attributes.clusters().count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use fairway_ground::{AsPath, Asn, NextHop, PathId, PeerKey, RouterId};
    use fairway_seam::{Origin, PathAttributes, PathSource, UnknownAttribute};

    /// A path of external peer `number` through its AS and one more.
    fn path(number: u8) -> Path {
        let next_hop = NextHop::Ipv4([192, 0, 2, number].into());
        let asn = 65_000 + u32::from(number);
        Path {
            source: Arc::new(PathSource {
                key: PeerKey::from(std::net::IpAddr::from([192, 0, 2, number])),
                address: [192, 0, 2, number].into(),
                kind: PeerKind::External,
                remote_asn: Asn::new(asn).unwrap(),
                router_id: RouterId::new(u32::from(number)).unwrap(),
                is_client: false,
            }),
            path_id: PathId::NONE,
            attributes: Arc::new(PathAttributes::originated(
                AsPath::sequence(vec![asn, 7]),
                next_hop,
            )),
        }
    }

    fn with(mut path: Path, change: impl FnOnce(&mut PathAttributes)) -> Path {
        change(Arc::make_mut(&mut path.attributes));
        path
    }

    fn from(mut path: Path, change: impl FnOnce(&mut PathSource)) -> Path {
        change(Arc::make_mut(&mut path.source));
        path
    }

    /// Asserts that `winner` beats `loser` at `step`, in either order.
    fn assert_beats(winner: &Path, loser: &Path, step: DecisionStep) {
        assert_eq!(decide(&[winner.clone(), loser.clone()], MedScope::SameAs), [None, Some(step)]);
        assert_eq!(decide(&[loser.clone(), winner.clone()], MedScope::SameAs), [Some(step), None]);
        assert_eq!(best(&[loser.clone(), winner.clone()], MedScope::SameAs), Some(1));
    }

    //= RFC 4271 §5.1.5 MUST: the higher degree of preference wins.
    //= RFC 4271 §9.1.2.2 MUST: the path with the fewest AS numbers wins.
    //= RFC 4271 §9.1.2.2 MUST: the lowest ORIGIN wins.
    //= RFC 4271 §9.1.2.2 MUST: the lowest MULTI_EXIT_DISC wins among routes through the same neighbouring AS.
    //= RFC 4271 §9.1.2.2 MUST: a route of an external peer wins over one of an internal peer.
    //= RFC 4271 §9.1.2.2 MUST: the lowest BGP identifier wins.
    //= RFC 4271 §9.1.2.2 MUST: the lowest peer address wins.
    #[test]
    fn each_step_decides_when_those_before_it_do_not() {
        use DecisionStep as Step;
        // Path 1 would win the last two steps, so each winner is path 2.
        let preferred = with(path(2), |it| it.local_pref = Some(101));
        assert_beats(&preferred, &path(1), Step::LocalPref);
        let short = with(path(2), |it| it.as_path = AsPath::sequence(vec![65_002]));
        assert_beats(&short, &path(1), Step::AsPathLength);
        let unknown_origin = with(path(1), |it| it.origin = Origin::Incomplete);
        assert_beats(&path(2), &unknown_origin, Step::Origin);
        let same_as = |number, med| {
            with(path(number), |it| {
                it.as_path = AsPath::sequence(vec![9, 7]);
                it.med = Some(med);
            })
        };
        assert_beats(&same_as(2, 5), &same_as(1, 6), Step::MultiExitDiscriminator);
        let internal = from(path(1), |it| it.kind = PeerKind::Internal);
        assert_beats(&path(2), &internal, Step::PeerKind);
        assert_beats(&path(1), &path(2), Step::RouterId);
        let same_router = from(path(2), |it| it.router_id = RouterId::new(1).unwrap());
        assert_beats(&path(1), &same_router, Step::PeerAddress);
        let second = Path { path_id: PathId::new(2), ..path(1) };
        assert_beats(&path(1), &second, Step::PathId);
    }

    //= RFC 4271 §9.1.2.2 MUST: a missing MULTI_EXIT_DISC counts as the lowest.
    //= RFC 4271 §9.1.2.2 MUST: MULTI_EXIT_DISC of different neighbouring systems is not compared.
    #[test]
    fn a_missing_exit_discriminator_is_the_lowest_and_other_systems_do_not_compare() {
        let through = |number, asn, med| {
            with(path(number), |it| {
                it.as_path = AsPath::sequence(vec![asn, 7]);
                it.med = med;
            })
        };
        let step = DecisionStep::MultiExitDiscriminator;
        assert_beats(&through(2, 9, None), &through(1, 9, Some(1)), step);
        assert_beats(&through(1, 9, Some(50)), &through(2, 8, Some(1)), DecisionStep::RouterId);
        // Unless the operator wants that.
        let paths = [through(1, 9, Some(50)), through(2, 8, Some(1))];
        assert_eq!(decide(&paths, MedScope::All), [Some(step), None]);
    }

    #[test]
    fn the_order_of_arrival_never_decides() {
        // The classic mistake: compared pairwise, the winner of these three depends on the order.
        let through = |number, asn, med| {
            with(path(number), |it| {
                it.as_path = AsPath::sequence(vec![asn, 7]);
                it.med = Some(med);
            })
        };
        let (a, b, c) = (through(1, 9, 20), through(2, 8, 0), through(3, 9, 10));
        let orders = [[&a, &b, &c], [&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b]];
        for order in orders {
            let paths: Vec<Path> = order.into_iter().cloned().collect();
            assert_eq!(paths[best(&paths, MedScope::SameAs).unwrap()], b);
        }
    }

    //= RFC 4456 §9 SHOULD: ORIGINATOR_ID counts as the identifier of who announced the route.
    //= RFC 4456 §9 SHOULD: the shorter CLUSTER_LIST wins, between identifier and peer address.
    #[test]
    fn a_reflected_path_counts_as_that_of_who_brought_it_in() {
        let reflected = |number: u8, originator: u32, clusters: usize| {
            let attribute = |code, value| UnknownAttribute { flags: 0x80, code, value };
            with(from(path(number), |it| it.kind = PeerKind::Internal), |it| {
                it.unknown = vec![
                    attribute(UnknownAttribute::ORIGINATOR_ID, originator.to_be_bytes().to_vec()),
                    attribute(UnknownAttribute::CLUSTER_LIST, vec![1; 4 * clusters]),
                ]
                .into();
            })
        };
        assert_beats(&reflected(2, 1, 1), &reflected(1, 2, 1), DecisionStep::RouterId);
        assert_beats(&reflected(2, 5, 1), &reflected(1, 5, 2), DecisionStep::RouterId);
        assert_beats(&reflected(1, 5, 1), &reflected(2, 5, 1), DecisionStep::PeerAddress);
    }

    //= RFC 4271 §9.1.2.2 MUST: the criteria count in their order.
    #[test]
    fn every_step_goes_before_those_behind_it() {
        use DecisionStep as Step;
        let worse = |path: Path, step: Step| match step {
            Step::LocalPref => with(path, |it| it.local_pref = Some(99)),
            Step::AsPathLength => with(path, |it| it.as_path = AsPath::sequence(vec![9, 7, 7])),
            Step::Origin => with(path, |it| it.origin = Origin::Incomplete),
            Step::MultiExitDiscriminator => with(path, |it| it.med = Some(6)),
            Step::PeerKind => from(path, |it| it.kind = PeerKind::Internal),
            Step::RouterId => from(path, |it| it.router_id = RouterId::new(99).unwrap()),
            _ => from(path, |it| it.key = PeerKey::from(std::net::IpAddr::from([192, 0, 2, 99]))),
        };
        let steps = [
            Step::LocalPref,
            Step::AsPathLength,
            Step::Origin,
            Step::MultiExitDiscriminator,
            Step::PeerKind,
            Step::RouterId,
            Step::PeerAddress,
        ];
        let plain = with(path(1), |it| it.as_path = AsPath::sequence(vec![9, 7]));
        for (position, step) in steps.into_iter().enumerate() {
            // The winner is worse in all later steps.
            let winner =
                steps[position + 1..].iter().fold(plain.clone(), |it, step| worse(it, *step));
            assert_beats(&winner, &worse(plain.clone(), step), step);
        }
    }

    #[test]
    fn the_second_best_is_the_best_of_those_that_are_left() {
        let through = |number, asn, med| {
            with(path(number), |it| {
                it.as_path = AsPath::sequence(vec![asn, 7]);
                it.med = Some(med);
            })
        };
        // The third path eliminates the first for the best place, but not for the second.
        let (a, b, c) = (through(1, 9, 20), through(2, 8, 0), through(3, 9, 10));
        for order in [[&a, &b, &c], [&c, &b, &a], [&b, &a, &c]] {
            assert_eq!(best_first(order.to_vec(), 9, MedScope::SameAs), [&b, &c, &a]);
            assert_eq!(best_first(order.to_vec(), 2, MedScope::SameAs), [&b, &c]);
            assert!(best_first(order.to_vec(), 0, MedScope::SameAs).is_empty());
        }
    }

    //= RFC 9494 §4.3 MUST: a route with LLGR_STALE is the least preferred, whoever marked it.
    //= RFC 9494 §4.4 MUST: a least preferred route loses against any that is not.
    #[test]
    fn a_path_whose_source_has_been_away_for_long_is_the_last_resort() {
        let stale = |number| {
            with(path(number), |it| {
                it.communities = vec![Community(7), Community::LLGR_STALE].into();
                it.local_pref = Some(1000);
                it.as_path = AsPath::default();
            })
        };
        let worst = with(from(path(3), |it| it.kind = PeerKind::Internal), |it| {
            it.local_pref = Some(0);
            it.as_path = AsPath::sequence(vec![9; 40]);
            it.origin = Origin::Incomplete;
        });
        assert_beats(&worst, &stale(1), DecisionStep::LongLivedStale);
        // Among them the usual steps decide.
        assert_beats(&stale(1), &stale(2), DecisionStep::RouterId);
    }

    #[test]
    fn no_paths_no_best() {
        assert_eq!(best::<Path>(&[], MedScope::SameAs), None);
        assert_eq!(best(&[path(1)], MedScope::SameAs), Some(0));
    }
}
