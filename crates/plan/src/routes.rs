//! The routes that result when several Services, and advertisements by themselves, announce the same
//! prefixes.
//!
//! Knows a Service by its name only, and no address. Called by the planner, which adds the Services of
//! each prefix and then asks for the result.
//!
//! A prefix is announced as long as one Service needs it. Where two Services conflict about it, the
//! first in name order wins, and prefixes that an advertisement lists itself precede all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_ground::{InterfaceName, Prefix};
use fairway_model::ObjectName;
use fairway_seam::DesiredRoute;

use super::Reason;
use super::advertisements::Place;
use super::combination::{Combination, Combinations};

/// One Service's attributes for a prefix.
#[derive(Debug)]
struct Contribution {
    service: ObjectName,
    combination: Arc<Combination>,
    /// Its usable endpoints on this node.
    endpoints: u32,
}

/// All sources of a prefix.
#[derive(Debug, Default)]
struct Spoken {
    /// Advertisements that list it.
    originated: Option<Arc<Combination>>,
    /// Services, in the order of their names. Most prefixes have one, so this is not a map.
    contributions: Vec<Contribution>,
    /// Services that conflict with others, and how.
    unheard: BTreeMap<ObjectName, Reason>,
}

/// The sources of all prefixes.
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    prefixes: BTreeMap<Prefix, Spoken>,
}

/// The result for a prefix.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Its routes, each for other peers.
    pub(super) routes: Vec<DesiredRoute>,
    /// The VRFs in which its packets are dropped that nothing else takes.
    pub(super) drops_in: Vec<Option<InterfaceName>>,
    /// Services of which the verdict changed: announced, or the reason why not.
    pub(super) verdicts: Vec<(ObjectName, Option<Reason>)>,
}

impl RouteTable {
    /// The advertisement at `place` lists `prefix`. One that conflicts with an earlier one is ignored.
    pub(super) fn originate(
        &mut self,
        prefix: Prefix,
        place: Place,
        combinations: &mut Combinations,
    ) -> Result<(), Reason> {
        let spoken = self.prefixes.entry(prefix).or_default();
        let before = spoken.originated.iter().flat_map(|it| it.places.iter().copied());
        let both = combinations.of(before.chain([place]).collect());
        if let Err(reason) = &both.shares {
            return Err(reason.clone());
        }
        spoken.originated = Some(both);
        Ok(())
    }

    /// `service` has `prefix`. Unless it conflicts, it is announced.
    pub(super) fn add(
        &mut self,
        prefix: Prefix,
        service: &ObjectName,
        combination: Arc<Combination>,
        endpoints: u32,
    ) {
        let contributions = &mut self.prefixes.entry(prefix).or_default().contributions;
        let contribution = Contribution { service: service.clone(), combination, endpoints };
        match contributions.binary_search_by(|it| it.service.cmp(service)) {
            Ok(_) => {}
            Err(0) if contributions.is_empty() => *contributions = vec![contribution],
            Err(position) => contributions.insert(position, contribution),
        }
    }

    /// `service` does not have `prefix` any more.
    pub(super) fn remove(&mut self, prefix: Prefix, service: &ObjectName) {
        let Some(spoken) = self.prefixes.get_mut(&prefix) else { return };
        if let Ok(position) = spoken.contributions.binary_search_by(|it| it.service.cmp(service)) {
            spoken.contributions.remove(position);
        }
        spoken.unheard.remove(service);
    }

