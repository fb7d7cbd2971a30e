//! Rules between communities, advertisements and the pools and peers that these name.
//!
//! A community's name is defined once, those in use are defined, no advertisement announces more
//! than a pool holds, and no two contradict each other about a route. Knows no files.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_sessions::types::AddressFamily;

use super::Version;
use super::contradictions::Contradictions;
use super::resolve::{Problem, Rule};
use super::topology::nodes;
use crate::model::{
    AddressRange, BgpAdvertisement, CommunityReference, Kind, Labels, Node, Object, Pool,
};
use crate::resources::field_path::FieldPath;

/// Each name stands for one community.
#[derive(Default)]
pub(super) struct Communities {
    /// The object that defines a name.
    owners: BTreeMap<String, String>,
}

impl Rule for Communities {
    fn admit(&mut self, version: &Arc<Version>) -> Result<(), Problem> {
        let Object::Community(community) = &version.object else { return Ok(()) };
        for alias in community.aliases.keys() {
            if let Some(owner) = self.owners.get(alias) {
                return Err(Problem {
                    path: version.lines.find(&FieldPath::of("spec.communities"), alias),
                    message: format!(
                        "{alias} is defined by Community/{owner} already; choose another name"
                    ),
                });
            }
        }
        for alias in community.aliases.keys() {
            self.owners.insert(alias.clone(), community.name.name.clone());
        }
        Ok(())
    }
}

/// What an advertisement must know of a pool.
pub(super) struct PoolFacts {
    pub(super) labels: Labels,
    /// The shortest prefix that stays inside every entry, for each family.
    length_minimum: BTreeMap<AddressFamily, u8>,
}

impl PoolFacts {
    /// The families that it holds addresses of.
    pub(super) fn families(&self) -> impl Iterator<Item = AddressFamily> + '_ {
        self.length_minimum.keys().copied()
    }
}

/// What advertisements refer to makes sense.
pub(super) struct Advertisements {
    aliases: BTreeSet<String>,
    /// By name.
    pools: BTreeMap<String, PoolFacts>,
    nodes: Vec<Node>,
    contradictions: Contradictions,
}

impl Advertisements {
    /// Among the objects that are in force already.
    pub(super) fn new<'a>(in_force: impl Iterator<Item = &'a Arc<Version>> + Clone) -> Self {
        let mut rule = Self {
            aliases: BTreeSet::new(),
            pools: BTreeMap::new(),
            nodes: nodes(in_force.clone()).cloned().collect(),
            contradictions: Contradictions::default(),
        };
        for version in in_force {
            match &version.object {
                Object::Community(community) => {
                    rule.aliases.extend(community.aliases.keys().cloned());
                }
                Object::Pool(pool) => {
                    let facts = PoolFacts {
                        labels: pool.labels.clone(),
                        length_minimum: length_minimum(pool),
                    };
                    rule.pools.insert(pool.name.name.clone(), facts);
                }
                _ => {}
            }
        }
        rule
    }

    /// A pool of which the advertisement would announce addresses around it.
    fn exceeded_pool(&self, it: &BgpAdvertisement, family: AddressFamily) -> Option<(&str, u8)> {
        let length = aggregation_length(it, family);
        if length == family.address_bits() {
            return None;
        }
        let exceeds = |pool: &PoolFacts| {
            pool.length_minimum.get(&family).copied().filter(|minimum| length < *minimum)
        };
        // Most advertisements name their pools, and there may be thousands of both.
        let named = it.pools.iter().filter_map(|name| self.pools.get_key_value(name));
        let others = (!is_by_name(it)).then_some(&self.pools).into_iter().flatten();
        let selected = others.filter(|(name, pool)| covers(it, name, &pool.labels));
        named.chain(selected).find_map(|(name, pool)| Some((name.as_str(), exceeds(pool)?)))
    }

    /// Whether it makes sense without the other advertisements.
    fn check(&self, version: &Version, it: &BgpAdvertisement) -> Result<(), Problem> {
        for community in &it.communities {
            if let CommunityReference::Alias(alias) = community
                && !self.aliases.contains(alias)
            {
                return Err(Problem {
                    path: version.lines.find(&FieldPath::of("spec.communities"), alias),
                    message: format!(
                        "{alias} is not defined; expected a community as in 65001:100, or a name \
                         that some Community object defines"
                    ),
                });
            }
        }
        for family in AddressFamily::ALL {
            if let Some((pool, minimum)) = self.exceeded_pool(it, family) {
                let field = match family {
                    AddressFamily::Ipv4Unicast => "spec.aggregationLength",
                    AddressFamily::Ipv6Unicast => "spec.aggregationLengthV6",
                };
                return Err(Problem {
                    path: FieldPath::of(field),
                    message: format!(
                        "{} would announce more than IPAddressPool/{pool} holds; expected {minimum} \
                         to {}",
                        aggregation_length(it, family),
                        family.address_bits()
                    ),
                });
            }
        }
        Ok(())
    }
}

