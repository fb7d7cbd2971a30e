//! What all caches say, and whose state a change of it concerns.
//!
//! A payload of several caches counts once, until the last of them takes it back.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairway_ground::{Prefix, RoaPayload};

use super::origin_table::OriginTable;

/// A cache says something, or does not say it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PayloadChange {
    /// It says so.
    Announced(RoaPayload),
    /// It has taken it back.
    Withdrawn(RoaPayload),
}

/// Prefixes whose routes, and those of prefixes inside them, may have another state than before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Concerned {
    /// Sorted; none is inside another.
    prefixes: Vec<Prefix>,
}

impl FromIterator<Prefix> for Concerned {
    fn from_iter<I: IntoIterator<Item = Prefix>>(prefixes: I) -> Self {
        let mut prefixes: Vec<Prefix> = prefixes.into_iter().collect();
        // A prefix is sorted before those inside it.
        prefixes.sort_unstable();
        prefixes.dedup_by(|inner, outer| outer.contains(inner.address()));
        Self { prefixes }
    }
}

impl Concerned {
    /// All prefixes.
    pub fn everything() -> Self {
        let unspecified: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        unspecified.into_iter().filter_map(|it| Prefix::new(it, 0).ok()).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Whether a route to `prefix` may have another state.
    pub fn contains(&self, prefix: Prefix) -> bool {
        let after = self.prefixes.partition_point(|it| *it <= prefix);
        let nearest = after.checked_sub(1).and_then(|place| self.prefixes.get(place));
        nearest.is_some_and(|it| it.contains(prefix.address()))
    }

    /// Those of `other`, too.
    pub fn add(&mut self, other: Self) {
        let all = std::mem::take(&mut self.prefixes).into_iter().chain(other.prefixes);
        *self = all.collect();
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Payloads {
    /// How many caches say each.
    counts: BTreeMap<RoaPayload, u16>,
}

impl Payloads {
    /// What a cache says has changed. Returns whose state may be another one now.
    pub fn apply(&mut self, changes: &[PayloadChange]) -> Concerned {
        let mut apply = |change: &PayloadChange| {
            let (payload, has_changed) = match *change {
                PayloadChange::Announced(payload) => (payload, self.add(payload)),
                PayloadChange::Withdrawn(payload) => (payload, self.remove(payload)),
            };
            has_changed.then_some(payload.prefix)
        };
        changes.iter().filter_map(&mut apply).collect()
    }

    /// Whether it was not there.
    fn add(&mut self, payload: RoaPayload) -> bool {
        let count = self.counts.entry(payload).or_default();
        *count = count.saturating_add(1);
        *count == 1
    }

    /// Whether no cache says it any more.
    fn remove(&mut self, payload: RoaPayload) -> bool {
        let Some(count) = self.counts.get_mut(&payload) else { return false };
        *count = count.saturating_sub(1);
        let is_last = *count == 0;
        if is_last {
            self.counts.remove(&payload);
        }
        is_last
    }

    /// How routes are judged by all of it.
    pub fn table(&self) -> OriginTable {
        self.counts.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_two_caches_goes_with_the_second() {
        let payload =
            RoaPayload { prefix: "192.0.2.0/24".parse().unwrap(), length_max: 24, asn: 65_010 };
        let (said, taken_back) =
            (PayloadChange::Announced(payload), PayloadChange::Withdrawn(payload));
        let concerned = Concerned::from_iter([payload.prefix]);
        let mut payloads = Payloads::default();
        assert_eq!(payloads.apply(&[said]), concerned);
        assert!(payloads.apply(&[said]).is_empty());
        assert_eq!(payloads.table().iter().collect::<Vec<_>>(), [payload]);
        assert!(payloads.apply(&[taken_back]).is_empty());
        assert_eq!(payloads.apply(&[taken_back]), concerned);
        assert!(payloads.table().is_empty());
        // What was never said is not taken back.
        assert!(payloads.apply(&[taken_back]).is_empty());
    }

    #[test]
    fn a_change_concerns_its_prefix_and_those_inside_it() {
        let prefixes = ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "192.0.2.0/25"];
        let mut concerned: Concerned = prefixes.iter().map(|it| it.parse().unwrap()).collect();
        concerned.add(Concerned::from_iter(["::/0".parse().unwrap()]));
        assert_eq!(concerned.prefixes.len(), 3);
        assert!(Concerned::everything().contains("0.0.0.0/0".parse().unwrap()));
        for (prefix, is_in) in [
            ("10.0.0.0/8", true),
            ("10.2.3.0/24", true),
            ("0.0.0.0/0", false),
            ("10.0.0.0/7", false),
            ("11.0.0.0/8", false),
            ("192.0.2.0/24", true),
            ("192.0.2.255/32", true),
            ("192.0.3.0/24", false),
            ("2001:db8::/32", true),
        ] {
            assert_eq!(concerned.contains(prefix.parse().unwrap()), is_in, "{prefix}");
        }
    }
}
