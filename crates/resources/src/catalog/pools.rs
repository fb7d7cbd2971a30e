//! Rules between pools, and the facts about a pool that advertisements need.
//!
//! Pools share no address and no name. Knows no files.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::AddressFamily;
use fairway_model::{AddressRange, Labels, ObjectKey, Pool};

use super::settle::{Names, Problem, Rule};
use super::version::Version;
use crate::field_path::FieldPath;

/// No address is in two pools.
#[derive(Default)]
pub(super) struct Pools {
    names: Names,
    /// The ranges of all pools by their first address. They are disjoint, so the last one that begins
    /// at or before an address is the only one that may hold it.
    ranges: BTreeMap<IpAddr, Place>,
}

/// Where a range is written.
struct Place {
    range: AddressRange,
    key: Arc<ObjectKey>,
    position: usize,
}

impl Rule for Pools {
    fn problems(&self, version: &Version) -> Vec<Problem> {
        let ranges = version.pool().into_iter().flat_map(|pool| &pool.ranges).enumerate();
        let overlaps = ranges.filter_map(|(position, range)| {
            let (_, nearest) = self.ranges.range(..=range.last()).next_back()?;
            let overlaps = nearest.range.overlaps(*range);
            overlaps.then(|| overlap(*range, position, version, nearest))
        });
        self.names.problem(version).into_iter().chain(overlaps).collect()
    }

    fn admit(&mut self, version: &Arc<Version>) {
        let Some(pool) = version.pool() else { return };
        self.names.add(version);
        for (position, range) in pool.ranges.iter().enumerate() {
            let place = Place { range: *range, key: Arc::clone(&version.key), position };
            self.ranges.insert(range.first(), place);
        }
    }
}

fn overlap(range: AddressRange, position: usize, version: &Version, other: &Place) -> Problem {
    let path = |position| FieldPath::of("spec.addresses").index(position);
    let message = |this: AddressRange, that: AddressRange, key: &ObjectKey| {
        format!("{this} overlaps {that} of {key}; an address may be in one pool only")
    };
    Problem::new(path(position), message(range, other.range, &other.key)).because(
        &other.key,
        path(other.position),
        message(other.range, range, &version.key),
    )
}

/// The facts about a pool that advertisements need.
pub(super) struct PoolFacts {
    pub(super) key: Arc<ObjectKey>,
    pub(super) labels: Labels,
    /// The shortest prefix that stays inside every entry, for each family.
    pub(super) length_minimum: BTreeMap<AddressFamily, u8>,
}

impl PoolFacts {
    /// Those of all pools, by name.
    pub(super) fn of<'a>(
        in_force: impl Iterator<Item = &'a Arc<Version>>,
    ) -> BTreeMap<String, Self> {
        let pools = in_force.filter_map(|version| {
            let pool = version.pool()?;
            let facts = Self {
                key: Arc::clone(&version.key),
                labels: pool.labels.clone(),
                length_minimum: length_minimum(pool),
            };
            Some((pool.name.name.clone(), facts))
        });
        pools.collect()
    }

    /// The families of its addresses.
    pub(super) fn families(&self) -> impl Iterator<Item = AddressFamily> + '_ {
        self.length_minimum.keys().copied()
    }
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
        // The addresses of a prefix minus one; for all 128 bits that is the largest number.
        let rest = u128::MAX.checked_shr(u32::from(128 - (bits - length))).unwrap_or(0);
        let begin = first.checked_add(rest).map(|end| end & !rest);
        begin.and_then(|begin| begin.checked_add(rest)).is_some_and(|end| end <= last)
    };
    (0..bits).find(|length| fits(*length)).unwrap_or(bits)
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