impl Rule for Advertisements {
    fn admit(&mut self, version: &Arc<Version>) -> Result<(), Problem> {
        let Object::BgpAdvertisement(it) = &version.object else { return Ok(()) };
        self.check(version, it)?;
        if let Some(problem) = self.contradictions.problem(it, &self.pools, &self.nodes) {
            return Err(problem);
        }
        self.contradictions.remember(version);
        Ok(())
    }

    /// Two that worked together and disagree only since a pool or a node changed both stay: the
    /// services that they disagree about are silent anyway, and the others need not be.
    fn keep(&mut self, version: &Arc<Version>, is_unchanged: bool) -> bool {
        let Object::BgpAdvertisement(it) = &version.object else { return false };
        if !is_unchanged || self.check(version, it).is_err() {
            return false;
        }
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

/// Whether the advertisement announces addresses of the pool.
pub(super) fn covers(it: &BgpAdvertisement, pool: &str, labels: &Labels) -> bool {
    let is_named = it.pools.contains(pool);
    let is_selected = it.pool_selectors.iter().any(|selector| selector.matches(labels));
    let is_open = it.pools.is_empty() && it.pool_selectors.is_empty();
    is_named || is_selected || is_open
}

/// Whether the advertisement has only names of pools to choose by.
pub(super) fn is_by_name(it: &BgpAdvertisement) -> bool {
    !it.pools.is_empty() && it.pool_selectors.is_empty()
}

fn length_minimum(pool: &Pool) -> BTreeMap<AddressFamily, u8> {
    let mut minimum = BTreeMap::new();
    for range in &pool.ranges {
        let length = widest_prefix_length(*range);
        let longest: &mut u8 = minimum.entry(range.family()).or_default();
        *longest = length.max(*longest);
    }
    minimum
}

/// The length of the widest prefix that lies in the range.
fn widest_prefix_length(range: AddressRange) -> u8 {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let (first, last) = (number(range.first()), number(range.last()));
    let bits = range.family().address_bits();
    let fits = |length: u8| {
        // The addresses of a prefix but one; of all 128 bits that is the most a number can be.
        let rest = u128::MAX.checked_shr(u32::from(128 - (bits - length))).unwrap_or(0);
        let begin = first.checked_add(rest).map(|end| end & !rest);
        begin.and_then(|begin| begin.checked_add(rest)).is_some_and(|end| end <= last)
    };
    (0..bits).find(|length| fits(*length)).unwrap_or(bits)
}

/// Names that nobody has, and pools that nobody announces.
pub(super) fn warnings<'a>(
    current: &'a [Arc<Version>],
    in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
) -> Vec<(&'a Version, Problem)> {
    let names = |kind: Kind| -> BTreeSet<&str> {
        let of_kind = in_force.clone().filter(|version| version.key.kind == kind);
        of_kind.map(|version| version.key.name.name.as_str()).collect()
    };
    let (pools, peers) = (names(Kind::IpAddressPool), names(Kind::BgpPeer));
    let advertisements: Vec<_> = in_force
        .clone()
        .filter_map(|version| match &version.object {
            Object::BgpAdvertisement(it) => Some(it),
            _ => None,
        })
        .collect();
    let named: BTreeSet<&str> =
        advertisements.iter().flat_map(|it| &it.pools).map(String::as_str).collect();
    let is_announced = |pool: &Pool| {
        let mut choosing = advertisements.iter().filter(|it| !is_by_name(it));
        named.contains(pool.name.name.as_str())
            || choosing.any(|it| covers(it, &pool.name.name, &pool.labels))
    };
    let mut found = Vec::new();
    for version in current {
        match &version.object {
            Object::BgpAdvertisement(it) => {
                for (field, used, known, kind) in [
                    ("spec.ipAddressPools", &it.pools, &pools, Kind::IpAddressPool),
                    ("spec.peers", &it.peers, &peers, Kind::BgpPeer),
                ] {
                    for name in used.iter().filter(|name| !known.contains(name.as_str())) {
                        found.push((
                            &**version,
                            Problem {
                                path: version.lines.find(&FieldPath::of(field), name),
                                message: format!("no {kind} {name} is in force"),
                            },
                        ));
                    }
                }
            }
            Object::Pool(pool) if !is_announced(pool) => {
                found.push((
                    &**version,
                    Problem {
                        path: FieldPath::default(),
                        message:
                            "no BGPAdvertisement covers the pool: its addresses are not announced"
                                .to_owned(),
                    },
                ));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_prefix_in_a_range_is_found() {
        for (range, length) in [
            ("192.0.2.0/24", 24),
            ("192.0.2.10-192.0.2.20", 30),
            ("192.0.2.1-192.0.2.1", 32),
            ("192.0.2.1-192.0.2.2", 32),
            ("0.0.0.0/0", 0),
            ("0.0.0.1-255.255.255.255", 1),
            ("2001:db8::/64", 64),
            ("::/0", 0),
            ("::1-::ffff", 113),
        ] {
            let range: AddressRange = range.parse().unwrap();
            assert_eq!(widest_prefix_length(range), length, "{range}");
        }
    }
}
