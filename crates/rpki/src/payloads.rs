//! What all caches say, and the state of a route by it (RFC 6811).
//!
//! A payload of several caches counts once, until the last of them takes it back.

use std::collections::BTreeMap;

use fairway_ground::{AddressFamily, AsPath, AsPathSegment, OriginValidation, PerFamily, Prefix};

/// An AS may originate a prefix, and prefixes in it up to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Payload {
    /// The prefix.
    pub prefix: Prefix,
    /// The longest prefix in it, in bits; not less than its own length.
    pub length_max: u8,
    /// The AS; 0 stands for none (RFC 6483 §4).
    pub asn: u32,
}

/// A cache says something, or does not say it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PayloadChange {
    /// It says so.
    Announced(Payload),
    /// It has taken it back.
    Withdrawn(Payload),
}

/// What is known of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    length_max: u8,
    asn: u32,
    /// How many caches say so.
    count: u16,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Payloads {
    by_prefix: BTreeMap<Prefix, Vec<Entry>>,
    /// How many prefixes there are of each length, so that lengths without any cost nothing.
    lengths: PerFamily<BTreeMap<u8, u32>>,
    count: usize,
}

impl Payloads {
    /// How many payloads there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One cache has changed its mind. Returns the prefixes whose routes, and those of prefixes inside them, may have
    /// another state now.
    pub fn apply(&mut self, changes: &[PayloadChange]) -> Vec<Prefix> {
        let mut concerned = Vec::new();
        for change in changes {
            let (payload, has_changed) = match *change {
                PayloadChange::Announced(payload) => (payload, self.add(payload)),
                PayloadChange::Withdrawn(payload) => (payload, self.remove(payload)),
            };
            if has_changed {
                concerned.push(payload.prefix);
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }

    /// Whether it was not there.
    fn add(&mut self, payload: Payload) -> bool {
        let Payload { prefix, length_max, asn } = payload;
        let entries = self.by_prefix.entry(prefix).or_default();
        let is_same = |it: &&mut Entry| (it.length_max, it.asn) == (length_max, asn);
        if let Some(entry) = entries.iter_mut().find(is_same) {
            entry.count = entry.count.saturating_add(1);
            return false;
        }
        if entries.is_empty() {
            let lengths = self.lengths.of_mut(prefix.family());
            let count = lengths.entry(prefix.length()).or_default();
            *count = count.saturating_add(1);
        }
        entries.push(Entry { length_max, asn, count: 1 });
        self.count = self.count.saturating_add(1);
        true
    }

    /// Whether no cache says it any more.
    fn remove(&mut self, payload: Payload) -> bool {
        let Payload { prefix, length_max, asn } = payload;
        let Some(entries) = self.by_prefix.get_mut(&prefix) else { return false };
        let is_same = |it: &Entry| (it.length_max, it.asn) == (length_max, asn);
        let Some(place) = entries.iter().position(is_same) else { return false };
        let Some(entry) = entries.get_mut(place) else { return false };
        entry.count = entry.count.saturating_sub(1);
        if entry.count > 0 {
            return false;
        }
        entries.swap_remove(place);
        self.count = self.count.saturating_sub(1);
        if entries.is_empty() {
            self.by_prefix.remove(&prefix);
            let lengths = self.lengths.of_mut(prefix.family());
            if let Some(count) = lengths.get_mut(&prefix.length()) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    lengths.remove(&prefix.length());
                }
            }
        }
        true
    }

    /// The state of a route to `prefix` that `origin` originates; `None` where that cannot be told (see [`origin`]).
    pub fn state(&self, prefix: Prefix, origin: Option<u32>) -> OriginValidation {
        let mut is_covered = false;
        for length in self.lengths.of(prefix.family()).range(..=prefix.length()).map(|it| *it.0) {
            let Ok(covering) = Prefix::new(prefix.address(), length) else { continue };
            for entry in self.by_prefix.get(&covering).into_iter().flatten() {
                is_covered = true;
                let is_allowed = entry.asn != 0 && Some(entry.asn) == origin;
                if is_allowed && prefix.length() <= entry.length_max {
                    return OriginValidation::Valid;
                }
            }
        }
        if is_covered { OriginValidation::Invalid } else { OriginValidation::NotFound }
    }

