//! Which addresses are in use, by whom, and which is the lowest free one.
//!
//! Knows no pool and no wish of a Service: it is told which range to search and which addresses
//! to pass over. Called by `choice` to search and by the allocator to take and give back.
//!
//! Used addresses are kept as maximal runs of neighbours, so finding the lowest free one means
//! looking up the run that covers the start and stepping behind its end. With `n` addresses in
//! use that is O(log n), however large the range and however dense its beginning; every stretch
//! that has to be passed over (reserved, or .0 and .255) adds one such step.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fairway_sessions::types::AddressFamily;

use crate::model::{AddressRange, ObjectName};

use super::sharing::{Claim, SharingConflict};

/// Who uses what. Every address that is held, and no other, is in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Occupancy {
    users: BTreeMap<IpAddr, BTreeMap<ObjectName, Arc<Claim>>>,
    by_sharing_key: BTreeMap<String, BTreeSet<IpAddr>>,
    ipv4: Runs,
    ipv6: Runs,
}

impl Occupancy {
    /// Notes that `name` uses `address`. The caller has made sure that nothing conflicts.
    pub(super) fn occupy(&mut self, address: IpAddr, name: &ObjectName, claim: &Arc<Claim>) {
        self.users.entry(address).or_default().insert(name.clone(), Arc::clone(claim));
        if let Some(key) = claim.sharing_key() {
            self.by_sharing_key.entry(key.to_owned()).or_default().insert(address);
        }
        self.runs_mut(address).insert(number(address));
    }

    /// Notes that `name` no longer uses `address`.
    pub(super) fn vacate(&mut self, address: IpAddr, name: &ObjectName) {
        let Some(users) = self.users.get_mut(&address) else {
            return;
        };
        let Some(claim) = users.remove(name) else {
            return;
        };
        if !users.is_empty() {
            // Those who remain have the same sharing key, or they could not have shared.
            return;
        }
        self.users.remove(&address);
        self.runs_mut(address).remove(number(address));
        let Some(key) = claim.sharing_key() else {
            return;
        };
        if let Some(addresses) = self.by_sharing_key.get_mut(key) {
            addresses.remove(&address);
            if addresses.is_empty() {
                self.by_sharing_key.remove(key);
            }
        }
    }

    /// Who keeps `name` from using `address`, and why; `None` if it may.
    pub(super) fn conflict(
        &self,
        address: IpAddr,
        name: &ObjectName,
        claim: &Claim,
    ) -> Option<(ObjectName, SharingConflict)> {
        // The first in name order, so that the text is stable.
        let mut others = self.users.get(&address)?.iter().filter(|(user, _)| *user != name);
        others.find_map(|(user, theirs)| claim.conflict(theirs).map(|why| (user.clone(), why)))
    }

    /// The lowest address of `range` that `name` may use: a free one, or one that it may share if
    /// that comes earlier. `skip` answers, for an address that must be passed over, with the last
    /// one of the stretch it lies in.
    pub(super) fn lowest(
        &self,
        range: AddressRange,
        skip: &dyn Fn(IpAddr) -> Option<IpAddr>,
        name: &ObjectName,
        claim: &Claim,
    ) -> Option<IpAddr> {
        let free = self.lowest_free(range, skip);
        let shareable = claim.sharing_key().and_then(|key| self.by_sharing_key.get(key));
        let shared = shareable.and_then(|addresses| {
            addresses
                .range(range.first()..=range.last())
                .copied()
                .take_while(|address| free.is_none_or(|free| *address < free))
                .filter(|address| skip(*address).is_none())
                .find(|address| self.conflict(*address, name, claim).is_none())
        });
        shared.or(free)
    }

    fn lowest_free(
        &self,
        range: AddressRange,
        skip: &dyn Fn(IpAddr) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        let runs = self.runs(range.first());
        let last = number(range.last());
        let mut next = number(range.first());
        while next <= last {
            let candidate = address(range.family(), next)?;
            let passed = runs.end(next).or_else(|| skip(candidate).map(number));
            match passed {
                Some(end) => next = end.max(next).checked_add(1)?,
                None => return Some(candidate),
            }
        }
        None
    }

