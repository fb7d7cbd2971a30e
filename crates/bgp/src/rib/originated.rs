//! The routes that this node originates, as they were configured.
//!
//! Knows no neighbour and no received route. Called by `loc_rib`.
//!
//! There may be ten thousand and more, of which a change concerns one: so the list is shared with its
//! creator, and the difference to the previous one is found in one pass over both.

use std::sync::Arc;

use fairway_ground::Prefix;
use fairway_seam::DesiredRoute;

/// Routes by prefix.
#[derive(Debug, Default)]
pub(super) struct Originated(Arc<[DesiredRoute]>);

impl Originated {
    /// Replaces all routes, and names each prefix that changed, with its routes from now on. Sorts the routes by prefix
    /// if they are not sorted.
    pub(super) fn replace(
        &mut self,
        mut routes: Arc<[DesiredRoute]>,
        mut changed: impl FnMut(Prefix, &[DesiredRoute]),
    ) {
        if !routes.is_sorted_by_key(|route| route.prefix) {
            let mut sorted = routes.to_vec();
            sorted.sort_by_key(|route| route.prefix);
            routes = sorted.into();
        }
        let (mut old, mut new) = (groups(&self.0).peekable(), groups(&routes).peekable());
        loop {
            match (old.peek(), new.peek()) {
                (Some((before, was)), Some((after, is))) if before == after => {
                    if was != is {
                        changed(*before, is);
                    }
                    old.next();
                    new.next();
                }
                (Some((before, _)), after) if after.is_none_or(|(after, _)| before < after) => {
                    changed(*before, &[]);
                    old.next();
                }
                (_, Some((after, is))) => {
                    changed(*after, is);
                    new.next();
                }
                (_, None) => break,
            }
        }
        drop((old, new));
        self.0 = routes;
    }

    /// All routes in the order of their prefixes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &DesiredRoute> {
        self.0.iter()
    }
}

fn groups(routes: &[DesiredRoute]) -> impl Iterator<Item = (Prefix, &[DesiredRoute])> {
    let groups = routes.chunk_by(|one, next| one.prefix == next.prefix);
    groups.filter_map(|group| Some((group.first()?.prefix, group)))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use fairway_ground::Rng;
    use fairway_seam::RouteAttributes;

    fn random_routes(random: &mut Rng) -> Vec<DesiredRoute> {
        let mut number = |below: u64| u8::try_from(random.next_u64() % below).unwrap();
        let routes = (0..number(8)).map(|_| DesiredRoute {
            prefix: format!("10.0.0.{}/32", number(6)).parse().unwrap(),
            peers: Arc::default(),
            attributes: Arc::new(RouteAttributes {
                local_pref: Some(u32::from(number(3))),
                ..RouteAttributes::default()
            }),
        });
        routes.collect()
    }

    #[test]
    fn a_walk_over_both_lists_says_the_same_as_two_maps() {
        let mut random = Rng::seeded(5);
        let (mut originated, mut plain) = (Originated::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let routes = random_routes(&mut random);
            let mut fresh: BTreeMap<Prefix, Vec<DesiredRoute>> = BTreeMap::new();
            for route in &routes {
                fresh.entry(route.prefix).or_default().push(route.clone());
            }
            let all: BTreeSet<Prefix> = plain.keys().chain(fresh.keys()).copied().collect();
            let differs = |prefix: &Prefix| plain.get(prefix) != fresh.get(prefix);
            let expected = all.iter().copied().filter(differs);
            let expected: Vec<_> =
                expected.map(|it| (it, fresh.get(&it).cloned().unwrap_or_default())).collect();
            let mut changed = Vec::new();
            originated.replace(routes.into(), |prefix, is| changed.push((prefix, is.to_vec())));
            assert_eq!(changed, expected);
            assert!(originated.iter().eq(fresh.values().flatten()));
            plain = fresh;
        }
    }
}