    /// Whether anything is said of prefixes of a family.
    pub fn has(&self, family: AddressFamily) -> bool {
        !self.lengths.of(family).is_empty()
    }
}

/// The AS that originates a route with this path, which is received in `own_asn`: the last one of the path, or ours if the
/// path is empty. `None` if the path ends in a set (RFC 6811 §2).
pub fn origin(path: &AsPath, own_asn: u32) -> Option<u32> {
    match path.0.last() {
        None => Some(own_asn),
        Some(AsPathSegment::Sequence(asns)) => asns.last().copied(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OriginValidation::{Invalid, NotFound, Valid};

    fn payload(prefix: &str, length_max: u8, asn: u32) -> Payload {
        Payload { prefix: prefix.parse().unwrap(), length_max, asn }
    }

    fn of(payloads: &[Payload]) -> Payloads {
        let mut table = Payloads::default();
        let changes: Vec<_> = payloads.iter().copied().map(PayloadChange::Announced).collect();
        table.apply(&changes);
        table
    }

    #[test]
    fn a_route_has_one_of_three_states() {
        let table = of(&[
            payload("192.0.2.0/24", 24, 65_010),
            payload("198.51.0.0/16", 20, 65_010),
            payload("198.51.100.0/24", 24, 65_020),
            payload("203.0.113.0/24", 32, 0),
            payload("2001:db8::/32", 48, 65_010),
        ]);
        for (prefix, origin, state) in [
            ("192.0.2.0/24", Some(65_010), Valid),
            ("192.0.2.0/24", Some(65_020), Invalid),
            // A set at the end of the path has no origin.
            ("192.0.2.0/24", None, Invalid),
            ("192.0.2.0/25", Some(65_010), Invalid),
            ("192.0.0.0/16", Some(65_010), NotFound),
            ("198.51.16.0/20", Some(65_010), Valid),
            ("198.51.16.0/21", Some(65_010), Invalid),
            // One payload that matches is enough.
            ("198.51.100.0/24", Some(65_020), Valid),
            ("198.51.100.0/24", Some(65_010), Invalid),
            // AS 0 originates nothing.
            ("203.0.113.0/24", Some(0), Invalid),
            ("2001:db8:7::/48", Some(65_010), Valid),
            ("2001:db8:7::/49", Some(65_010), Invalid),
            ("2001:db9::/32", Some(65_010), NotFound),
            ("0.0.0.0/0", Some(65_010), NotFound),
        ] {
            assert_eq!(table.state(prefix.parse().unwrap(), origin), state, "{prefix} {origin:?}");
        }
    }

    #[test]
    fn a_payload_of_two_caches_goes_with_the_second() {
        let one = payload("192.0.2.0/24", 24, 65_010);
        let mut table = of(&[one, one]);
        assert_eq!(table.len(), 1);
        assert!(table.apply(&[PayloadChange::Withdrawn(one)]).is_empty());
        assert_eq!(table.apply(&[PayloadChange::Withdrawn(one)]), [one.prefix]);
        assert!(table.is_empty() && !table.has(AddressFamily::Ipv4Unicast));
        // What was never said is not taken back.
        assert!(table.apply(&[PayloadChange::Withdrawn(one)]).is_empty());
    }

    #[test]
    fn the_origin_is_the_last_as_of_the_path() {
        let sequence = |asns: &[u32]| AsPathSegment::Sequence(asns.to_vec());
        let set = AsPathSegment::Set(vec![65_020]);
        assert_eq!(origin(&AsPath::default(), 65_001), Some(65_001));
        assert_eq!(origin(&AsPath(vec![sequence(&[65_010, 65_020])]), 65_001), Some(65_020));
        assert_eq!(origin(&AsPath(vec![sequence(&[65_010]), set]), 65_001), None);
    }
}