    fn runs(&self, address: IpAddr) -> &Runs {
        match address {
            IpAddr::V4(_) => &self.ipv4,
            IpAddr::V6(_) => &self.ipv6,
        }
    }

    fn runs_mut(&mut self, address: IpAddr) -> &mut Runs {
        match address {
            IpAddr::V4(_) => &mut self.ipv4,
            IpAddr::V6(_) => &mut self.ipv6,
        }
    }
}

/// A set of numbers as runs, each from its first to its last number. No two touch.
#[derive(Debug, Clone, Default)]
struct Runs(BTreeMap<u128, u128>);

impl Runs {
    /// The last number of the run that holds `number`, if one does.
    fn end(&self, number: u128) -> Option<u128> {
        self.containing(number).map(|(_, last)| last)
    }

    fn containing(&self, number: u128) -> Option<(u128, u128)> {
        let (first, last) = self.0.range(..=number).next_back()?;
        (number <= *last).then_some((*first, *last))
    }

    fn insert(&mut self, number: u128) {
        if self.containing(number).is_some() {
            return;
        }
        let before = number.checked_sub(1).and_then(|before| self.containing(before));
        let after = number.checked_add(1).and_then(|after| self.0.remove(&after));
        let first = before.map_or(number, |(first, _)| first);
        self.0.insert(first, after.unwrap_or(number));
    }

    fn remove(&mut self, number: u128) {
        let Some((first, last)) = self.containing(number) else {
            return;
        };
        self.0.remove(&first);
        if let Some(before) = number.checked_sub(1).filter(|before| first <= *before) {
            self.0.insert(first, before);
        }
        if let Some(after) = number.checked_add(1).filter(|after| *after <= last) {
            self.0.insert(after, last);
        }
    }
}

/// An address as a number, for arithmetic inside one family.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address of a number; `None` when the family has no such number.
fn address(family: AddressFamily, number: u128) -> Option<IpAddr> {
    match family {
        AddressFamily::Ipv4Unicast => {
            u32::try_from(number).ok().map(|number| IpAddr::V4(Ipv4Addr::from(number)))
        }
        AddressFamily::Ipv6Unicast => Some(IpAddr::V6(Ipv6Addr::from(number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_say_the_same_as_a_plain_set() {
        let mut random = fairway_sessions::rng::Rng::seeded(11);
        let (mut runs, mut plain) = (Runs::default(), BTreeSet::new());
        for _ in 0..20_000 {
            let number = u128::from(random.next_u64() % 64);
            if random.next_u64().is_multiple_of(2) {
                runs.insert(number);
                plain.insert(number);
            } else {
                runs.remove(number);
                plain.remove(&number);
            }
            let lowest = (0..).find(|candidate| !plain.contains(candidate));
            assert_eq!(Some(runs.end(0).map_or(0, |end| end + 1)), lowest);
            let spans: Vec<_> = runs.0.iter().map(|(first, last)| (*first, *last)).collect();
            assert!(spans.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{spans:?}");
            let total: u128 = spans.iter().map(|(first, last)| last - first + 1).sum();
            assert_eq!(total, u128::try_from(plain.len()).unwrap());
        }
    }

    #[test]
    fn the_ends_of_the_number_line_are_ordinary_places() {
        let mut runs = Runs::default();
        for number in [u128::MAX, 0, u128::MAX - 1, 1] {
            runs.insert(number);
        }
        assert_eq!(runs.end(0), Some(1));
        assert_eq!(runs.end(u128::MAX - 1), Some(u128::MAX));
        runs.remove(u128::MAX);
        runs.remove(0);
        assert_eq!(runs.end(0), None);
        assert_eq!(runs.end(u128::MAX), None);
    }
}
