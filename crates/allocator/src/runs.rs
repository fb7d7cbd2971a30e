//! Sets of addresses as runs of adjacent ones, to find the first address that is not in a set.
//!
//! A run is maximal: no two touch. So "the first address at or after this one that is not in the
//! set" is one look-up, O(log runs), however many addresses a run covers and however many runs
//! come before it. Knows nothing of why an address is in a set. Called by `occupancy` and `pools`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A set of addresses of both families.
#[derive(Debug, Clone, Default)]
pub(super) struct AddressRuns {
    ipv4: Runs,
    ipv6: Runs,
}

impl AddressRuns {
    /// Adds `first` and `last`, of one family, and all between.
    pub(super) fn insert(&mut self, first: IpAddr, last: IpAddr) {
        self.of_mut(first).insert(number(first), number(last));
    }

    /// Removes one address.
    pub(super) fn remove(&mut self, address: IpAddr) {
        self.of_mut(address).remove(number(address));
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.ipv4.0.is_empty() && self.ipv6.0.is_empty()
    }

    /// Whether `address` is in it.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        self.of(address).end(number(address)).is_some()
    }

    /// The last address of the run that holds `address`, if one does.
    pub(super) fn end(&self, address: IpAddr) -> Option<IpAddr> {
        let last = self.of(address).end(number(address))?;
        Some(match address {
            // A run of IPv4 addresses ends with the number of an IPv4 address.
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(last).unwrap_or(u32::MAX))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(last)),
        })
    }

    fn of(&self, address: IpAddr) -> &Runs {
        match address {
            IpAddr::V4(_) => &self.ipv4,
            IpAddr::V6(_) => &self.ipv6,
        }
    }

    fn of_mut(&mut self, address: IpAddr) -> &mut Runs {
        match address {
            IpAddr::V4(_) => &mut self.ipv4,
            IpAddr::V6(_) => &mut self.ipv6,
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

/// The address after `address`, if its family has one.
pub(super) fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(it) => u32::from(it).checked_add(1).map(|next| IpAddr::V4(next.into())),
        IpAddr::V6(it) => u128::from(it).checked_add(1).map(|next| IpAddr::V6(next.into())),
    }
}

/// The address before `address`, if its family has one.
pub(super) fn before(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(it) => u32::from(it).checked_sub(1).map(|before| IpAddr::V4(before.into())),
        IpAddr::V6(it) => u128::from(it).checked_sub(1).map(|before| IpAddr::V6(before.into())),
    }
}

/// Numbers as runs, each from its first to its last.
#[derive(Debug, Clone, Default)]
struct Runs(BTreeMap<u128, u128>);

impl Runs {
    fn end(&self, number: u128) -> Option<u128> {
        self.containing(number).map(|(_, last)| last)
    }

    fn containing(&self, number: u128) -> Option<(u128, u128)> {
        let (first, last) = self.0.range(..=number).next_back()?;
        (number <= *last).then_some((*first, *last))
    }

    fn insert(&mut self, mut first: u128, mut last: u128) {
        let before = self.0.range(..=first).next_back().map(|(first, last)| (*first, *last));
        if let Some((begin, end)) = before.filter(|(_, end)| first <= end.saturating_add(1)) {
            first = begin;
            last = last.max(end);
        }
        // Those that begin inside, or right after.
        while let Some((begin, end)) =
            self.0.range(first..=last.saturating_add(1)).next().map(|(first, last)| (*first, *last))
        {
            self.0.remove(&begin);
            last = last.max(end);
        }
        self.0.insert(first, last);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn runs_say_the_same_as_a_plain_set() {
        let mut random = fairway_ground::Rng::seeded(11);
        let (mut runs, mut plain) = (Runs::default(), BTreeSet::new());
        for _ in 0..20_000 {
            let number = u128::from(random.next_u64() % 64);
            if random.next_u64().is_multiple_of(2) {
                let last = number + u128::from(random.next_u64() % 4);
                runs.insert(number, last);
                plain.extend(number..=last);
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
            runs.insert(number, number);
        }
        assert_eq!(runs.end(0), Some(1));
        assert_eq!(runs.end(u128::MAX - 1), Some(u128::MAX));
        runs.remove(u128::MAX);
        runs.remove(0);
        assert_eq!(runs.end(0), None);
        assert_eq!(runs.end(u128::MAX), None);
        let mut runs = AddressRuns::default();
        let last = IpAddr::V4(Ipv4Addr::BROADCAST);
        runs.insert(before(last).unwrap(), last);
        assert_eq!(runs.end(last), Some(last));
        assert_eq!(after(last), None);
    }
}
