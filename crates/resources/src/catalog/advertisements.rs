//! Rules between communities, advertisements and the pools that these name.
//!
//! A community's name is defined once, names in use are defined, no advertisement announces more
//! than a pool holds, and no two conflict about a route. Knows no files.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::AddressFamily;
use fairway_model::{BgpAdvertisement, CommunityReference, ObjectKey};

use super::contradictions::Contradictions;
use super::needs::{Need, needs};
use super::nodes::Nodes;
use super::pools::PoolFacts;
use super::settle::{Problem, Rule};
use super::supplies::Supplies;
use super::version::Version;
use crate::field_path::FieldPath;

/// Each name stands for one community.
#[derive(Default)]
pub(super) struct Communities {
    /// The object that defines a name.
    owners: BTreeMap<String, Arc<Version>>,
}

impl Rule for Communities {
    fn problems(&self, version: &Version) -> Vec<Problem> {
        let aliases = version.community().into_iter().flat_map(|it| it.aliases.keys());
        let owned = aliases.filter_map(|alias| Some((alias, self.owners.get(alias)?)));
        let problem = |(alias, owner): (&String, &Arc<Version>)| {
            let path =
                |version: &Version| version.lines.find(&FieldPath::of("spec.communities"), alias);
            let message = |owner: &ObjectKey| {
                format!("{alias} is defined by {owner} already; choose another name")
            };
            Problem::new(path(version), message(&owner.key)).because(
                &owner.key,
                path(owner),
                message(&version.key),
            )
        };
        owned.map(problem).collect()
    }

    fn admit(&mut self, version: &Arc<Version>) {
        for alias in version.community().into_iter().flat_map(|it| it.aliases.keys()) {
            self.owners.insert(alias.clone(), Arc::clone(version));
        }
    }
}

/// The references of advertisements are valid.
pub(super) struct Advertisements<'a> {
    supplies: &'a Supplies,
    /// What each object could refer to when it was in force last.
    former: &'a Supplies,
    /// By name.
    pools: &'a BTreeMap<String, PoolFacts>,
    nodes: &'a Nodes,
    contradictions: Contradictions,
}

impl<'a> Advertisements<'a> {
    /// Among the objects that are in force already.
    pub(super) fn new(
        supplies: &'a Supplies,
        former: &'a Supplies,
        pools: &'a BTreeMap<String, PoolFacts>,
        nodes: &'a Nodes,
    ) -> Self {
        Self { supplies, former, pools, nodes, contradictions: Contradictions::default() }
    }

    /// A pool beyond which the advertisement would announce addresses.
    fn exceeded_pool<'b>(
        &'b self,
        it: &'b BgpAdvertisement,
        family: AddressFamily,
    ) -> Option<(&'b PoolFacts, u8)> {
        let length = aggregation_length(it, family);
        if length == family.address_bits() {
            return None;
        }
        let exceeds = |pool: &PoolFacts| {
            pool.length_minimum.get(&family).copied().filter(|minimum| length < *minimum)
        };
        pools_of(it, self.pools).find_map(|pool| Some((pool, exceeds(pool)?)))
    }

    /// A well-known name needs no object, unless there was one that gave it another value: routes keep
    /// their value when that object is deleted.
    fn is_met(&self, need: &Need<'_>) -> bool {
        let is_known =
            matches!(need, Need::Alias(alias) if CommunityReference::well_known(alias).is_some());
        self.supplies.supplier(need).is_some() || (is_known && self.former.supplier(need).is_none())
    }
}

fn exceeding(
    version: &Version,
    it: &BgpAdvertisement,
    family: AddressFamily,
    pool: &PoolFacts,
    minimum: u8,
) -> Problem {
    let length = aggregation_length(it, family);
    let bits = family.address_bits();
    let field = match family {
        AddressFamily::Ipv4Unicast => "aggregationLength",
        AddressFamily::Ipv6Unicast => "aggregationLengthV6",
    };
    let message = format!(
        "{length} would announce more than {} holds; expected {minimum} to {bits}",
        pool.key
    );
    Problem::new(FieldPath::of("spec").key(field), message).because(
        &pool.key,
        FieldPath::of("spec.addresses"),
        format!(
            "is too small for {}, which announces prefixes of length {length}; expected a /{length} \
             or more in each entry, or first {field} {minimum} to {bits} there",
            version.key
        ),
    )
}

impl Rule for Advertisements<'_> {
    fn problems(&self, version: &Version) -> Vec<Problem> {
        let Some(it) = version.advertisement() else { return Vec::new() };
        let unmet = needs(version).filter(|need| !self.is_met(need));
        let exceeding = AddressFamily::ALL.into_iter().filter_map(|family| {
            let (pool, minimum) = self.exceeded_pool(it, family)?;
            Some(exceeding(version, it, family, pool, minimum))
        });
        let contradiction = self.contradictions.problem(version, it, self.pools, self.nodes);
        unmet.map(|need| need.problem(version)).chain(exceeding).chain(contradiction).collect()
    }

    fn admit(&mut self, version: &Arc<Version>) {
        self.contradictions.remember(version);
    }

    /// An advertisement that was valid until a name was deleted, or a node's labels changed, stays: its
    /// routes were correct.
    fn keep(&mut self, version: &Arc<Version>) -> bool {
        self.contradictions.remember(version);
        true
    }
}

pub(super) fn aggregation_length(it: &BgpAdvertisement, family: AddressFamily) -> u8 {
    match family {
        AddressFamily::Ipv4Unicast => it.aggregation_length_ipv4,
        AddressFamily::Ipv6Unicast => it.aggregation_length_ipv6,
    }
}

/// Whether the advertisement selects pools by name only.
pub(super) fn is_by_name(it: &BgpAdvertisement) -> bool {
    !it.pools.is_empty() && it.pool_selectors.is_empty()
}

/// The pools of which the advertisement announces addresses. Most advertisements name theirs, and
/// there may be thousands of both.
pub(super) fn pools_of<'a>(
    it: &'a BgpAdvertisement,
    pools: &'a BTreeMap<String, PoolFacts>,
) -> impl Iterator<Item = &'a PoolFacts> {
    let named = is_by_name(it).then(|| it.pools.iter().filter_map(|name| pools.get(name)));
    let others = (!is_by_name(it)).then(|| {
        let covered = pools.iter().filter(|(name, pool)| it.selects_pool(name, &pool.labels));
        covered.map(|(_, pool)| pool)
    });
    named.into_iter().flatten().chain(others.into_iter().flatten())
}