    /// The result for `prefix`, after its sources changed.
    pub(super) fn settle(&mut self, prefix: Prefix, combinations: &mut Combinations) -> Settled {
        let Some(spoken) = self.prefixes.get_mut(&prefix) else { return Settled::default() };
        if spoken.is_empty() {
            self.prefixes.remove(&prefix);
            return Settled::default();
        }
        let Heard { combination, endpoints, unheard } = spoken.heard(combinations);
        let before = std::mem::replace(&mut spoken.unheard, unheard);
        let silenced = spoken.unheard.iter().filter(|(name, why)| before.get(*name) != Some(*why));
        let silenced = silenced.map(|(name, why)| (name.clone(), Some(why.clone())));
        let heard_again = before.keys().filter(|name| !spoken.unheard.contains_key(*name));
        let heard_again = heard_again.map(|name| (name.clone(), None));
        let verdicts = silenced.chain(heard_again).collect();
        // Conflicting ones were left out, so there is always a result here.
        let shares = combination.shares.as_deref().unwrap_or_default();
        let routes = shares.iter().map(|share| DesiredRoute {
            prefix,
            peers: Arc::clone(&share.peers),
            attributes: combinations.attributes(share, endpoints),
        });
        // Of a single address there is nothing that nobody takes.
        let drops_in = if prefix == Prefix::host(prefix.address()) {
            Vec::new()
        } else {
            combination.drops_in.clone()
        };
        Settled { routes: routes.collect(), drops_in, verdicts }
    }

    /// The attributes that `service` has for `prefix`.
    pub(super) fn said(&self, prefix: Prefix, service: &ObjectName) -> Option<&Combination> {
        let contributions = &self.prefixes.get(&prefix)?.contributions;
        let position = contributions.binary_search_by(|it| it.service.cmp(service)).ok()?;
        contributions.get(position).map(|it| &*it.combination)
    }

    /// All prefixes with a source, in order.
    pub(super) fn prefixes(&self) -> BTreeSet<Prefix> {
        self.prefixes.keys().copied().collect()
    }
}

/// The accepted sources of a prefix.
struct Heard {
    combination: Arc<Combination>,
    /// The endpoints of the accepted Services; `None` if there is none.
    endpoints: Option<u32>,
    unheard: BTreeMap<ObjectName, Reason>,
}

impl Spoken {
    fn is_empty(&self) -> bool {
        self.originated.is_none() && self.contributions.is_empty()
    }

    fn heard(&self, combinations: &mut Combinations) -> Heard {
        let all = self.together(combinations);
        if all.shares.is_ok() {
            let endpoints = self.contributions.iter().map(|it| it.endpoints);
            let endpoints = endpoints.reduce(u32::saturating_add);
            return Heard { combination: all, endpoints, unheard: BTreeMap::new() };
        }
        self.heard_one_by_one(combinations)
    }

    /// All sources together, with or without conflicts.
    fn together(&self, combinations: &mut Combinations) -> Arc<Combination> {
        let said = self.contributions.iter().map(|it| &it.combination);
        let mut said = self.originated.iter().chain(said);
        let mut all = match said.next() {
            Some(first) => Arc::clone(first),
            None => combinations.of(BTreeSet::new()),
        };
        for other in said {
            if !other.is_part_of(&all) {
                all = combinations.of(all.places.union(&other.places).copied().collect());
            }
        }
        all
    }

    /// Sources that conflict with earlier ones are left out.
    fn heard_one_by_one(&self, combinations: &mut Combinations) -> Heard {
        let nothing = || combinations.of(BTreeSet::new());
        let mut combination = self.originated.clone().unwrap_or_else(nothing);
        let mut endpoints: Option<u32> = None;
        let mut unheard = BTreeMap::new();
        for it in &self.contributions {
            if !it.combination.is_part_of(&combination) {
                let places = combination.places.union(&it.combination.places).copied().collect();
                let both = combinations.of(places);
                if let Err(reason) = &both.shares {
                    unheard.insert(it.service.clone(), reason.clone());
                    continue;
                }
                combination = both;
            }
            endpoints = Some(endpoints.unwrap_or(0).saturating_add(it.endpoints));
        }
        Heard { combination, endpoints, unheard }
    }
}

impl Combination {
    fn is_part_of(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.places.is_subset(&other.places)
    }
}
